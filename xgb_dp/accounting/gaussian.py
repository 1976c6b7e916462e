"""Composes Gaussian mechanisms: the exact curve, and the slack for discrete noise.

Proofs: docs/proofs/accounting.md, "Gaussians last" and "Discrete noise".
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy

from .bounded_range import tail_curve
from .curve import Curve, doubled, narrow
from .events import GaussianEvent, ThresholdEvent

BETA = 1e-6  # share of delta for noise beyond the bound of the discreteness slack
_UP = 1.0 + 1e-12  # exceeds the rounding error of a sum of positive doubles


@dataclass(frozen=True)
class Slack:
    """Additional privacy loss of discrete noise over continuous noise.

    epsilon' = epsilon + eta_to + eta_from and delta' = exp(eta_to) * delta + beta, where beta is
    the probability of noise beyond the bound.
    """

    eta_to: float
    eta_from: float

    @property
    def eta(self) -> float:
        """The increase of epsilon."""
        return self.eta_to + self.eta_from

    def raised(self, delta: float, beta: float) -> float:
        """The delta' for a delta of continuous noise."""
        # Beyond 700 the factor would overflow.
        return min(1.0, math.exp(self.eta_to) * delta + beta) if self.eta_to < 700.0 else 1.0


@dataclass(frozen=True)
class GaussianTotals:
    """Sums over all Gaussian releases of one composition; the `a` sums run over coordinates."""

    mu: float  # sqrt(sum sensitivity2 / sigma2), the mean shift in standard deviations
    shift: float  # sqrt(sum sensitivity2 / sigma2**2)
    a1: float  # sum of 1 / sigma2
    a2: float  # Euclidean norm of 1 / sigma2
    a_max: float  # maximum of 1 / sigma2

    @classmethod
    def of(cls, events: Sequence[GaussianEvent], group_size: int) -> GaussianTotals:
        """Compute the totals if up to `group_size` rows are added or removed together."""
        used = [e for e in events if e.count and e.sensitivity2]
        if any(e.sigma2 == 0 for e in used):
            return cls(*[math.inf] * 5)
        mu2 = math.fsum(e.count * e.sensitivity2 / e.sigma2 for e in used)
        shift2 = math.fsum(e.count * e.sensitivity2 / e.sigma2**2 for e in used)
        inverse = [(e.count * max(e.coordinates, 1) * group_size, 1.0 / e.sigma2) for e in used]
        return cls(
            mu=group_size * math.sqrt(mu2) * _UP,
            shift=group_size * math.sqrt(shift2) * _UP,
            a1=math.fsum(n * a for n, a in inverse) * _UP,
            a2=math.sqrt(math.fsum(n * a * a for n, a in inverse)) * _UP,
            a_max=max((a for _, a in inverse), default=0.0),
        )

    def slack(self, log_beta: float) -> Slack:
        """Slack for a failure probability beta = exp(log_beta) of the noise bound."""
        x = -log_beta
        noise = self.a1 + 2.0 * self.a2 * math.sqrt(x) + 2.0 * self.a_max * x
        return Slack(
            eta_to=self.a1 / 24.0 * _UP,
            eta_from=((math.sqrt(noise) + self.shift) ** 2 / 24.0 + 1e-8 * self.a1) * _UP,
        )

    def continuous(self, delta: float) -> tuple[float, float]:
        """The increase of epsilon at a delta, and the corresponding delta of continuous noise."""
        slack = self.slack(math.log(delta * BETA))
        return slack.eta, delta * (1.0 - BETA) * math.exp(-slack.eta_to)

    def raised(self, curve: Callable[[float], float], epsilon: float, beta: float) -> float:
        """Delta at an epsilon, from the curve of continuous noise; `beta` is the failure share."""
        slack = self.slack(math.log(beta))
        return slack.raised(curve(epsilon - slack.eta), beta)


def gaussian_delta(epsilon: float, mu: float) -> float:
    """Upper bound of Phi(mu/2 - eps/mu) - e^eps Phi(-mu/2 - eps/mu), for any real eps.

    Source: Balle and Wang (2018), theorem 8; Dong, Roth and Su (2022).
    """
    if mu == 0.0:
        return max(0.0, -math.expm1(epsilon)) if epsilon < 0.0 else 0.0
    if math.isinf(mu):
        return 1.0
    a = float(scipy.special.log_ndtr(mu / 2.0 - epsilon / mu))
    if a < -700.0:
        return 1e-300
    b = epsilon + float(scipy.special.log_ndtr(-mu / 2.0 - epsilon / mu))
    # A difference of two nearly equal numbers: bound its relative error generously.
    gap = max(a - b, 1e-300)
    rounding = 1e-9 + 1e-14 * (1.0 + abs(a) + abs(epsilon) + abs(epsilon) / mu) / gap
    if a - b < 1e-300:  # only the rounding error is left; e^a times the gap would be too small
        return min(1.0, math.exp(a) * (gap * (1.0 + rounding)))
    return min(1.0, math.exp(a) * -math.expm1(-gap) * (1.0 + rounding))


def gaussian_mu(epsilon: float, delta: float) -> float:
    """Approximate mu of an (epsilon, delta)-private Gaussian mechanism; a guess and not a bound."""

    def is_safe(mu: float) -> bool:
        return gaussian_delta(epsilon, mu) < delta

    return 0.5 * sum(narrow(is_safe, *doubled(is_safe, 1e6), 100))


def gaussian_epsilon(mu: float, delta: float) -> float:
    """Approximate epsilon of a Gaussian mechanism with this mu, at this delta; not a bound."""
    if mu == 0.0 or gaussian_delta(0.0, mu) <= delta:
        return 0.0

    def is_low(epsilon: float) -> bool:
        return gaussian_delta(epsilon, mu) > delta

    return narrow(is_low, 0.0, doubled(is_low)[1], 60)[0]


_TAIL_MARGIN = 1.0 + 1e-9
_SHARES = (*(10.0**-k for k in range(11, 0, -1)), 0.5, 0.9)


def tail(sigma2: int, least: int) -> float:
    """Upper bound of the probability that discrete Gaussian noise is at least `least`."""
    if least < 1:
        return 1.0
    # The normalising sum is at least sqrt(2 pi sigma2), and the tail below the integral.
    return min(1.0, float(scipy.special.ndtr(-(least - 1) / math.sqrt(sigma2))) * _TAIL_MARGIN)


def failure_of(event: ThresholdEvent, rows: int) -> float:
    """The event's contribution to delta if `rows` rows are added or removed. It may exceed 1."""
    if not event.count:
        return 0.0
    least = event.threshold - rows * event.sensitivity
    each = tail(event.sigma2, least) if event.sigma2 else 1.0
    return rows * event.count * -math.log1p(-each) if each < 1.0 else math.inf


class WithThresholds(Curve):
    """Composes thresholds with other releases: failure probabilities of thresholds add to delta."""

    def __init__(self, rest: Curve, events: Sequence[ThresholdEvent], rows: int) -> None:
        self._rest, self._several = rest, rows > 1
        self._failure = math.fsum(failure_of(event, rows) for event in events) * _TAIL_MARGIN
        # Alternative bound for several rows: e^epsilon times this is added to delta.
        each = ((e, tail(e.sigma2, e.threshold) if e.sigma2 else 1.0) for e in events)
        self._tail = math.fsum(rows * e.count * chance for e, chance in each) * _TAIL_MARGIN

    def epsilon(self, delta: float) -> float:
        """See :class:`Curve`."""
        if delta >= 1.0:
            return 0.0
        best = math.inf
        if self._failure < delta:
            best = self._rest.epsilon(delta - self._failure)
        value = 0.0  # epsilon of a smaller share, which is not larger
        for share in _SHARES if self._several and 0.0 < self._tail < delta else ():
            if value < 700.0 and math.exp(value) * self._tail * _TAIL_MARGIN <= delta * share:
                value = self._rest.epsilon(delta * (1.0 - share))
                if value < 700.0 and math.exp(value) * self._tail * _TAIL_MARGIN <= delta * share:
                    return min(best, value)
        return best

    def delta(self, epsilon: float) -> float:
        """See :class:`Curve`."""
        added = self._failure
        if self._several and epsilon < 700.0:
            added = min(added, math.exp(epsilon) * self._tail * _TAIL_MARGIN)
        return min(1.0, self._rest.delta(epsilon) + added)


_FEW = 1000  # up to this number, selections are composed one by one
_FEWEST = 100  # minimum length of a run that is divided into blocks
_BLOCK_SIZES = (1000, 250, 60)  # the curve of a smaller block has fewer values that round to 1
_LOWEST_LOG = -640.0
_REACH = 1.25


def merge_blocks(
    steps: Sequence[tuple[float, int]], log_extra: float, work: float
) -> tuple[float, list[tuple[float, int]], float]:
    """Replace long runs (eps0, count) of selections by Gaussians.

    Returns the total mu of these Gaussians, the remaining runs, and the excess over the Gaussians.
    """
    if sum(n for _, n in steps) <= _FEW:
        return 0.0, list(steps), 0.0
    long = {step for step in steps if step[1] >= _FEWEST}
    mu2, left, extra = [], [], 0.0
    fits = {
        step: _fit(*step, log_extra - math.log(steps.count(step) * len(long)), work / len(long))
        for step in long
    }
    for step in steps:
        fit = fits.get(step)
        if fit is None:
            left.append(step)
        else:
            mu2.append(fit[0])
            extra += fit[1]
    return math.sqrt(math.fsum(mu2)) * (1.0 + 1e-14), left, extra * (1.0 + 1e-9)


def _fit(eps0: float, count: int, log_extra: float, work: float) -> tuple[float, float] | None:
    """mu^2 of all blocks of a run, and the excess over their Gaussian; None if no mu is found."""
    for size in _BLOCK_SIZES:
        number = -(-count // size)
        log_each = max(log_extra - math.log(number), _LOWEST_LOG)
        mu = block_mu(eps0, -(-count // number), log_each, work)
        if mu is not None:
            return number * mu * mu, number * math.exp(log_each)
    return None


def block_mu(eps0: float, count: int, log_extra: float, work: float) -> float | None:
    """A mu such that the Gaussian curve plus exp(log_extra) bounds `count` selections."""
    tail = tail_curve(((eps0, count),), 0.0, log_extra, work)
    if tail is None:
        return None
    grid, curve = tail
    above = curve[grid.below :]  # the other half follows by symmetry
    return dominating_mu(above, grid.step, math.exp(log_extra), 0.5 * eps0 * math.sqrt(count))


def dominating_gaussian(
    deltas: Callable[[list[float], float], Sequence[float]],
    extra: float,
    at_zero: float,
    points_per_mu: int = 30,
) -> float | None:
    """A mu such that the Gaussian curve plus `extra` bounds a curve that holds in both orders."""
    if at_zero >= 1.0:
        return None

    def is_less(mu: float) -> bool:
        return gaussian_delta(0.0, mu) < at_zero

    scale = narrow(is_less, 0.0, doubled(is_less, 1e3)[1], 60)[1]
    step = scale / points_per_mu
    reach = scale * scale / 2.0 + scale * math.sqrt(-2.0 * math.log(extra))
    points = [i * step for i in range(math.ceil(_REACH * reach / step) + 2)]
    return dominating_mu(np.array(deltas(points, extra)), step, extra, scale, most=4.0)


def dominating_mu(
    curve: npt.NDArray[np.float64], step: float, extra: float, guess: float, most: float = 1.5
) -> float | None:
    """A mu whose Gaussian curve plus `extra` bounds a curve, given on a grid, in both orders."""
    extra *= 1.0 - 1e-9
    if curve[-1] > extra:
        return None
    middles = (np.arange(len(curve) - 1, dtype=np.float64) + 0.5) * step

    def is_above(scale: float) -> bool:
        return _is_above(scale * guess, middles, step, curve, extra)

    return narrow(is_above, most, 0.5, 36)[0] * guess if is_above(most) else None


def _is_above(
    mu: float,
    middles: npt.NDArray[np.float64],
    step: float,
    curve: npt.NDArray[np.float64],
    extra: float,
) -> bool:
    """Whether the Gaussian curve plus `extra` is provably above all chords of `curve`.

    The Gaussian curve is convex in e^x, so it lies above its tangent at the middle of each segment.
    This tangent must lie above both ends of the chord.
    """
    far = mu / 2.0 + middles / mu
    log_a = scipy.special.log_ndtr(mu / 2.0 - middles / mu)
    log_b = middles + scipy.special.log_ndtr(-far)
    a, b = np.exp(log_a), np.exp(log_b)
    # Exceeds all rounding errors in this function; the exponents dominate them.
    error = 1e-15 * (32.0 + 4.0 * far * far + middles) * (a + b)
    middle = a - b - error + extra
    left = middle - b * math.expm1(-0.5 * step)
    right = middle - b * math.expm1(0.5 * step)
    return bool(np.all(curve[:-1] <= left) and np.all(curve[1:] <= right))
