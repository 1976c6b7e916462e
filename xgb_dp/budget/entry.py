"""One line of a budget's book."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..accounting import Event, Unit, event_from_json, one_unit
from ..accounting.filter import Charge
from ..accounting.units import ONE_ROW
from ..errors import BudgetError

__all__ = ["RESERVED", "SPENT", "Entry", "read_entry"]

RESERVED, SPENT = "reserved", "spent"


@dataclass(frozen=True)
class Entry:
    """One line of the book.

    Attributes:
        id: Its name.
        note: What it was, in words.
        time: When it was booked, in UTC.
        state: "reserved" from before the first release on, "spent" once it ended well. Both count
            in full: of what broke off, nobody knows how much was released.
        charge: What it takes of the total.
        events: What it was to release.
        unit: Whom its noise was calibrated for.
        charged: Rows (or persons) for which it is charged.
    """

    id: str
    note: str
    time: str
    state: str
    charge: Charge
    events: tuple[Event, ...]
    unit: Unit = ONE_ROW
    charged: int = 1

    @staticmethod
    def named(unit: Unit, charged: int) -> dict[str, Any]:
        """How a line of the file says whom it is for; not at all of one row."""
        line: dict[str, Any] = {} if unit == ONE_ROW else {"unit": vars(unit)}
        return line if charged == 1 else {**line, "charged": charged}


def read_entry(line: Mapping[str, Any]) -> Entry:
    """An entry as the file holds it.

    Raises:
        BudgetError: It is damaged.
    """
    try:
        charge = Charge(*(float(line[k]) for k in ("mu2", "shift", "extra")))
        if not all(0.0 <= v < math.inf for v in (charge.mu2, charge.shift, charge.extra)):
            raise ValueError
        events = tuple(event_from_json(event) for event in line["events"])
        name, note, time, state = (str(line[k]) for k in ("id", "note", "time", "state"))
        unit, charged = Unit(**line.get("unit", {})), line.get("charged", 1)
        if type(charged) is not int or charged < 1 or (events and one_unit(events) != unit.name):
            raise ValueError
    except (KeyError, TypeError, ValueError):
        raise BudgetError("An entry of the budget is damaged.") from None
    return Entry(name, note, time, state, charge, events, unit, charged)
