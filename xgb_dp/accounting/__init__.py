"""What a training released (events) and what that costs (accountants).

:func:`make_accountant` takes the events in release order; accountants answer ``get_epsilon(delta,
group)`` and ``get_delta(epsilon, group)``. The road between them: ``events`` (plain data),
``simplify`` (what accountants compose), the curve of each kind, ``exact`` (everything together).
Proofs: ``docs/proofs/accounting.md``.
"""

from .accountant import ACCOUNTANTS, Accountant, make_accountant
from .events import (
    Event,
    ExponentialEvent,
    GaussianEvent,
    LaplaceEvent,
    ThresholdEvent,
    event_from_json,
    events_from_ledger,
    one_unit,
)
from .exact import ExactAccountant
from .published import (
    ClassicAccountant,
    GDPAccountant,
    PureAccountant,
    RDPAccountant,
    ZCDPAccountant,
)
from .repetitions import Repetitions
from .rounds import AllocatedEvent, ChoiceEvent, ParallelEvent, SampledEvent, SelectionEvent
from .units import PERSON, ROW, Unit

__all__ = [
    "ACCOUNTANTS",
    "PERSON",
    "ROW",
    "Accountant",
    "AllocatedEvent",
    "ChoiceEvent",
    "ClassicAccountant",
    "Event",
    "ExactAccountant",
    "ExponentialEvent",
    "GDPAccountant",
    "GaussianEvent",
    "LaplaceEvent",
    "ParallelEvent",
    "PureAccountant",
    "RDPAccountant",
    "Repetitions",
    "SampledEvent",
    "SelectionEvent",
    "ThresholdEvent",
    "Unit",
    "ZCDPAccountant",
    "event_from_json",
    "events_from_ledger",
    "make_accountant",
    "one_unit",
]
