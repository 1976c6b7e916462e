"""Composition of rounds that each read a Poisson sample of the rows, as a rigorous upper bound.

Proof: docs/proofs/sampling.md. The curve of one round is bounded at a grid of points; sampling maps
it to one curve for a row added and one for a row removed; each is met by a pair of laws on a grid
(the lower convex hull of its points); rounds are convolved by a tilted Fourier transform, and what
was released without sampling is integrated over the result.
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
    """Two laws whose privacy loss lies on a grid."""

    step: float  # of the grid, in nats
    at: Indices  # losses in steps, ascending
    p: Array  # probability of each loss under the first law
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
    """`count` rounds of one kind, with bounds of hockey sticks at losses >= 0 in both orders."""

    rate: float  # probability with which a round reads the row (or one of several)
    mu: float  # about how far a round that reads it moves, in standard deviations
    curve: Curve  # of such a round
    nodes: Array  # losses at which it has its corners
    count: int
    mixed: Curve | None = None  # of a round with its sample where several rows differ

    @property
    def size(self) -> float:
        """About the standard deviation of the loss of a round; steers the grid, bounds nothing."""
        return min(self.mu, self.rate * math.sqrt(math.expm1(min(self.mu**2, 50.0))))

    def ways(self) -> list[tuple[Curve, Array]]:
        """Hockey sticks of a round with its sample, one for both orders or one for each."""
        q = self.rate
        nodes = np.concatenate([-self.nodes[:0:-1], self.nodes])
        # Where the corners of the curve come to lie; points elsewhere would be valid, but idle.
        with np.errstate(divide="ignore"):
            removed = np.logaddexp(np.log1p(-q), math.log(q) + nodes)
            added = -np.logaddexp(np.log1p(-q), math.log(q) - nodes)
        if self.mixed is not None:
            return [(partial(both_signs, self.mixed), np.concatenate([-removed, removed]))]
        return [(partial(removed_curve, self), removed), (partial(added_curve, self), added)]


def _logsumexp(terms: Array) -> float:
    """log of the sum of e^terms; scipy's own takes longer than the rounds that are summed here."""
    most = float(np.max(terms))
    return most + math.log(float(np.sum(np.exp(terms - most)))) if math.isfinite(most) else most


def removed_curve(rounds: Rounds, x: Array) -> Array:
    """Hockey stick of (1-q) Q + q P against Q: q D(log((e^x - 1 + q) / q))."""
    q = rounds.rate
    odds = 1.0 + np.expm1(x) / q
    inside = odds > 0.0
    value = q * both_signs(rounds.curve, np.log(np.where(inside, odds, 1.0)))
    return np.asarray(np.where(inside, value, -np.expm1(x)))


def added_curve(rounds: Rounds, x: Array) -> Array:
    """Hockey stick of P against (1-q) P + q Q: (1 - (1-q) e^x) D(log(q e^x / (1 - (1-q) e^x)))."""
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
    """The second law's mass at each corner of a hull but the first, at s = 0: more than it.

    At each corner the slope grows by that much, and beyond the last one it is 0. The rounding of
    the difference counts upwards: more mass at any loss is safe.
    """
    slopes = np.append(np.diff(v) / np.diff(s), 0.0)
    size = np.abs(slopes[1:]) + np.abs(slopes[:-1])
    return np.asarray(np.maximum(np.diff(slopes), 0.0) + 2.0**-51 * size)


def _pair(step: float, at: Indices, v: Array, rounding: float) -> Pair:
    """The pair whose hockey stick is the lower convex hull of points, constant from the last on.

    Every curve is convex in s = e^x and 1 at s = 0, so the hull of upper bounds bounds it.
    """
    x = step * at
    v = np.minimum.accumulate(np.minimum(v, 1.0))  # the curve does not rise
    s = np.concatenate([[0.0], np.exp(x)])
    v = np.concatenate([[1.0], v])
    kept = hull(s, v)
    # The second law's mass is e^-x of the first one's.
    p = hull_masses(s[kept], v[kept]) * s[kept[1:]] * _UP
    return Pair(step, at[kept[1:] - 1], p, float(v[-1]) + rounding)


def sampled_pairs(rounds: Rounds, step: float, tail: float) -> list[Pair]:
    """Laws that dominate one sampled round: for a row removed and a row added, or one for both."""
    pairs = []
    for curve, corners in rounds.ways():
        below = np.floor(corners / step).astype(np.int64)
        at = np.unique(np.concatenate([below, below + 1, [-1, 0, 1]]))
        v = curve(at * step)
        # Any end is valid: above the curve does not rise, below the hull goes straight up to 1.
        last = int(np.argmax(v <= tail)) if v[-1] <= tail else len(v) - 1
        first = int(np.argmax((v + np.expm1(at * step) > 1e-9) | (at >= -1)))
        first = max(0, first - 1)
        last = max(first, last)  # a pair has a loss, however rare all of them are
        pairs.append(_pair(step, at[first : last + 1], v[first : last + 1], 2.0**-50 * rounds.rate))
    return pairs


class TooManyPoints(Exception):
    """The losses need a coarser grid."""


class Composed:
    """The losses of many rounds together: their law, with all errors on the safe side."""

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
        law = np.fft.irfft(spectrum, size)
        # A part's transform errs by `rounding` at most, which its power multiplies by the other
        # factors; the transform back errs in proportion to the spectrum.
        errors = rounding * float(np.sum(others)) + 2.0**-46 * float(np.sum(np.abs(spectrum)))
        error = errors * 2.0 / size
        at = np.arange(low, high + 1)
        self.losses = np.asarray(at * self.step, dtype=np.float64)
        self.p = np.maximum(law[at % size] + error, 0.0)
        self.infinite = dropped + math.fsum(n * pair.infinite for pair, n in parts)

    def expect(self, values: Array) -> float:
        """Upper bound of the mean of `values`, in [0, 1] at each loss; 1 at infinite ones."""
        with np.errstate(divide="ignore"):
            terms = np.log(self.p) + self.log_m - self.tilt * self.losses
            terms = np.minimum(terms, 0.0) + np.log(values)
        return min(1.0, math.exp(min(0.0, _logsumexp(terms))) * (1.0 + 1e-9) + self.infinite)


def _log_moment(parts: Sequence[tuple[Pair, int]], power: float) -> float:
    """log E e^(power * loss) over the finite losses of all rounds."""
    return math.fsum(n * _logsumexp(c.log_p + power * c.losses) for c, n in parts)


def _powers(parts: Sequence[tuple[Pair, int]], mu: float) -> tuple[float, float]:
    """Between which powers to look for Chernoff's best one, as logarithms."""
    scale = math.sqrt(variance(parts) + mu * mu + parts[0][0].step ** 2)
    farthest = max(float(np.max(np.abs(pair.losses))) for pair, _ in parts)
    return math.log(1e-3 / (scale + farthest)), math.log(100.0 / scale)


def best_tilt(
    parts: Sequence[tuple[Pair, int]], mu: float, *, delta: float, epsilon: float | None
) -> float:
    """The power at which Chernoff's bound is best; steers the search, bounds nothing."""

    def bound(log_power: float) -> float:
        power = math.exp(log_power)
        log_m = _log_moment(parts, power) + power * (power + 1.0) * mu * mu / 2.0
        return (log_m - math.log(delta)) / power if epsilon is None else log_m - power * epsilon

    optimum = scipy.optimize.minimize_scalar(bound, bounds=_powers(parts, mu), method="bounded")
    return float(math.exp(optimum.x))


def variance(parts: Sequence[tuple[Pair, int]]) -> float:
    """Variance of the finite losses of all rounds; steers the search, bounds nothing."""
    total = 0.0
    for pair, n in parts:
        mean = float(np.sum(pair.p * pair.losses))
        total += n * float(np.sum(pair.p * (pair.losses - mean) ** 2))
    return total


def _tail(parts: Sequence[tuple[Pair, int]], tilt: float, side: float, log_lost: float) -> float:
    """Some x with P(side * loss > x) <= e^log_lost under the law tilted by `tilt`, near the least.

    By Chernoff's bound, P(L > x) <= E e^(a L) e^(-a x), whose best power a is searched.
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
    """Indices between which the sum of losses counts, and the chance that it is elsewhere.

    What lies outside comes back inside at another place, where it can only raise the result; it is
    dropped where it belongs and counted as infinite.
    """
    step = parts[0][0].step
    low = sum(n * int(pair.at[0]) for pair, n in parts)
    high = sum(n * int(pair.at[-1]) for pair, n in parts)
    # Under the law itself nothing may be lost, under the tilted one little should come back.
    above = max(_tail(parts, 0.0, 1.0, math.log(lost)), _tail(parts, tilt, 1.0, -30.0))
    below = _tail(parts, 0.0, -1.0, math.log(lost))
    high = min(high, math.ceil(above / step))
    low = max(low, math.floor(-below / step))
    return low, max(high, low + 1), 2.0 * lost * _UP


def several_rows(rate: float, mu: float, curves: Sequence[Curve], *, replaced: bool) -> Curve:
    """Upper bound at losses >= 0 of the hockey stick of a sampled round, in both orders."""
    rows = len(curves)
    if rate >= 1.0:
        return curves[-1]
    removed = [rows // 2] if replaced else list(range(rows + 1))

    def bound(x: Array) -> Array:
        values = [_bound(rate, mu, curves, first, rows - first, x) for first in removed]
        return np.asarray(np.max(values, axis=0))

    return bound


def _log_binomial(rows: int, rate: float) -> Array:
    """Logarithms of the chances that 0, 1, ... of so many rows are read."""
    k = np.arange(rows + 1)
    gammaln = scipy.special.gammaln
    ways = gammaln(rows + 1) - gammaln(k + 1) - gammaln(rows - k + 1)
    return np.asarray(ways + k * math.log(rate) + (rows - k) * math.log1p(-rate))


def _bound(
    rate: float, mu: float, curves: Sequence[Curve], first: int, second: int, x: Array
) -> Array:
    """The hockey stick of A, with `first` rows of its own, and B, with `second` rows, at x >= 0.

    A - e^x B = sum a_j A_j - sum b_k B_k, where j and k are the rows that are read. Each A_j is
    compared with each B_k, in proportions that give the thresholds of one test for Gaussian noise.
    """
    log_a = np.repeat(_log_binomial(first, rate)[:, None], x.size, axis=1)
    log_b = _log_binomial(second, rate)[:, None] + x
    # What reads none of the rows is the same on both sides.
    gap = x + (second - first) * math.log1p(-rate)
    with np.errstate(divide="ignore"):
        log_b[0] = log_a[0] + gap + np.log(np.maximum(-np.expm1(-gap), 0.0))
        log_a[0] += np.log(np.maximum(-np.expm1(gap), 0.0))
    j, k = np.arange(first + 1)[:, None], np.arange(second + 1)[:, None]

    def at(test: Array) -> tuple[Array, Array]:
        """Densities of A_j and B_k at the threshold of a test, against that of reading none."""
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
                continue  # one of the two has nothing left
            weight = np.exp(log_a[m] + log_b[n] + dense_b[n] - whole)
            threshold = dense_a[m] - dense_b[n] - scale
            # A threshold that is off by this much moves a probability by no more.
            size = np.abs(dense_a[m]) + np.abs(dense_b[n]) + np.abs(log_b[n]) + np.abs(whole)
            error = 2.0**-50 * (16.0 + np.where(weight > 0.0, size, 0.0))
            total += weight * (curves[m + n - 1](threshold) + error)
    return np.asarray(np.minimum(total * _GROUPS_UP, 1.0))
