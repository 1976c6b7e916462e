"""What a training released (events) and what that costs (accountants).

:func:`make_accountant` takes the events in release order; accountants answer ``get_epsilon(delta,
group)`` and ``get_delta(epsilon, group)``. The page of the kernel says in which order to read the
files. ``tenants`` names the events and accountants of ``xgb_dp.published``, which are loaded when
somebody asks for them. Proofs: ``docs/proofs/accounting.md``.
"""

from typing import TYPE_CHECKING, Any

from . import tenants
from .accountant import ACCOUNTANTS, Accountant, make_accountant
from .event_reader import event_from_json, events_from_ledger
from .events import (
    Event,
    ExponentialEvent,
    GaussianEvent,
    LaplaceEvent,
    ThresholdEvent,
    one_unit,
)
from .exact import ExactAccountant
from .nested import ChoiceEvent, SelectionEvent
from .pure import PureAccountant
from .repetitions import Repetitions
from .units import PERSON, ROW, Unit

if TYPE_CHECKING:
    from ..published.accountants import ClassicAccountant, GDPAccountant, RDPAccountant
    from ..published.rounds import ParallelEvent, SampledEvent

__all__ = [
    "ACCOUNTANTS",
    "PERSON",
    "ROW",
    "Accountant",
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
    "event_from_json",
    "events_from_ledger",
    "make_accountant",
    "one_unit",
]


def __getattr__(name: str) -> Any:
    return tenants.load(name)
