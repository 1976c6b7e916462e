"""Counts of labels and of row weights in cells of what is declared, by which that is narrowed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..accounting.events import PlainEvent
from ..accounting.sensitivity import LABEL_CELLS, Labels
from ..parameters.parameter import SPENDS, Parameter, Rule, Table
from ..parameters.parse import Choice
from .release import EXACT_BITS, Asked, Noise, Part, Release, noisy_counts

if TYPE_CHECKING:
    from ..request.settings import Settings

_SHARE = 0.015


def _may_be_released(s: Settings) -> bool:
    """Whether one target has a declared range by which a loss measures, and noise is Gaussian.

    Workers that mask their sums agree on the range of labels beforehand.
    """
    known = s.target is not None and s.objective.has_unit
    return known and s.may_draw_gaussian and not s["dp_secure_sum"]


def _pays(s: Settings) -> str:
    """Released by the default, where the user divides nothing and has set no bound in the unit."""
    chosen = {"dp_budget_shares", "dp_gradient_bound", "huber_slope"} & set(s.given)
    released = _may_be_released(s) and s["dp_preset"] == "default" and not chosen
    return "released" if released else "declared"


def _may_count_weights(s: Settings) -> bool:
    """Whether weights have a bound above 1 that scales gradients, and noise is Gaussian."""
    bounded = (s["dp_max_weight"] or 1.0) > 1.0 and s["dp_objective"] is None
    return bounded and s.may_draw_gaussian and not s["dp_secure_sum"]


def _weights_pay(s: Settings) -> str:
    """Released by the default, where the user divides nothing and sets no bound of a row."""
    chosen = {"dp_budget_shares", "dp_gradient_bound", "dp_hessian_weight"} & set(s.given)
    released = _may_count_weights(s) and s["dp_preset"] == "default" and not chosen
    return "released" if released else "declared"


# fmt: off
_PARAMETERS = (
    Parameter("dp_target_unit", "the unit of the gradients of a regression, and of the range of "
              "its labels. 'released' follows noisy counts of the labels, so that a range that is "
              "declared too wide costs little; 'declared' is half of "
              "dp_target_bounds", Choice(("released", "declared")), _pays, SPENDS, "sensitivity",
              Table.DEFAULT, shown="'declared'; regression by the default without "
              "dp_gradient_bound and dp_budget_shares 'released'"),
    Parameter("dp_weight_unit", "what the weight of a row is divided by, so that rows count at "
              "most one. 'released' follows noisy counts of the weights; heavier rows "
              "count as that unit, and penalties and min_child_weight are in it. "
              "'declared' keeps weights as they are",
              Choice(("released", "declared")), _weights_pay, SPENDS, "sensitivity",
              Table.DEFAULT, shown="'declared'; with dp_max_weight above 1 by the default without "
              "dp_gradient_bound, dp_hessian_weight and dp_budget_shares 'released'",
              recorded=False),
)
_RULES = (
    Rule("a unit is released of one target",
         lambda s: s["dp_target_unit"] == "released" and not _may_be_released(s),
         "`dp_target_unit`='released' is for a regression of one target whose range is declared, "
         "with Gaussian noise: not for {objective} with several targets, an own objective, classes "
         "or shares, nor for {`dp_accountant`}='pure' or dp_secure_sum. Leave it out."),
    Rule("a unit is released of bounded weights",
         lambda s: s["dp_weight_unit"] == "released" and not _may_count_weights(s),
         "`dp_weight_unit`='released' is for weights with a {`dp_max_weight`} above 1 and Gaussian "
         "noise: not for an own objective, nor for {`dp_accountant`}='pure' or "
         "dp_secure_sum. Leave it out."),
)
# fmt: on


def _lists(s: Settings) -> int:
    """How many numbers of a row are counted: its label and its weight."""
    return (s["dp_target_unit"] == "released") + s.counts_weights


@dataclass(frozen=True)
class LabelRange(Release):
    """Counts of labels by their distance from the end of the range that is nearest to 0, and of
    weights below their bound.

    Proof: docs/proofs/sensitivity.md
    """

    name = "range"
    share = "range"
    always_listed = False
    exact_shift = EXACT_BITS  # rows of a person have shares of a count
    decides = True
    words = (("range", "where the labels lie, or row weights (noisy counts)"),)
    lists: int  # of cells, of which a row is in one of each
    parameters = _PARAMETERS
    rules = _RULES

    @classmethod
    def wanted(cls, s: Settings) -> bool:
        """With ``dp_target_unit='released'`` or ``dp_weight_unit='released'``."""
        return _lists(s) > 0

    @classmethod
    def default_share(cls, s: Settings, given: Mapping[str, float]) -> float:
        """Enough for the scale of the labels, up to a factor, and for the largest weights."""
        return _SHARE * max(_lists(s), 1)

    @classmethod
    def of(cls, asked: Asked) -> LabelRange:
        """One count of each cell."""
        return cls(asked.settings.row_bound.of_person, _lists(asked.settings))

    def noise(self, part: Part, grid_bits: int) -> tuple[Noise, PlainEvent]:
        """Gaussian noise on each count."""
        cells = Labels("range", 0, True, self.lists * LABEL_CELLS, False, False)
        units, coordinates = cells.measure(person=self.persons)
        return noisy_counts(self.name, units, coordinates, part, persons=self.persons)
