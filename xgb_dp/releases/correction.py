"""Mean residual of a regression after the last tree."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..accounting import GaussianEvent, sensitivity
from ..accounting.events import PlainEvent
from ..errors import BudgetError
from .release import MAX_SIGMA2, Asked, Noise, Part, Release, grid_sigma2

if TYPE_CHECKING:
    from ..request.settings import Settings

__all__ = ["Correction"]

_TIMES = 2


@dataclass(frozen=True)
class Correction(Release):
    """Sums of residuals and of predictions in the range, released twice.

    Proof: docs/proofs/sensitivity.md
    """

    name = "correction"
    share = "correction"
    words = (("correction", "the mean residual (noisy sums)"),)

    @classmethod
    def wanted(cls, s: Settings) -> bool:
        """With ``dp_mean_correction``."""
        return bool(s["dp_mean_correction"])

    @classmethod
    def default_share(cls, s: Settings, given: Mapping[str, float]) -> float:
        """A twentieth, which makes a good intercept less dear."""
        del s, given
        return 0.05

    @classmethod
    def of(cls, asked: Asked) -> Correction:
        """Two sums."""
        return cls(asked.settings.row_bound.of_person)

    @property
    def draws(self) -> int:
        """The mean is corrected, and corrected again."""
        return _TIMES

    def noise(self, part: Part, grid_bits: int) -> tuple[Noise, PlainEvent]:
        """Gaussian noise on both sums."""
        del grid_bits
        sens2 = sensitivity.correction_sens2()
        sigma2 = grid_sigma2(sens2 / part.mu2)
        if sigma2 > MAX_SIGMA2:
            raise BudgetError(
                "The noise of `dp_mean_correction` would be above half a million rows: epsilon is "
                "too small for a useful result. Take dp_mean_correction=False or a larger epsilon."
            )
        return Noise(sigma2=sigma2), GaussianEvent(self.name, sens2, sigma2, 2, _TIMES)
