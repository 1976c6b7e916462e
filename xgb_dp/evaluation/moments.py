"""Sums over the rows of functions of a bounded number, and means that follow from them.

A row adds to each sum what a public function says of it, between -1 and 1. The number of a row is
rounded to one of 2^14 cells, so that rounding moves no mean by what an interval would show.

Proof: docs/proofs/evaluation.md
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ..noisy_sums import Floats, Ints
from .figure import Figure

__all__ = ["FINE", "UNIT", "Moment", "Moments", "moment_matrix", "moment_weights"]


FINE = 1 << 14
"""Cells of a number between -1 and 1."""
UNIT = 1 << 14
"""Grid units of what one row adds at most."""


@dataclass(frozen=True)
class Moment:
    """A sum over the rows, by its name."""

    name: str
    of: Callable[[Floats], Floats]  # what a row adds, of the numbers of all cells
    share: float  # squared weight, of the squared norm of a row
    # Whether it lies in [0, 1], and is released as 2 * it - 1: the number of rows has little noise,
    # and what is left to add is then half as large.
    even: bool = False


def moment_matrix(moments: Sequence[Moment], points: Floats, part: float, unit: int = UNIT) -> Ints:
    """What a row in each cell adds: (sums, cells), whole numbers."""
    rows = []
    for one in moments:
        values = np.broadcast_to(one.of(points), points.shape[-1:])
        rows.append(math.sqrt(part * one.share) * (2.0 * values - 1.0 if one.even else values))
    return np.rint(unit * np.vstack(rows)).astype(np.int64)


def moment_weights(moments: Sequence[Moment], part: float) -> Floats:
    """The weights of the sums of a block."""
    return np.asarray(UNIT * np.sqrt([part * one.share for one in moments]))


@dataclass(frozen=True, eq=False)
class Moments:
    """What noisy sums say, each without bias."""

    place: Mapping[str, int]  # where each sum is, by its name
    totals: Floats
    noise: Floats  # their covariance by the noise of the release
    level: float  # probability with which each interval covers

    @classmethod
    def read(
        cls, moments: Sequence[Moment], sums: Floats, noise: float, weights: Floats, level: float
    ) -> Moments:
        """The sums behind released ones, which had weights; the first is the number of rows."""
        decode = np.diag(1.0 / weights)
        for place, one in enumerate(moments):
            if one.even:
                decode[place] = 0.5 * (decode[place] + decode[0])
        names = {one.name: place for place, one in enumerate(moments)}
        return cls(names, decode @ sums, noise**2 * decode @ decode.T, level)

    def vector(self, of: Mapping[str, float]) -> Floats:
        """A linear function of the sums, as a vector."""
        out = np.zeros(len(self.totals))
        for name, weight in of.items():
            out[self.place[name]] += weight
        return out

    def total(self, of: Mapping[str, float]) -> float:
        """A linear function of the sums."""
        return float(self.vector(of) @ self.totals)

    @property
    def count(self) -> float:
        """Number of rows, at least 1."""
        return max(float(self.totals[0]), 1.0)

    @property
    def rows(self) -> Figure:
        """Number of rows, or persons."""
        noise = float(self.noise[0, 0])
        spread = math.sqrt(noise + self.count)
        value = float(self.totals[0])
        return Figure.around(value, spread, math.sqrt(noise), self.level, low=0.0)

    def mean(
        self,
        of: Mapping[str, float],
        square: float,
        low: float = -math.inf,
        high: float = math.inf,
        level: float | None = None,
    ) -> Figure:
        """Mean over the rows of a linear function of what they add."""
        n = self.count
        weights = np.stack([self.vector(of), self.vector({"rows": 1.0})])
        parts = weights @ self.totals
        noise = weights @ self.noise @ weights.T
        # Of rows of a population of the mean q, the sum of f - q has the variance of (f - q)^2.
        first = max(square, parts[0] ** 2 / n)
        spread = noise + np.array([[first, parts[0]], [parts[0], n]])
        at = self.level if level is None else level
        return Figure.quotient(parts, noise, spread, at, low=low, high=high)
