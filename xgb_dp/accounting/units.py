"""Defines the units of privacy: what neighbours differ by, and how a guarantee says so."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations
from typing import Any

ROW, PERSON = "row", "person"
UNITS = (ROW, PERSON)
"""What neighbours differ by: one row, or all rows of one person, however many they are."""
MOST_GROUP = 1 << 31
"""There are fewer of them, so that bounds for a group are numbers."""


@dataclass(frozen=True)
class Unit:
    """Whom a guarantee is about: one of two neighbours has one more of them.

    Attributes:
        name: "row", or "person" for all rows of one person, however many they are.
        group: How many of them are added or removed together, >= 1: so many rows of one person, or
            so many persons, such as those of a household.
        column: Name of the column that says whose a row is; None for rows and where it has none.

    Examples:
        >>> unit = xgb_dp.accounting.Unit("person", column="patient")
        >>> unit.label
        'person (column patient)'
        >>> xgb_dp.accounting.Unit("row", group=5).phrase
        '5 rows of one person'
    """

    name: str = ROW
    group: int = 1
    column: str | None = None

    def __post_init__(self) -> None:
        sound = self.name in UNITS and type(self.group) is int and 1 <= self.group < MOST_GROUP
        named = isinstance(self.column, str) and self.column and self.name == PERSON
        if not sound or not (named or self.column is None):
            raise ValueError("A unit of privacy is so many rows or persons.")

    @property
    def of_persons(self) -> bool:
        """Whether neighbours differ by all rows of persons."""
        return self.name == PERSON

    @property
    def plural(self) -> str:
        """Name of several."""
        return f"{self.name}s"

    @property
    def label(self) -> str:
        """A name for tables, such as "row" or "person (column patient)"."""
        return (self.name if self.group == 1 else self.counted()) + self._where

    @property
    def phrase(self) -> str:
        """The same in a sentence, such as "one person (column patient)"."""
        return self.counted() + self._where

    @property
    def _where(self) -> str:
        return f" (column {self.column})" if self.column else ""

    def counted(self) -> str:
        """How many it is: "one row", "5 rows of one person", "one person", "3 persons"."""
        if self.group == 1:
            return f"one {self.name}"
        return f"{self.group} {self.plural}{'' if self.of_persons else ' of one person'}"

    def neighbours(self) -> str:
        """What is added or removed: "any one row", "all rows of any one person, ..."."""
        if self.of_persons:
            return f"all rows of any {self.counted()}"
        return f"any {self.counted()}"

    def same(self, other: Unit) -> bool:
        """Whether both are about the same neighbours, as far as names tell.

        Args:
            other: Another unit. Where only one of them names its column, that is no difference.
        """
        columns = {self.column, other.column} - {None}
        return (self.name, self.group) == (other.name, other.group) and len(columns) <= 1

    @classmethod
    def of_record(cls, public: Any) -> Unit:
        """The unit that the public record of a training names.

        Args:
            public: See ``xgb_dp.record.ledger_model.TrainingRecord``; without a unit one row.

        Raises:
            ValueError: The record is ill-formed.
        """
        group = public.get("hyperparameters", {}).get("group", 1)
        return cls(public.get("unit", ROW), group, public.get("unit_column"))

    def to_record(self) -> dict[str, Any]:
        """What a public record says of it, besides the group among the hyperparameters."""
        return {
            "unit": self.name if self.of_persons else None,
            "unit_column": self.column,
        }


ONE_ROW = Unit()
"""What a guarantee is about where nobody says otherwise."""


def all_same(units: Iterable[Unit]) -> bool:
    """Whether all of them are about the same neighbours."""
    return all(one.same(other) for one, other in combinations(units, 2))
