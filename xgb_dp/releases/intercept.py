"""Sums of the labels before the first tree, or the number of rows alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..accounting.events import PlainEvent
from ..accounting.sensitivity import Labels
from ..errors import PrivacyParameterError
from ..parameters import parse
from ..parameters.parameter import PUBLIC, Parameter, Rule, Table
from .release import EXACT_BITS, Asked, Noise, Part, Release, noisy_counts

if TYPE_CHECKING:
    from ..request.settings import Settings

_COUNT = 0.009  # share of the label sums, and of the number of rows where it is released alone
_MEAN = 0.027
_LARGEST, _LARGEST_EXPOSURE = 1e30, 1e12  # of means, and of exposures; the least is its inverse


def _exposures(name: str, value: Any, s: Settings) -> tuple[float, float]:
    """A public range of exposures."""
    low, high = parse.parse_range(name, value)
    if not 1 / _LARGEST_EXPOSURE <= low < high <= _LARGEST_EXPOSURE:
        raise PrivacyParameterError(
            f"`{name}` must lie within 1e-12 and 1e12: it is a range of exp(base_margin), above 0. "
            "Choose another unit for the exposures."
        )
    return low, high


def _intercepts(name: str, value: Any, s: Settings) -> float | list[float]:
    """A public intercept: one number, or one for each of several classes."""
    scores = parse.listed(value)
    if scores is None:
        return _one(name, value, s)
    if s.trees_per_round > 1 and len(scores) == s.trees_per_round:
        return [_one(name, v, s) for v in scores]
    numbers = [_finite(name, v) for v in scores]
    if len(numbers) != 1:
        raise PrivacyParameterError(
            "`base_score` must be one number (several classes, quantiles or targets: or one "
            "for each)."
        )
    return _one(name, numbers[0], s)


def _one(name: str, value: Any, s: Settings) -> float:
    number, objective = _finite(name, value), s["objective"]
    # binary:logitraw takes a margin.
    share = objective == "binary:logistic" or s.objective.link == "logit"
    if share and not 0 < np.float32(number) < 1:
        raise PrivacyParameterError(
            f"`{name}` must be above 0 and below 1 for {objective}, as a 32-bit number too: it is "
            f"the mean of the labels; got {number!r}."
        )
    if s.objective.link == "log" and not 1 / _LARGEST <= number <= _LARGEST:
        raise PrivacyParameterError(
            f"`{name}` must lie within 1e-30 and 1e30 for {objective}: it is the mean of the "
            f"labels, and the model starts from its logarithm; got {number!r}."
        )
    return number


def _finite(name: str, value: Any) -> float:
    """A number that XGBoost, which keeps 32-bit floats, takes for finite."""
    largest = float(np.finfo(np.float32).max)
    return parse.parse_number(name, value, low=-largest, high=largest)


def _reads_labels(s: Settings) -> bool:
    """Whether sums of the labels are released before the first tree."""
    return s.intercept == "released" or s.measured


# fmt: off
_PARAMETERS = (
    Parameter("dp_exposure_bounds", "range of exp(base_margin), such as the exposures of policies, "
              "for the released start of count:poisson, reg:gamma and reg:tweedie; what is beyond "
              "counts as its end there", _exposures, None, PUBLIC, "sensitivity", Table.LOSSES,
              unit="exposure", values="(low, high) within 1e-12 and 1e12",
              shown="none, must be given with dp_base_margin for these objectives", recorded=False),
    Parameter("base_score", "public intercept", _intercepts, None, PUBLIC, "XGBoost",
              unit="prediction; binary:logitraw and several classes: margins",
              values="number, or list of K for several classes or targets",
              shown="released privately", recorded=False),
)
_RULES = (
    Rule("a continued model brings base_score",
         lambda s: s.continues and "base_score" in s.given,
         "`base_score` cannot be given with xgb_model, which brings its own. Leave it out."),
    Rule("exposures have a range",
         lambda s: (s.measured and s["dp_base_margin"] and not s.continues
                    and s["dp_exposure_bounds"] is None),
         "`dp_exposure_bounds` is missing: with dp_base_margin, {objective} needs a public range "
         "of exp(base_margin), e.g. dp_exposure_bounds=(0.003, 1) for a day up to a year."),
    Rule("exposures are of rows with margins",
         lambda s: s["dp_exposure_bounds"] is not None and not (
             s.objective.intercept == "capped mean" and s["dp_base_margin"]),
         "`dp_exposure_bounds` is for count:poisson, reg:gamma and reg:tweedie with "
         "dp_base_margin. Leave it out, or declare dp_base_margin=True."),
)
# fmt: on


@dataclass(frozen=True)
class Intercept(Release):
    """Sums of the labels and of rows, from which the intercept follows.

    Proof: docs/proofs/sensitivity.md
    """

    name = "intercept"
    share = "base_score"
    of_count = _COUNT
    exact_shift = EXACT_BITS  # labels are not rounded to the ends of their range
    decides = True
    words = (
        ("intercept", "the intercept (noisy label sums)"),
        ("rows", "the number of rows (a noisy count)"),
    )
    parameters = _PARAMETERS
    rules = _RULES

    # "binary", "regression", "targets", "multiclass" or "cells"; "rows" where the intercept is
    # public, but the number of rows is released
    kind: str
    n_public: bool = False  # whether the number of rows is public (then one sum less is needed)
    outputs: int = 1  # classes or targets, K >= 1
    presence: bool = False  # whether the share of its cells that each row has is released too
    exposures: bool = False  # whether the sum of exposures is released too
    draws: int = 1  # how often the sums are released, of labels cut elsewhere each time

    @classmethod
    def wanted(cls, s: Settings) -> bool:
        """Where the intercept is released; the number of rows is asked for besides."""
        return _reads_labels(s)

    @classmethod
    def default_share(cls, s: Settings, given: Mapping[str, float]) -> float:
        """More where the mean of a regression is not corrected after training."""
        return _MEAN if s.kind == "regression" and not s["dp_mean_correction"] else _COUNT

    @classmethod
    def of(cls, asked: Asked) -> Intercept:
        """The labels, or the number of rows by which plans are chosen."""
        s = asked.settings
        return cls(
            s.row_bound.of_person,
            kind=s.intercept_kind if _reads_labels(s) else "rows",
            n_public=s["dp_n_public"] is not None,
            outputs=s.trees_per_round,
            presence=asked.presence,
            exposures=s.exposures is not None,
            draws=2 if s.measured else 1,
        )

    def noise(self, part: Part, grid_bits: int) -> tuple[Noise, PlainEvent]:
        """Gaussian noise on each sum."""
        sums = Labels(self.kind, 0, self.n_public, self.outputs, self.presence, self.exposures)
        units, coordinates = sums.measure(person=self.persons)
        label = "rows" if self.kind == "rows" else self.name
        return noisy_counts(label, units, coordinates, part, self.draws, persons=self.persons)
