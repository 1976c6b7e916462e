"""Figures with confidence intervals: means, quantiles and shares of a bounded value per row.

Each row adds a public function of its value, in [-1, 1], to each sum. For means, values are rounded
to one of 2^14 cells, which changes a mean by less than the width of its interval.

Figures of clipped values carry no information on values beyond the bounds. Therefore one additional
sum per bound counts the rows beyond it, and the report shows their shares next to the figures.

Figures are free post-processing of the released sums. Proof: docs/proofs/evaluation.md
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from ..noisy_sums import Floats, Ints
from ..parameters.parse import parse_number
from .counts import CELLS, UNIT, Solver, tree_matrix, value_ends, value_points

_TINY = 1e-9


@dataclass(frozen=True)
class Figure:
    """A figure with its confidence interval.

    Attributes:
        value: Estimate for the evaluated rows.
        low: Lower end of the confidence interval for the population that the rows were drawn from;
            accounts for privacy noise and sampling error.
        high: Upper end of the interval.
        noise: Standard deviation of `value` due to privacy noise alone.

    Examples:
        >>> auc = evaluation.auc
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
        """Build a figure with a normal interval, clipped to the figure's range.

        Args:
            value: Estimate.
            spread: Standard deviation due to privacy noise and sampling.
            noise: Standard deviation due to privacy noise alone.
            level: Confidence level.
            low: Lowest possible value.
            high: Highest possible value.
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
        """Build a figure from the quotient of two noisy numbers with a positive true denominator.

        The interval contains every q for which numerator - q * denominator is compatible with 0
        (Fieller 1954). If the denominator is compatible with 0, it extends to the ends of the
        range.

        Args:
            parts: Numerator and denominator.
            noise: Their covariance due to privacy noise, (2, 2).
            spread: Their covariance due to privacy noise and sampling, (2, 2). Used only for the
                variance of numerator - q * denominator, so any matrix is valid that gives the
                right variance for every q.
            level: Confidence level.
            low: Lowest possible value of the quotient.
            high: Highest possible value of the quotient.
        """
        a, b = (float(part) for part in np.asarray(parts))
        (va, cov), (_, vb) = spread.tolist()
        z2 = float(ndtri(0.5 + 0.5 * level)) ** 2
        # A denominator below its own standard deviation is raised to it, for a finite estimate.
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
            else:  # the complement of (one, other), which may be outside the range on one side
                first = -np.inf if one >= low else other
                last = np.inf if other <= high else one
        first, last = max(first, low), min(last, high)
        if first > last:  # every possible value is refuted
            first, last = low, high
        deviation = max(float(pull @ noise @ pull), 0.0) ** 0.5
        return cls(value, min(first, value), max(last, value), deviation)

    @classmethod
    def share(cls, part: float, rows: float, noise: Floats, level: float) -> Figure:
        """Build a figure for a proportion from two noisy counts.

        The interval is a score interval (Wilson 1927) that also accounts for privacy noise.

        Args:
            part: Noisy number of rows in the subset.
            rows: Noisy number of all rows.
            noise: Covariance of the two counts due to privacy noise, (2, 2).
            level: Confidence level.
        """
        n = max(rows, 0.0)
        part = min(max(part, 0.0), n)  # clipping does not shorten the interval
        # For a population share q, part - q * n has the sampling variance n q (1 - q).
        sampling = -n * np.array([[0.0, 0.5], [0.5, 1.0]])
        return cls.quotient((part, n), noise, noise + sampling, level, low=0.0, high=1.0)

    def moved(self, of: Callable[[float], float]) -> Figure:
        """Apply a monotone function; the new `noise` is the change if `value` grows by `noise`.

        Args:
            of: The function; must be defined beyond the figure's highest value, too.
        """
        value, low, high = of(self.value), *sorted((of(self.low), of(self.high)))
        return Figure(value, low, high, abs(of(self.value + self.noise) - value))

    def times(self, factor: float) -> Figure:
        """Return the figure in another unit."""
        return Figure(*(factor * v for v in (self.value, self.low, self.high, self.noise)))

    def __float__(self) -> float:
        return self.value

    def __str__(self) -> str:
        return f"{self.value:.4f} ({self.low:.4f} to {self.high:.4f})"


def as_json(figures: Mapping[str, Figure]) -> dict[str, dict[str, float | None]]:
    """Convert figures to JSON values; infinite values become None."""
    return {
        name: {key: v if math.isfinite(v) else None for key, v in vars(figure).items()}
        for name, figure in figures.items()
    }


def figure_from_draws(
    drawn: Any, of: Callable[[Floats], Floats], low: float, high: float
) -> Figure:
    """Build a figure from a smooth function of counts, by Monte Carlo.

    Args:
        drawn: Object with estimated `counts`, `draws` of the counts that vary with privacy noise,
            `sampled` draws that also vary with sampling, and the confidence `level`.
        of: Function of counts.
        low: Lowest possible value.
        high: Highest possible value.
    """
    noise, spread = (float(np.std(of(counts))) for counts in (drawn.draws, drawn.sampled))
    value = float(of(drawn.counts))
    return Figure.around(value, spread, noise, drawn.level, low=low, high=high)


def quotient_from_draws(
    drawn: Any, parts: Callable[[Floats], Floats], low: float, high: float
) -> Figure:
    """Build a figure from a quotient of two functions of counts; see :func:`figure_from_draws`."""
    noise, spread = (np.cov(parts(counts), rowvar=False) for counts in (drawn.draws, drawn.sampled))
    return Figure.quotient(parts(drawn.counts), noise, spread, drawn.level, low=low, high=high)


def make_monotone(values: Floats) -> Floats:
    """Make noisy values of a nondecreasing function monotone along the last axis."""
    up = np.maximum.accumulate(values, axis=-1)
    down = np.minimum.accumulate(values[..., ::-1], axis=-1)[..., ::-1]
    return np.asarray(0.5 * (up + down))


def shrunk(value: float, noise: float) -> float:
    """Shrink a noisy number towards 0 by noise**2 / value; to 0 if it is within its noise."""
    return value - noise**2 / value if abs(value) > noise else 0.0


def parse_share(value: Any, name: str = "share") -> float:
    """Read a number in (0, 1]; errors name the argument."""
    return parse_number(name, value, low=0.0, high=1.0, open_low=True)


def top_sums(rows: Floats, values: Floats, share: float) -> Floats:
    """Return the sum of the values of the `share` of rows in the highest cells, (...,).

    Args:
        rows: Row counts by ascending cell, (..., cells).
        values: Sums of a value by cell, (..., cells).
        share: In (0, 1]; part of a cell counts in proportion.
    """
    flat = (np.cumsum(v[..., ::-1], axis=-1).reshape(-1, v.shape[-1]) for v in (rows, values))
    count, total = (np.pad(v, ((0, 0), (1, 0))) for v in flat)
    pairs = zip(make_monotone(count), total, strict=True)
    top = [np.interp(share * c[-1], c, t) for c, t in pairs]
    return np.asarray(np.reshape(top, rows.shape[:-1]))


FINE = 1 << 14
"""Fine cells of a value in [-1, 1]."""
FINE_UNIT = 1 << 14
"""Maximum norm of one row's contribution, in grid units, in blocks with fine cells."""


@dataclass(frozen=True)
class Moment:
    """A named sum over rows."""

    name: str
    of: Callable[[Floats], Floats]  # contribution of a row, as a function of the cells' values
    share: float  # squared weight as a share of the squared norm of a row
    # The contribution f is in [0, 1] and released as 2 * f - 1, in [-1, 1]. Decoding with the row
    # count, which has little noise, halves the noise of the sum.
    even: bool = False


def moment_matrix(
    moments: Sequence[Moment], points: Floats, part: float, unit: int = FINE_UNIT
) -> Ints:
    """Return the contribution of a row in each cell: integers, (sums, cells)."""
    rows = []
    for one, weight in zip(moments, moment_weights(moments, part, unit), strict=True):
        values = np.broadcast_to(one.of(points), points.shape[-1:])
        rows.append(weight * (2.0 * values - 1.0 if one.even else values))
    return np.rint(np.vstack(rows)).astype(np.int64)


def moment_weights(moments: Sequence[Moment], part: float, unit: int = FINE_UNIT) -> Floats:
    """Return the weights of a block's sums; integers, so the row count has no rounding error."""
    return np.rint(unit * np.sqrt([part * one.share for one in moments]))


@dataclass(frozen=True, eq=False)
class Moments:
    """Unbiased estimates of named sums over rows."""

    place: Mapping[str, int]  # index of each sum by name
    totals: Floats
    noise: Floats  # covariance of `totals` due to privacy noise
    level: float  # confidence level of each interval

    @classmethod
    def read(
        cls, moments: Sequence[Moment], sums: Floats, noise: float, weights: Floats, level: float
    ) -> Moments:
        """Decode weighted noisy sums; the first moment must be the row count."""
        decode = np.diag(1.0 / weights)
        for place, one in enumerate(moments):
            if one.even:
                decode[place] = 0.5 * (decode[place] + decode[0])
        names = {one.name: place for place, one in enumerate(moments)}
        return cls(names, decode @ sums, noise**2 * decode @ decode.T, level)

    def vector(self, of: Mapping[str, float]) -> Floats:
        """Return the coefficient vector of a linear function of the sums."""
        out = np.zeros(len(self.totals))
        for name, weight in of.items():
            out[self.place[name]] += weight
        return out

    def total(self, of: Mapping[str, float]) -> float:
        """Evaluate a linear function of the sums."""
        return float(self.vector(of) @ self.totals)

    @property
    def count(self) -> float:
        """Estimated number of rows, at least 1."""
        return max(float(self.totals[0]), 1.0)

    @property
    def rows(self) -> Figure:
        """Number of rows (or persons)."""
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
        """Build a figure for the mean over rows of a linear function of the moments.

        Args:
            of: Coefficients by moment name.
            square: Estimated sum over rows of the squared function.
            low: Lowest possible mean.
            high: Highest possible mean.
            level: Confidence level. Default: `self.level`.
        """
        n = self.count
        weights = np.stack([self.vector(of), self.vector({"rows": 1.0})])
        parts = weights @ self.totals
        noise = weights @ self.noise @ weights.T
        # For a population mean q, the sum of (f - q) has the variance sum of (f - q)^2.
        first = max(square, parts[0] ** 2 / n)
        spread = noise + np.array([[first, parts[0]], [parts[0], n]])
        at = self.level if level is None else level
        return Figure.quotient(parts, noise, spread, at, low=low, high=high)


_TREE = 0.2  # share of the squared norm of a row
_MOMENTS = (
    Moment("rows", np.ones_like, 0.2),
    Moment("value", np.asarray, 0.25),
    Moment("size", np.abs, 0.15, even=True),
    Moment("square", np.square, 0.2, even=True),
)


@lru_cache(maxsize=2)
def value_matrix(power: int = 1) -> Ints:
    """Return the contribution of a row in each of 128 cells: moments, and a Haar tree."""
    moments = moment_matrix(_MOMENTS, value_points(power), 1.0, UNIT)
    tree = np.rint(UNIT * tree_matrix(CELLS, 0.0, _TREE)[1:]).astype(np.int64)
    matrix = np.vstack([moments, tree])
    matrix.setflags(write=False)
    return matrix


def moving_average(counts: Floats, reach: int) -> Floats:
    """Return the moving average of counts over `reach` neighbours on either side."""
    width = 2 * reach + 1
    return np.convolve(np.pad(counts, reach, mode="edge"), np.full(width, 1.0 / width), "valid")


@dataclass(frozen=True, eq=False)
class Values:
    """Distribution of a bounded value over the rows, estimated from the released sums.

    Attributes:
        counts: Estimated number of rows per cell; noisy, unbiased.
        draws: Draws of `counts` that vary with the privacy noise, (draws, cells).
        error: Covariance of the noise in `counts`.
        middle: Midpoint of the value's range, in the unit of the value.
        half: Half the width of the range.
        level: Confidence level of each interval.
        power: Spacing of the cells, see :func:`counts.value_cells`.

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
    ) -> Values:
        """Estimate the distribution from noisy sums.

        Args:
            solver: Solver for the released block.
            sums: Released sums of the block.
            noise: Standard deviation of the noise in each sum.
            middle: Midpoint of the value's range.
            half: Half the width of the range.
            level: Confidence level.
            power: Spacing of the cells, see :func:`counts.value_cells`.
        """
        counts, draws = solver.counts(sums, noise, np.random.default_rng(0))
        error = noise**2 * solver.covariance
        return cls(counts, draws, error, middle, half, level, power)

    @property
    def points(self) -> Floats:
        """Representative value of each cell."""
        return self.middle + self.half * value_points(self.power)

    @property
    def _around(self) -> Floats:
        """Sampling variance of each count."""
        return np.maximum(moving_average(self.counts, 4), 0.0)

    def mean_square(self, counts: Floats) -> Floats:
        """Return the mean squared value of counts of shape (..., CELLS)."""
        # Within each cell, the distribution is assumed to be uniform.
        within = (self.half * np.diff(value_ends(self.power))) ** 2 / 12.0
        return np.asarray(counts @ (self.points**2 + within) / np.maximum(counts.sum(axis=-1), 1.0))

    @property
    def mean(self) -> Figure:
        """Mean value."""
        weights = np.stack([self.points, np.ones(CELLS)])
        noise = weights @ self.error @ weights.T
        spread = noise + (weights * self._around) @ weights.T
        ends = {"low": self.middle - self.half, "high": self.middle + self.half}
        return Figure.quotient(weights @ self.counts, noise, spread, self.level, **ends)

    def quantile(self, share: float) -> Figure:
        """Return a quantile of the values.

        Args:
            share: Share of the rows below the quantile, in (0, 1).
        """
        ends = self.middle + self.half * value_ends(self.power)

        def short(counts: Floats) -> Floats:
            """Return the rows below each cell edge minus the target number of rows."""
            below = np.cumsum(counts, axis=-1)
            none = np.zeros_like(below[..., :1])
            return np.concatenate([none, below], axis=-1) - share * below[..., -1:]

        def of(counts: Floats) -> Floats:
            """Return the value at which the cumulative count reaches the target."""
            lacking = np.atleast_2d(short(counts))
            return np.array([np.interp(0.0, row, ends) for row in make_monotone(lacking)])

        # The interval contains every cell that may contain the quantile, given the noise.
        weights = short(np.eye(CELLS)).T
        # At the population quantile, the number of rows below is binomial.
        drawn = share * (1.0 - share) * max(float(self.counts.sum()), 1.0)
        variance = ((weights @ self.error) * weights).sum(axis=1) + drawn
        wide = float(ndtri(0.5 + 0.5 * self.level)) * np.sqrt(variance)
        value, around = float(of(self.counts)[0]), short(self.counts)
        first = int(np.argmax(around + wide >= 0.0))
        last = CELLS - int(np.argmax((around - wide)[::-1] <= 0.0))
        low, high = float(ends[max(first - 1, 0)]), float(ends[min(last + 1, CELLS)])
        return Figure(value, min(low, value), max(high, value), float(np.std(of(self.draws))))


_SHARE = 0.05  # share of the squared norm of a row


@dataclass(frozen=True)
class SharesBeyond:
    """Shares of rows beyond each clipping bound, and the descriptions of the bounds."""

    strings: Mapping[str, str] = field(default_factory=dict)
    shares: Mapping[str, Figure] = field(default_factory=dict)

    def figures(self, clipped: Mapping[str, Figure]) -> dict[str, Figure]:
        """Prefix the names of clipped figures with "clipped", and add the shares beyond bounds."""
        before = "clipped " if self.strings else ""
        names = {f"{before}{name}": figure for name, figure in clipped.items()}
        return names | {f"{name} beyond": figure for name, figure in self.shares.items()}

    def statement(self, units: str) -> str:
        """Describe the clipping and the shares beyond the bounds; empty without bounds."""
        if not self.strings:
            return ""
        head = (
            'A figure named "clipped" is computed from clipped values. Its interval covers the '
            "clipped figure of the population, not the unclipped one, and does not account for "
            "errors beyond the bounds."
        )
        shares = [
            f"{text}: about {share.value:.2%} ({share.low:.2%} to {share.high:.2%}) of the {units}."
            for text, share in zip(self.strings.values(), self.shares.values(), strict=True)
        ]
        return " ".join([head, *shares])


@dataclass(frozen=True)
class Limits:
    """Clipping bounds of one kind of model; public."""

    strings: Mapping[str, str] = field(default_factory=dict)  # descriptions by clipped quantity

    @property
    def rest(self) -> float:
        """Share of a row's squared norm that remains for the other sums."""
        return 1.0 - _SHARE if self.strings else 1.0

    def _weight(self, share: float) -> int:
        return round(FINE_UNIT * math.sqrt(share * _SHARE / len(self.strings)))

    def matrices(self, share: float) -> list[Ints]:
        """Return the block that counts rows beyond the k bounds; empty without bounds.

        A row is in one of 2^k cells, by the set of bounds that it exceeds. It adds +weight to the
        sum of each bound that it exceeds, and -weight to all others. Combined with the row count,
        which has little noise, each sum gives a count with half the noise of a direct count.
        """
        if not self.strings:
            return []
        bits = np.arange(len(self.strings))[:, np.newaxis]
        beyond = np.arange(1 << len(self.strings)) >> bits & 1
        return [self._weight(share) * (2 * beyond - 1)]

    def cells(self, beyond: Mapping[str, npt.NDArray[np.bool_]]) -> list[Ints]:
        """Return the cell of each row, from flags for values beyond each bound."""
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
        """Estimate the shares of rows beyond the bounds.

        Args:
            sums: Sums of the block; empty if no bounds are declared.
            share: Share of a row's squared norm that goes to all blocks for these rows.
            noise: Standard deviation of the noise in each sum.
            rows: Noisy number of rows, and the variance of its noise.
            level: Confidence level.
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
    """Return a mask of values beyond bounds, compared as 32-bit floats like in XGBoost."""
    narrow = np.asarray(values, dtype=np.float32)
    return np.asarray(~((narrow >= np.float32(low)) & (narrow <= np.float32(high))))
