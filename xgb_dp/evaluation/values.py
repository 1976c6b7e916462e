"""Mean, spread and quantiles of a bounded number of each row, from noisy sums.

Proof: docs/proofs/evaluation.md
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
import numpy.typing as npt
from scipy.stats import norm

from .figure import Figure
from .grid import CELLS, UNIT, tree_matrix
from .posterior import DRAWS, Solver

__all__ = ["Values", "smoothed", "value_cells", "value_matrix", "value_points"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_ROWS, _MEAN, _SIZE, _SQUARE, _TREE = 0.2, 0.25, 0.15, 0.2, 0.2  # of the squared norm of a row


@lru_cache(maxsize=2)
def value_matrix(power: int = 1) -> Ints:
    """What a row adds whose value v in [-1, 1] lies in each of 128 cells.

    Its number, v, 2|v| - 1 and 2v^2 - 1, each with a weight, and a Haar tree without its root.
    """
    v = value_points(power)
    shares = (_ROWS, _MEAN, _SIZE, _SQUARE)
    moments = np.stack([np.ones(CELLS), v, 2.0 * np.abs(v) - 1.0, 2.0 * v**2 - 1.0])
    weighted = np.sqrt(np.array(shares))[:, np.newaxis] * moments
    whole = np.vstack([weighted, tree_matrix(CELLS, 0.0, _TREE)[1:]])
    matrix = np.rint(UNIT * whole).astype(np.int64)
    matrix.setflags(write=False)
    return matrix


def value_cells(values: Floats, power: int = 1, cells: int = CELLS) -> Ints:
    """The cell of each value; what lies beyond -1 or 1 counts as that, NaN as 1."""
    clipped = np.clip(np.nan_to_num(values, nan=1.0, posinf=1.0, neginf=-1.0), -1.0, 1.0)
    root = np.sign(clipped) * np.abs(clipped) ** (1.0 / power)
    return np.minimum(((root + 1.0) * (cells / 2)).astype(np.int64), cells - 1)


def _ends(power: int, cells: int = CELLS) -> Floats:
    return np.asarray(np.linspace(-1.0, 1.0, cells + 1) ** power)


def value_points(power: int = 1, cells: int = CELLS) -> Floats:
    """The value in the middle of each cell; see :func:`value_cells`."""
    ends = _ends(power, cells)
    return np.asarray(0.5 * (ends[1:] + ends[:-1]))


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
        power: See :func:`value_cells`.
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
            power: See :func:`value_cells`.
            seed: Of the draws. Two blocks of which one figure is made must have two seeds: with
                one, their noise would count as the same.
        """
        counts = solver.covariance @ (solver.matrix.T @ sums)
        rng = np.random.default_rng(2 * seed)
        draws = counts + noise * rng.normal(size=(DRAWS, CELLS)) @ solver.root.T
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
        value = float(of(self.counts))
        noise, spread = (float(np.std(of(drawn))) for drawn in (self.draws, self.sampled))
        return Figure.around(value, spread, noise, self.level, low=low, high=high)

    def points_of(self, power: int = 1, *, size: bool = False) -> Floats:
        """A power of the value of each cell, or its size."""
        if size:
            return np.abs(self.points)
        points = np.asarray(self.points**power)
        if power == 2:  # of a cell, whose values are not all in its middle
            points = points + (self.half * np.diff(_ends(self.power))) ** 2 / 12.0
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
        own = np.stack([points, np.ones(CELLS)])
        noise = own @ self.error @ own.T
        spread = noise + (own * self._around) @ own.T
        return Figure.quotient(own @ self.counts, noise, spread, self.level, low=low, high=high)

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
        ends = self.middle + self.half * _ends(self.power)

        def short(counts: Floats) -> Floats:
            """Rows below each end of a cell less those that are to be."""
            below = np.cumsum(counts, axis=-1)
            none = np.zeros_like(below[..., :1])
            return np.concatenate([none, below], axis=-1) - share * below[..., -1:]

        def of(counts: Floats) -> Floats:
            """Where rows reach what is to be: the middle of the first and the last such place."""
            own = np.atleast_2d(short(counts))
            first = np.maximum.accumulate(own, axis=-1)
            last = np.minimum.accumulate(own[:, ::-1], axis=-1)[:, ::-1]
            middle = 0.5 * (first + last)
            return np.array([np.interp(0.0, row, ends) for row in middle])

        # The interval has all cells of which the noise leaves open that the quantile is there.
        own = short(np.eye(CELLS)).T
        # At the quantile, rows of a population lie below with the probability of the share.
        drawn = share * (1.0 - share) * max(float(self.counts.sum()), 1.0)
        variance = ((own @ self.error) * own).sum(axis=1) + drawn
        wide = float(norm.ppf(0.5 + 0.5 * self.level)) * np.sqrt(variance)
        value, around = float(of(self.counts)[0]), short(self.counts)
        first = int(np.argmax(around + wide >= 0.0))
        last = CELLS - int(np.argmax((around - wide)[::-1] <= 0.0))
        low, high = float(ends[max(first - 1, 0)]), float(ends[min(last + 1, CELLS)])
        return Figure(value, min(low, value), max(high, value), float(np.std(of(self.draws))))


def root_mean_square(values: Values) -> Figure:
    """Root of the mean of the squared values."""
    most = math.hypot(abs(values.middle) + values.half, values.half / CELLS)
    square = values.mean_figure(values.points_of(2), 0.0, most**2)
    return square.moved(math.sqrt)
