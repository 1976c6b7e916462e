"""Sums of the labels before the first tree, or only the number of rows."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..accounting.events import GaussianEvent, PlainEvent
from ..accounting.sensitivity import LABEL_CELLS, LabelSumSizes, RowBound
from ..errors import PrivacyParameterError
from ..parameters import parse
from ..parameters.config import Config
from ..parameters.parameter import PUBLIC, Parameter, Rule, Table
from .mechanism import EXACT_BITS, DrawBudget, Mechanism, Noise, count_noise

_COUNT = 0.009  # budget share of the label sums, or of the number of rows alone
_MEAN = 0.027
_LARGEST, _LARGEST_EXPOSURE = 1e30, 1e12  # largest means and exposures; the smallest are inverses


def _exposures(name: str, value: Any, s: Config) -> tuple[float, float]:
    """Read a public range of exposures."""
    low, high = parse.parse_range(name, value)
    if not 1 / _LARGEST_EXPOSURE <= low < high <= _LARGEST_EXPOSURE:
        raise PrivacyParameterError(
            f"`{name}` is a range of exp(base_margin) and must lie within 1e-12 and 1e12. Choose "
            "another unit for the exposures."
        )
    return low, high


def _intercepts(name: str, value: Any, s: Config) -> float | list[float]:
    """Read a public intercept: one number, or one number per output."""
    scores = parse.listed(value)
    if scores is None:
        return _one(name, value, s)
    if s.trees_per_round > 1 and len(scores) == s.trees_per_round:
        return [_one(name, v, s) for v in scores]
    numbers = [_finite(name, v) for v in scores]
    if len(numbers) != 1:
        raise PrivacyParameterError(
            "`base_score` must be one number, or for several classes, quantiles or targets a list "
            "with one number for each."
        )
    return _one(name, numbers[0], s)


def _one(name: str, value: Any, s: Config) -> float:
    number, objective = _finite(name, value), s["objective"]
    # binary:logitraw takes a margin.
    share = objective == "binary:logistic" or s.objective.link == "logit"
    if share and not 0 < np.float32(number) < 1:
        raise PrivacyParameterError(
            f"`{name}` is a mean label, so it must be above 0 and below 1 for {objective}, also as "
            f"a 32-bit number; got {number!r}."
        )
    if s.objective.link == "log" and not 1 / _LARGEST <= number <= _LARGEST:
        raise PrivacyParameterError(
            f"`{name}` must lie within 1e-30 and 1e30 for {objective}: it is a mean label, and the "
            f"model starts from its logarithm; got {number!r}."
        )
    return number


def _public_start(s: Config) -> Any:
    """Published systems start from an intercept without information; otherwise it is released."""
    published = s["dp_preset"] != "default" and not s.continues and s.trees_per_round == 1
    return s.neutral_base_score if published else None


def _finite(name: str, value: Any) -> float:
    """Read a number that is finite as a 32-bit float, the precision of XGBoost."""
    largest = float(np.finfo(np.float32).max)
    return parse.parse_number(name, value, low=-largest, high=largest)


# fmt: off
_PARAMETERS = (
    Parameter("dp_exposure_bounds", "Range to which exposures exp(base_margin) are clipped in "
                                    "the intercept of count:poisson, reg:gamma and reg:tweedie.",
              _exposures, None, PUBLIC, "sensitivity", Table.LOSSES,
              unit="exposure", values="(low, high) within 1e-12 and 1e12",
              shown="none; required with dp_base_margin for these objectives", recorded=False),
    Parameter("base_score", "Public intercept.", _intercepts, _public_start, PUBLIC, "XGBoost",
              unit="prediction; margin for binary:logitraw and several classes",
              values="number, or list of K numbers for several classes or targets",
              shown="none; the intercept is released privately", recorded=False),
)
_RULES = (
    Rule("no base_score with xgb_model",
         lambda s: s.continues and "base_score" in s.given,
         "`base_score` cannot be combined with xgb_model, which has its own intercept. Remove it."),
    Rule("base margins need exposure bounds",
         lambda s: (s.needs_label_mean and s["dp_base_margin"] and not s.continues
                    and s["dp_exposure_bounds"] is None),
         "`dp_exposure_bounds` is missing: with dp_base_margin, {objective} needs a public range "
         "of exp(base_margin), e.g. dp_exposure_bounds=(0.003, 1) for one day to one year."),
    Rule("exposure bounds need base margins",
         lambda s: s["dp_exposure_bounds"] is not None and not (
             s.objective.intercept == "capped mean" and s["dp_base_margin"]),
         "`dp_exposure_bounds` requires count:poisson, reg:gamma or reg:tweedie, and "
         "dp_base_margin=True. Remove it, or set dp_base_margin=True."),
)
# fmt: on


def labels_request(s: Config, kind: str) -> dict[str, Any]:
    """Request for the labels, with their declared range, for a release before the first tree."""
    low, high = s.target if s.target is not None else (0.0, 0.0)
    request: dict[str, Any] = {"kind": kind}
    if s.objective.intervals and kind in ("regression", "range"):
        low, high = math.log(low), math.log(high)
        request["times"] = True
    return request | {"target_lower": low, "target_upper": high}


@dataclass(frozen=True)
class LabelSums(Mechanism):
    """Sums of labels and rows, which determine the intercept.

    Proof: docs/proofs/sensitivity.md
    """

    name = "intercept"
    section = ("before", "intercept")
    integers = ("sigma2", "shift")
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

    labels: LabelSumSizes  # the sums
    draws: int = 1  # number of releases, each with a different clipping of the labels

    @classmethod
    def is_enabled(cls, s: Config) -> bool:
        """Whether the intercept is released. :meth:`plan_section` can request only a row count."""
        return s.intercept == "released" or s.needs_label_mean

    @classmethod
    def default_share(cls, s: Config, given: Mapping[str, float]) -> float:
        """Default budget share; larger if a regression's mean is not corrected after training."""
        return _MEAN if s.kind == "regression" and not s["dp_mean_correction"] else _COUNT

    @classmethod
    def plan_section(
        cls, s: Config, *, counts: bool = False, presence: bool = False
    ) -> dict[str, Any]:
        """The plan's request for the sums of labels.

        Args:
            s: Checked settings.
            counts: Whether to release the number of rows if no intercept is released.
            presence: Whether to release the number of present cells as well.
        """
        if not (cls.is_enabled(s) or counts):
            return {}
        kind = s.intercept_kind if cls.is_enabled(s) else "rows"
        request = labels_request(s, kind)
        request["num_class"] = LABEL_CELLS if kind == "cells" else s.trees_per_round
        request["draws"] = 2 if s.needs_label_mean else 1
        if kind == "targets":
            request["lower"], request["upper"] = zip(*s.targets, strict=True)
        if s.exposures is not None:
            request["exposure_lower"], request["exposure_upper"] = s.exposures
        if s["dp_public_num_rows"] is not None and kind not in ("multiclass", "cells"):
            request["public_num_rows"] = s["dp_public_num_rows"]
        if presence:
            request["columns"] = s.schema.width
        return {"before": {"intercept": request}}

    @classmethod
    def from_plan(cls, plan: Mapping[str, Any], bound: RowBound) -> LabelSums | None:
        """The sums of the request. The kind "rows" has only the number of rows."""
        request = plan["before"].get("intercept")
        if request is None:
            return None
        return cls(bound, LabelSumSizes.from_request(request), request["draws"])

    @property
    def label(self) -> str:
        """Name of the events."""
        return "rows" if self.labels.kind == "rows" else self.name

    @property
    def shift(self) -> int:
        """Sums are multiplied by 2**shift."""
        return self.labels.shift

    def _measure(self, shift: int) -> tuple[int, int]:
        return replace(self.labels, shift=shift).measure(person=self.persons)

    def noise(self, budget: DrawBudget, grid_bits: int) -> Noise:
        """Gaussian noise on each sum."""
        return count_noise(self._measure(0)[0], budget.mu2, persons=self.persons)

    def event(self, noise: Noise, grid_bits: int, count: int) -> PlainEvent:
        """The event of the label sums or of the number of rows."""
        sens2, coordinates = self._measure(noise.shift)
        return GaussianEvent(self.label, sens2, noise.sigma2, coordinates, count)
