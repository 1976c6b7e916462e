"""Concentrated differential privacy, a coarse bound of any composition that takes no time.

A selection of range eps0 is eps0^2 / 8-zCDP (Cesar and Rogers 2021), and a Gaussian release is
sensitivity^2 / (2 sigma^2)-zCDP. The bound is within a percent or so of the truth where losses are
large, and a grid becomes too large. Proof: docs/proofs/accounting.md, "zCDP". Source: Bun and
Steinke (2016).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from .curve import Curve

__all__ = ["ZCDPCurve", "zcdp_mu2"]

_PURE_FROM = 8.0  # above, eps0 is less than eps0^2 / 8
_UP = 1.0 + 1e-12


def zcdp_mu2(eps0: float) -> float:
    """A selection of range eps0 is eps0^2 / 8-zCDP, as is a Gaussian of this mu^2."""
    return eps0 * eps0 / 4.0


class ZCDPCurve(Curve):
    """Bounds a Gaussian total `mu` and selections by zCDP, some selections being charged purely."""

    def __init__(self, mu: float, steps: Sequence[tuple[float, int]]) -> None:
        self._free = mu == 0.0 and not steps
        self._ways: list[tuple[float, float]] = []  # (what is charged purely, rho of the rest)
        for limit in {math.inf, _PURE_FROM}:
            pure = math.fsum(n * e for e, n in steps if e >= limit)
            rho = mu * mu / 2.0 + math.fsum(n * e * e for e, n in steps if e < limit) / 8.0
            self._ways.append((pure * _UP, rho * _UP))

    def epsilon(self, delta: float) -> float:
        """See :class:`Curve`; without any delta it has no bound."""
        if delta >= 1.0 or self._free:
            return 0.0
        if delta == 0.0:
            return math.inf
        return min(
            (pure + rho + 2.0 * math.sqrt(rho * -math.log(delta))) * (1.0 + 4e-12)
            for pure, rho in self._ways
        )

    def delta(self, epsilon: float) -> float:
        """See :class:`Curve`."""
        if self._free:
            return 0.0
        return min(self._delta(epsilon * (1.0 - 1e-12) - pure, rho) for pure, rho in self._ways)

    @staticmethod
    def _delta(epsilon: float, rho: float) -> float:
        if epsilon <= rho:
            return 1.0
        if rho == 0.0:
            return 0.0
        return min(1.0, math.exp(-min((epsilon - rho) ** 2 / (4.0 * rho), 690.0)) * (1.0 + 1e-9))
