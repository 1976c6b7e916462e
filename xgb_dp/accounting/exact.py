"""The exact accountant: the tightest proved bound for everything that a training can release."""

from __future__ import annotations

from collections.abc import Sequence

from .accountant import Accountant
from .events import Event
from .flat import FlatAccountant
from .poisson import SampledComposition
from .pure import PureAccountant
from .rounds import Mixture, with_known_parts

__all__ = ["ExactAccountant"]


class ExactAccountant(Accountant):
    """(epsilon, delta) of a list of events that are adaptively composed, by their exact curve.

    Proofs: docs/proofs/accounting.md, and for rounds that read a secret part of the rows
    docs/proofs/sampling.md and docs/proofs/allocation.md.

    Args:
        events: In release order.
        work: Elementary operations that one curve may take; a second is about 1e9 of them. More
            make the bound tighter. Every value gives a valid bound.

    Raises:
        TypeError: ``events`` holds something else.

    Examples:
        >>> from xgb_dp.accounting.plain import GaussianEvent
        >>> event = GaussianEvent("leaves", sensitivity2=1, sigma2=400, coordinates=1, count=10)
        >>> accountant = xgb_dp.accounting.ExactAccountant([event])
        >>> round(accountant.get_epsilon(1e-6), 2)
        0.66
    """

    def __init__(self, events: Sequence[Event], work: float = 1e8) -> None:
        mixture = Mixture.of(events)
        self._events = tuple(events)
        self._sampled = [e for e in mixture.sampled if e.events]
        self._flat = FlatAccountant(mixture.flat, work)
        self._pure = PureAccountant(events)
        self._work = work

    def _epsilon(self, delta: float, group: int) -> float:
        return self._epsilon_of(delta, group, group)

    def _delta(self, epsilon: float, group: int) -> float:
        return self._delta_of(epsilon, group, group)

    def _replaced_epsilon(self, delta: float, rows: int) -> float:
        return self._epsilon_of(delta, 2 * rows, rows)

    def _replaced_delta(self, epsilon: float, rows: int) -> float:
        return self._delta_of(epsilon, 2 * rows, rows)

    def curve(
        self, points: Sequence[float], lowest: float, group: int = 1, *, replaced: bool = False
    ) -> list[float]:
        """See :class:`Accountant`."""
        rows = group * (1 + replaced)
        if not self._sampled:
            return self._flat.curve(points, lowest, rows)
        return self._composition(rows, group).curve(points, lowest)

    def _epsilon_of(self, delta: float, group: int, coins: int) -> float:
        if self._sampled and delta < 1.0:
            pure = self._pure.get_epsilon(group=group)
            return min(pure, self._composition(group, coins).epsilon(delta))
        return self._flat.get_epsilon(delta, group)

    def _delta_of(self, epsilon: float, group: int, coins: int) -> float:
        if self._sampled:
            pure = self._pure.get_epsilon(group=group)
            return 0.0 if epsilon >= pure else self._composition(group, coins).delta(epsilon)
        return self._flat.get_delta(epsilon, group)

    def _composition(self, group: int, coins: int) -> SampledComposition:
        # What the part of one row hides, and that of several rows does not: "Several rows" in
        # docs/proofs/allocation.md.
        events = self._events if group == 1 else with_known_parts(self._events, coins)
        return SampledComposition(events, group, coins, self._work)
