"""Sums of the cells by class and column before the first tree, of wide sparse tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..accounting import GaussianEvent, sensitivity
from ..accounting.events import PlainEvent
from .release import EXACT_BITS, Asked, Noise, Part, Release, shifted

if TYPE_CHECKING:
    from ..request.settings import Settings

__all__ = ["SHARE", "Columns"]

SHARE = 0.5


@dataclass(frozen=True)
class Columns(Release):
    """For each class and column the weight of the cells above 0.

    Proof: docs/proofs/sensitivity.md, "A start from columns"

    Attributes:
        columns: Number of columns.
    """

    name = "columns"
    share = "columns"
    words = (("columns", "what each column says of the label (noisy sums of its cells by class)"),)
    always_listed = False

    columns: int

    @classmethod
    def wanted(cls, s: Settings) -> bool:
        """With ``dp_start="columns"``."""
        return s.starts_from_columns

    @classmethod
    def default_share(cls, s: Settings, given: Mapping[str, float]) -> float:
        """Half: the first trees follow from it, see docs/accuracy.md."""
        del s, given
        return SHARE

    @classmethod
    def of(cls, asked: Asked) -> Columns:
        """A sum of each class and column."""
        s = asked.settings
        return cls(s.row_bound.of_person, s.schema.width)

    def exact(self) -> Noise:
        """Weights of cells are no whole numbers, and have a grid also without noise."""
        return Noise(shift=EXACT_BITS)

    def noise(self, part: Part, grid_bits: int) -> tuple[Noise, PlainEvent]:
        """Gaussian noise on each sum."""
        del grid_bits
        shift, sigma2 = shifted(sensitivity.columns_sens2(0), part.mu2, persons=False)
        sens2 = sensitivity.columns_sens2(shift)
        return (
            Noise(sigma2=sigma2, shift=shift),
            GaussianEvent(self.name, sens2, sigma2, self.columns, 1),
        )
