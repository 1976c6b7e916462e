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
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import asdict, dataclass
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
    """One of the two parts of a division, which its name stands for."""

    split: str
    name: str  # "train" or "test"
    unit: str  # "row" or "person": what the coins were drawn for

    def to_json(self) -> dict[str, str]:
        """The form of ledgers and budgets."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Any) -> Part:
        """The inverse of :meth:`to_json`."""
        sound = isinstance(data, Mapping) and set(data) == {"split", "name", "unit"}
        sound = sound and type(data["split"]) is str and data["split"].isalnum()
        sound = sound and data["name"] in (TRAIN, TEST) and data["unit"] in ("row", "person")
        if not sound:
            raise ValueError("a part names its division, itself and its unit")
        return cls(**data)


_columns: dict[str, str] = {}  # name of the column of ids, by division
_known: dict[int, tuple[weakref.ref[Any], Part, bytes]] = {}  # by id(), with a digest of the rows


def mark(thing: Any, part: Part) -> None:
    """Note that an object holds the rows of a part; what cannot be watched is not noted."""
    key, content = id(thing), digest(thing)

    def forget(gone: weakref.ref[Any]) -> None:
        if key in _known and _known[key][0] is gone:
            del _known[key]

    _known.pop(key, None)
    if content is not None:
        with suppress(TypeError):  # it takes no weak references
            _known[key] = (weakref.ref(thing, forget), part, content)


def part_of(thing: Any) -> Part | None:
    """The part whose rows an object holds; None where that is not known.

    A ``PrivacyWarning`` says that an object of a part was changed in place: it may have rows of the
    other part since, and counts as all rows.
    """
    if isinstance(thing, (tuple, list)):
        parts = {part_of(one) for one in thing}
        return parts.pop() if len(parts) == 1 else None
    if id(thing) not in _known:
        return None
    reference, part, content = _known[id(thing)]
    if reference() is not thing:
        return None
    if digest(thing) != content:
        del _known[id(thing)]
        warnings.warn(
            "A part of xgb_dp.split was changed in place after it was made. It may have other "
            "rows now, so it counts as all rows, and what is released from it adds up with "
            "everything else. Change the rows before you divide them.",
            PrivacyWarning,
            stacklevel=3,
        )
        return None
    return part


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
    part = _READING.get()
    _READING.set(None)
    return part


def apart(one: Part | None, other: Part | None, unit: str) -> bool:
    """Whether no row, or no person, is in both parts."""
    if one is None or other is None or one.split != other.split or one.name == other.name:
        return False
    return unit == "row" or one.unit == other.unit == "person"
