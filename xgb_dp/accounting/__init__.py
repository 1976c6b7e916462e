"""Events (the releases of a training) and accountants (their privacy loss).

:func:`make_accountant` takes the events in release order. Accountants provide
``get_epsilon(delta, group_size)`` and ``get_delta(epsilon, group_size)``. ``docs/kernel.md`` lists
the files in reading order. Events and accountants that only published systems use are loaded on
demand. Proofs: ``docs/proofs/accounting.md``.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .accountant import ACCOUNTANTS, Accountant, make_accountant
from .events import (
    ChoiceEvent,
    Event,
    ExponentialEvent,
    GaussianEvent,
    LaplaceEvent,
    Repetitions,
    SelectionEvent,
    ThresholdEvent,
    event_from_json,
    one_unit,
)
from .exact import ExactAccountant
from .pure import PureAccountant
from .units import PERSON, ROW, Unit

if TYPE_CHECKING:
    from .published_accountants import ClassicAccountant, GDPAccountant, RDPAccountant
    from .sampled_rounds import ParallelEvent, SampledEvent

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
    "make_accountant",
    "one_unit",
]


_LOADED_LATER = {
    "SampledEvent": "sampled_rounds",
    "ParallelEvent": "sampled_rounds",
    "RDPAccountant": "published_accountants",
    "GDPAccountant": "published_accountants",
    "ClassicAccountant": "published_accountants",
}


def __getattr__(name: str) -> Any:
    if name in _LOADED_LATER:
        return getattr(import_module(f".{_LOADED_LATER[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
