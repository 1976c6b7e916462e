"""Privacy units: the difference between neighbouring data sets, and its wording in guarantees."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations
from typing import Any

ROW, PERSON = "row", "person"
UNITS = (ROW, PERSON)
"""Neighbours differ by one row, or by all rows of one person, regardless of their number."""
MOST_GROUP = 1 << 31
"""Groups must be smaller, so that group bounds are finite."""


@dataclass(frozen=True)
class Unit:
    """The privacy unit of a guarantee: one of two neighbouring data sets has one more unit.

    Attributes:
        name: "row", or "person" for all rows of one person, regardless of their number.
        group_size: Number of units added or removed together, >= 1: rows of one person, or persons,
            such as a household.
        column: Name of the column that identifies the person of each row; None for rows or if the
            column has no name.

    Examples:
        >>> unit = xgb_dp.accounting.Unit("person", column="patient")
        >>> unit.label
        'person (column patient)'
        >>> xgb_dp.accounting.Unit("row", group_size=5).phrase
        '5 rows of one person'
    """

    name: str = ROW
    group_size: int = 1
    column: str | None = None

    def __post_init__(self) -> None:
        valid = (
            self.name in UNITS
            and type(self.group_size) is int
            and 1 <= self.group_size < MOST_GROUP
        )
        named = isinstance(self.column, str) and self.column and self.name == PERSON
        if not valid or not (named or self.column is None):
            raise ValueError(
                "A privacy unit must be a positive number of rows or persons; only persons have "
                "an id column."
            )

    @property
    def of_persons(self) -> bool:
        """Whether the unit is a person."""
        return self.name == PERSON

    @property
    def plural(self) -> str:
        """Plural of the name."""
        return f"{self.name}s"

    @property
    def label(self) -> str:
        """A name for tables, such as "row" or "person (column patient)"."""
        return (self.name if self.group_size == 1 else self.counted()) + self._where

    @property
    def phrase(self) -> str:
        """The unit in a sentence, such as "one person (column patient)"."""
        return self.counted() + self._where

    @property
    def _where(self) -> str:
        return f" (column {self.column})" if self.column else ""

    def counted(self) -> str:
        """The group size in words: "one row", "5 rows of one person", "one person", "3 persons"."""
        if self.group_size == 1:
            return f"one {self.name}"
        return f"{self.group_size} {self.plural}{'' if self.of_persons else ' of one person'}"

    def neighbours(self) -> str:
        """The added or removed rows: "any one row", "all rows of any one person, ..."."""
        if self.of_persons:
            return f"all rows of any {self.counted()}"
        return f"any {self.counted()}"

    def same(self, other: Unit) -> bool:
        """Whether both define the same neighbours. Compares names and group sizes, not ids.

        Args:
            other: Another unit. The column is compared only if both units name one.
        """
        columns = {self.column, other.column} - {None}
        return (self.name, self.group_size) == (other.name, other.group_size) and len(columns) <= 1

    @classmethod
    def of_record(cls, public: Any) -> Unit:
        """Read the unit from the public record of a training.

        Args:
            public: See ``xgb_dp.record.ledger_model.TrainingRecord``; the default unit is one row.

        Raises:
            KeyError: The record has no group size.
            ValueError: The record is ill-formed.
        """
        group_size = public["hyperparameters"]["group_size"]
        return cls(public.get("unit", ROW), group_size, public.get("unit_column"))

    def to_record(self) -> dict[str, Any]:
        """The fields of a public record, except the group size, which is a hyperparameter."""
        return {
            "unit": self.name if self.of_persons else None,
            "unit_column": self.column,
        }


ONE_ROW = Unit()
"""The default unit."""


def all_same(units: Iterable[Unit]) -> bool:
    """Whether all units define the same neighbours."""
    return all(one.same(other) for one, other in combinations(units, 2))
