"""Concentrated differential privacy, a coarse bound of any composition that takes no time.

It is within a percent or so of the truth where losses are large. There a grid becomes too large.
Proof: docs/proofs/accounting.md, "zCDP".
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from .accountant import Accountant
from .events import Event
from .rounds import Mixture

__all__ = ["ZCDP", "ZCDPAccountant"]

_PURE_FROM = 8.0  # above, eps0 is less than eps0^2 / 8
_UP = 1.0 + 1e-12


class ZCDP:
    """Bounds a Gaussian total `mu` and selections by zCDP, some selections being charged purely.

    Args:
        mu: Square root of the sum of sensitivity2 / sigma2. Noise on integers needs no slack here.
        steps: (eps0, count) of the selections.
    """

    def __init__(self, mu: float, steps: Sequence[tuple[float, int]]) -> None:
        self._ways: list[tuple[float, float]] = []  # (what is charged purely, rho of the rest)
        for limit in {math.inf, _PURE_FROM}:
            pure = math.fsum(n * e for e, n in steps if e >= limit)
            rho = mu * mu / 2.0 + math.fsum(n * e * e for e, n in steps if e < limit) / 8.0
            self._ways.append((pure * _UP, rho * _UP))

    def epsilon(self, delta: float) -> float:
        """An epsilon for 0 < delta < 1."""
        return min(
            (pure + rho + 2.0 * math.sqrt(rho * -math.log(delta))) * (1.0 + 4e-12)
            for pure, rho in self._ways
        )

    def delta(self, epsilon: float) -> float:
        """A delta for epsilon >= 0."""
        return min(self._delta(epsilon * (1.0 - 1e-12) - pure, rho) for pure, rho in self._ways)

    @staticmethod
    def _delta(epsilon: float, rho: float) -> float:
        if epsilon <= rho:
            return 1.0
        if rho == 0.0:
            return 0.0
        return min(1.0, math.exp(-min((epsilon - rho) ** 2 / (4.0 * rho), 690.0)) * (1.0 + 1e-9))


class ZCDPAccountant(Accountant):
    """(epsilon, delta) by zero-concentrated differential privacy.

    A selection of range eps0 costs eps0^2 / 8 (Cesar and Rogers 2021), and a Gaussian release costs
    sensitivity^2 / (2 sigma^2). Source: Bun and Steinke (2016).

    Args:
        events: In any order. With sampled rounds, which have no such bound here, the answer is
            infinite.

    Examples:
        >>> from xgb_dp.accounting.plain import GaussianEvent
        >>> event = GaussianEvent("leaves", sensitivity2=1, sigma2=400, coordinates=1, count=10)
        >>> accountant = xgb_dp.accounting.ZCDPAccountant([event])
        >>> round(accountant.get_epsilon(1e-6), 2)
        0.84
    """

    def __init__(self, events: Sequence[Event]) -> None:
        self._mixture = Mixture.of(events)

    def _epsilon(self, delta: float, group: int) -> float:
        bound = self._bound(group)
        if delta >= 1.0 or bound is None:
            return 0.0
        return math.inf if delta == 0.0 else bound.epsilon(delta)

    def _delta(self, epsilon: float, group: int) -> float:
        bound = self._bound(group)
        return 0.0 if bound is None else bound.delta(epsilon)

    def _bound(self, group: int) -> ZCDP | None:
        """The bounds, or None if nothing was released."""
        mu2 = math.inf if self._mixture.sampled else 0.0
        for event in self._mixture.gaussians:
            mu2 += event.count * event.mu2
        steps = [(group * e.eps0, e.count) for e in self._mixture.selections]
        return ZCDP(group * math.sqrt(mu2), steps) if mu2 or steps else None
