"""What every accountant answers, for the events that it was given."""

from __future__ import annotations

import abc

__all__ = ["Accountant", "check_query"]


class Accountant(abc.ABC):
    """(epsilon, delta) of a list of events, adaptively composed; both are certified bounds."""

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
        return self._epsilon(delta, group)

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
        return self._delta(epsilon, group)

    @abc.abstractmethod
    def _epsilon(self, delta: float, group: int) -> float:
        """As :meth:`get_epsilon`, of a sound question."""

    @abc.abstractmethod
    def _delta(self, epsilon: float, group: int) -> float:
        """As :meth:`get_delta`, of a sound question."""


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
