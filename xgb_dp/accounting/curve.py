"""What a list of releases costs: delta for every epsilon, and epsilon for every delta."""

from __future__ import annotations

import abc
from collections.abc import Sequence


class Curve(abc.ABC):
    """Certified (epsilon, delta) of some releases, for fixed neighbours in both orders."""

    @abc.abstractmethod
    def epsilon(self, delta: float) -> float:
        """Upper bound in nats, >= 0, for a delta in [0, 1]; infinite if there is none."""

    @abc.abstractmethod
    def delta(self, epsilon: float) -> float:
        """Upper bound in [0, 1] for an epsilon >= 0, in nats."""

    def deltas(self, points: Sequence[float], lowest: float) -> list[float]:
        """Upper bounds at many epsilon; those below `lowest` may be loose."""
        return [self.delta(x) for x in points]
