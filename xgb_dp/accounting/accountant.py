"""What every accountant answers, for the events that it was given."""

from __future__ import annotations

import abc
from collections.abc import Sequence

__all__ = ["Accountant", "check_query"]


class Accountant(abc.ABC):
    """Certified (epsilon, delta) of a list of events that are adaptively composed.

    Neighbours differ by `group` rows, of which some may be added and others removed. With
    `replaced` they differ by `group` rows that are exchanged for others. Proof:
    docs/proofs/neighbours.md
    """

    def get_epsilon(self, delta: float, group: int = 1, *, replaced: bool = False) -> float:
        """Smallest certified epsilon for a failure probability.

        Args:
            delta: In [0, 1].
            group: Rows added or removed together, >= 1.
            replaced: Whether so many rows are exchanged for others instead.

        Returns:
            float: Upper bound in nats, >= 0; infinite if there is none.

        Raises:
            ValueError: ``delta`` or ``group`` is out of range.
        """
        check_query(group, delta=delta)
        return self._replaced_epsilon(delta, group) if replaced else self._epsilon(delta, group)

    def get_delta(self, epsilon: float, group: int = 1, *, replaced: bool = False) -> float:
        """Smallest certified failure probability for an epsilon.

        Args:
            epsilon: In nats, >= 0.
            group: Rows added or removed together, >= 1.
            replaced: Whether so many rows are exchanged for others instead.

        Returns:
            float: Upper bound in [0, 1].

        Raises:
            ValueError: ``epsilon`` or ``group`` is out of range.
        """
        check_query(group, epsilon=epsilon)
        return self._replaced_delta(epsilon, group) if replaced else self._delta(epsilon, group)

    def curve(
        self, points: Sequence[float], lowest: float, group: int = 1, *, replaced: bool = False
    ) -> list[float]:
        """Certified deltas at many epsilon.

        Args:
            points: In nats, >= 0.
            lowest: Bounds of a delta below this may be loose.
            group: Rows added or removed together, >= 1.
            replaced: Whether so many rows are exchanged for others instead.
        """
        return [self.get_delta(x, group, replaced=replaced) for x in points]

    def _replaced_epsilon(self, delta: float, rows: int) -> float:
        """Answer :meth:`get_epsilon` for exchanged rows, each of which is removed and added."""
        return self._epsilon(delta, 2 * rows)

    def _replaced_delta(self, epsilon: float, rows: int) -> float:
        """Answer :meth:`get_delta` for exchanged rows."""
        return self._delta(epsilon, 2 * rows)

    @abc.abstractmethod
    def _epsilon(self, delta: float, group: int) -> float:
        """Answer :meth:`get_epsilon` after its arguments were checked."""

    @abc.abstractmethod
    def _delta(self, epsilon: float, group: int) -> float:
        """Answer :meth:`get_delta` after its arguments were checked."""


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
