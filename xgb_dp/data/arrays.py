"""Convert columns and tables of any supported library to arrays of cells.

Features, labels, weights, groups and dates from pandas, polars, Arrow, NumPy or lists become
arrays. The array type depends only on the declared type of the column, never on its cells: a type
inferred from the cells would depend on every row. The category names of a dictionary column become
an object array; the integer codes that the library assigned to them are never part of the result.

Dates become numbers by a public rule that reads one cell at a time. A sparse matrix must store each
cell at most once and only in existing columns.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from datetime import date, datetime
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import PrivacyParameterError, RowDomainError
from .cells import (
    DATES,
    is_sequence,
    read_cell_numbers,
    read_data,
    read_number,
    read_value,
    spellings,
)

Codes = npt.NDArray[np.int64]
_TABLES = {"pandas": "DataFrame", "polars": "DataFrame", "pyarrow": "Table"}
_EXPECTED = (
    "a list or another sequence, a NumPy array, or a column or table of pandas, polars or Arrow"
)


def find_library(values: Any) -> str:
    """Return "pandas", "polars" or "pyarrow" for a table or column, otherwise an empty string."""
    roots = (base.__module__.partition(".")[0] for base in type(values).__mro__)
    return next((root for root in roots if root in _TABLES and root in sys.modules), "")


def is_table(values: Any) -> bool:
    """Return whether `values` is an in-memory table with named columns."""
    library = find_library(values)
    return bool(library) and isinstance(values, getattr(sys.modules[library], _TABLES[library]))


def collect_table(values: Any) -> Any:
    """Collect a polars LazyFrame; return other containers unchanged."""
    if hasattr(values, "__dask_graph__"):
        raise PrivacyParameterError(
            f"Expected rows in memory, got a Dask {type(values).__name__}. Call its compute() "
            "method if the rows fit in memory, or train with `xgboost.dask`."
        )
    if find_library(values) == "polars" and hasattr(values, "collect"):
        return read_data(values.collect)
    return values


def as_cells(values: Any, what: str) -> np.ndarray:
    """Return the cells of a column or of a homogeneous table; each cell is read separately."""
    values = collect_table(values)
    if find_library(values):
        return read_data(_table if hasattr(values, "columns") else _column, values)
    if isinstance(values, (np.ndarray, np.generic)):
        return read_data(_array, np.asanyarray(values))
    if is_sequence(values):
        return read_data(_listed, values, what)
    if hasattr(values, "__array__"):
        return read_data(_converted, values)
    raise PrivacyParameterError(
        f"The {what}s are in a {type(values).__name__}; expected {_EXPECTED}. Convert them first."
    )


def encode(values: Any, read: Callable[[np.ndarray], Codes], what: str) -> Codes:
    """Encode each cell of a column with `read`, which sees each distinct dictionary name once."""
    return _column(values, read) if find_library(values) else read(as_cells(values, what))


def as_numbers(values: Any, what: str) -> npt.NDArray[Any]:
    """Convert each cell to a number, independently of the others; missing cells become NaN."""
    array = as_cells(values, what)
    if what == "weight" and array.ndim == 2 and array.shape[1] != 1:
        raise RowDomainError("A row does not have exactly one weight. Pass one weight per row.")
    if array.dtype.kind in "mM":
        raise PrivacyParameterError(f"The {what}s are dates or durations. {DATES}")
    if array.dtype.kind in "biuf":
        # 64-bit integers and extended-precision floats are read as 64-bit floats.
        return array if array.dtype.itemsize < 8 else array.astype(np.float64, copy=False)
    with suppress(ValueError):
        return read_cell_numbers(array.ravel().tolist()).reshape(array.shape)
    # Raised outside the handler: the original error quotes the cell.
    raise RowDomainError(
        f"A row has a {what} that is not a number: a string, a date, an object or a number outside "
        "the floating-point range. Convert it to a number row by row, or drop such rows."
    )


def _objects(cells: Sequence[Any]) -> np.ndarray:
    return np.fromiter(cells, dtype=object, count=len(cells))


def _listed(values: Sequence[Any], what: str) -> np.ndarray:
    """Convert a list of cells, or a list of rows that are lists or arrays."""
    values = list(values)
    rows = [_row(value) for value in values]
    if all(row is None for row in rows):
        return _objects(values)
    if what == "feature" and any(row is None for row in rows):
        raise RowDomainError("A row of `X` is a scalar. Pass every row as a list of its cells.")
    # A scalar label among rows of labels is read as a row with one label, as it would be alone.
    nested = [[v] if row is None else row for row, v in zip(rows, values, strict=True)]
    if len(set(map(len, nested))) > 1:
        raise RowDomainError(
            f"A row has a different number of {what}s from the other rows, or a {what} that is a "
            "list. Pass one number per column in every row."
        )
    flat = list(chain.from_iterable(nested))
    return _objects(flat).reshape(len(nested), -1 if flat else 0)


def _row(value: Any) -> Sequence[Any] | None:
    if is_sequence(value):
        return list(value)
    if isinstance(value, np.ndarray) and value.ndim == 1 and value.dtype.kind in "biufOU":
        return list(value.tolist())
    return None


def _array(values: np.ndarray) -> np.ndarray:
    kind = values.dtype.kind
    if kind not in "biufmMOUS":
        raise PrivacyParameterError(
            f"Expected an array of numbers or strings, got dtype {values.dtype.name}. Complex "
            "data not supported. Convert the cells to numbers or strings by a public rule."
        )
    array = np.asarray(values)
    if kind in "OUS":
        array = array.astype(object)
    if isinstance(values, np.ma.MaskedArray):  # the dtype must not depend on whether any is masked
        array = array.astype(np.float64) if kind in "biuf" else array.copy()
        missing = np.nan if kind in "biuf" else "NaT" if kind in "mM" else None
        array[np.ma.getmaskarray(values)] = missing
    return array


def _converted(values: Any) -> np.ndarray:
    """Convert an object that is known only by its ``__array__`` method to an array of numbers.

    Such a container may convert all of its cells to one type: a single number turns booleans into
    numbers, and a single string turns numbers into strings. To keep each row independent of the
    others, numbers are read as floats, and strings and dates are refused.
    """
    array = np.asarray(values)
    if array.dtype.kind in "biuf":
        return array.astype(np.float64)
    cells = array.ravel().tolist() if array.dtype.kind == "O" else [""]
    if any(isinstance(cell, (str, np.datetime64, np.timedelta64)) for cell in cells):
        raise RowDomainError(
            f"A row of a {type(values).__name__} has a cell that is not a number. Pass strings "
            f"in {_EXPECTED}. {DATES}"
        )
    return np.array([read_number(cell) for cell in cells], np.float64).reshape(array.shape)


def _table(values: Any) -> np.ndarray:
    """Convert a table to a float array if every column is numeric, otherwise to an object array."""
    if hasattr(values, "iloc"):
        columns = [values.iloc[:, i] for i in range(values.shape[1])]
    else:
        columns = values.get_columns() if hasattr(values, "get_columns") else values.columns
    arrays = [as_cells(column, "label") for column in columns]
    if any(array.dtype.kind in "mM" for array in arrays):
        raise PrivacyParameterError(f"A column contains dates or durations. {DATES}")
    numeric = all(array.dtype.kind in "biuf" for array in arrays)
    cells = np.empty((len(values), len(arrays)), dtype=np.float64 if numeric else object)
    for i, array in enumerate(arrays):
        cells[:, i] = array
    return cells


def _column(values: Any, read: Callable[[np.ndarray], np.ndarray] = np.asarray) -> np.ndarray:
    """Apply a per-cell function to a column, reading each distinct dictionary name once."""
    parts = []
    for cells, codes in _pieces(values):
        parts.append(read(cells) if codes is None else read(cells)[codes])
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


Piece = tuple[np.ndarray, "Codes | None"]
"""Cells and None; or, for a dictionary, its names followed by None, and the index of each cell."""


def _pieces(values: Any) -> Iterator[Piece]:
    """Yield the pieces of a pandas, polars or Arrow column."""
    library = find_library(values)
    if library == "pandas":
        import pandas as pd

        column = values if isinstance(values, pd.Series) else pd.Series(values)
        if isinstance(column.dtype, pd.CategoricalDtype):
            yield _objects([*column.cat.categories, None]), column.cat.codes.to_numpy()
        elif is_arrow(column):
            yield from _arrow(column.array.__arrow_array__())
        else:
            yield _pandas(column), None
    elif library == "polars":
        import polars as pl

        if values.dtype == pl.Object:
            yield _objects(values.to_list()), None
        else:
            wide = _is_wide(values.dtype)
            yield from _arrow((values.cast(pl.Float64) if wide else values).to_arrow())
    else:
        yield from _arrow(values)


def is_arrow(column: Any) -> bool:
    """Return whether a pandas column is stored in Arrow."""
    kind = getattr(column, "dtype", None)
    return hasattr(kind, "pyarrow_dtype") or str(getattr(kind, "storage", "")) == "pyarrow"


def _pandas(column: Any) -> np.ndarray:
    """Return the cells of a pandas column that is neither categorical nor stored in Arrow."""
    import pandas as pd

    kind = column.dtype
    if isinstance(kind, pd.SparseDtype):
        return _array(column.array.to_dense())
    if isinstance(kind, pd.DatetimeTZDtype):
        return np.asarray(column.dt.tz_localize(None).to_numpy())
    if isinstance(kind, np.dtype):
        return _array(column.to_numpy())
    if pd.api.types.is_numeric_dtype(kind) and not pd.api.types.is_bool_dtype(kind):  # nullable
        return np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan))
    return np.asarray(column.astype(object).to_numpy())


def _is_wide(kind: Any) -> bool:
    """Return whether a polars type is 128 bits wide."""
    return bool(kind.is_decimal()) or str(kind) in ("Int128", "UInt128")


def _arrow(values: Any) -> Iterator[Piece]:
    import pyarrow as pa

    chunks = values.chunks if isinstance(values, pa.ChunkedArray) else [values]
    for chunk in chunks or [pa.array([], values.type)]:
        yield _chunk(chunk if isinstance(chunk, pa.Array) else pa.array(chunk))


def _chunk(values: Any) -> Piece:
    import pyarrow as pa
    import pyarrow.compute as pc

    types = pa.types
    if types.is_string(values.type) or types.is_large_string(values.type):
        values = values.dictionary_encode()
    kind = values.type
    if types.is_dictionary(kind):
        codes = pc.fill_null(values.indices.cast(pa.int64()), -1)
        names = _objects([*values.dictionary.to_pylist(), None])
        return names, codes.to_numpy(zero_copy_only=False)
    if types.is_decimal(kind) or types.is_integer(kind):
        values = values.cast(pa.float64(), safe=False)
    elif types.is_timestamp(kind) and kind.tz is not None:
        values = pc.local_timestamp(values)
    plain = (types.is_floating, types.is_timestamp, types.is_date32, types.is_duration)
    if any(test(values.type) for test in plain):
        return values.to_numpy(zero_copy_only=False), None
    return _objects(values.to_pylist()), None


def describe_column_type(column: Any) -> str:
    """Describe the contents of a column from its public type, without reading a cell.

    Returns:
        "number", "decimal" (more than 64 bits), "complex", "date", "datetime", "time", "text",
        "names" (a dictionary), "object" (the type differs by cell), "other", or an empty string if
        the column has no type.
    """
    library = find_library(column)
    kind: Any = getattr(column, "dtype", None)
    if library == "polars":
        if _is_wide(kind) or str(kind) == "Object":
            return "object" if str(kind) == "Object" else "decimal"
        return _arrow_type(column.clear().to_arrow().type)
    if library == "pyarrow":
        return _arrow_type(column.type)
    if hasattr(kind, "pyarrow_dtype"):
        return _arrow_type(kind.pyarrow_dtype)
    name = type(kind).__name__
    if library == "pandas" and name in ("CategoricalDtype", "StringDtype"):
        return "names" if name == "CategoricalDtype" else "text"
    if kind == np.dtype(object):
        return "object"
    letter = getattr(kind, "kind", "")
    return _TYPES.get(letter, "other") if letter else ""


_TYPES = {
    **dict.fromkeys("biuf", "number"),
    **dict.fromkeys("US", "text"),
    "M": "datetime",
    "m": "time",
    "c": "complex",
}


def _arrow_type(kind: Any) -> str:
    from pyarrow import types

    tests = (
        (types.is_integer, "number"), (types.is_floating, "number"), (types.is_boolean, "number"),
        (types.is_decimal, "decimal"), (types.is_null, "object"), (types.is_dictionary, "names"),
        (types.is_date, "date"), (types.is_timestamp, "datetime"), (types.is_temporal, "time"),
    )  # fmt: skip
    strings = ("string", "large_string", "string_view")
    other = "text" if str(kind) in strings else "other"
    return next((name for test, name in tests if test(kind)), other)


_ILL_FORMED = (
    "A row of the sparse matrix is malformed: `indptr`, `indices` and `data` are inconsistent. "
    "Rebuild the matrix from its cells."
)

Integers = npt.NDArray[np.integer[Any]]


def is_sparse(table: Any) -> bool:
    """Return whether `table` is a SciPy sparse matrix or array."""
    scipy = sys.modules.get("scipy.sparse")
    return scipy is not None and bool(scipy.issparse(table))


def check_sparse(table: Any) -> None:
    """Refuse a SciPy sparse matrix if the value of a row could depend on other rows."""
    if not is_sparse(table) or len(table.shape) != 2:
        return
    if table.format == "bsr":
        raise PrivacyParameterError(
            "A sparse matrix in BSR format stores zeros that fill up a block, so whether a cell is "
            "0 or missing depends on other rows. Convert it to CSR: matrix.tocsr()."
        )
    if table.format == "dia":  # SciPy rejects repeated offsets and ignores entries out of range
        return
    lines, places = _entries(table)
    n_lines, n_places = table.shape[::-1] if table.format == "csc" else table.shape
    inside = (lines >= 0) & (lines < n_lines) & (places >= 0) & (places < n_places)
    if not inside.all():
        raise RowDomainError(
            "A row has an entry in a column outside the matrix, or an entry lies outside all rows. "
            "Set the shape of the matrix to its number of columns, and drop such rows."
        )
    if _is_rising(lines, places):
        return
    order = np.lexsort((places, lines))
    if not _is_rising(lines[order], places[order]):
        raise RowDomainError(
            "A row has two entries in one column. Store every cell of a sparse matrix once, and "
            "drop or fix such rows one by one."
        )


def _is_rising(lines: Integers, places: Integers) -> bool:
    """Return whether the entries are strictly increasing by line, then by place."""
    same_line = lines[1:] == lines[:-1]
    behind = (lines[1:] > lines[:-1]) | (same_line & (places[1:] > places[:-1]))
    return bool(behind.all())


def _entries(table: Any) -> tuple[Integers, Integers]:
    """Return the line of each entry (its row, or its column in CSC) and its place in the line."""
    if table.format == "dok":
        keys = np.array(list(table.keys()), dtype=np.int64).reshape(-1, 2)
        return keys[:, 0], keys[:, 1]
    if table.format == "coo":
        if not len(table.row) == len(table.col) == len(table.data):
            raise RowDomainError(_ILL_FORMED)
        return np.asarray(table.row), np.asarray(table.col)
    if table.format == "lil":
        rows = [np.asarray(row, dtype=np.int64) for row in table.rows]
        lengths = np.array([len(row) for row in rows], dtype=np.int64)
        places = np.concatenate([*rows, np.empty(0, dtype=np.int64)])
    else:
        indptr = np.asarray(table.indptr).astype(np.int64)
        lengths, places = np.diff(indptr), np.asarray(table.indices)
        n_lines = table.shape[1] if table.format == "csc" else table.shape[0]
        fits = len(indptr) == n_lines + 1 and len(places) == len(table.data)
        if not fits or indptr[0] != 0 or (lengths < 0).any() or indptr[-1] > len(places):
            raise RowDomainError(_ILL_FORMED)
        places = places[: indptr[-1]]
    kind = np.int32 if len(lengths) < 1 << 31 else np.int64
    return np.repeat(np.arange(len(lengths), dtype=kind), lengths), places


EPOCH = "1970-01-01"
"""Default origin of the "days" part of a date."""
PARTS = ("days", "month", "weekday", "hour")
"""Days since a declared day; month 1 to 12; weekday 0 (Monday) to 6; hour 0 to 23."""
_TEXT = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)"
    r"(?:[T ](\d\d):(\d\d)(?::(\d\d)(?:[.,]\d+)?)?\s?(?:Z|[+-]\d\d(?::?\d\d)?)?)?"
)
_NO_DATE = (
    "a row has a cell that is not a date. Write dates in ISO 8601 form, such as 2024-02-29 or "
    "2024-02-29T13:45; list the strings that mark missing cells under `missing` in a schema file."
)


def split_dates(
    cells: Any, parts: Sequence[str], since: str = EPOCH, missing: Sequence[str] = ()
) -> dict[str, npt.NDArray[np.float64]]:
    """Convert dates to one numeric column per part; missing dates become NaN."""
    seconds = _seconds(cells, missing)
    absent = np.isnat(seconds)
    days = seconds.astype("datetime64[D]")
    number = days.astype(np.int64)  # since 1970-01-01, a Thursday
    months = seconds.astype("datetime64[M]").astype(np.int64)
    first = np.datetime64(since, "D").astype(np.int64)
    values = {
        "days": number - first,
        "month": months % 12 + 1,
        "weekday": (number + 3) % 7,
        "hour": (seconds - days).astype("timedelta64[h]").astype(np.int64),
    }
    return {part: np.where(absent, np.nan, values[part].astype(np.float64)) for part in parts}


def _seconds(cells: Any, missing: Sequence[str]) -> npt.NDArray[np.datetime64]:
    """Return the written date and time of each cell; the time zone is ignored."""
    array = as_cells(cells, "date")
    if array.ndim != 1:
        raise RowDomainError(_NO_DATE)
    if array.dtype.kind == "M":
        return array.astype("datetime64[s]")
    cells = list(array) if array.dtype.kind == "m" else array.tolist()
    # Each distinct string is parsed once. Other cells may be equal and yet be different times.
    known = {cell: _second(cell, missing) for cell in {c for c in cells if type(c) is str}}
    seconds = [known[c] if type(c) is str else _second(c, missing) for c in cells]
    return np.array(seconds, dtype="datetime64[s]")


def _second(cell: Any, missing: Sequence[str]) -> np.datetime64:
    if type(cell) is np.datetime64:
        return cell.astype("datetime64[s]")
    text: Any = None
    with suppress(ValueError):
        text = read_value(cell)
        if text is None or not {*missing, "NaT"}.isdisjoint(spellings(cell)):
            return np.datetime64("NaT", "s")
    if isinstance(cell, date):  # includes pandas.Timestamp
        text = cell.isoformat(sep=" ") if isinstance(cell, datetime) else cell.isoformat()
    match = _TEXT.fullmatch(text.strip()) if isinstance(text, str) else None
    if match is not None:
        clock = ":".join(part or "00" for part in match.groups()[3:])
        with suppress(ValueError):
            return np.datetime64(f"{match[1]}-{match[2]}-{match[3]}T{clock}", "s")
    raise RowDomainError(_NO_DATE)
