"""Pure differential privacy: the epsilons of all releases add up."""

from __future__ import annotations

import math
from collections.abc import Sequence

from .accountant import Accountant
from .events import Event

__all__ = ["PureAccountant"]


class PureAccountant(Accountant):
    """(epsilon, 0) of a list of events by basic composition.

    A selection of range eps0 is eps0-private, and so is Laplace noise of scale sensitivity / eps0.
    Rounds on disjoint parts cost as much as one of them. A round that reads a Poisson sample of
    rate q costs log(1 + q (e^eps - 1)) (docs/proofs/sampling.md). A group of k rows costs k times
    as much, because it is k steps of one row each. Proof: docs/proofs/accounting.md, "Pure ε".
    Source: Dwork and Roth (2014), theorem 3.16.

    Args:
        events: In any order.

    Examples:
        >>> from xgb_dp.accounting.plain import LaplaceEvent
        >>> event = LaplaceEvent("leaves", sensitivity=1, scale=20, count=10)
        >>> round(xgb_dp.accounting.PureAccountant([event]).get_epsilon(0.0), 6)
        0.5
    """

    def __init__(self, events: Sequence[Event]) -> None:
        self._events = tuple(events)

    def get_epsilon(self, delta: float = 0.0, group: int = 1, *, replaced: bool = False) -> float:
        """Epsilon, the same for every delta, and infinite with any Gaussian noise."""
        return super().get_epsilon(delta, group, replaced=replaced)

    def _epsilon(self, delta: float, group: int) -> float:
        return group * math.fsum(e.pure() for e in self._events) * (1.0 + 1e-14)

    def _delta(self, epsilon: float, group: int) -> float:
        return 0.0 if epsilon >= self._epsilon(0.0, group) else 1.0
