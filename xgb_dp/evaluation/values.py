"""Mean, spread and quantiles of a bounded number of each row, from noisy sums.

Proof: docs/proofs/evaluation.md
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from scipy.stats import norm

from ..noisy_sums import Floats, Ints
from .figure import Figure, figure_of, rising
from .grid import CELLS, UNIT, tree_matrix, value_ends, value_points
from .moments import Moment, moment_matrix
from .posterior import Solver

__all__ = ["Values", "smoothed", "value_matrix"]


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

    def points_of(self, power: int = 1, *, size: bool = False) -> Floats:
        """A power of the value of each cell, or its size."""
        if size:
            return np.abs(self.points)
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
        wide = float(norm.ppf(0.5 + 0.5 * self.level)) * np.sqrt(variance)
        value, around = float(of(self.counts)[0]), short(self.counts)
        first = int(np.argmax(around + wide >= 0.0))
        last = CELLS - int(np.argmax((around - wide)[::-1] <= 0.0))
        low, high = float(ends[max(first - 1, 0)]), float(ends[min(last + 1, CELLS)])
        return Figure(value, min(low, value), max(high, value), float(np.std(of(self.draws))))
