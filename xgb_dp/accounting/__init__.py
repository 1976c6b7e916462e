"""What a training released (events) and what that costs (accountants).

:func:`make_accountant` takes the events in release order; accountants answer ``get_epsilon(delta,
group)`` and ``get_delta(epsilon, group)``. Proofs: ``docs/proofs/accounting.md``.
"""

from .accountant import Accountant
from .books import ACCOUNTANTS, make_accountant
from .choice import ChoiceEvent
from .classic import ClassicAccountant
from .events import Event, event_from_json, events_from_ledger, one_unit
from .exact import ExactAccountant
from .gdp import GDPAccountant
from .plain import ExponentialEvent, GaussianEvent, LaplaceEvent
from .pure import PureAccountant
from .rdp import RDPAccountant
from .rounds import AllocatedEvent, ParallelEvent, SampledEvent
from .selection import Repetitions, SelectionEvent
from .threshold import ThresholdEvent
from .units import PERSON, ROW, Unit
from .zcdp import ZCDPAccountant

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
