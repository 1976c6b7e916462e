"""Counts of labels in cells of the declared range, by which that range is narrowed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..accounting import sensitivity
from ..accounting.events import PlainEvent
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
    own = {"dp_budget_shares", "dp_gradient_bound", "huber_slope"} & set(s.given)
    released = _may_be_released(s) and s["dp_preset"] == "default" and not own
    return "released" if released else "declared"


# fmt: off
_PARAMETERS = (
    Parameter("dp_target_unit", "the unit of a regression: of its gradients, and of the range in "
              "which its labels are summed. 'released' follows noisy counts of the labels, so that "
              "a range that is declared too wide costs little; 'declared' is half of "
              "dp_target_bounds", Choice(("released", "declared")), _pays, SPENDS, "sensitivity",
              Table.DEFAULT, shown="'declared'; regression by the default without "
              "dp_gradient_bound and dp_budget_shares 'released'"),
)
_RULES = (
    Rule("a unit is released of one target",
         lambda s: s["dp_target_unit"] == "released" and not _may_be_released(s),
         "`dp_target_unit`='released' is for a regression of one target whose range is declared, "
         "with Gaussian noise: not for {objective} with several targets, an own objective, classes "
         "or shares, nor for dp_accountant='pure', dp_local or dp_secure_sum. Leave it out."),
)
# fmt: on


@dataclass(frozen=True)
class LabelRange(Release):
    """Counts of labels by their distance from the end of the range that is nearest to 0.

    Proof: docs/proofs/sensitivity.md
    """

    name = "range"
    share = "range"
    always_listed = False
    decides = True
    words = (("range", "where the labels lie (noisy counts)"),)
    parameters = _PARAMETERS
    rules = _RULES

    @classmethod
    def wanted(cls, s: Settings) -> bool:
        """With ``dp_target_unit='released'``."""
        return bool(s["dp_target_unit"] == "released")

    @classmethod
    def default_share(cls, s: Settings, given: Mapping[str, float]) -> float:
        """Enough for the scale of the labels, up to a factor."""
        return _SHARE

    @classmethod
    def of(cls, asked: Asked) -> LabelRange:
        """One count of each cell."""
        return cls(asked.settings.row_bound.of_person)

    def exact(self) -> Noise:
        """Whole counts of rows, and shares of a person's."""
        return Noise(shift=EXACT_BITS)

    def noise(self, part: Part, grid_bits: int) -> tuple[Noise, PlainEvent]:
        """Gaussian noise on each count."""
        units = sensitivity.intercept_sens2("range", 0, n_public=True)
        coordinates = sensitivity.intercept_coordinates("range", n_public=True, person=self.persons)
        return noisy_counts(self.name, units, coordinates, part, persons=self.persons)
