"""Which rows lie in which part of a division by secret coins, as the library itself has made it.

What a release on one part costs adds nothing to what a release on the other costs. That is known
only of objects that :func:`xgb_dp.split` has made, and only as long as they are handed on as they
are: a copy, a slice or a matrix that somebody else makes of them is not known, nor is an object
that was changed in place.

Proof: docs/proofs/evaluation.md
Proof: docs/proofs/secret-splits.md
"""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import asdict, dataclass
from typing import Any

from ..errors import PrivacyRefusal, PrivacyWarning, named
from .unchanged import digest

TRAIN, TEST = "train", "test"
COIN_BITS = 32
"""A coin is a whole number of so many bits, compared with the share of the second part."""
LEAST_SHARE = 0.01
"""Of either part where coins stay secret. Delta allows to publish a share of delta of all rows: a
part that is as small could be published whole."""


@dataclass(frozen=True)
class Part:
    """One of the two parts of a division, which its name stands for."""

    split: str
    name: str  # "train" or "test"
    unit: str  # "row" or "person": what the coins were drawn for
    test_num: int | None = None  # share of "test" in 2**-32, where the coins are to stay secret

    def to_json(self) -> dict[str, str | int]:
        """The form of ledgers and budgets."""
        return {name: value for name, value in asdict(self).items() if value is not None}

    @classmethod
    def from_json(cls, data: Any) -> Part:
        """The inverse of :meth:`to_json`."""
        known = {"split", "name", "unit"}
        sound = isinstance(data, Mapping) and known <= set(data) <= known | {"test_num"}
        sound = sound and type(data["split"]) is str and data["split"].isalnum()
        sound = sound and data["name"] in (TRAIN, TEST) and data["unit"] in ("row", "person")
        num = data.get("test_num", 1) if sound else 0
        sound = type(num) is int and 0 < num < 1 << COIN_BITS
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


def num_of_share(share: float) -> int:
    """The share of a second part as the whole number that coins are compared with."""
    return min(max(1, round(share * 2**COIN_BITS)), 2**COIN_BITS - 1)


def secret_num(share: float) -> int:
    """The same where the coins are to stay secret."""
    num = num_of_share(share)
    if not may_hide(num):
        raise PrivacyRefusal(
            "Coins that stay secret are refused for a part of less than 1% of the rows: delta "
            "would hide whatever is released of so few. Take a share between 0.01 and 0.99."
        )
    return num


def may_hide(num: int) -> bool:
    """Whether both parts are large enough that the coins hide who is in which."""
    return LEAST_SHARE <= num / 2**COIN_BITS <= 1.0 - LEAST_SHARE


def is_secret(part: Part | None, unit: str) -> bool:
    """Whether the coins of a division are to stay secret, and were drawn for these units.

    A row of a person with others has the coin of these, which both neighbours have: it hides
    nothing. Nor does it in a part of very few.
    """
    if part is None or part.test_num is None:
        return False
    return part.unit == unit and may_hide(part.test_num)


def check_size_is_secret(part: Part | None, n_public: int | None) -> None:
    """Refuse to publish how many rows a part has, where the coins are to stay secret."""
    if part is not None and part.test_num is not None and n_public is not None:
        raise PrivacyRefusal(
            f"{named.dp_n_public} is refused for a part of an xgb_dp.split whose coins are to stay "
            "secret: the number of rows in a part follows from the coins. Leave it out."
        )


def apart(one: Part | None, other: Part | None, unit: str) -> bool:
    """Whether no row, or no person, is in both parts."""
    if one is None or other is None or one.split != other.split or one.name == other.name:
        return False
    return unit == "row" or one.unit == other.unit == "person"
