"""Classic composition: an (epsilon, delta) for each release, and the theorem for many of them.

Proof: docs/proofs/accounting.md, "Classic". Source: Kairouz, Oh and Viswanath (2017), theorem 3.5.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from .accountant import Accountant
from .events import Event
from .gdp import GDPAccountant
from .pure import PureAccountant
from .rounds import Mixture
from .search import narrow

__all__ = ["ClassicAccountant"]

_UP = 1.0 + 1e-12


class ClassicAccountant(Accountant):
    """(epsilon, delta) by heterogeneous composition of the releases, each (epsilon_i, delta_i).

    Half of delta goes to the Gaussian releases in equal parts, and half goes to the composition.
    DP-EBM calls this classic. It is looser than every other accountant here.

    Args:
        events: In any order. With sampled rounds the answer is infinite.

    Examples:
        >>> from xgb_dp.accounting.plain import ExponentialEvent
        >>> event = ExponentialEvent("splits", eps_num=1, eps_bits=4, count=20)
        >>> round(xgb_dp.accounting.ClassicAccountant([event]).get_epsilon(1e-6), 2)
        1.25
    """

    def __init__(self, events: Sequence[Event]) -> None:
        self._mixture = Mixture.of(events)

    def _epsilon(self, delta: float, group: int) -> float:
        if delta >= 1.0:
            return 0.0
        if self._mixture.sampled:
            return math.inf
        gaussians = self._mixture.gaussians
        if delta == 0.0:
            return math.inf if gaussians else self._pure(group)
        releases = sum(e.count for e in gaussians)
        parts = [
            (PureAccountant([e.counted(1)]).get_epsilon(0.0, group), e.count)
            for e in self._mixture.selections
        ]
        for event in gaussians:
            one = GDPAccountant([event.counted(1)])
            parts.append((one.get_epsilon(delta / (2 * releases), group), event.count))
        if any(math.isinf(e) for e, _ in parts):
            return math.inf
        total = math.fsum(n * e for e, n in parts)
        drift = math.fsum(n * e * math.tanh(e / 2.0) for e, n in parts)
        spread = math.fsum(n * e * e for e, n in parts)
        return min(total, drift + math.sqrt(2.0 * spread * (math.log(2.0) - math.log(delta)))) * _UP

    def _delta(self, epsilon: float, group: int) -> float:
        if self.get_epsilon(0.0, group) <= epsilon:
            return 0.0

        def is_enough(log_delta: float) -> bool:
            return self.get_epsilon(math.exp(log_delta), group) <= epsilon

        return math.exp(narrow(is_enough, 0.0, -600.0, 60)[0])

    def _pure(self, group: int) -> float:
        return PureAccountant(self._mixture.flat).get_epsilon(0.0, group)
