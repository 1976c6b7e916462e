"""Looks up a curve that is known at some points, by chords in e^x. No curve rises above these."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

__all__ = ["ChordTable"]

_ROUNDING = 1.0 + 1e-9


@dataclass(frozen=True)
class ChordTable:
    """A curve by its upper bounds at points from 0 on, and by chords in e^x between them.

    Attributes:
        x: Ascending, in nats; the first is 0. Below it nothing is known, above the last one the
            last bound counts.
        v: Upper bound at each.
    """

    x: npt.NDArray[np.float64]
    v: npt.NDArray[np.float64]

    def __call__(self, points: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Upper bounds at points >= 0."""
        i = np.clip(np.searchsorted(self.x, points, side="right") - 1, 0, len(self.x) - 2)
        low, high = self.x[i], self.x[i + 1]
        weight = np.expm1(np.minimum(points, high) - high) / np.expm1(low - high)
        weight = np.where(points < self.x[-1], np.clip(weight + 1e-12, 0.0, 1.0), 0.0)
        # Bounds need not fall; the larger end is safe where they rise.
        end = np.maximum(self.v[i + 1], 0.0)
        return np.maximum(weight * self.v[i] + (1.0 - weight) * end, end) * _ROUNDING
