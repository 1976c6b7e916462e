"""Composition of rounds that each read a Poisson sample of the rows, as a rigorous upper bound.

Proof: docs/proofs/sampling.md. The curve of one round is bounded at grid points. Sampling maps it
to one curve for adding a row and one for removing a row. Each curve has a dominating pair of
distributions on a grid (the lower convex hull of its points). A tilted Fourier transform convolves
the rounds, and the releases without sampling are integrated over the result.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
import numpy.typing as npt
import scipy

from .curve import both_signs

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]
Curve = Callable[[Array], Array]

_UP = 1.0 + 1e-12
_MOST_POINTS = 1 << 17
_HALVINGS = 40
_REACH = 60.0
_GROUPS_UP = 1.0 + 1e-10


@dataclass(frozen=True)
class Pair:
    """A dominating pair of distributions with privacy losses on a grid."""

    step: float  # of the grid, in nats
    at: Indices  # losses in steps, ascending
    p: Array  # probability of each loss under the first distribution
    infinite: float  # probability of an infinite loss

    @cached_property
    def losses(self) -> Array:
        """All finite losses, in nats."""
        return np.asarray(self.step * self.at, dtype=np.float64)

    @cached_property
    def log_p(self) -> Array:
        """Logarithms of `p`."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.p))


@dataclass(frozen=True)
class Rounds:
    """`count` equal rounds, with hockey-stick bounds at losses >= 0 that hold in both orders."""

    rate: float  # probability that a round reads the row (or one of several rows)
    mu: float  # approximate mu of a round that reads the row
    curve: Curve  # curve of a round that reads the row
    nodes: Array  # losses at which `curve` has corners
    count: int
    mixed: Curve | None = None  # curve of a sampled round if several rows differ

    @property
    def size(self) -> float:
        """Approximate standard deviation of a round's loss, to choose the grid; not a bound."""
        return min(self.mu, self.rate * math.sqrt(math.expm1(min(self.mu**2, 50.0))))

    def ways(self) -> list[tuple[Curve, Array]]:
        """Hockey-stick curves of a sampled round and their corners, for both orders or for each."""
        q = self.rate
        nodes = np.concatenate([-self.nodes[:0:-1], self.nodes])
        # Sampling maps the corners to these points; other points would be valid but useless.
        with np.errstate(divide="ignore"):
            removed = np.logaddexp(np.log1p(-q), math.log(q) + nodes)
            added = -np.logaddexp(np.log1p(-q), math.log(q) - nodes)
        if self.mixed is not None:
            return [(partial(both_signs, self.mixed), np.concatenate([-removed, removed]))]
        return [(partial(removed_curve, self), removed), (partial(added_curve, self), added)]


def _logsumexp(terms: Array) -> float:
    """log of the sum of e^terms; much faster than scipy's for short arrays."""
    most = float(np.max(terms))
    return most + math.log(float(np.sum(np.exp(terms - most)))) if math.isfinite(most) else most


def removed_curve(rounds: Rounds, x: Array) -> Array:
    """Hockey-stick divergence of (1-q) Q + q P from Q: q D(log((e^x - 1 + q) / q))."""
    q = rounds.rate
    odds = 1.0 + np.expm1(x) / q
    inside = odds > 0.0
    value = q * both_signs(rounds.curve, np.log(np.where(inside, odds, 1.0)))
    return np.asarray(np.where(inside, value, -np.expm1(x)))


def added_curve(rounds: Rounds, x: Array) -> Array:
    """Hockey-stick divergence of P from (1-q) P + q Q.

    It is (1 - (1-q) e^x) D(log(q e^x / (1 - (1-q) e^x))).
    """
    q = rounds.rate
    lack = (1.0 - q) * np.expm1(x) / q  # 1 - r/q
    inside = lack < 1.0
    safe = np.where(inside, lack, 0.0)
    value = q * (1.0 - safe) * both_signs(rounds.curve, x - np.log1p(-safe))
    return np.asarray(np.where(inside, value, 0.0))


def hull(s: Array, v: Array) -> npt.NDArray[np.intp]:
    """Indices of the lower convex hull of points with ascending s."""
    kept: list[int] = []
    for i in range(len(s)):
        while len(kept) > 1:
            a, b = kept[-2], kept[-1]
            if (v[b] - v[a]) * (s[i] - s[a]) < (v[i] - v[a]) * (s[b] - s[a]):
                break
            kept.pop()
        kept.append(i)
    return np.array(kept)


def hull_masses(s: Array, v: Array) -> Array:
    """Upper bounds of the second distribution's mass at each corner of a hull except s = 0.

    The mass at a corner is the increase of the slope, which is 0 after the last corner. Rounding
    errors of the difference are added: more mass at any loss is safe.
    """
    slopes = np.append(np.diff(v) / np.diff(s), 0.0)
    size = np.abs(slopes[1:]) + np.abs(slopes[:-1])
    return np.asarray(np.maximum(np.diff(slopes), 0.0) + 2.0**-51 * size)


def _pair(step: float, at: Indices, v: Array, rounding: float) -> Pair:
    """The pair with the lower convex hull of the points as its hockey-stick curve.

    The curve is constant after the last point. Every hockey-stick curve is convex in s = e^x and 1
    at s = 0, so the hull of upper bounds is an upper bound.
    """
    x = step * at
    v = np.minimum.accumulate(np.minimum(v, 1.0))  # the curve is non-increasing
    s = np.concatenate([[0.0], np.exp(x)])
    v = np.concatenate([[1.0], v])
    kept = hull(s, v)
    # The first distribution's mass is e^x times the second's.
    p = hull_masses(s[kept], v[kept]) * s[kept[1:]] * _UP
    return Pair(step, at[kept[1:] - 1], p, float(v[-1]) + rounding)


def sampled_pairs(rounds: Rounds, step: float, tail: float) -> list[Pair]:
    """Dominating pairs of one sampled round: for removing and for adding a row, or one for both."""
    pairs = []
    for curve, corners in rounds.ways():
        below = np.floor(corners / step).astype(np.int64)
        at = np.unique(np.concatenate([below, below + 1, [-1, 0, 1]]))
        v = curve(at * step)
        # Any ends are valid: above, the curve does not rise; below, the hull is a line up to 1.
        last = int(np.argmax(v <= tail)) if v[-1] <= tail else len(v) - 1
        first = int(np.argmax((v + np.expm1(at * step) > 1e-9) | (at >= -1)))
        first = max(0, first - 1)
        last = max(first, last)  # a pair needs at least one loss
        pairs.append(_pair(step, at[first : last + 1], v[first : last + 1], 2.0**-50 * rounds.rate))
    return pairs


class TooManyPoints(Exception):
    """The losses do not fit the grid; use a larger step."""


class Composed:
    """Distribution of the total privacy loss of many rounds; all errors are on the safe side."""

    def __init__(self, parts: Sequence[tuple[Pair, int]], tilt: float, lost: float) -> None:
        self.step = parts[0][0].step
        self.tilt = tilt
        self.log_m = _log_moment(parts, tilt)
        self.deviation = math.sqrt(variance(parts))
        low, high, dropped = _window(parts, tilt, lost)
        size = 1 << max(4, (high - low).bit_length())
        if size > _MOST_POINTS:
            raise TooManyPoints
        log_spectrum = np.zeros(size // 2 + 1, dtype=np.complex128)
        others = np.ones(size // 2 + 1)
        rounding = 0.0
        for pair, n in parts:
            weights = np.exp(pair.log_p + tilt * pair.losses - _log_moment([(pair, 1)], tilt))
            folded = np.zeros(size)
            np.add.at(folded, pair.at % size, weights)
            spectrum = np.fft.rfft(folded)
            with np.errstate(divide="ignore"):
                log_spectrum += n * np.log(spectrum)
            others *= np.minimum(np.abs(spectrum) + 1e-13, 1.0) ** (n - 1)
            rounding += n * 8.0 * math.log2(size) * 2.0**-52
        spectrum = np.exp(log_spectrum)
        distribution = np.fft.irfft(spectrum, size)
        # The error of each transform is at most `rounding`, and the power multiplies it by the
        # other factors; the error of the inverse transform is proportional to the spectrum.
        errors = rounding * float(np.sum(others)) + 2.0**-46 * float(np.sum(np.abs(spectrum)))
        error = errors * 2.0 / size
        at = np.arange(low, high + 1)
        self.losses = np.asarray(at * self.step, dtype=np.float64)
        self.p = np.maximum(distribution[at % size] + error, 0.0)
        self.infinite = dropped + math.fsum(n * pair.infinite for pair, n in parts)

    def expect(self, values: Array) -> float:
        """Upper bound of the mean of `values` in [0, 1]; infinite losses have the value 1."""
        with np.errstate(divide="ignore"):
            terms = np.log(self.p) + self.log_m - self.tilt * self.losses
            terms = np.minimum(terms, 0.0) + np.log(values)
        return min(1.0, math.exp(min(0.0, _logsumexp(terms))) * (1.0 + 1e-9) + self.infinite)


def _log_moment(parts: Sequence[tuple[Pair, int]], power: float) -> float:
    """log E e^(power * loss) over the finite losses of all rounds."""
    return math.fsum(n * _logsumexp(c.log_p + power * c.losses) for c, n in parts)


def _powers(parts: Sequence[tuple[Pair, int]], mu: float) -> tuple[float, float]:
    """Logarithmic search interval for the best power in Chernoff's bound."""
    scale = math.sqrt(variance(parts) + mu * mu + parts[0][0].step ** 2)
    farthest = max(float(np.max(np.abs(pair.losses))) for pair, _ in parts)
    return math.log(1e-3 / (scale + farthest)), math.log(100.0 / scale)


def best_tilt(
    parts: Sequence[tuple[Pair, int]], mu: float, *, delta: float, epsilon: float | None
) -> float:
    """The best power in Chernoff's bound, approximately; it only guides the search."""

    def bound(log_power: float) -> float:
        power = math.exp(log_power)
        log_m = _log_moment(parts, power) + power * (power + 1.0) * mu * mu / 2.0
        return (log_m - math.log(delta)) / power if epsilon is None else log_m - power * epsilon

    optimum = scipy.optimize.minimize_scalar(bound, bounds=_powers(parts, mu), method="bounded")
    return float(math.exp(optimum.x))


def variance(parts: Sequence[tuple[Pair, int]]) -> float:
    """Approximate variance of the finite losses of all rounds; it only guides the search."""
    total = 0.0
    for pair, n in parts:
        mean = float(np.sum(pair.p * pair.losses))
        total += n * float(np.sum(pair.p * (pair.losses - mean) ** 2))
    return total


def _tail(parts: Sequence[tuple[Pair, int]], tilt: float, side: float, log_lost: float) -> float:
    """An x with P(side * loss > x) <= e^log_lost under the distribution tilted by `tilt`.

    By Chernoff's bound, P(L > x) <= E e^(a L) e^(-a x). A search for the best power a makes x
    nearly minimal.
    """
    whole = _log_moment(parts, tilt)

    def reach(log_power: float) -> float:
        power = math.exp(log_power)
        return (_log_moment(parts, tilt + side * power) - whole - log_lost) / power

    optimum = scipy.optimize.minimize_scalar(
        reach, bounds=_powers(parts, 0.0), method="bounded", options={"maxiter": 30}
    )
    return float(reach(optimum.x)) * (1.0 + 1e-9) + parts[0][0].step


def _window(parts: Sequence[tuple[Pair, int]], tilt: float, lost: float) -> tuple[int, int, float]:
    """First and last index of the total loss, and the probability of a total outside.

    Losses outside wrap around to other indices, which can only raise the result. They are omitted
    at their true place and counted as infinite.
    """
    step = parts[0][0].step
    low = sum(n * int(pair.at[0]) for pair, n in parts)
    high = sum(n * int(pair.at[-1]) for pair, n in parts)
    # The distribution itself must lose at most `lost`; little tilted mass should wrap around.
    above = max(_tail(parts, 0.0, 1.0, math.log(lost)), _tail(parts, tilt, 1.0, -30.0))
    below = _tail(parts, 0.0, -1.0, math.log(lost))
    high = min(high, math.ceil(above / step))
    low = max(low, math.floor(-below / step))
    return low, max(high, low + 1), 2.0 * lost * _UP


def several_rows(rate: float, mu: float, curves: Sequence[Curve], *, replaced: bool) -> Curve:
    """Bound the hockey-stick curve of a sampled round at losses >= 0, in both orders.

    The neighbours differ by several rows; ``curves[k - 1]`` applies if the round reads k of them.
    """
    rows = len(curves)
    if rate >= 1.0:
        return curves[-1]
    removed = [rows // 2] if replaced else list(range(rows + 1))

    def bound(x: Array) -> Array:
        values = [_bound(rate, mu, curves, first, rows - first, x) for first in removed]
        return np.asarray(np.max(values, axis=0))

    return bound


def _log_binomial(rows: int, rate: float) -> Array:
    """Log-probabilities that a round reads 0, 1, ..., `rows` rows."""
    k = np.arange(rows + 1)
    gammaln = scipy.special.gammaln
    ways = gammaln(rows + 1) - gammaln(k + 1) - gammaln(rows - k + 1)
    return np.asarray(ways + k * math.log(rate) + (rows - k) * math.log1p(-rate))


def _bound(
    rate: float, mu: float, curves: Sequence[Curve], first: int, second: int, x: Array
) -> Array:
    """Bound the hockey-stick divergence at x >= 0 of A from B.

    A has `first` rows that B lacks, and B has `second` rows that A lacks.

    A - e^x B = sum a_j A_j - sum b_k B_k, where j and k are the numbers of rows read. The bound is
    a weighted sum over all pairs (A_j, B_k). The weights are chosen so that, for Gaussian noise,
    all pairs use the threshold of the same test.
    """
    log_a = np.repeat(_log_binomial(first, rate)[:, None], x.size, axis=1)
    log_b = _log_binomial(second, rate)[:, None] + x
    # If no row is read, both sides have the same distribution.
    gap = x + (second - first) * math.log1p(-rate)
    with np.errstate(divide="ignore"):
        log_b[0] = log_a[0] + gap + np.log(np.maximum(-np.expm1(-gap), 0.0))
        log_a[0] += np.log(np.maximum(-np.expm1(gap), 0.0))
    j, k = np.arange(first + 1)[:, None], np.arange(second + 1)[:, None]

    def at(test: Array) -> tuple[Array, Array]:
        """Log-densities of A_j and B_k at a threshold, relative to the density without rows."""
        return j * mu * test - (j * mu) ** 2 / 2.0, -k * mu * test - (k * mu) ** 2 / 2.0

    logsumexp = scipy.special.logsumexp
    low = np.full_like(x, -_REACH - (first + second) * mu)
    high = -low
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        dense_a, dense_b = at(middle)
        more = logsumexp(log_a + dense_a, axis=0) > logsumexp(log_b + dense_b, axis=0)
        low, high = np.where(more, low, middle), np.where(more, middle, high)
    dense_a, dense_b = at(low)
    whole = logsumexp(log_b + dense_b, axis=0)
    scale = logsumexp(log_a + dense_a, axis=0) - whole
    total = np.zeros_like(x)
    for m in range(first + 1):
        for n in range(second + 1):
            if m + n == 0:
                continue  # the common part is already cancelled
            weight = np.exp(log_a[m] + log_b[n] + dense_b[n] - whole)
            threshold = dense_a[m] - dense_b[n] - scale
            # A rounding error of the threshold changes a probability by at most as much.
            size = np.abs(dense_a[m]) + np.abs(dense_b[n]) + np.abs(log_b[n]) + np.abs(whole)
            error = 2.0**-50 * (16.0 + np.where(weight > 0.0, size, 0.0))
            total += weight * (curves[m + n - 1](threshold) + error)
    return np.asarray(np.minimum(total * _GROUPS_UP, 1.0))
