"""Entries of a budget: the charge of each release and the group size it is charged for."""

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
from ..errors import BudgetError, PrivacyParameterError, alias, named
from ..parameters.parse import parse_int
from ..record.ledger_model import RecordedRelease

MOST = 1 << 20
"""Largest group size, and largest number of rows per person, of a budget."""


def damaged(what: str) -> BudgetError:
    """Return the error for a damaged budget file."""
    return BudgetError(f"{what}. Restore the file from a copy that contains every training.")


@dataclass(frozen=True)
class BudgetUnit:
    """Privacy unit of a budget.

    `most_rows` is the assumed upper bound on the rows of one person: row-level releases are charged
    for a group of that many rows. If it is None, a person-level budget refuses them.
    """

    unit: Unit = ONE_ROW
    most_rows: int | None = None

    @classmethod
    def from_content(cls, content: Mapping[str, Any]) -> BudgetUnit:
        """Read the unit from the content of a budget file."""
        try:
            name, group_size, most = (
                content["unit"][key] for key in ("unit", "group_size", "most_rows")
            )
            unit = Unit(name, group_size)
            if most is not None and not (type(most) is int and most >= 1 and unit.of_persons):
                raise ValueError
        except (KeyError, ValueError, TypeError):
            raise damaged("The budget file is damaged: it has no valid privacy unit") from None
        return cls(unit, most)

    def to_content(self) -> dict[str, Any]:
        """Return the unit as content for the budget file."""
        return {
            "unit": {
                "unit": self.unit.name,
                "group_size": self.unit.group_size,
                "most_rows": self.most_rows,
            }
        }

    def changed(self, unit: Any, group_size: Any, most_rows: Any) -> BudgetUnit:
        """Return a copy with the given arguments; those that are None stay unchanged."""
        if unit is not None and unit not in UNITS:
            raise PrivacyParameterError(f"`unit` must be one of {', '.join(map(repr, UNITS))}.")
        name = self.unit.name if unit is None else unit
        size, most = self.unit.group_size, self.most_rows
        if group_size is not None:
            size = parse_int("group_size", group_size, 1, MOST)
        if most_rows is not None:
            most = parse_int("most_rows", most_rows, 1, MOST)
        unit = Unit(name, size)
        if most is not None and not unit.of_persons:
            raise PrivacyParameterError(
                "`most_rows` bounds the rows per person and needs unit='person'. To protect a "
                "group of rows instead, pass group_size=..."
            )
        return BudgetUnit(unit, most)

    def charged(self, events: Sequence[Event], unit: Unit | None, *, any_group_size: bool) -> int:
        """Return the group size (in rows or persons) for which events are charged."""
        name, whole = one_unit(events), self.unit
        if name == whole.name:
            if unit is None or unit.group_size == whole.group_size or any_group_size:
                return whole.group_size
            raise BudgetError(
                f"The budget is for {whole.phrase}, but this release was calibrated for "
                f"{unit.phrase}. Nothing was released. Set "
                f"{alias('dp_group_size')}={whole.group_size} (in evaluate and discover: "
                f"group_size={whole.group_size}), or open the budget with any_group_size=True to "
                f"charge the cost for {whole.phrase}."
            )
        if whole.of_persons and self.most_rows is not None:
            return whole.group_size * self.most_rows
        raise BudgetError(
            f"The budget is for {whole.phrase}, but this release is for "
            f"{(unit or Unit(name)).phrase}, and its cost cannot be converted. Nothing was "
            "released. "
            + (
                f"Pass {named.dp_privacy_id} (in evaluate and discover: privacy_id); or, if no "
                "person has more than k rows, create the budget with most_rows=k to charge "
                "row-level releases for k rows."
                if whole.of_persons
                else "Use a budget created with unit='person'."
            )
        )

    def check_column(self, unit: Unit | None, recorded: Iterable[Unit]) -> None:
        """Refuse a privacy id column that differs from the column of earlier entries."""
        names = {u.column for u in recorded if u.column}
        if unit is not None and unit.column and names - {unit.column}:
            raise BudgetError(
                f"The entries of the budget identify persons by the column {min(names)!r}, but "
                f"this release identifies them by {unit.column!r}. One id in one column can "
                "correspond to several ids in the other. Nothing was released. Use the same "
                "column, or a separate budget."
            )


RESERVED, SPENT = "reserved", "spent"
_STRINGS, _NUMBERS = ("id", "note", "time", "state"), ("mu2", "shift", "extra")
_FIELDS = {*_STRINGS, *_NUMBERS, "events", "unit", "charged"}


@dataclass(frozen=True)
class Entry:
    """One entry of a budget.

    Attributes:
        id: Unique id.
        note: Description of the release.
        time: Time of the charge, in UTC.
        state: "reserved" from before the first release, "spent" once the release has finished.
            Both count in full, because an interrupted release may have released anything up to
            its full cost.
        charge: Charge to the total.
        events: Planned releases.
        unit: Privacy unit for which the noise was calibrated.
        charged: Group size (rows or persons) for which the entry is charged.
        part: The part of an :func:`xgb_dp.split` that the release reads; None for all rows.

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
    block_id: str | None,
) -> dict[str, Any]:
    """Return an entry as a JSON object; the inverse of :func:`read_entry`."""
    line: dict[str, Any] = {
        "id": secrets.token_hex(8),  # random: ids appear in models and must not depend on data
        "note": note.encode("utf-8", "backslashreplace").decode(),
        "time": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "state": state,
        "events": [event.to_json() for event in events],
        "unit": vars(unit),
        "charged": charged,
        **{name: float(value) for name, value in vars(charge).items()},
    }
    line |= {} if block_id is None else {"block": block_id}
    return line if part is None else {**line, "part": part.to_json()}


def read_entry(line: Mapping[str, Any]) -> Entry:
    """Parse an entry of the budget file."""
    try:
        strings = [line[key] for key in _STRINGS]
        numbers = [line[key] for key in _NUMBERS]
        valid = _FIELDS <= set(line) <= _FIELDS | {"block", "part"}
        valid = (
            valid and all(type(text) is str for text in strings) and strings[3] in (RESERVED, SPENT)
        )
        # `json` can also read nan, infinity and booleans.
        valid = valid and all(type(v) in (int, float) and 0.0 <= v < math.inf for v in numbers)
        events = tuple(event_from_json(event) for event in line["events"])
        part = SplitPart.from_json(line["part"]) if "part" in line else None
        unit, charged = Unit(**line["unit"]), line["charged"]
        valid = valid and type(charged) is int and charged >= 1
        if not valid or (events and one_unit(events) != unit.name):
            raise ValueError
    except (KeyError, TypeError, ValueError):
        raise damaged("An entry of the budget is damaged, so the spent budget is unknown") from None
    name, note, time, state = strings
    charge = Charge(*map(float, numbers))
    return Entry(name, note, time, state, charge, events, unit, charged, part)


def is_recorded(release: RecordedRelease, entries: Iterable[Entry]) -> bool:
    """Return whether an entry has the id and the events of a model's release."""
    if not any(event.count for event in release.events):
        return True
    same = (entry for entry in entries if entry.id == release.entry)
    # The trainer records events in the order in which it makes them, so the order can differ.
    return any(sorted(entry.events, key=repr) == sorted(release.events, key=repr) for entry in same)


def total_charge(entries: Iterable[Entry], part: SplitPart | None = None) -> Charge:
    """Return the total charge of entries for the privacy unit with the highest cost.

    A row is in only one part of a split (parallel composition), so the parts of a split count with
    the larger of their sums. If `part` is given, entries on the other part of its split are
    ignored.
    """
    sums: dict[str, dict[str, list[Charge]]] = {}
    common = []
    for entry in entries:
        read = entry.part
        if read is None or not parts_are_disjoint(read, entry.events, entry.charged):
            common.append(entry.charge)
        elif part is None or read.split != part.split or read.name == part.name:
            sums.setdefault(read.split, {}).setdefault(read.name, []).append(entry.charge)
    for parts in sums.values():
        totals = [Charge.total(charges) for charges in parts.values()]
        common.append(Charge(*(max(getattr(t, name) for t in totals) for name in _NUMBERS)))
    return Charge.total(common)


def parts_are_disjoint(part: SplitPart | None, events: Iterable[Event], charged: int) -> bool:
    """Return whether the parts of the split share no privacy unit of these releases."""
    unit = next((event.unit for event in events), ROW)
    return part is not None and charged == 1 and (unit == ROW or part.unit == unit)
