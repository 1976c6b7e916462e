"""Entries of a budget: what each release took, and for how many rows or persons it is charged."""

from __future__ import annotations

import math
import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

from ..accounting import Event, Unit, event_from_json, one_unit
from ..accounting.filter import Charge
from ..accounting.units import ONE_ROW, ROW, UNITS
from ..data.ids import SplitPart
from ..errors import BudgetError, PrivacyParameterError, named, spelt
from ..parameters.parse import parse_int
from ..record.ledger_model import RecordedRelease

MOST = 1 << 20
"""Rows of a person, or persons together, that a total can be for."""


@dataclass(frozen=True)
class BudgetUnit:
    """The neighbours of a total.

    No person has more rows than `most_rows`, says whoever made the budget: what was proved for rows
    is charged for so many. Where it is None, that is refused.
    """

    unit: Unit = ONE_ROW
    most_rows: int | None = None

    @classmethod
    def from_content(cls, content: Mapping[str, Any]) -> BudgetUnit:
        """The unit of a budget's file."""
        try:
            name, group, most = (content["unit"][key] for key in ("unit", "group", "most_rows"))
            unit = Unit(name, group)
            if most is not None and not (type(most) is int and most >= 1 and unit.of_persons):
                raise ValueError
        except (KeyError, ValueError, TypeError):
            raise BudgetError(
                "The budget does not say whom its total is for, so it is damaged. Restore the "
                "file from a copy that holds every training."
            ) from None
        return cls(unit, most)

    def to_content(self) -> dict[str, Any]:
        """What the file says."""
        return {
            "unit": {
                "unit": self.unit.name,
                "group": self.unit.group,
                "most_rows": self.most_rows,
            }
        }

    def changed(self, unit: Any, group: Any, most_rows: Any) -> BudgetUnit:
        """The same with what the user has said; None for what is left as it is."""
        if unit is not None and unit not in UNITS:
            raise PrivacyParameterError(f"`unit` must be one of {', '.join(map(repr, UNITS))}.")
        name = self.unit.name if unit is None else unit
        size = self.unit.group if group is None else parse_int("group", group, 1, MOST)
        most = self.most_rows
        if most_rows is not None:
            most = parse_int("most_rows", most_rows, 1, MOST)
        unit = Unit(name, size)
        if most is not None and not unit.of_persons:
            raise PrivacyParameterError(
                "`most_rows` says how many rows a person has at most, for a budget of persons "
                "(unit='person'). A budget for so many rows of one person has group=..."
            )
        return BudgetUnit(unit, most)

    def charged(self, events: Sequence[Event], unit: Unit | None, *, any_group: bool) -> int:
        """For how many rows (or persons) events are charged."""
        name, whole = one_unit(events), self.unit
        if name == whole.name:
            if unit is None or unit.group == whole.group or any_group:
                return whole.group
            raise BudgetError(
                f"The budget is for {whole.phrase}, and this was calibrated for {unit.phrase}. "
                f"Nothing was released. Set {spelt('dp_group_size')}={whole.group} "
                f"(group={whole.group} of evaluate and discover), which makes both the same; or "
                f"open the budget with any_group=True: it is then charged with what it costs for "
                f"{whole.phrase}."
            )
        if whole.of_persons and self.most_rows is not None:
            return whole.group * self.most_rows
        raise BudgetError(
            f"The budget is for {whole.phrase}, and this is for {(unit or Unit(name)).phrase}: "
            "what the one costs says nothing about the other. Nothing was released. "
            + (
                f"Train with {named.dp_privacy_id}; or, where no person has more than k rows, make "
                "the budget with most_rows=k, and this is charged for k rows."
                if whole.of_persons
                else "Draw on a budget for persons, made with unit='person'."
            )
        )

    def check_column(self, unit: Unit | None, booked: Iterable[Unit]) -> None:
        """Refuse persons of another column than those that are booked."""
        names = {u.column for u in booked if u.column}
        if unit is not None and unit.column and names - {unit.column}:
            raise BudgetError(
                "The budget contains trainings whose people are identified by the column "
                f"{min(names)!r}, and this one identifies them by {unit.column!r}. One person of "
                "one column may be several of the other. Nothing was released. Use the same "
                "column, or a budget of its own."
            )


RESERVED, SPENT = "reserved", "spent"
_STRINGS, _NUMBERS = ("id", "note", "time", "state"), ("mu2", "shift", "extra")
_FIELDS = {*_STRINGS, *_NUMBERS, "events", "unit", "charged"}


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
    unit: Unit
    charged: int
    part: SplitPart | None = None


def make_line(
    note: str,
    state: str,
    events: Sequence[Event],
    charge: Charge,
    unit: Unit,
    charged: int,
    part: SplitPart | None,
    group: str | None,
) -> dict[str, Any]:
    """A line of the file; :func:`read_entry` is the inverse."""
    line: dict[str, Any] = {
        "id": secrets.token_hex(8),  # drawn: it says nothing of a row, and models name it
        "note": note.encode("utf-8", "backslashreplace").decode(),
        "time": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "state": state,
        "events": [event.to_json() for event in events],
        "unit": vars(unit),
        "charged": charged,
        **{name: float(value) for name, value in vars(charge).items()},
    }
    line |= {} if group is None else {"group": group}
    return line if part is None else {**line, "part": part.to_json()}


def read_entry(line: Mapping[str, Any]) -> Entry:
    """An entry as the file holds it."""
    try:
        strings = [line[key] for key in _STRINGS]
        numbers = [line[key] for key in _NUMBERS]
        sound = _FIELDS <= set(line) <= _FIELDS | {"group", "part"}
        sound = (
            sound and all(type(text) is str for text in strings) and strings[3] in (RESERVED, SPENT)
        )
        # As `json` reads numbers; nan is none of them.
        sound = sound and all(type(v) in (int, float) and 0.0 <= v < math.inf for v in numbers)
        events = tuple(event_from_json(event) for event in line["events"])
        part = SplitPart.from_json(line["part"]) if "part" in line else None
        unit, charged = Unit(**line["unit"]), line["charged"]
        sound = sound and type(charged) is int and charged >= 1
        if not sound or (events and one_unit(events) != unit.name):
            raise ValueError
    except (KeyError, TypeError, ValueError):
        raise BudgetError(
            "An entry of the budget is damaged, so what was spent is not known. Restore the file "
            "from a copy that holds every training."
        ) from None
    name, note, time, state = strings
    charge = Charge(*map(float, numbers))
    return Entry(name, note, time, state, charge, events, unit, charged, part)


def is_booked(release: RecordedRelease, entries: Iterable[Entry]) -> bool:
    """Whether a release of a model is the one that an entry names: its name and its events."""
    if not any(event.count for event in release.events):
        return True
    same = (entry for entry in entries if entry.id == release.entry)
    # The trainer writes them in the order in which it draws them.
    return any(sorted(entry.events, key=repr) == sorted(release.events, key=repr) for entry in same)


def total_charge(entries: Iterable[Entry], part: SplitPart | None = None) -> Charge:
    """What entries take of the total, for the unit of privacy that has paid most.

    Of the two parts of a division, a row is in one. So entries of one part add nothing to those of
    the other, and the larger of both counts.
    """
    sums: dict[str, dict[str, list[Charge]]] = {}
    common = []
    for entry in entries:
        read = entry.part
        if read is None or not divides(read, entry.events, entry.charged):
            common.append(entry.charge)
        elif part is None or read.split != part.split or read.name == part.name:
            sums.setdefault(read.split, {}).setdefault(read.name, []).append(entry.charge)
    for parts in sums.values():
        totals = [Charge.total(charges) for charges in parts.values()]
        common.append(Charge(*(max(getattr(t, name) for t in totals) for name in _NUMBERS)))
    return Charge.total(common)


def divides(part: SplitPart | None, events: Iterable[Event], charged: int) -> bool:
    """Whether no unit of privacy of these releases is in both parts of a division."""
    unit = next((event.unit for event in events), ROW)
    return part is not None and charged == 1 and (unit == ROW or part.unit == unit)
