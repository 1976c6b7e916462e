"""Which rows lie in which part of a division by secret coins, as the library itself has made it.

What a release on one part costs adds nothing to what a release on the other costs. That is known
only of objects that :func:`xgb_dp.split` has made, and only as long as they are handed on as they
are: a copy, a slice or a matrix that somebody else makes of them is not known, nor is an object
that was changed in place.

Proof: docs/proofs/evaluation.md
"""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from ..errors import PrivacyWarning
from .unchanged import digest

__all__ = [
    "TEST",
    "TRAIN",
    "Part",
    "apart",
    "assumed",
    "divided_by",
    "divided_column",
    "for_persons",
    "mark",
    "part_of",
    "reading",
]

TRAIN, TEST = "train", "test"


@dataclass(frozen=True)
class Part:
    """One of the two parts of a division.

    Attributes:
        split: Name of the division.
        name: "train" or "test".
        unit: What the coins were drawn for: "row" or "person".
    """

    split: str
    name: str
    unit: str

    def to_json(self) -> dict[str, str]:
        """The form of ledgers and budgets."""
        return {"split": self.split, "name": self.name, "unit": self.unit}

    @classmethod
    def from_json(cls, data: Any) -> Part:
        """The inverse of :meth:`to_json`."""
        if not isinstance(data, Mapping) or set(data) != {"split", "name", "unit"}:
            raise ValueError("a part names its division, itself and its unit")
        part = cls(data["split"], data["name"], data["unit"])
        sound = type(part.split) is str and part.split and part.split.isalnum()
        if not sound or part.name not in (TRAIN, TEST) or part.unit not in ("row", "person"):
            raise ValueError("a part names its division, itself and its unit")
        return part


_columns: dict[str, str] = {}  # name of the column of ids, by division
_known: dict[int, tuple[weakref.ref[Any], Part, bytes]] = {}  # with what they held


def mark(thing: Any, part: Part) -> None:
    """Note that an object holds the rows of a part; what cannot be watched is not noted."""
    key, held = id(thing), digest(thing)
    if held is None:
        _known.pop(key, None)
        return

    def forget(gone: weakref.ref[Any]) -> None:
        if key in _known and _known[key][0] is gone:
            del _known[key]

    try:
        _known[key] = (weakref.ref(thing, forget), part, held)
    except TypeError:
        _known.pop(key, None)


def part_of(thing: Any) -> Part | None:
    """The part whose rows an object holds; None where that is not known.

    A ``PrivacyWarning`` says that an object of a part was changed in place: it may have rows of the
    other part since, and counts as all rows.
    """
    if isinstance(thing, (tuple, list)):
        parts = {part_of(one) for one in thing}
        return parts.pop() if len(parts) == 1 else None
    found = _known.get(id(thing))
    if found is None or found[0]() is not thing:
        return None
    if digest(thing) != found[2]:
        del _known[id(thing)]
        warnings.warn(
            "A part of xgb_dp.split was changed in place after it was made. It may have other "
            "rows now, so it counts as all rows, and what is released from it adds up with "
            "everything else. Change the rows before you divide them.",
            PrivacyWarning,
            stacklevel=3,
        )
        return None
    return found[1]


def divided_by(split: str, column: str | None) -> None:
    """Note the name of the column of ids by which a division was made, if it has one."""
    if column is not None:
        _columns[split] = column


def divided_column(split: str) -> str | None:
    """Name of the column of ids by which a division was made; None where it is not known."""
    return _columns.get(split)


def for_persons(part: Part | None, ids: Any, column: str | None) -> Part | None:
    """The part that a release reads, or None where its persons may not be those of the division.

    Rows of one hospital lie in both parts where the coins were those of patients.
    """
    if part is None or ids is None or part.unit == "row" or part_of(ids) == part:
        return part
    return part if column is not None and _columns.get(part.split) == column else None


_READING: ContextVar[Part | None] = ContextVar("xgb_dp_part", default=None)


@contextmanager
def reading(part: Part | None) -> Iterator[None]:
    """Say which part a training reads, whose matrix is made of the part's rows on the way to it."""
    token = _READING.set(part)
    try:
        yield
    finally:
        _READING.reset(token)


def assumed() -> Part | None:
    """The part that :func:`reading` has named, for the first training that asks.

    Others may follow in the same context, from a callback of the first: their rows are not known.
    """
    found = _READING.get()
    _READING.set(None)
    return found


def apart(one: Part | None, other: Part | None, unit: str) -> bool:
    """Whether no row, or no person, is in both parts."""
    if one is None or other is None or one.split != other.split or one.name == other.name:
        return False
    return unit == "row" or one.unit == other.unit == "person"
