"""Concentrated differential privacy: a coarse bound of any composition, at no cost.

Within a percent or so of the truth where losses are large, which is where a grid becomes too large.
Proof: docs/proofs/accounting.md, "zCDP".
"""

from __future__ import annotations

import math
from collections.abc import Sequence

__all__ = ["ZCDP"]

_PURE_FROM = 8.0  # above, eps0 is less than eps0^2 / 8
_UP = 1.0 + 1e-12


class ZCDP:
    """Bounds by zCDP of a Gaussian total `mu` and of selections, some of them charged purely.

    Args:
        mu: Square root of the sum of sensitivity2 / sigma2; noise on integers needs no slack here.
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
