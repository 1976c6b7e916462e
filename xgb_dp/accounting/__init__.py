"""What a training released (events) and what that costs (accountants).

Accountants take the events in release order and answer ``get_epsilon(delta, group)`` and
``get_delta(epsilon, group)``. Proofs: ``docs/proofs/accounting.md``.
"""

from collections.abc import Sequence
from typing import Protocol

from .events import (
    Event,
    ExponentialEvent,
    GaussianEvent,
    SampledEvent,
    event_from_json,
    events_from_ledger,
)
from .exact import ExactAccountant
from .gdp import GDPAccountant
from .pure import PureAccountant
from .rdp import RDPAccountant
from .zcdp import ZCDPAccountant

__all__ = [
    "ACCOUNTANTS",
    "Accountant",
    "Event",
    "ExactAccountant",
    "ExponentialEvent",
    "GDPAccountant",
    "GaussianEvent",
    "PureAccountant",
    "RDPAccountant",
    "SampledEvent",
    "ZCDPAccountant",
    "event_from_json",
    "events_from_ledger",
    "make_accountant",
]


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
    accountant: Accountant = ACCOUNTANTS[name](events)
    return accountant
