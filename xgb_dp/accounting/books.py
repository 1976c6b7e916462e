"""An accountant by its name, for everything that a ledger may hold.

Proof: docs/proofs/accounting.md, "Laplace" and "Disjoint parts".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

from .classic import ClassicAccountant
from .events import (
    Event,
    ExponentialEvent,
    GaussianEvent,
    LaplaceEvent,
    ParallelEvent,
    SampledEvent,
)
from .exact import ExactAccountant
from .gdp import GDPAccountant
from .pure import PureAccountant, check_query
from .rdp import RDPAccountant
from .zcdp import ZCDPAccountant

__all__ = ["ACCOUNTANTS", "Accountant", "make_accountant"]


class Accountant(Protocol):
    """What every accountant answers, for events that it was given."""

    def get_epsilon(self, delta: float, group: int = 1) -> float:
        """Certified epsilon in nats for a failure probability; infinite if there is none."""

    def get_delta(self, epsilon: float, group: int = 1) -> float:
        """Certified failure probability for an epsilon in nats."""


ACCOUNTANTS: dict[str, type] = {
    "exact": ExactAccountant,
    "rdp": RDPAccountant,
    "gdp": GDPAccountant,
    "zcdp": ZCDPAccountant,
    "classic": ClassicAccountant,
    "pure": PureAccountant,
}
"""Accountants by the name that ``dp_accountant`` takes; the first is the tightest."""


def make_accountant(name: str, events: Sequence[Event]) -> Accountant:
    """The accountant of a name, for these events.

    Args:
        name: A key of :data:`ACCOUNTANTS`.
        events: In release order.

    Raises:
        ValueError: There is no accountant of that name.
    """
    if name not in ACCOUNTANTS:
        raise ValueError(f"`accountant` must be one of {', '.join(ACCOUNTANTS)}; got {name!r}.")
    return _Books(name, events)


class _Books:
    """Turns Laplace noise and disjoint parts into what the accountants know, for each group."""

    def __init__(self, name: str, events: Sequence[Event]) -> None:
        self._name, self._events = name, tuple(events)
        self._pure = PureAccountant(events)
        self._of_group: dict[int, Accountant] = {}

    def get_epsilon(self, delta: float, group: int = 1) -> float:
        check_query(group, delta=delta)
        value = self._accountant(group).get_epsilon(delta, group)
        # Laplace noise has no tail: at small delta its pure cost is the smaller one.
        return min(value, self._pure.get_epsilon(delta, group)) if self._adds_pure else value

    def get_delta(self, epsilon: float, group: int = 1) -> float:
        check_query(group, epsilon=epsilon)
        value = self._accountant(group).get_delta(epsilon, group)
        return min(value, self._pure.get_delta(epsilon, group)) if self._adds_pure else value

    @property
    def _adds_pure(self) -> bool:
        return self._name in ("exact", "classic")

    def _accountant(self, group: int) -> Accountant:
        if self._name == "pure":
            return self._pure
        if group not in self._of_group:
            plain = [e for event in self._events for e in _simplified(event, group)]
            self._of_group[group] = ACCOUNTANTS[self._name](plain)
        return self._of_group[group]


def _simplified(event: Event, group: int) -> list[GaussianEvent | ExponentialEvent | SampledEvent]:
    """Gaussians, selections and sampled rounds that cost a group at least as much."""
    if isinstance(event, ParallelEvent):
        return [s for e in event.touched(group) for s in _simplified(e, group)]
    if isinstance(event, LaplaceEvent):
        return [event.as_range()]
    if isinstance(event, SampledEvent):
        inner = tuple(e.as_range() if isinstance(e, LaplaceEvent) else e for e in event.events)
        return [replace(event, events=inner)]
    return [event]
