"""Means, spread and quantiles of a bounded number of each row, from noisy sums.

A row adds to each sum what a public function says of its number, between -1 and 1. Where means are
to be exact, the number is rounded to one of 2^14 cells, so that rounding moves none of them by what
an interval would show.

Proof: docs/proofs/evaluation.md
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from scipy.special import ndtri

from ..noisy_sums import Floats, Ints
from .figure import Figure, figure_of, rising
from .grid import CELLS, UNIT, tree_matrix, value_ends, value_points
from .posterior import Solver

FINE = 1 << 14
"""Cells of a number between -1 and 1."""
FINE_UNIT = 1 << 14
"""Grid units of what one row adds at most, where it is a number of fine cells."""


@dataclass(frozen=True)
class Moment:
    """A sum over the rows, by its name."""

    name: str
    of: Callable[[Floats], Floats]  # what a row adds, of the numbers of all cells
    share: float  # squared weight, of the squared norm of a row
    # Whether it lies in [0, 1], and is released as 2 * it - 1: the number of rows has little noise,
    # and what is left to add is then half as large.
    even: bool = False


def moment_matrix(
    moments: Sequence[Moment], points: Floats, part: float, unit: int = FINE_UNIT
) -> Ints:
    """What a row in each cell adds: (sums, cells), whole numbers."""
    rows = []
    for one, weight in zip(moments, moment_weights(moments, part, unit), strict=True):
        values = np.broadcast_to(one.of(points), points.shape[-1:])
        rows.append(weight * (2.0 * values - 1.0 if one.even else values))
    return np.rint(np.vstack(rows)).astype(np.int64)


def moment_weights(moments: Sequence[Moment], part: float, unit: int = FINE_UNIT) -> Floats:
    """The weights of the sums of a block, whole numbers: the number of rows is then exact."""
    return np.rint(unit * np.sqrt([part * one.share for one in moments]))


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
        low: float,
        high: float,
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


_TREE = 0.2  # of the squared norm of a row
_MOMENTS = (
    Moment("rows", np.ones_like, 0.2),
    Moment("value", np.asarray, 0.25),
    Moment("size", np.abs, 0.15, even=True),
    Moment("square", np.square, 0.2, even=True),
)


@lru_cache(maxsize=2)
def value_matrix(power: int = 1) -> Ints:
    """What a row adds whose value lies in each of 128 cells: its moments, and a Haar tree."""
    moments = moment_matrix(_MOMENTS, value_points(power), 1.0, UNIT)
    tree = np.rint(UNIT * tree_matrix(CELLS, 0.0, _TREE)[1:]).astype(np.int64)
    matrix = np.vstack([moments, tree])
    matrix.setflags(write=False)
    return matrix


def smoothed(counts: Floats, reach: int) -> Floats:
    """Means of each count and its neighbours on either side."""
    width = 2 * reach + 1
    return np.convolve(np.pad(counts, reach, mode="edge"), np.full(width, 1.0 / width), "valid")


@dataclass(frozen=True, eq=False)
class Values:
    """What the released sums say about a value of the rows, in its own unit.

    Attributes:
        counts: Estimated number of rows in each cell; noisy, without bias.
        draws: Counts that are as likely, given the sums, as rows of `counts`.
        error: Covariance of the noise in `counts`.
        middle: Value in the middle of the cells.
        half: Distance of the ends from there.
        level: Probability with which each interval covers.
        power: See :func:`grid.value_cells`.
        seed: Of the draws of `sampled`.

    Examples:
        >>> amounts = xgb.DMatrix(table, 10 * table[:, 0])
        >>> squared = {**params, "objective": "reg:squarederror", "dp_target_bounds": (0, 10)}
        >>> trained = xgb.train(squared, amounts, 5)
        >>> report = xgb_dp.evaluate(trained, amounts, epsilon=0.5, delta=1e-6)
        >>> middle = report.overall.errors.quantile(0.5)
        >>> middle.low <= float(middle) <= middle.high
        True
    """

    counts: Floats
    draws: Floats
    error: Floats
    middle: float
    half: float
    level: float
    power: int = 1
    seed: int = 0

    @classmethod
    def of(
        cls,
        solver: Solver,
        sums: Floats,
        noise: float,
        middle: float,
        half: float,
        level: float,
        power: int = 1,
        seed: int = 0,
    ) -> Values:
        """The values behind noisy sums.

        Args:
            solver: Of the block that was released.
            sums: Its sums.
            noise: Standard deviation of the noise of each.
            middle: Value in the middle of the cells.
            half: Distance of the ends from there.
            level: Probability with which an interval is to cover.
            power: See :func:`grid.value_cells`.
            seed: Of the draws. Two blocks of which one figure is made must have two seeds: with
                one, their noise would count as the same.
        """
        counts, draws = solver.counts(sums, noise, np.random.default_rng(2 * seed))
        error = noise**2 * solver.covariance
        return cls(counts, draws, error, middle, half, level, power, seed)

    @property
    def points(self) -> Floats:
        """The value that stands for each cell."""
        return self.middle + self.half * value_points(self.power)

    @property
    def _around(self) -> Floats:
        """Variance of the count of each cell by sampling."""
        return np.maximum(smoothed(self.counts, 4), 0.0)

    @cached_property
    def sampled(self) -> Floats:
        """Draws of the counts of other rows of the same population."""
        spread = np.sqrt(self._around)
        rng = np.random.default_rng(2 * self.seed + 1)
        return np.asarray(self.draws + rng.normal(size=self.draws.shape) * spread)

    def figure(
        self, of: Callable[[Floats], Floats], low: float = -np.inf, high: float = np.inf
    ) -> Figure:
        """Any smooth function of the counts.

        Args:
            of: Function of counts of shape (..., CELLS).
            low: Lowest value that it has.
            high: Highest value that it has.
        """
        return figure_of(self, of, low, high)

    def points_of(self, power: int = 1) -> Floats:
        """A power of the value of each cell."""
        points = np.asarray(self.points**power)
        if power == 2:  # of a cell, whose values are not all in its middle
            points = points + (self.half * np.diff(value_ends(self.power))) ** 2 / 12.0
        return points

    def mean_of(self, counts: Floats, power: int = 1) -> Floats:
        """Mean of a power of the values, around 0."""
        total = np.maximum(counts.sum(axis=-1), 1.0)
        return np.asarray((counts @ self.points_of(power)) / total)

    def mean_figure(self, points: Floats, low: float = -np.inf, high: float = np.inf) -> Figure:
        """Mean over the rows of what each cell stands for.

        Args:
            points: One number for each cell.
            low: Lowest value that the mean has.
            high: Highest value that it has.
        """
        weights = np.stack([points, np.ones(CELLS)])
        noise = weights @ self.error @ weights.T
        spread = noise + (weights * self._around) @ weights.T
        parts = weights @ self.counts
        return Figure.quotient(parts, noise, spread, self.level, low=low, high=high)

    @property
    def rows(self) -> Figure:
        """Number of rows, or persons."""
        return self.figure(lambda counts: counts.sum(axis=-1), 0.0)

    @property
    def mean(self) -> Figure:
        """Mean value."""
        ends = self.middle - self.half, self.middle + self.half
        return self.mean_figure(self.points, *ends)

    def quantile(self, share: float) -> Figure:
        """The value below which a share of the rows lies.

        Args:
            share: In (0, 1).
        """
        ends = self.middle + self.half * value_ends(self.power)

        def short(counts: Floats) -> Floats:
            """Rows below each end of a cell less those that are to be."""
            below = np.cumsum(counts, axis=-1)
            none = np.zeros_like(below[..., :1])
            return np.concatenate([none, below], axis=-1) - share * below[..., -1:]

        def of(counts: Floats) -> Floats:
            """Where rows reach what is to be: the middle of the first and the last such place."""
            lacking = np.atleast_2d(short(counts))
            return np.array([np.interp(0.0, row, ends) for row in rising(lacking)])

        # The interval has all cells of which the noise leaves open that the quantile is there.
        weights = short(np.eye(CELLS)).T
        # At the quantile, rows of a population lie below with the probability of the share.
        drawn = share * (1.0 - share) * max(float(self.counts.sum()), 1.0)
        variance = ((weights @ self.error) * weights).sum(axis=1) + drawn
        wide = float(ndtri(0.5 + 0.5 * self.level)) * np.sqrt(variance)
        value, around = float(of(self.counts)[0]), short(self.counts)
        first = int(np.argmax(around + wide >= 0.0))
        last = CELLS - int(np.argmax((around - wide)[::-1] <= 0.0))
        low, high = float(ends[max(first - 1, 0)]), float(ends[min(last + 1, CELLS)])
        return Figure(value, min(low, value), max(high, value), float(np.std(of(self.draws))))
