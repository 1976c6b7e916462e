"""What a training released (events) and what that costs (accountants).

Accountants take the events in release order and answer ``get_epsilon(delta, group)`` and
``get_delta(epsilon, group)``. Proofs: ``docs/proofs/accounting.md``.
"""

from .events import Event, ExponentialEvent, GaussianEvent, event_from_json, events_from_ledger
from .exact import ExactAccountant
from .pure import PureAccountant

__all__ = [
    "Event",
    "ExactAccountant",
    "ExponentialEvent",
    "GaussianEvent",
    "PureAccountant",
    "event_from_json",
    "events_from_ledger",
]
