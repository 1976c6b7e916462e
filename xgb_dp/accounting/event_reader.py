"""Events from the JSON of a ledger. One that is not known is an error, and never skipped."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from pkgutil import resolve_name
from typing import Any

from ..errors import LedgerError
from . import tenants
from .events import LISTS, Event, PlainEvent
from .repetitions import Repetitions
from .units import PERSON, ROW

_LEVELS = 4  # a selection among runs that choose among plans of rounds


def event_from_json(data: Mapping[str, Any]) -> Event:
    """Read one event; the inverse of ``to_json``.

    Args:
        data: One entry of a ledger's ``events``.

    Raises:
        LedgerError: The event is unknown or ill-formed. It is never skipped, because its cost
            would then be left out.

    Examples:
        >>> from xgb_dp.accounting import GaussianEvent, event_from_json
        >>> event = GaussianEvent("leaves", sensitivity2=1, sigma2=400, coordinates=1, count=10)
        >>> event_from_json(event.to_json()) == event
        True
    """
    return _read(data, _LEVELS)


def _read(data: Any, levels: int) -> Event:
    """An event that contains at most so many levels of events, itself one of them."""
    name = data.get("mechanism") if isinstance(data, Mapping) else None
    if type(name) is str and name in tenants.EVENTS:
        resolve_name(tenants.EVENTS[name])  # registers it
    if type(name) is not str or name not in Event._kinds or not levels:
        raise LedgerError("The privacy ledger holds an event of an unknown mechanism.")
    kind, unit = Event._kinds[name], data.get("unit", ROW)
    if "unit" in data and unit != PERSON:
        raise LedgerError(
            "A ledger event has an unknown `unit`: it names none, which stands for rows, or "
            "'person'."
        )
    names = kind._names()
    if set(data) - {"unit"} != {*names, "mechanism"}:
        raise LedgerError(
            f"A {name} event of the privacy ledger must have exactly the fields "
            f"{', '.join(sorted((*names, 'mechanism')))}."
        )
    values = {key: _read_field(key, data[key], levels) for key in names}
    if issubclass(kind, PlainEvent):
        values["unit"] = unit
    event = kind(**values)
    if event.unit != unit:
        raise LedgerError("A ledger event has another `unit` than the events inside it.")
    return event


def _read_field(name: str, value: Any, levels: int) -> Any:
    if name == "repetitions":
        if not isinstance(value, Mapping) or set(value) != {f.name for f in fields(Repetitions)}:
            raise LedgerError(
                "A selection of the privacy ledger does not say how many runs it has."
            )
        return Repetitions(**value)

    def read_list(items: Any, depth: int) -> Any:
        if not depth:
            return _read(items, levels - 1)
        if not isinstance(items, list):
            raise LedgerError(f"An event of the privacy ledger does not list its `{name}`.")
        return tuple(read_list(item, depth - 1) for item in items)

    return read_list(value, LISTS[name]) if name in LISTS else value


def events_from_ledger(ledger: Mapping[str, Any]) -> list[Event]:
    """All events of all trainings of a model, in release order.

    Args:
        ledger: A whole ledger, see ``xgb_dp.record.ledger``.

    Raises:
        LedgerError: An event is unknown or ill-formed.

    Examples:
        >>> import json
        >>> from xgb_dp.accounting import events_from_ledger
        >>> ledger = json.loads(model.attr("dp_ledger"))
        >>> events_from_ledger(ledger)[0].release
        'intercept'
    """
    return [
        event_from_json(event) for training in ledger["trainings"] for event in training["events"]
    ]
