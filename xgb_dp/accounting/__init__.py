"""Events (the releases of a training) and accountants (their privacy loss).

:func:`make_accountant` takes the events in release order. Accountants provide
``get_epsilon(delta, group_size)`` and ``get_delta(epsilon, group_size)``. ``docs/kernel.md`` lists
the files in reading order. Events and accountants that only published systems use are in
``sampled_rounds`` and ``published_accountants``. Proofs: ``docs/proofs/accounting.md``.
"""

from .accountant import (
    ACCOUNTANTS,
    Accountant,
    ExactAccountant,
    PureAccountant,
    make_accountant,
)
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
from .units import PERSON, ROW, Unit

__all__ = [
    "ACCOUNTANTS",
    "PERSON",
    "ROW",
    "Accountant",
    "ChoiceEvent",
    "Event",
    "ExactAccountant",
    "ExponentialEvent",
    "GaussianEvent",
    "LaplaceEvent",
    "PureAccountant",
    "Repetitions",
    "SelectionEvent",
    "ThresholdEvent",
    "Unit",
    "event_from_json",
    "make_accountant",
    "one_unit",
]
