"""Pure differential privacy: the ranges add up."""

from __future__ import annotations

import math
from collections.abc import Sequence

from .events import Event

__all__ = ["PureAccountant"]


class PureAccountant:
    """(epsilon, 0) of a list of events by basic composition.

    Source: Dwork and Roth (2014), theorem 3.16. A selection of range eps0 is eps0-private, and so
    is Laplace noise of scale sensitivity / eps0; rounds on disjoint parts cost one of them; a round
    that reads a Poisson sample of rate q costs log(1 + q (e^eps - 1)) (docs/proofs/sampling.md).

    Args:
        events: In any order.
    """

    def __init__(self, events: Sequence[Event]) -> None:
        self._events = tuple(events)

    def get_epsilon(self, delta: float = 0.0, group: int = 1) -> float:
        """Epsilon in nats, the same for every delta >= 0; infinite with any Gaussian noise.

        Args:
            delta: Ignored but for its range, 0 <= delta <= 1.
            group: Rows added or removed together, >= 1.

        Raises:
            ValueError: ``delta`` or ``group`` is out of range.
        """
        check_query(group, delta=delta)
        return math.fsum(e.pure(group) for e in self._events) * (1.0 + 1e-14)

    def get_delta(self, epsilon: float, group: int = 1) -> float:
        """0 if epsilon is at least the pure epsilon, else 1."""
        check_query(group, epsilon=epsilon)
        return 0.0 if epsilon >= self.get_epsilon(group=group) else 1.0


def check_query(group: int, *, delta: float | None = None, epsilon: float | None = None) -> None:
    """Refuse a question that has no answer.

    Raises:
        ValueError: With the name of the argument.
    """
    if not isinstance(group, int) or group < 1:
        raise ValueError("`group` must be an int of at least 1.")
    if delta is not None and not 0.0 <= delta <= 1.0:
        raise ValueError("`delta` must lie in [0, 1].")
    if epsilon is not None and not epsilon >= 0.0:
        raise ValueError("`epsilon` must be at least 0.")
