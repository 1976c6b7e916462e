"""Noisy counts of labels and row weights in cells, to narrow their declared ranges."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..accounting.events import GaussianEvent, PlainEvent
from ..accounting.sensitivity import LABEL_CELLS, LabelSumSizes, RowBound
from ..parameters.config import Config
from ..parameters.parameter import SPENDS, Parameter, Rule, Table
from ..parameters.parse import OneOf
from .label_sums import labels_request
from .mechanism import EXACT_BITS, DrawBudget, Mechanism, Noise, count_noise

_SHARE = 0.015
# Number of weight cells between 1 and the bound; the others are below 1.
_ABOVE_ONE = 44
JUST_ABOVE = 1.0 + 2.0**-20
"""Factor that raises edges between weights, so that a weight equal to an edge is below it."""


def _may_be_released(s: Config) -> bool:
    """Whether one target has a declared range and a scaled loss, and noise is Gaussian.

    With masked sums the workers must agree on the range of labels in advance.
    """
    known = s.target is not None and s.objective.has_unit
    return known and s.may_draw_gaussian and not s["dp_secure_aggregation"]


def _may_count_weights(s: Config) -> bool:
    """Whether weights scale the gradients (their bound exceeds 1) and noise may be Gaussian."""
    bounded = (s["dp_max_weight"] or 1.0) > 1.0 and s["dp_objective"] is None
    return bounded and s.may_draw_gaussian and not s["dp_secure_aggregation"]


def _released(may_be: Callable[[Config], bool], *chosen: str) -> Callable[[Config], str]:
    """Default: "released", unless the user sets budget shares or a bound in this unit."""
    names = {"dp_budget_shares", "dp_gradient_bound", *chosen}

    def default(s: Config) -> str:
        released = may_be(s) and s["dp_preset"] == "default" and not names & set(s.given)
        return "released" if released else "declared"

    return default


# fmt: off
_PARAMETERS = (
    Parameter("dp_target_unit", "Unit of the gradients and label sums of a regression: from "
              "noisy counts of the labels ('released'), or half the width of "
              "dp_target_bounds ('declared').",
              OneOf(("released", "declared")), _released(_may_be_released, "huber_slope"), SPENDS,
              "sensitivity", Table.DEFAULT, shown="'released' for regression in the default "
              "preset without dp_gradient_bound, huber_slope and dp_budget_shares; otherwise "
              "'declared'"),
    Parameter("dp_weight_unit", "Unit of row weights. 'released': from noisy counts of the "
              "weights; larger weights are reduced to it, and penalties and "
              "min_child_weight are measured in it. 'declared': 1.",
              OneOf(("released", "declared")), _released(_may_count_weights, "dp_hessian_weight"),
              SPENDS, "sensitivity", Table.DEFAULT, shown="'released' for dp_max_weight above 1 in "
              "the default preset without dp_gradient_bound, dp_hessian_weight and "
              "dp_budget_shares; otherwise 'declared'", recorded=False),
)
_RULES = (
    Rule("target unit needs one target",
         lambda s: s["dp_target_unit"] == "released" and not _may_be_released(s),
         "`dp_target_unit`='released' requires Gaussian noise and a regression with one target and "
         "a declared range. It is not available for several targets, custom objectives, "
         "classification or shares (here {objective}), nor with {`dp_accountant`}='pure' or "
         "dp_secure_aggregation. Remove it."),
    Rule("weight unit needs bounded weights",
         lambda s: s["dp_weight_unit"] == "released" and not _may_count_weights(s),
         "`dp_weight_unit`='released' requires Gaussian noise and a {`dp_max_weight`} above 1. It "
         "is not available for custom objectives, nor with {`dp_accountant`}='pure' or "
         "dp_secure_aggregation. Remove it."),
)
# fmt: on


def edges(low: float, high: float) -> list[float]:
    """Edges between the cells of a range, in ascending order."""
    anchor = min(max(0.0, low), high)
    sides = [side for side in (low - anchor, high - anchor) if side]
    count = LABEL_CELLS // len(sides) - 1
    octaves = np.arange(1, count + 1) * len(sides) / 2.0  # half octaves of one side, octaves of two
    inner = [anchor + side * 2.0**-octaves for side in sides]
    return sorted(float(v) for v in np.concatenate([*inner, [anchor] * (len(sides) - 1)]))


def weight_edges(most: float) -> list[float]:
    """Edges between weight cells up to a bound above 1, in ascending order; 1 is an edge."""
    steps = np.arange(1 - LABEL_CELLS + _ABOVE_ONE, _ABOVE_ONE)
    return [min(float(v), most) for v in JUST_ABOVE * most ** (steps / _ABOVE_ONE)]


def _lists(s: Config) -> int:
    """Number of lists of cells: labels, row weights, or both."""
    return (s["dp_target_unit"] == "released") + s.counts_weights


@dataclass(frozen=True)
class LabelRange(Mechanism):
    """Counts of labels by distance from the point of the range nearest to 0, and of weights.

    Proof: docs/proofs/sensitivity.md
    """

    name = "range"
    section = ("before", "range")
    integers = ("sigma2", "shift")
    share = "range"
    always_listed = False
    exact_shift = EXACT_BITS  # the rows of a person share one count
    decides = True
    words = (("range", "the range of the labels or row weights (noisy counts)"),)
    parameters = _PARAMETERS
    rules = _RULES

    lists: int  # lists of cells; a row is in one cell of each
    shift: int = 0  # counts are multiplied by 2**shift

    @classmethod
    def is_enabled(cls, s: Config) -> bool:
        """Whether ``dp_target_unit`` or ``dp_weight_unit`` is "released"."""
        return _lists(s) > 0

    @classmethod
    def default_share(cls, s: Config, given: Mapping[str, float]) -> float:
        """Enough to find the scale of the labels up to a factor, and the largest weights."""
        return _SHARE * max(_lists(s), 1)

    @classmethod
    def plan_section(cls, s: Config) -> dict[str, Any]:
        """The request for the counts, with the edges of the cells."""
        if not cls.is_enabled(s):
            return {}
        request = labels_request(s, "range") | {"num_class": LABEL_CELLS * _lists(s)}
        if s["dp_target_unit"] == "released":
            assert s.target is not None
            request["edges"] = edges(*s.target)
        if s.counts_weights:
            request["weight_edges"] = weight_edges(s["dp_max_weight"])
        return {"before": {"range": request}}

    @classmethod
    def from_plan(cls, plan: Mapping[str, Any], bound: RowBound) -> LabelRange | None:
        """One count for each cell."""
        request = plan["before"].get("range")
        if request is None:
            return None
        return cls(
            bound, LabelSumSizes.from_request(request).count // LABEL_CELLS, request.get("shift", 0)
        )

    def _measure(self, shift: int) -> tuple[int, int]:
        cells = LabelSumSizes("range", shift, True, self.lists * LABEL_CELLS, False, False)
        return cells.measure(person=self.persons)

    def noise(self, budget: DrawBudget, grid_bits: int) -> Noise:
        """Gaussian noise on each count."""
        return count_noise(self._measure(0)[0], budget.mu2, persons=self.persons)

    def event(self, noise: Noise, grid_bits: int, count: int) -> PlainEvent:
        """The event of the counts of labels and weights."""
        sens2, coordinates = self._measure(noise.shift)
        return GaussianEvent(self.name, sens2, noise.sigma2, coordinates, count)
