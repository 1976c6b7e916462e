"""Whose row each row is: ids of any kind as dense codes, exactly.

Two ids get the same code exactly where they are equal, so that two persons never become one, nor
one person two. Ids are compared as they come: a text with a space at its end is another id. Ids are
read here and nowhere else, and no message shows one.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NoReturn, TypeAlias
from uuid import UUID

import numpy as np
import numpy.typing as npt

from ..errors import PrivacyError, PrivacyParameterError, RowDomainError
from .cells import is_sequence, is_unicode
from .parts import mark, part_of

__all__ = ["Persons", "column_of", "joined", "persons_of"]

Codes = npt.NDArray[np.uint32]
Distinct: TypeAlias = "list[Any] | npt.NDArray[np.int64] | npt.NDArray[np.uint64]"
_ODD = 0x9E3779B97F4A7C15

_EXPECTED = (
    "`dp_privacy_id` takes one id for each row: whole numbers, texts, bytes or UUIDs, as a list, "
    "an array or a column of any library."
)
SEVERAL_KINDS = (
    "The ids in `dp_privacy_id` are of several kinds, such as numbers and texts: whether 1 and '1' "
    "are one person is not known. Give all of them as one kind, for example as texts."
)
"""What is wrong with ids of several kinds, also where they are on several workers."""


@dataclass(frozen=True, eq=False, repr=False)
class Persons:
    """Who the rows belong to.

    Attributes:
        codes: Code of each row, 0 to the number of persons - 1.
        kind: "whole numbers", "texts", "bytes" or "UUIDs"; empty without rows.
        distinct: The ids in the order of their codes, as a list, or as an array of 64-bit numbers;
            UUIDs as whole numbers.
        column: Name of the column that they come from; None without. Public.
    """

    codes: Codes
    kind: str
    distinct: Distinct
    column: str | None = None

    @property
    def listed(self) -> list[Any]:
        """The ids in the order of their codes."""
        return self.distinct.tolist() if isinstance(self.distinct, np.ndarray) else self.distinct

    def hashes(self, key: bytes) -> npt.NDArray[np.uint64]:
        """A keyed hash of every person, in the order of the codes; shape (persons, 2)."""
        as_bytes = _AS_BYTES.get(self.kind, _digits)
        found = (hashlib.blake2b(as_bytes(v), digest_size=16, key=key) for v in self.listed)
        together = b"".join(h.digest() for h in found)
        return np.frombuffer(together, dtype="<u8").astype(np.uint64).reshape(-1, 2)

    def places(self, key: bytes, count: int) -> npt.NDArray[np.int64]:
        """One of some places for every person, in the order of the codes; the same for one id."""
        if self.kind in ("texts", "bytes"):
            return (self.hashes(key)[:, 0] % count).astype(np.int64)
        if isinstance(self.distinct, np.ndarray):
            low = self.distinct.astype(np.uint64)
        else:
            low = np.array([v % (1 << 64) for v in self.distinct], dtype=np.uint64)
        mixed = (low ^ np.uint64(int.from_bytes(key[:8], "little"))) * np.uint64(_ODD)
        mixed = (mixed ^ (mixed >> np.uint64(32))) * np.uint64(int.from_bytes(key[8:16], "big") | 1)
        return ((mixed >> np.uint64(32)) % np.uint64(count)).astype(np.int64)

    def some(self, rows: npt.NDArray[np.bool_] | npt.NDArray[np.int64]) -> Persons:
        """Those of some rows alone."""
        used, codes = np.unique(self.codes[rows], return_inverse=True)
        if isinstance(self.distinct, np.ndarray):
            distinct: Distinct = self.distinct[used]
        else:
            distinct = [self.distinct[code] for code in used.tolist()]
        kind = self.kind if len(used) else ""
        return Persons(codes.astype(np.uint32), kind, distinct, self.column)


def _digits(number: int) -> bytes:
    return b"%x" % number


_AS_BYTES: dict[str, Callable[[Any], bytes]] = {"texts": str.encode, "bytes": bytes}


def persons_of(ids: Any, rows: int | None = None, column: str | None = None) -> Persons:
    """Who the rows belong to. No message and no exception behind one shows an id."""
    found = ids if isinstance(ids, Persons) else None
    try:
        if found is None:
            found = Persons(*_read(ids), column or column_of(ids))
            if (part := part_of(ids)) is not None:
                mark(found, part)
    except (PrivacyError, MemoryError, Warning):
        raise
    except Exception:  # noqa: S110  # libraries quote what they cannot convert
        pass
    if found is None:  # outside of the handler, so that no exception behind this one shows an id
        raise RowDomainError(f"{_EXPECTED} What was given cannot be read as that.")
    if rows is not None and len(found.codes) != rows:
        raise PrivacyParameterError(
            "`dp_privacy_id` must have one id for each row of the data, in the order of the rows; "
            "it has another number of ids than there are rows."
        )
    return found


def joined(parts: Sequence[Persons]) -> Persons:
    """The persons of several parts of the rows, one part after the other."""
    kinds = {part.kind for part in parts} - {""}
    if len(kinds) > 1:
        raise RowDomainError(SEVERAL_KINDS)
    column = next((part.column for part in parts), None)
    parts = [part for part in parts if part.kind] or [Persons(np.empty(0, np.uint32), "", [])]
    distinct: Distinct
    place: npt.NDArray[Any]
    if all(isinstance(p.distinct, np.ndarray) and p.distinct.dtype == np.int64 for p in parts):
        distinct, place = np.unique(
            np.concatenate([p.distinct for p in parts]), return_inverse=True
        )
    else:
        table: defaultdict[Any, int] = defaultdict()
        place = _codes_in(table, [v for part in parts for v in part.listed])
        distinct = list(table)
    first = np.cumsum([0, *(len(part.distinct) for part in parts)])
    codes = [place[part.codes + at] for part, at in zip(parts, first, strict=False)]
    return Persons(np.concatenate(codes).astype(np.uint32), parts[0].kind, distinct, column)


def column_of(ids: Any) -> str | None:
    """Name of the column that ids come from, where they bring one along; public."""
    name = ids.column if isinstance(ids, Persons) else getattr(ids, "name", None)
    return name if isinstance(name, str) and name else None


def _read(ids: Any) -> tuple[Codes, str, Distinct]:
    """Codes, kind and distinct ids of any container."""
    for module, read in (("pandas", _pandas), ("polars", _polars), ("pyarrow", _arrow)):
        if type(ids).__module__.partition(".")[0] == module:
            return read(ids)
    if isinstance(ids, np.ndarray):
        return _array(ids)
    if not is_sequence(ids):  # whatever else becomes an array may give all ids one type
        _refuse_container(ids)
    return _objects(list(ids))


def _refuse_container(ids: Any) -> NoReturn:
    raise PrivacyParameterError(f"{_EXPECTED} It is a {type(ids).__name__}.")


def _array(ids: np.ndarray) -> tuple[Codes, str, Distinct]:
    if ids.ndim != 1:
        raise PrivacyParameterError(
            f"{_EXPECTED} It has {ids.ndim} dimensions. Ids of several columns: put them together "
            "into one text for each row."
        )
    if isinstance(ids, np.ma.MaskedArray):
        if np.ma.getmaskarray(ids).any():
            _missing()
        ids = ids.data
    kind = ids.dtype.kind
    if kind == "f":
        ids, kind = _whole(ids), "i"
    if kind in "iu":
        distinct, codes = np.unique(ids, return_inverse=True)
        return codes.astype(np.uint32), "whole numbers" if len(ids) else "", distinct
    if kind not in "OUSV" or ids.dtype.names is not None:
        _refuse_type(ids.dtype)
    return _objects(ids.tolist())


def _refuse_type(kind: Any) -> NoReturn:
    raise PrivacyParameterError(
        f"{_EXPECTED} It is of type {kind}. Turn the ids into texts or whole numbers row by row."
    )


def _missing() -> NoReturn:
    raise RowDomainError(
        "A row has no id in `dp_privacy_id`, so nobody knows whose influence is to be bounded. "
        "Give such rows an id each, or leave them out."
    )


def _whole(ids: np.ndarray) -> npt.NDArray[np.int64]:
    """Floats that are whole numbers, none of which can be another one that was rounded."""
    if np.isnan(ids).any():
        _missing()
    exact = 2.0 ** min(np.finfo(ids.dtype).nmant + 1, 53)
    if not ((np.abs(ids) < exact) & (np.floor(ids) == ids)).all():
        raise RowDomainError(
            "A row has an id in `dp_privacy_id` that is not a whole number, or one that may have "
            f"been rounded: {ids.dtype} holds whole numbers exactly below "
            f"2^{int(np.log2(exact))}. Read the ids as whole numbers or as texts."
        )
    return ids.astype(np.int64)


_KINDS: dict[type, str] = {
    int: "whole numbers",
    float: "floats",
    str: "texts",
    bytes: "bytes",
    UUID: "UUIDs",
    type(None): "missing",
}


def _kind_of(kind: type) -> str:
    """What ids of a type are; empty for what is none."""
    known = _KINDS.get(kind)
    if known is not None:
        return known
    if kind.__module__.partition(".")[0] == "pandas" and kind.__name__ in ("NAType", "NaTType"):
        return "missing"
    # Not of a class that derives from these: it may have an equality of its own.
    alike: dict[type, str] = {np.float64: "floats", np.str_: "texts", np.bytes_: "bytes"}
    whole = kind.__module__ == "numpy" and issubclass(kind, np.integer)
    return "whole numbers" if whole else alike.get(kind, "")


def _objects(ids: list[Any]) -> tuple[Codes, str, Distinct]:
    """Ids as Python has them, each told by its own type."""
    kinds = {_kind_of(kind) for kind in set(map(type, ids))}
    if "missing" in kinds:
        _missing()
    if "" in kinds:
        raise RowDomainError(
            "A row has an id in `dp_privacy_id` that is not a whole number, text, bytes or UUID. "
            "Turn such ids into texts row by row."
        )
    if "floats" in kinds:
        floats = np.array([v for v in ids if isinstance(v, float)])
        _whole(floats)
        ids = [int(v) if isinstance(v, float) else v for v in ids]
        kinds = kinds - {"floats"} | {"whole numbers"}
    if len(kinds) > 1:
        raise RowDomainError(SEVERAL_KINDS)
    [kind] = kinds or {""}
    if kind == "UUIDs":
        ids = [v.int for v in ids]
    if kind == "whole numbers":
        with suppress(OverflowError):  # beyond 64 bits
            return _array(np.array(ids, dtype=np.int64))
    table: defaultdict[Any, int] = defaultdict()
    codes = _codes_in(table, ids)
    if kind == "texts" and not all(map(is_unicode, table)):
        raise RowDomainError(
            "A row has an id in `dp_privacy_id` that is not valid Unicode: it contains half of a "
            "surrogate pair. Give ids that are no texts as bytes, or drop such rows."
        )
    return codes, kind, list(map(int, table) if kind == "whole numbers" else table)


def _codes_in(table: defaultdict[Any, int], ids: list[Any]) -> Codes:
    """Codes of ids in a table, where an id that is new gets the next one."""
    table.default_factory = table.__len__
    return np.fromiter(map(table.__getitem__, ids), dtype=np.uint32, count=len(ids))


def _composed(
    codes: np.ndarray, values: Callable[[np.ndarray], Any]
) -> tuple[Codes, str, Distinct]:
    """Codes of codes: those that occur, and what each of them stands for."""
    used, place = np.unique(codes, return_inverse=True)
    inner, kind, distinct = _read(values(used))
    return inner[place], kind, distinct


def _pandas(ids: Any) -> tuple[Codes, str, Distinct]:
    import pandas as pd

    if not isinstance(ids, (pd.Series, pd.Index, pd.api.extensions.ExtensionArray)):
        raise PrivacyParameterError(f"{_EXPECTED} It is a {type(ids).__name__}: pass one column.")
    if isinstance(ids, pd.MultiIndex):
        _refuse_container(ids)
    if isinstance(ids.dtype, pd.CategoricalDtype):
        values = ids.array if isinstance(ids, (pd.Series, pd.Index)) else ids
        if (values.codes < 0).any():
            _missing()
        return _composed(values.codes, values.categories.take)
    if isinstance(ids.dtype, np.dtype):
        return _array(ids.to_numpy())
    if isinstance(ids.dtype, pd.ArrowDtype) or getattr(ids.dtype, "storage", "") == "pyarrow":
        values = ids.array if isinstance(ids, (pd.Series, pd.Index)) else ids
        return _arrow(values.__arrow_array__())
    if pd.api.types.is_float_dtype(ids.dtype):
        if pd.isna(ids).any():
            _missing()
        return _array(ids.to_numpy(dtype=ids.dtype.numpy_dtype))
    return _objects(ids.tolist())


def _polars(ids: Any) -> tuple[Codes, str, Distinct]:
    import polars as pl

    if not isinstance(ids, pl.Series):
        _refuse_container(ids)
    if ids.dtype == pl.Object:
        return _objects(ids.to_list())
    return _arrow(ids.to_arrow())


def _arrow(ids: Any) -> tuple[Codes, str, Distinct]:
    import pyarrow as pa

    if not isinstance(ids, (pa.Array, pa.ChunkedArray)):
        _refuse_container(ids)
    kind = ids.type
    if pa.types.is_dictionary(kind):
        ids = ids.cast(kind.value_type)
        kind = ids.type
    if ids.null_count:
        _missing()
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        return _array(np.asarray(ids))
    if pa.types.is_null(kind):
        return _objects([])
    if str(kind) in ("string_view", "binary_view"):
        ids = ids.cast(pa.large_string() if str(kind) == "string_view" else pa.large_binary())
        kind = ids.type
    if not (_is_text(kind) or _is_bytes(kind)):
        if isinstance(kind, pa.BaseExtensionType):
            return _objects(ids.to_pylist())
        _refuse_type(kind)
    coded = ids.dictionary_encode()
    if isinstance(coded, pa.ChunkedArray):
        coded = coded.unify_dictionaries()
        if not coded.num_chunks:
            return _objects([])
        dictionary = coded.chunk(0).dictionary
        codes = np.concatenate([np.asarray(chunk.indices) for chunk in coded.chunks])
    else:
        dictionary, codes = coded.dictionary, np.asarray(coded.indices)
    return _composed(codes, lambda used: dictionary.take(pa.array(used)).to_pylist())


def _is_text(kind: Any) -> bool:
    import pyarrow as pa

    return pa.types.is_string(kind) or pa.types.is_large_string(kind)


def _is_bytes(kind: Any) -> bool:
    import pyarrow as pa

    t = pa.types
    return t.is_binary(kind) or t.is_large_binary(kind) or t.is_fixed_size_binary(kind)
