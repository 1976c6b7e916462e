"""Whom a budget is for, and for how many rows or persons each release is charged."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..accounting import Event, Unit, one_unit
from ..accounting.units import ONE_ROW, UNITS
from ..errors import BudgetError, PrivacyParameterError, named, spelt
from ..parameters.parse import parse_int

MOST = 1 << 20
"""Rows of a person, or persons together, that a total can be for."""


@dataclass(frozen=True)
class Whose:
    """The neighbours of a total.

    No person has more rows than `most_rows`, says whoever made the budget: what was proved for rows
    is charged for so many. Where it is None, that is refused.
    """

    unit: Unit = ONE_ROW
    most_rows: int | None = None

    @classmethod
    def of_content(cls, content: Mapping[str, Any]) -> Whose:
        """The unit of a budget's file."""
        try:
            name, group, most = (content["whose"][key] for key in ("unit", "group", "most_rows"))
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
            "whose": {
                "unit": self.unit.name,
                "group": self.unit.group,
                "most_rows": self.most_rows,
            }
        }

    def changed(self, unit: Any, group: Any, most_rows: Any) -> Whose:
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
        return Whose(unit, most)

    def charged(self, events: Sequence[Event], unit: Unit | None, *, any_group: bool) -> int:
        """For how many rows (or persons) events are charged."""
        name, whole = one_unit(events), self.unit
        if name == whole.name:
            if unit is None or unit.group == whole.group or any_group:
                return whole.group
            raise BudgetError(
                f"The budget is for {whole.phrase}, and this was calibrated for {unit.phrase}. "
                f"Nothing was released. Set {spelt('dp_group')}={whole.group} (group={whole.group} "
                "of evaluate and discover), which makes both the same; or open the budget with "
                f"any_group=True: it is then charged with what it costs for {whole.phrase}."
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
