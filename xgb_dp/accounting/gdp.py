"""Gaussian differential privacy: each mechanism has one number mu, and the squares add up.

Proof: docs/proofs/accounting.md, "Gaussian". Source: Dong, Roth and Su (2022).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from scipy.special import ndtri

from .accountant import Accountant
from .events import Event
from .gaussian import GaussianTotals, gaussian_delta
from .plain import ExponentialEvent, LaplacePair
from .rounds import Mixture
from .search import root_above
from .zcdp import ZCDP

__all__ = ["GDPAccountant", "bounded_range_mu", "laplace_mu"]

_BETA = 1e-6  # share of delta that pays for noise beyond the bound of the discreteness slack
_UP = 1.0 + 1e-12
# Below, the curve is not computed in doubles. What is mu-GDP, and discrete noise of the same mu, is
# mu^2 / 2-zCDP, whose bound works on the logarithm of delta.
_LOWEST = 1e-250


def bounded_range_mu(eps0: float) -> float:
    """The mu for which every selection of bounded range eps0 is mu-GDP; infinite for a huge eps0.

    mu = 2 Phi^-1(1 / (1 + e^(-eps0 / 2))). For small ranges this is about 0.627 eps0, while the
    limit of many selections has eps0 / 2.
    """
    low = math.exp(-eps0 / 2.0) / (1.0 + math.exp(-eps0 / 2.0))
    if low < 1e-280:
        return math.inf
    if eps0 < 1e-6:  # the limit, from above
        return eps0 * math.sqrt(math.pi / 8.0) * _UP
    return -2.0 * float(ndtri(low)) * _UP + 1e-15


def laplace_mu(epsilon: float) -> float:
    """The mu for which continuous Laplace noise of this epsilon is mu-GDP.

    mu = 2 Phi^-1(1 - e^(-epsilon / 2) / 2), which is at most the mu of a selection of range
    2 epsilon.
    """
    low = 0.5 * math.exp(-epsilon / 2.0)
    if low < 1e-280 or epsilon < 1e-6:
        return bounded_range_mu(2.0 * epsilon)
    return -2.0 * float(ndtri(low)) * _UP + 1e-15


def _mu_of(event: ExponentialEvent, group: int) -> float:
    if isinstance(event, LaplacePair):
        return laplace_mu(event.size(group))
    return bounded_range_mu(group * event.eps0)


class GDPAccountant(Accountant):
    """(epsilon, delta) by Gaussian differential privacy, with the slack of discrete noise.

    Args:
        events: In any order. With sampled rounds, which are not Gaussian private, the answer is
            infinite.

    Examples:
        >>> from xgb_dp.accounting.plain import GaussianEvent
        >>> event = GaussianEvent("leaves", sensitivity2=1, sigma2=400, coordinates=1, count=10)
        >>> accountant = xgb_dp.accounting.GDPAccountant([event])
        >>> round(accountant.get_epsilon(1e-6), 2)
        0.66
    """

    def __init__(self, events: Sequence[Event]) -> None:
        self._mixture = Mixture.of(events)

    def _epsilon(self, delta: float, group: int) -> float:
        totals, mu = self._totals(group)
        if delta >= 1.0 or mu == 0.0:
            return 0.0
        if delta == 0.0 or math.isinf(mu):
            return math.inf
        if delta < _LOWEST:
            return ZCDP(mu, []).epsilon(delta)
        slack = totals.slack(math.log(delta * _BETA))
        eta = slack.eta
        inner = delta * (1.0 - _BETA) * math.exp(-slack.eta_to)
        if inner < _LOWEST:
            return ZCDP(mu, []).epsilon(delta)
        if gaussian_delta(0.0, mu) <= inner:
            return eta
        high = mu
        while gaussian_delta(high, mu) > inner:
            high *= 2.0

        def excess(epsilon: float) -> float:
            return math.log(gaussian_delta(epsilon, mu)) - math.log(inner)

        def is_safe(epsilon: float) -> bool:
            return gaussian_delta(epsilon, mu) <= inner

        return root_above(excess, is_safe, 0.0, high, xtol=1e-13) + eta

    def _delta(self, epsilon: float, group: int) -> float:
        totals, mu = self._totals(group)
        if mu == 0.0 or (math.isinf(epsilon) and math.isfinite(mu)):
            return 0.0
        if math.isinf(mu):
            return 1.0
        beta = max(_BETA * gaussian_delta(epsilon, mu), 1e-270)
        slack = totals.slack(math.log(beta))
        return slack.raised(gaussian_delta(epsilon - slack.eta, mu), beta)

    def _totals(self, group: int) -> tuple[GaussianTotals, float]:
        totals = GaussianTotals.of(self._mixture.gaussians, group)
        if self._mixture.sampled:
            return totals, math.inf
        selections = (e.count * _mu_of(e, group) ** 2 for e in self._mixture.selections)
        return totals, math.sqrt(totals.mu**2 + math.fsum(selections)) * _UP
