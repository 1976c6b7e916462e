"""Privacy ids, encoded as one exact code per person, and parts of a split.

Two ids get the same code if and only if they are equal, so encoding neither merges two persons nor
splits one. Ids are compared exactly: a trailing space makes a different id. Ids are read only in
this module, and no message shows one.

Ledgers and budgets identify a part by name. Releases on the two parts of one split compose in
parallel: together they cost the larger of the two. A release is charged to a part only if its rows
came as a :class:`~xgb_dp.data.matrices.SplitMatrix` or :class:`~xgb_dp.data.matrices.SplitTable`;
any other release is charged to all rows.

Proof: docs/proofs/evaluation.md
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any, NoReturn
from uuid import UUID

import numpy as np
import numpy.typing as npt

from ..errors import PrivacyParameterError, RowDomainError, named
from .arrays import find_library
from .cells import is_pandas_missing, is_sequence, is_unicode, read_data

TRAIN, TEST = "train", "test"


@dataclass(frozen=True)
class SplitPart:
    """One of the two parts of a split."""

    split: str  # random name of the split
    name: str  # "train" or "test"
    unit: str  # "row" or "person": the unit that was assigned to a part

    def to_json(self) -> dict[str, str]:
        """Convert to the JSON form used in ledgers and budgets."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Any) -> SplitPart:
        """Read the form that :meth:`to_json` returns."""
        valid = isinstance(data, Mapping) and set(data) == {"split", "name", "unit"}
        valid = valid and type(data["split"]) is str and data["split"].isalnum()
        valid = valid and data["name"] in (TRAIN, TEST) and data["unit"] in ("row", "person")
        if not valid:
            raise ValueError("a part must consist of its split, its name and its unit")
        return cls(**data)


def are_disjoint(one: SplitPart | None, other: SplitPart | None, unit: str) -> bool:
    """Return whether the two parts have no row (or no person, by `unit`) in common."""
    if one is None or other is None or one.split != other.split or one.name == other.name:
        return False
    return unit == "row" or one.unit == other.unit == "person"


Codes = npt.NDArray[np.uint32]
Coded = tuple[Codes, str, np.ndarray]
"""Codes, kind and distinct ids."""


def mixed_kinds_error() -> RowDomainError:
    """Return the error for ids of mixed kinds, whether on one worker or on several."""
    return RowDomainError(
        f"The ids in {named.dp_privacy_id} are of mixed kinds, such as numbers and strings, so it "
        "is unclear whether 1 and '1' are the same person. Use one kind, such as strings."
    )


def _expected() -> str:
    ids = "integers, strings, bytes or UUIDs, in a list, an array or a column of any library"
    return f"{named.dp_privacy_id} must have one id per row: {ids}."


@dataclass(frozen=True, eq=False, repr=False)
class Persons:
    """The person of every row, as a code."""

    codes: Codes  # one per row, from 0 to the number of persons - 1
    kind: str  # "integers", "strings", "bytes" or "UUIDs"; empty without rows
    distinct: np.ndarray  # the ids by code, as 64-bit integers or objects; UUIDs as integers
    column: str | None = None  # public name of the column with the ids
    part: SplitPart | None = None  # if the rows are a part of a split by these ids

    @property
    def listed(self) -> list[Any]:
        """The distinct ids in the order of their codes."""
        return list(self.distinct.tolist())

    def hashes(self, key: bytes) -> npt.NDArray[np.uint64]:
        """Return a keyed hash of every person, in the order of the codes; shape (persons, 2)."""
        ids = (self._bytes(value) for value in self.listed)
        hashes = (hashlib.blake2b(data, digest_size=16, key=key).digest() for data in ids)
        return np.frombuffer(b"".join(hashes), dtype="<u8").astype(np.uint64).reshape(-1, 2)

    def _bytes(self, value: Any) -> bytes:
        if self.kind == "strings":
            return str(value).encode()
        return bytes(value) if self.kind == "bytes" else b"%x" % value

    def places(self, key: bytes, count: int) -> npt.NDArray[np.int64]:
        """Assign each person to a place in 0..count - 1 by the keyed hash of the id."""
        return (self.hashes(key)[:, 0] % np.uint64(count)).astype(np.int64)

    def select(self, rows: npt.NDArray[np.bool_] | npt.NDArray[np.int64]) -> Persons:
        """Return the persons of the selected rows."""
        used, codes = np.unique(self.codes[rows], return_inverse=True)
        kind = self.kind if len(used) else ""
        return Persons(codes.astype(np.uint32), kind, self.distinct[used], self.column)


def encode_persons(ids: Any, rows: int | None = None, column: str | None = None) -> Persons:
    """Encode the id of every row; no error message or exception chain contains an id."""
    if isinstance(ids, Persons):
        persons = ids
    else:
        wrong = f"{_expected()} The given ids cannot be read."
        persons = Persons(*read_data(_read, ids, wrong=wrong), column or read_id_column(ids))
    if rows is not None and len(persons.codes) != rows:
        raise PrivacyParameterError(
            f"{named.dp_privacy_id} must have one id per row of the data, in the order of the "
            "rows; the number of ids differs from the number of rows."
        )
    return persons


def join_persons(parts: Sequence[Persons]) -> Persons:
    """Concatenate the persons of consecutive blocks of rows."""
    kinds = {part.kind for part in parts} - {""}
    if len(kinds) > 1:
        raise mixed_kinds_error()
    column = next((part.column for part in parts), None)
    parts = [part for part in parts if part.kind] or [encode_persons([])]
    places: npt.NDArray[Any]
    if all(part.distinct.dtype == np.int64 for part in parts):
        distinct = np.concatenate([part.distinct for part in parts])
        distinct, places = np.unique(distinct, return_inverse=True)
    else:
        places, distinct = _coded([value for part in parts for value in part.listed])
    first = np.cumsum([0, *(len(part.distinct) for part in parts)])
    codes = [places[part.codes + start] for part, start in zip(parts, first, strict=False)]
    return Persons(np.concatenate(codes).astype(np.uint32), parts[0].kind, distinct, column)


def read_id_column(ids: Any) -> str | None:
    """Return the public name of the column with the ids, or None if the container has no name."""
    name = ids.column if isinstance(ids, Persons) else getattr(ids, "name", None)
    return name if isinstance(name, str) and name else None


def _read(ids: Any) -> Coded:
    """Return the codes, the kind and the distinct ids of any supported container."""
    readers = {"pandas": _pandas, "polars": _polars, "pyarrow": _arrow}
    if find_library(ids):
        return readers[find_library(ids)](ids)
    if isinstance(ids, np.ndarray):
        return _array(ids)
    if not is_sequence(ids):  # other array-likes may convert all ids to a common type
        _refuse_container(ids)
    return _objects(list(ids))


def _refuse_container(ids: Any, fix: str = "") -> NoReturn:
    raise PrivacyParameterError(f"{_expected()} Got a {type(ids).__name__}{fix}.")


def _refuse_type(kind: Any) -> NoReturn:
    raise PrivacyParameterError(
        f"{_expected()} Got type {kind}. Convert the ids to strings or integers row by row."
    )


def _refuse_missing() -> NoReturn:
    raise RowDomainError(
        f"A row has no id in {named.dp_privacy_id}, so the influence of its person cannot be "
        "bounded. Give every such row an id, or drop it."
    )


def _array(ids: np.ndarray) -> Coded:
    if ids.ndim != 1:
        raise PrivacyParameterError(
            f"{_expected()} Got {ids.ndim} dimensions. If an id consists of several columns, "
            "join them into one string per row."
        )
    if isinstance(ids, np.ma.MaskedArray):
        if np.ma.getmaskarray(ids).any():
            _refuse_missing()
        ids = ids.data
    kind = ids.dtype.kind
    if kind in "fiu":
        distinct, codes = np.unique(_whole(ids) if kind == "f" else ids, return_inverse=True)
        return codes.astype(np.uint32), "integers" if len(ids) else "", distinct
    if kind not in "OUSV" or ids.dtype.names is not None:
        _refuse_type(ids.dtype)
    return _objects(ids.tolist())


def _whole(ids: np.ndarray) -> npt.NDArray[np.int64]:
    """Convert floats to integers, refusing any that may have been rounded from another integer."""
    if np.isnan(ids).any():
        _refuse_missing()
    exact = 2.0 ** min(np.finfo(ids.dtype).nmant + 1, 53)
    if not ((np.abs(ids) < exact) & (np.floor(ids) == ids)).all():
        raise RowDomainError(
            f"A row has an id in {named.dp_privacy_id} that is not an integer or may have been "
            f"rounded: {ids.dtype} represents integers exactly only below "
            f"2^{int(np.log2(exact))}. Read the ids as integers or as strings."
        )
    return ids.astype(np.int64)


# Exact types only: a subclass may define its own equality.
_KINDS: dict[type, str] = {
    **dict.fromkeys((float, np.float64), "floats"),
    **dict.fromkeys((str, np.str_), "strings"),
    **dict.fromkeys((bytes, np.bytes_), "bytes"),
    int: "integers",
    UUID: "UUIDs",
    type(None): "missing",
}


def _id_kind(kind: type) -> str:
    """Return the kind of an id of this type; empty if the type is not allowed."""
    if is_pandas_missing(kind):
        return "missing"
    if kind.__module__ == "numpy" and issubclass(kind, np.integer):
        return "integers"
    return _KINDS.get(kind, "")


def _objects(ids: list[Any]) -> Coded:
    """Encode Python objects, each read by its own type."""
    kinds = {_id_kind(kind) for kind in set(map(type, ids))}
    if "missing" in kinds:
        _refuse_missing()
    if "" in kinds:
        raise RowDomainError(
            f"A row has an id in {named.dp_privacy_id} that is not an integer, string, bytes or "
            "UUID. Convert such ids to strings row by row."
        )
    if "floats" in kinds:
        _whole(np.array([v for v in ids if isinstance(v, float)]))
        ids = [int(v) if isinstance(v, float) else v for v in ids]
        kinds = kinds - {"floats"} | {"integers"}
    if len(kinds) > 1:
        raise mixed_kinds_error()
    [kind] = kinds or {""}
    if kind == "UUIDs":
        ids = [v.int for v in ids]
    if kind == "integers":
        ids = list(map(int, ids))
        with suppress(OverflowError):  # beyond 64 bits
            return _array(np.array(ids, dtype=np.int64))
    codes, distinct = _coded(ids)
    if kind == "strings" and not all(map(is_unicode, distinct.tolist())):
        raise RowDomainError(
            f"A row has an id in {named.dp_privacy_id} that is not valid Unicode: it contains an "
            "unpaired surrogate. If the ids are not text, pass them as bytes; otherwise drop such "
            "rows."
        )
    return codes, kind, distinct


def _coded(ids: list[Any]) -> tuple[Codes, np.ndarray]:
    """Return codes in order of first occurrence, and the distinct ids."""
    table: defaultdict[Any, int] = defaultdict()
    table.default_factory = table.__len__
    codes = np.fromiter(map(table.__getitem__, ids), dtype=np.uint32, count=len(ids))
    return codes, np.fromiter(table, dtype=object, count=len(table))


def _pandas(ids: Any) -> Coded:
    import pandas as pd

    columns = (pd.Series, pd.Index, pd.api.extensions.ExtensionArray)
    if not isinstance(ids, columns) or isinstance(ids, pd.MultiIndex):
        _refuse_container(ids, ": pass one column")
    kind = ids.dtype
    array = ids.array if isinstance(ids, (pd.Series, pd.Index)) else ids
    if isinstance(kind, pd.CategoricalDtype):
        if (array.codes < 0).any():
            _refuse_missing()
        used, places = np.unique(array.codes, return_inverse=True)
        codes, name, distinct = _pandas(array.categories.take(used))
        return codes[places], name, distinct
    if isinstance(kind, np.dtype):
        return _array(ids.to_numpy())
    if isinstance(kind, pd.ArrowDtype) or getattr(kind, "storage", "") == "pyarrow":
        return _arrow(array.__arrow_array__())
    if pd.api.types.is_float_dtype(kind):
        if pd.isna(ids).any():
            _refuse_missing()
        return _array(ids.to_numpy(dtype=kind.numpy_dtype))
    return _objects(ids.tolist())


def _polars(ids: Any) -> Coded:
    import polars as pl

    if not isinstance(ids, pl.Series):
        _refuse_container(ids)
    return _objects(ids.to_list()) if ids.dtype == pl.Object else _arrow(ids.to_arrow())


def _arrow(ids: Any) -> Coded:
    import pyarrow as pa

    if not isinstance(ids, (pa.Array, pa.ChunkedArray)):
        _refuse_container(ids)
    if pa.types.is_dictionary(ids.type):
        ids = ids.cast(ids.type.value_type)
    if ids.null_count:
        _refuse_missing()
    kind, name = ids.type, str(ids.type).removeprefix("large_").removesuffix("_view")
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        return _array(np.asarray(ids))
    as_objects = pa.types.is_null(kind) or isinstance(kind, pa.BaseExtensionType)
    if not as_objects and name.partition("[")[0] not in ("string", "binary", "fixed_size_binary"):
        _refuse_type(kind)
    return _objects(ids.to_pylist())
