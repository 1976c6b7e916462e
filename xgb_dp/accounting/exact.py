"""The exact accountant: the tightest proved bound for everything that a training can release."""

from __future__ import annotations

from collections.abc import Sequence

from .events import Event
from .flat import FlatAccountant
from .poisson import SampledComposition
from .pure import PureAccountant, check_query
from .rounds import Mixture

__all__ = ["ExactAccountant"]


class ExactAccountant:
    """(epsilon, delta) of a list of events, adaptively composed; one row added or removed.

    Proofs: docs/proofs/accounting.md, and for sampled rounds docs/proofs/sampling.md.

    Args:
        events: In release order.
        work: Elementary operations that one curve may take, about 1e9 a second. More make
            the bound tighter; every value gives a valid bound.

    Raises:
        TypeError: ``events`` holds something else.
    """

    def __init__(self, events: Sequence[Event], work: float = 1e8) -> None:
        mixture = Mixture.of(events)
        self._events = tuple(events)
        self._sampled = [e for e in mixture.sampled if e.events]
        self._flat = FlatAccountant(mixture.flat, work)
        self._pure = PureAccountant(events)
        self._work = work

    def get_epsilon(self, delta: float, group: int = 1) -> float:
        """Smallest certified epsilon for a failure probability.

        Args:
            delta: In [0, 1].
            group: Rows added or removed together, >= 1.

        Returns:
            float: Upper bound in nats, >= 0; infinite if there is none.

        Raises:
            ValueError: ``delta`` or ``group`` is out of range.
        """
        check_query(group, delta=delta)
        if self._sampled and delta < 1.0:
            pure = self._pure.get_epsilon(group=group)
            return min(pure, self._composition(group).epsilon(delta))
        return self._flat.get_epsilon(delta, group)

    def get_delta(self, epsilon: float, group: int = 1) -> float:
        """Smallest certified failure probability for an epsilon.

        Args:
            epsilon: In nats, >= 0.
            group: Rows added or removed together, >= 1.

        Returns:
            float: Upper bound in [0, 1].

        Raises:
            ValueError: ``epsilon`` or ``group`` is out of range.
        """
        check_query(group, epsilon=epsilon)
        if self._sampled:
            pure = self._pure.get_epsilon(group=group)
            return 0.0 if epsilon >= pure else self._composition(group).delta(epsilon)
        return self._flat.get_delta(epsilon, group)

    def _composition(self, group: int) -> SampledComposition:
        return SampledComposition(self._events, group, self._work)
