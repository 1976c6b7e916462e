"""One line of a budget's book."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ..accounting import Event, Unit, event_from_json, one_unit
from ..accounting.filter import Charge
from ..accounting.units import ONE_ROW, ROW
from ..data.parts import Part
from ..errors import BudgetError

__all__ = ["RESERVED", "SPENT", "Entry", "divides", "read_entry", "taken"]

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
        part: The part of an :func:`xgb_dp.split` that it reads; None for all rows.

    Examples:
        >>> budget = xgb_dp.Budget("budget.json", epsilon=2.0, delta=1e-5)
        >>> first = budget.train(params, data, 5, note="first try")
        >>> (entry,) = budget.entries
        >>> entry.note, entry.state
        ('first try', 'spent')
    """

    id: str
    note: str
    time: str
    state: str
    charge: Charge
    events: tuple[Event, ...]
    unit: Unit = ONE_ROW
    charged: int = 1
    part: Part | None = None

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
        part = Part.from_json(line["part"]) if "part" in line else None
        name, note, time, state = (str(line[k]) for k in ("id", "note", "time", "state"))
        unit, charged = Unit(**line.get("unit", {})), line.get("charged", 1)
        if type(charged) is not int or charged < 1 or (events and one_unit(events) != unit.name):
            raise ValueError
    except (KeyError, TypeError, ValueError):
        raise BudgetError(
            "An entry of the budget is damaged, so what was spent is not known. Restore the file "
            "from a copy that holds every training."
        ) from None
    return Entry(name, note, time, state, charge, events, unit, charged, part)


def taken(entries: Iterable[Entry], part: Part | None = None) -> Charge:
    """What entries take of the total, for the unit of privacy that has paid most.

    Of the two parts of a division, a row is in one. So entries of one part add nothing to those of
    the other, and the larger of both counts.

    Args:
        entries: Those of the book.
        part: Only for units in this part; None for all of them.
    """
    sums: dict[str, dict[str, list[Charge]]] = {}
    common = []
    for entry in entries:
        own = entry.part
        if own is None or not divides(own, entry.events, entry.charged):
            common.append(entry.charge)
        elif part is None or own.split != part.split or own.name == part.name:
            sums.setdefault(own.split, {}).setdefault(own.name, []).append(entry.charge)
    for parts in sums.values():
        totals = [Charge.total(charges) for charges in parts.values()]
        common.append(
            Charge(
                max(t.mu2 for t in totals),
                max(t.shift for t in totals),
                max(t.extra for t in totals),
            )
        )
    return Charge.total(common)


def divides(part: Part | None, events: Iterable[Event], charged: int) -> bool:
    """Whether no unit of privacy of these releases is in both parts of a division.

    Args:
        part: Of the division; None without one.
        events: The releases.
        charged: Rows (or persons) for which they are charged. Several may be on both sides.
    """
    unit = next((event.unit for event in events), ROW)
    return part is not None and charged == 1 and (unit == ROW or part.unit == unit)
