"""Figures with intervals: means, spread, quantiles and shares of a bounded number of each row.

A row adds to each sum a public function of its number, between -1 and 1. Where means are to be
exact, the number is rounded to one of 2^14 cells, so that rounding moves a mean by less than its
interval shows.

A figure of clipped numbers says nothing about numbers beyond the bounds. So each bound has one more
sum, to which a row adds whether it lies beyond, and the report shows these shares next to the
figures.

Figures are post-processing of released sums and cost nothing. Proof: docs/proofs/evaluation.md
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from ..noisy_sums import Floats, Ints
from .counts import CELLS, UNIT, Solver, tree_matrix, value_ends, value_points

_TINY = 1e-9


@dataclass(frozen=True)
class Figure:
    """A figure with its interval.

    Attributes:
        value: What is estimated for the rows that were evaluated.
        low: Lower end of the interval, which holds the noise of the release and that of sampling:
            it is about the population that the rows were drawn from.
        high: Upper end.
        noise: Standard deviation of what the noise of the release alone adds.

    Examples:
        >>> auc = judged.auc
        >>> auc.low <= float(auc) <= auc.high
        True
    """

    value: float
    low: float
    high: float
    noise: float

    @classmethod
    def around(
        cls,
        value: float,
        spread: float,
        noise: float,
        level: float,
        *,
        low: float = -np.inf,
        high: float = np.inf,
    ) -> Figure:
        """A figure with a normal interval, both within what the figure can be.

        Args:
            value: What is estimated.
            spread: Standard deviation by the noise of the release and by sampling.
            noise: That by the noise of the release alone.
            level: Probability with which the interval covers.
            low: Lowest value that the figure has.
            high: Highest value that it has.
        """
        value = min(max(value, low), high)
        wide = float(ndtri(0.5 + 0.5 * level)) * spread
        return cls(value, max(value - wide, low), min(value + wide, high), noise)

    @classmethod
    def quotient(
        cls,
        parts: npt.ArrayLike,
        noise: Floats,
        spread: Floats,
        level: float,
        *,
        low: float = -np.inf,
        high: float = np.inf,
    ) -> Figure:
        """A quotient of two noisy numbers, of which the second is above 0 in truth.

        The interval has all q for which numerator less q times denominator may be 0 (Fieller 1954).
        Where noise leaves open whether the denominator is 0 it reaches to the ends of the range.

        Args:
            parts: Numerator and denominator.
            noise: Their covariance by the noise of the release, (2, 2).
            spread: That by the noise and by sampling. It is only used as the variance of
                numerator less q times denominator, and may be any that is right for each q.
            level: Probability with which the interval covers.
            low: Lowest value that the quotient has.
            high: Highest value that it has.
        """
        a, b = (float(part) for part in np.asarray(parts))
        (va, cov), (_, vb) = spread.tolist()
        z2 = float(ndtri(0.5 + 0.5 * level)) ** 2
        # A denominator within its own noise says no more than that it may be as large as this.
        den = max(b, max(vb, 0.0) ** 0.5, _TINY)
        value = min(max(a / den, low), high)
        pull = np.array([1.0, -value]) / den
        square, half, rest = b * b - z2 * vb, a * b - z2 * cov, a * a - z2 * va
        disc = half * half - square * rest
        first, last = -np.inf, np.inf
        if disc >= 0.0 and square != 0.0:
            one, other = sorted((half + side * disc**0.5) / square for side in (-1.0, 1.0))
            if square > 0.0:
                first, last = one, other
            else:  # all but what lies between both, of which one side may be out of the range
                first = -np.inf if one >= low else other
                last = np.inf if other <= high else one
        first, last = max(first, low), min(last, high)
        deviation = max(float(pull @ noise @ pull), 0.0) ** 0.5
        return cls(value, min(first, value), max(last, value), deviation)

    @classmethod
    def share(cls, part: float, rows: float, noise: Floats, level: float) -> Figure:
        """The share of some of the rows, from two noisy counts.

        The interval has every share that is refuted neither by the noise of the release nor by the
        rows that were drawn: a score interval (Wilson 1927) with noise.

        Args:
            part: Noisy number of these rows.
            rows: Noisy number of all rows.
            noise: Covariance of both by the noise of the release, (2, 2).
            level: Probability with which the interval covers.
        """
        n = max(rows, 0.0)
        part = min(max(part, 0.0), n)  # which shortens no interval
        # Of n rows of a population with the share q, those less q n have the variance n q (1 - q).
        sampling = -n * np.array([[0.0, 0.5], [0.5, 1.0]])
        return cls.quotient((part, n), noise, noise + sampling, level, low=0.0, high=1.0)

    def moved(self, of: Callable[[float], float]) -> Figure:
        """A monotone function of the figure. Its noise is what one deviation upwards changes.

        Args:
            of: The function, also above the highest value of the figure.
        """
        value, low, high = of(self.value), *sorted((of(self.low), of(self.high)))
        return Figure(value, low, high, abs(of(self.value + self.noise) - value))

    def __float__(self) -> float:
        return self.value

    def __str__(self) -> str:
        return f"{self.value:.4f} ({self.low:.4f} to {self.high:.4f})"


def as_json(figures: Mapping[str, Figure]) -> dict[str, dict[str, float | None]]:
    """Figures as JSON has them; what is infinite is None."""
    return {
        name: {key: v if math.isfinite(v) else None for key, v in vars(figure).items()}
        for name, figure in figures.items()
    }


def figure_from_draws(
    drawn: Any, of: Callable[[Floats], Floats], low: float, high: float
) -> Figure:
    """A smooth function of counts.

    They are `counts`, with `draws` as likely, given the sums that were released, and `sampled`
    draws of other rows of the same population.
    """
    noise, spread = (float(np.std(of(counts))) for counts in (drawn.draws, drawn.sampled))
    value = float(of(drawn.counts))
    return Figure.around(value, spread, noise, drawn.level, low=low, high=high)


def quotient_from_draws(
    drawn: Any, parts: Callable[[Floats], Floats], low: float, high: float
) -> Figure:
    """A quotient of two smooth functions of counts, (..., 2); see :func:`figure_from_draws`."""
    noise, spread = (np.cov(parts(counts), rowvar=False) for counts in (drawn.draws, drawn.sampled))
    return Figure.quotient(parts(drawn.counts), noise, spread, drawn.level, low=low, high=high)


def rising(values: Floats) -> Floats:
    """Noisy values of a rising function, made to rise along the last axis."""
    up = np.maximum.accumulate(values, axis=-1)
    down = np.minimum.accumulate(values[..., ::-1], axis=-1)[..., ::-1]
    return np.asarray(0.5 * (up + down))


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
    def from_sums(
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
        return figure_from_draws(self, of, low, high)

    def power_points(self, power: int = 1) -> Floats:
        """A power of the value of each cell."""
        points = np.asarray(self.points**power)
        if power == 2:  # of a cell, whose values are not all in its middle
            points = points + (self.half * np.diff(value_ends(self.power))) ** 2 / 12.0
        return points

    def weighted_mean(self, counts: Floats, power: int = 1) -> Floats:
        """Mean of a power of the values, around 0."""
        total = np.maximum(counts.sum(axis=-1), 1.0)
        return np.asarray((counts @ self.power_points(power)) / total)

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


_SHARE = 0.05  # of the squared norm of a row


@dataclass(frozen=True)
class SharesBeyond:
    """The shares of the rows beyond each bound, and what they say of the figures."""

    strings: Mapping[str, str] = field(default_factory=dict)
    shares: Mapping[str, Figure] = field(default_factory=dict)

    def figures(self, clipped: Mapping[str, Figure]) -> dict[str, Figure]:
        """Figures of clipped numbers under names that say so, and the shares beyond the bounds."""
        before = "clipped " if self.strings else ""
        names = {f"{before}{name}": figure for name, figure in clipped.items()}
        return names | {f"{name} beyond": figure for name, figure in self.shares.items()}

    def statement(self, whom: str) -> str:
        """What the clipped figures are about, and how much lies beyond; empty without bounds."""
        if not self.strings:
            return ""
        head = (
            'A figure named "clipped" is of clipped numbers. Its interval covers the clipped '
            "figure of the population and not the true one: it promises nothing of errors beyond "
            "the bounds."
        )
        said = [
            f"{text}: about {share.value:.2%} ({share.low:.2%} to {share.high:.2%}) of the {whom}."
            for text, share in zip(self.strings.values(), self.shares.values(), strict=True)
        ]
        return " ".join([head, *said])


@dataclass(frozen=True)
class Limits:
    """The bounds of one kind of model; public."""

    strings: Mapping[str, str] = field(default_factory=dict)  # by what is clipped, in the plural

    @property
    def rest(self) -> float:
        """Share of the squared norm of a row that is left for the other sums."""
        return 1.0 - _SHARE if self.strings else 1.0

    def _weight(self, share: float) -> int:
        return round(FINE_UNIT * math.sqrt(share * _SHARE / len(self.strings)))

    def matrices(self, share: float) -> list[Ints]:
        """The block: a row is in one of 2^k cells, by the bounds that it lies beyond.

        To each of the k sums it adds a weight if it lies beyond that bound, and takes the same
        weight off if not. Halved with the number of rows, which has little noise, the sum has half
        of the noise of a plain count.
        """
        if not self.strings:
            return []
        bits = np.arange(len(self.strings))[:, np.newaxis]
        beyond = np.arange(1 << len(self.strings)) >> bits & 1
        return [self._weight(share) * (2 * beyond - 1)]

    def cells(self, beyond: Mapping[str, npt.NDArray[np.bool_]]) -> list[Ints]:
        """The cell of each row, by which of its numbers lie beyond their bounds."""
        if not self.strings:
            return []
        flags = (beyond[name].astype(np.int64) << place for place, name in enumerate(self.strings))
        return [np.asarray(sum(flags), dtype=np.int64)]

    def read(
        self,
        sums: Sequence[Floats],
        share: float,
        noise: float,
        rows: tuple[float, float],
        level: float,
    ) -> SharesBeyond:
        """The shares of the rows beyond the bounds.

        Args:
            sums: The sums of the block; empty without bounds.
            share: That of all blocks of these rows in the squared norm of a row.
            noise: Standard deviation of the noise of each sum.
            rows: The noisy number of rows, and the variance of its noise.
            level: Probability with which an interval is to cover.
        """
        shares: dict[str, Figure] = {}
        total, around = rows
        for name, value in zip(self.strings, sums[0] if self.strings else (), strict=True):
            weight = self._weight(share)
            variance = 0.25 * ((noise / weight) ** 2 + around)
            covariance = np.array([[variance, 0.5 * around], [0.5 * around, around]])
            part = 0.5 * (float(value) / weight + total)
            shares[name] = Figure.share(part, total, covariance, level)
        return SharesBeyond(self.strings, shares)


def outside(values: Floats, low: float, high: float) -> npt.NDArray[np.bool_]:
    """Which values lie beyond bounds, both as the 32-bit floats that models and matrices hold."""
    narrow = np.asarray(values, dtype=np.float32)
    return np.asarray(~((narrow >= np.float32(low)) & (narrow <= np.float32(high))))
