"""Computes the curve of the best of a random number of runs from the curve of one run.

Proof: docs/proofs/selection.md, "The best of K runs"
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from .grid_curve import ChordTable
from .sampled import both_signs

__all__ = ["BestOfRuns"]

Array = npt.NDArray[np.float64]

_LINES = 400
_FEWEST = math.exp(-6.0)  # of the factors at which the bound has corners
_FLATTEST = 1e-250  # slope of a line; flatter ones do not end the sum, and a constant is left
_TINY = 1e-320  # more than what a weight below all normal numbers is off by
_UP = 1.0 + 1e-9


class BestOfRuns:
    """Upper bound of the hockey stick of the best run, in both orders."""

    def __init__(
        self, weight: Callable[[Array], Array], ranks: Array, mean: float, run: ChordTable
    ) -> None:
        # What a set of chance u may have under the other law, at most.
        grown = np.exp(np.minimum(run.x, 700.0))[:, None] * ranks + run.v[:, None]
        left = 1.0 - np.exp(-run.x)[:, None] * np.maximum(1.0 - ranks - run.v[:, None], 0.0)
        left += 1e-15
        other = np.minimum(np.min(np.minimum(grown, left), axis=0) * (1.0 + 1e-12), 1.0)
        other = np.maximum.accumulate(other)
        # Between two ranks the weight is at most that of the better, and under the other law at
        # least that of the worse.
        first = mean * (weight(ranks[:-1]) * (1.0 + 1e-12) + _TINY)
        second = mean * np.maximum(weight(other[1:]) * (1.0 - 1e-12) - _TINY, 0.0)
        # The largest of first - z second, z = e^(x - loss), and 0, by its chords up to where it is
        # 0, or hardly falls any more.
        most = float(np.max(first / np.maximum(second, mean * _FLATTEST))) * (1.0 + 1e-12)
        z = np.concatenate([[0.0], np.geomspace(min(_FEWEST, 0.5 * most), most, _LINES)])
        top = np.array([float(np.max(first - at * second)) for at in z])
        self._rest = max(0.0, float(top[-1]))
        top[-1] = self._rest
        slopes = np.append(np.diff(np.maximum(top, self._rest)) / np.diff(z), 0.0)
        bends = np.maximum(np.diff(slopes), 0.0) + 2.0**-50 * np.abs(slopes[:-1])
        self._weights, self._logs, self._run = bends * z[1:], np.log(z[1:]), run

    @property
    def end(self) -> float:
        """Where the curve ends. Beyond, its last value counts."""
        return float(self._logs[-1] + self._run.x[-1]) * (1.0 + 1e-12) + 1e-14

    def delta(self, epsilon: float) -> float:
        """Upper bound at any epsilon."""
        values = both_signs(self._run, epsilon - self._logs)
        return min(1.0, (float(np.sum(self._weights * values)) + self._rest) * _UP)
