"""Choice of splits by the exponential mechanism."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..accounting import ExponentialEvent
from ..accounting.events import PlainEvent
from .release import Asked, Noise, Part, Release

if TYPE_CHECKING:
    from ..request.settings import Settings

__all__ = ["EPS_BITS", "Splits"]

EPS_BITS = 40
_MAX_EPS_NUM = 2**47 - 1


@dataclass(frozen=True)
class Splits(Release):
    """Selections of one round that a row takes part in, on its way down every tree.

    Proof: docs/proofs/exponential-mechanism.md

    Attributes:
        selections: Their number, > 0.
    """

    name = "splits"
    share = "splits"
    words = (("splits", "the splits (exponential mechanism)"),)

    selections: int

    @classmethod
    def wanted(cls, s: Settings) -> bool:
        """Where splits are chosen by looking at the rows."""
        return bool(s["dp_split"] == "exponential")

    @classmethod
    def of(cls, asked: Asked) -> Splits:
        """The selections of all trees of a round."""
        s = asked.settings
        trees = s["num_parallel_tree"]
        trees *= 1 if s["dp_class_trees"] == "joint" else s.trees_per_round
        return cls(s.row_bound.of_person, trees * -(-s["max_depth"] // s["dp_split_levels"]))

    @property
    def draws(self) -> int:
        """All selections of a round."""
        return self.selections

    @property
    def of_rounds(self) -> bool:
        """In each of them."""
        return True

    @property
    def gaussian(self) -> bool:
        """A selection draws no sums."""
        return False

    def noise(self, part: Part, grid_bits: int) -> tuple[Noise, PlainEvent]:
        """The range of the privacy loss of one selection."""
        del grid_bits
        eps_num = min(max(1, math.floor(part.selection * 2**EPS_BITS)), _MAX_EPS_NUM)
        event = ExponentialEvent(self.name, eps_num, EPS_BITS, self.selections)
        return Noise(eps_num=eps_num), event
