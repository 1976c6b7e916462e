"""Composes Gaussian mechanisms: the exact curve, and the slack for discrete noise.

Proofs: docs/proofs/accounting.md, "Gaussians last" and "Discrete noise".
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import scipy

from .curve import doubled, narrow
from .events import GaussianEvent

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
    def of(cls, events: Sequence[GaussianEvent], group: int) -> GaussianTotals:
        """Totals when `group` rows are added or removed together."""
        used = [e for e in events if e.count and e.sensitivity2]
        if any(e.sigma2 == 0 for e in used):
            return cls(*[math.inf] * 5)
        mu2 = math.fsum(e.count * e.sensitivity2 / e.sigma2 for e in used)
        shift2 = math.fsum(e.count * e.sensitivity2 / e.sigma2**2 for e in used)
        inverse = [(e.count * max(e.coordinates, 1) * group, 1.0 / e.sigma2) for e in used]
        return cls(
            mu=group * math.sqrt(mu2) * _UP,
            shift=group * math.sqrt(shift2) * _UP,
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
