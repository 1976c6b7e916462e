"""Columns and tables as arrays of cells, whatever library they come from.

pandas, polars, Arrow, NumPy and lists become arrays here: of features, labels, weights, groups and
dates. The type of an array follows from the declared type of the column and never from its cells,
except that the names in a data frame's own dictionary become objects. Codes of such dictionaries
are never taken for anything.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import PrivacyParameterError, RowDomainError
from .cells import DATES, is_sequence, number_of, numbers_of, read_data

Codes = npt.NDArray[np.int64]
_TABLES = {"pandas": "DataFrame", "polars": "DataFrame", "pyarrow": "Table"}
_EXPECTED = (
    "a list or another sequence, a NumPy array, or a column or table of pandas, polars or Arrow"
)


def library_of(values: Any) -> str:
    """The library of a table or column: "pandas", "polars", "pyarrow", or else an empty text."""
    roots = (base.__module__.partition(".")[0] for base in type(values).__mro__)
    return next((root for root in roots if root in _TABLES and root in sys.modules), "")


def is_table(values: Any) -> bool:
    """Whether something is a table of named columns in memory."""
    library = library_of(values)
    return bool(library) and isinstance(values, getattr(sys.modules[library], _TABLES[library]))


def collected(values: Any) -> Any:
    """A polars LazyFrame as the table that it describes; others as they are."""
    if hasattr(values, "__dask_graph__"):
        raise PrivacyParameterError(
            f"A Dask {type(values).__name__} was given where rows in memory were expected. Call "
            "its compute() if they fit, or train with `xgboost.dask`."
        )
    if library_of(values) == "polars" and hasattr(values, "collect"):
        return read_data(values.collect)
    return values


def cells_of(values: Any, what: str) -> np.ndarray:
    """The cells of a column, or of a table of one kind, each as it is by itself."""
    values = collected(values)
    if library_of(values):
        return read_data(_table if hasattr(values, "columns") else _column, values)
    if isinstance(values, (np.ndarray, np.generic)):
        return read_data(_array, np.asanyarray(values))
    if is_sequence(values):
        return read_data(_listed, values, what)
    if hasattr(values, "__array__"):
        return read_data(_converted, values)
    raise PrivacyParameterError(
        f"The {what}s are in a {type(values).__name__}; {_EXPECTED} was expected. Turn it into one."
    )


def codes_in(values: Any, read: Callable[[np.ndarray], Codes], what: str) -> Codes:
    """The code of each cell of a column by a function of cells, which reads a listed name once."""
    return _column(values, read) if library_of(values) else read(cells_of(values, what))


def numbers(values: Any, what: str) -> npt.NDArray[Any]:
    """Cells as numbers, each by itself; missing ones are NaN."""
    array = cells_of(values, what)
    if what == "weight" and array.ndim == 2 and array.shape[1] != 1:
        raise RowDomainError("A row has another number of weights than one. Give each row one.")
    if array.dtype.kind in "mM":
        raise PrivacyParameterError(f"The {what}s are dates or durations. {DATES}")
    if array.dtype.kind in "biuf":
        # Whole numbers of 64 bits, and floats of more, count as 64-bit floats.
        return array if array.dtype.itemsize < 8 else array.astype(np.float64, copy=False)
    with suppress(ValueError):
        return numbers_of(array.ravel().tolist()).reshape(array.shape)
    # Outside of the handler, whose error quotes the cell.
    raise RowDomainError(
        f"A row has a {what} that is not a number: a text, a date, an object or a number beyond "
        "the range of floats. Turn it into a number row by row, or drop such rows."
    )


def _objects(cells: Sequence[Any]) -> np.ndarray:
    return np.fromiter(cells, dtype=object, count=len(cells))


def _listed(values: Sequence[Any], what: str) -> np.ndarray:
    """A list of cells, or of rows, each of which is a list or an array."""
    values = list(values)
    rows = [_row(value) for value in values]
    if all(row is None for row in rows):
        return _objects(values)
    if what == "feature" and any(row is None for row in rows):
        raise RowDomainError("A row of `X` is a bare cell. Give every row as a list of its cells.")
    # A label beside rows of labels is a row of one, which it is alone.
    nested = [[v] if row is None else row for row, v in zip(rows, values, strict=True)]
    if len(set(map(len, nested))) > 1:
        raise RowDomainError(
            f"A row has another number of {what}s than the rest, or a {what} that is a list. Give "
            "every row one number for each column."
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
            f"An array is of type {values.dtype.name}; numbers or texts were expected. Complex "
            "data not supported. Turn the cells into numbers or texts by a public rule."
        )
    array = np.asarray(values)
    if kind in "OUS":
        array = array.astype(object)
    if isinstance(values, np.ma.MaskedArray):  # whether any cell is masked decides nothing
        array = array.astype(np.float64) if kind in "biuf" else array.copy()
        missing = np.nan if kind in "biuf" else "NaT" if kind in "mM" else None
        array[np.ma.getmaskarray(values)] = missing
    return array


def _converted(values: Any) -> np.ndarray:
    """What only converts itself to an array, as numbers.

    Such a container may give all cells one type. One number then turns truth values into numbers,
    and one text turns numbers into texts: so numbers are floats, and texts and dates are refused.
    """
    array = np.asarray(values)
    if array.dtype.kind in "biuf":
        return array.astype(np.float64)
    cells = array.ravel().tolist() if array.dtype.kind == "O" else [""]
    if any(isinstance(cell, (str, np.datetime64, np.timedelta64)) for cell in cells):
        raise RowDomainError(
            f"A row of a {type(values).__name__} has a cell that is not a number. Give texts as "
            f"{_EXPECTED}. {DATES}"
        )
    return np.array([number_of(cell) for cell in cells], np.float64).reshape(array.shape)


def _table(values: Any) -> np.ndarray:
    """A table as an array: of floats where the types of all columns are numbers, or of objects."""
    if hasattr(values, "iloc"):
        columns = [values.iloc[:, i] for i in range(values.shape[1])]
    else:
        columns = values.get_columns() if hasattr(values, "get_columns") else values.columns
    arrays = [cells_of(column, "label") for column in columns]
    if any(array.dtype.kind in "mM" for array in arrays):
        raise PrivacyParameterError(f"A column contains dates or durations. {DATES}")
    numeric = all(array.dtype.kind in "biuf" for array in arrays)
    cells = np.empty((len(values), len(arrays)), dtype=np.float64 if numeric else object)
    for i, array in enumerate(arrays):
        cells[:, i] = array
    return cells


def _column(values: Any, read: Callable[[np.ndarray], np.ndarray] = np.asarray) -> np.ndarray:
    """What a function of single cells makes of a column; it reads each listed name once."""
    parts = []
    for cells, codes in _pieces(values):
        parts.append(read(cells) if codes is None else read(cells)[codes])
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


Piece = tuple[np.ndarray, "Codes | None"]
"""Cells; or a list of names that ends with None, and the place of each cell in it."""


def _pieces(values: Any) -> Iterator[Piece]:
    """A column of pandas, polars or Arrow, piece by piece."""
    library = library_of(values)
    if library == "pandas":
        import pandas as pd

        column = pd.Series(values)
        if isinstance(column.dtype, pd.CategoricalDtype):
            yield _objects([*column.cat.categories, None]), column.cat.codes.to_numpy()
        elif is_arrow(column):
            yield from _arrow(column.array.__arrow_array__())
        else:
            yield _pandas(column), None
    elif library == "polars":
        yield from _polars(values)
    else:
        yield from _arrow(values)


def is_arrow(column: Any) -> bool:
    """Whether a column of pandas keeps its cells in Arrow."""
    kind = getattr(column, "dtype", None)
    return hasattr(kind, "pyarrow_dtype") or str(getattr(kind, "storage", "")) == "pyarrow"


def _pandas(column: Any) -> np.ndarray:
    """A column of pandas that neither is a dictionary nor has Arrow behind it."""
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


def _polars(column: Any) -> Iterator[Piece]:
    import polars as pl

    if column.dtype == pl.Object:
        yield _objects(column.to_list()), None
    elif _is_wide(column.dtype):
        yield from _arrow(column.cast(pl.Float64).to_arrow())
    else:
        yield from _arrow(column.to_arrow())


def _is_wide(kind: Any) -> bool:
    """Whether a type of polars has numbers of 128 bits."""
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


def type_of(column: Any) -> str:
    """What a column contains by its type alone, which is public; no cell is read.

    "number", "decimal" (numbers beyond 64 bits), "complex", "date", "datetime", "time", "text",
    "names" (a dictionary), "object" (each cell says what it is), "other", or empty without a type.
    """
    library = library_of(column)
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
    texts = ("string", "large_string", "string_view")
    other = "text" if str(kind) in texts else "other"
    return next((name for test, name in tests if test(kind)), other)
