"""The one room that turns what callers hand in into cells, whatever contains it.

pandas, polars, Arrow, NumPy and lists become arrays of cells here: of features, labels, weights,
groups and dates. The type of an array follows from the declared type of the column and never from
its cells, except that the names in a data frame's own dictionary become objects. Codes of such
dictionaries are never taken for anything.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import PrivacyParameterError, RowDomainError
from .cells import DATES, Names, is_sequence, number_of, numbers_of, read_data

__all__ = ["cells_of", "codes_in", "collected", "kind_of", "library_of", "numbers"]

_TAKEN = (
    "a list or another sequence, a NumPy array, or a column or table of pandas, polars or Arrow"
)


def library_of(values: Any) -> str:
    """The library of a table or column: "pandas", "polars", "pyarrow", or else an empty text."""
    roots = (base.__module__.partition(".")[0] for base in type(values).__mro__)
    return next((root for root in roots if root in _TYPED and root in sys.modules), "")


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
    library = library_of(values)
    if library:
        return read_data(_TYPED[library], values)
    if isinstance(values, (np.ndarray, np.generic)):
        return read_data(_array, np.asanyarray(values))
    if is_sequence(values):
        return read_data(_listed, values, what)
    if hasattr(values, "__array__"):
        return read_data(_converted, values)
    raise PrivacyParameterError(
        f"The {what}s are in a {type(values).__name__}; {_TAKEN} was expected. Turn it into one."
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
        found: list[Any] = value.tolist()
        return found
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
            f"{_TAKEN}. {DATES}"
        )
    return np.array([number_of(cell) for cell in cells], np.float64).reshape(array.shape)


def _pandas(values: Any) -> np.ndarray:
    import pandas as pd

    if isinstance(values, pd.DataFrame):
        return _side_by_side([values.iloc[:, i] for i in range(values.shape[1])], len(values))
    column = pd.Series(values)
    kind = column.dtype
    if isinstance(kind, pd.CategoricalDtype):
        return _from_codes(column.cat.codes.to_numpy(), list(kind.categories))
    if (arrow := _backing(column)) is not None:
        return _arrow(arrow)
    if isinstance(kind, pd.StringDtype):
        return column.to_numpy(dtype=object, na_value=None)
    if isinstance(kind, pd.SparseDtype):
        return _array(column.array.to_dense())
    if isinstance(kind, pd.DatetimeTZDtype):
        return column.dt.tz_localize(None).to_numpy()
    if isinstance(kind, np.dtype):
        return _array(column.to_numpy())
    if pd.api.types.is_numeric_dtype(kind) and not pd.api.types.is_bool_dtype(kind):  # nullable
        return column.to_numpy(dtype=np.float64, na_value=np.nan)
    return column.astype(object).to_numpy()


def _backing(column: Any) -> Any:
    """The Arrow array behind a column of pandas or polars; None where there is none."""
    library = library_of(column)
    if library == "pandas":
        kind = getattr(column, "dtype", None)
        arrow = hasattr(kind, "pyarrow_dtype") or getattr(kind, "storage", "") == "pyarrow"
        return column.array.__arrow_array__() if arrow else None
    if library != "polars" or not hasattr(column, "dtype"):
        return column if library == "pyarrow" else None
    import polars as pl

    kind = column.dtype
    if kind == pl.Object:
        return None
    if kind.is_decimal() or kind in (pl.Int128, getattr(pl, "UInt128", pl.Int128)):
        column = column.cast(pl.Float64)
    elif getattr(kind, "time_zone", None) is not None:
        column = column.dt.replace_time_zone(None)
    return column.to_arrow()


def _polars(values: Any) -> np.ndarray:
    import polars as pl

    if isinstance(values, pl.DataFrame):
        return _side_by_side(values.get_columns(), values.height)
    arrow = _backing(values)
    return _objects(values.to_list()) if arrow is None else _arrow(arrow)


def _arrow(values: Any) -> np.ndarray:
    import pyarrow as pa

    if isinstance(values, (pa.Table, pa.RecordBatch)):
        return _side_by_side(list(values.columns), values.num_rows)
    found = [_chunk(chunk) for chunk in _chunks(values)]
    return found[0] if len(found) == 1 else np.concatenate(found)


def _chunks(values: Any) -> list[Any]:
    import pyarrow as pa

    if not isinstance(values, pa.ChunkedArray):
        return [values if isinstance(values, pa.Array) else pa.array(values)]
    return values.chunks or [pa.array([], values.type)]


def _chunk(values: Any) -> np.ndarray:
    import pyarrow as pa
    import pyarrow.compute as pc

    kind, types = values.type, pa.types
    if types.is_dictionary(kind):
        return _from_codes(*_dictionary(values))
    if types.is_decimal(kind) or types.is_integer(kind):
        return values.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    if types.is_timestamp(kind) and kind.tz is not None:
        values = pc.local_timestamp(values)
    if types.is_null(kind):
        return _objects([None] * len(values))
    plain = types.is_floating(kind) or types.is_string(kind) or types.is_large_string(kind)
    plain = plain or types.is_timestamp(kind) or types.is_date32(kind) or types.is_duration(kind)
    return values.to_numpy(zero_copy_only=False) if plain else _objects(values.to_pylist())


def _dictionary(values: Any) -> tuple[npt.NDArray[np.int64], list[Any]]:
    """Codes of an Arrow array, -1 for missing cells, and what they stand for."""
    import pyarrow as pa
    import pyarrow.compute as pc

    codes = pc.fill_null(values.indices.cast(pa.int64()), -1).to_numpy(zero_copy_only=False)
    return codes, values.dictionary.to_pylist()


def codes_in(values: Any, names: Names, what: str) -> npt.NDArray[np.int64]:
    """The code of each cell of a column among declared names; see :meth:`.cells.Names.codes`.

    Each name of a dictionary, or each distinct text of a typed column, is looked up once.
    """
    if library_of(values) == "pandas" and hasattr(values, "cat"):
        names_of_codes = _objects([*values.cat.categories, None])
        return names.codes(names_of_codes)[values.cat.codes.to_numpy()]
    arrow = _backing(values)
    if arrow is None:
        return names.codes(cells_of(values, what))
    found = []
    for chunk in _chunks(arrow):
        if str(chunk.type) in ("string", "large_string"):
            chunk = chunk.dictionary_encode()
        if hasattr(chunk, "dictionary"):
            codes, listed = _dictionary(chunk)
            found.append(names.codes(_objects([*listed, None]))[codes])
        else:
            found.append(names.codes(_chunk(chunk)))
    return np.concatenate(found)


def _from_codes(codes: npt.NDArray[Any], dictionary: Sequence[Any]) -> np.ndarray:
    """Cells of a dictionary by their names; missing where the code is below 0."""
    return _objects([*dictionary, None])[codes]


def _side_by_side(columns: Sequence[Any], rows: int) -> np.ndarray:
    """Columns as a table: of floats where the types of all of them are numbers, else of objects."""
    found = [cells_of(column, "label") for column in columns]
    if any(column.dtype.kind in "mM" for column in found):
        raise PrivacyParameterError(f"A column contains dates or durations. {DATES}")
    numeric = all(column.dtype.kind in "biuf" for column in found)
    out = np.empty((rows, len(found)), dtype=np.float64 if numeric else object)
    for i, column in enumerate(found):
        out[:, i] = column
    return out


_TYPED: dict[str, Callable[[Any], np.ndarray]] = {
    "pandas": _pandas,
    "polars": _polars,
    "pyarrow": _arrow,
}


def numbers(values: Any, what: str) -> npt.NDArray[Any]:
    """Cells as numbers, each by itself; missing ones are NaN."""
    array = cells_of(values, what)
    if what == "weight" and array.ndim == 2 and array.shape[1] != 1:
        raise RowDomainError("A row has another number of weights than one. Give each row one.")
    if array.dtype.kind in "mM":
        raise PrivacyParameterError(f"The {what}s are dates or durations. {DATES}")
    if array.dtype.kind in "biuf":
        return _rounded(array)
    found: npt.NDArray[np.float64] | None = None
    with suppress(ValueError):
        found = numbers_of(array.ravel().tolist())
    if found is None:  # outside of the handler, whose error quotes the cell
        raise RowDomainError(
            f"A row has a {what} that is not a number: a text, a date, an object or a number "
            "beyond the range of floats. Turn it into a number row by row, or drop such rows."
        )
    return found.reshape(array.shape)


def _rounded(array: np.ndarray) -> np.ndarray:
    """Whole numbers of 64 bits, and floats of more, as the 64-bit floats that they count as."""
    wide = array.dtype.itemsize >= 8 and array.dtype != np.float64
    return array.astype(np.float64) if wide else array


def kind_of(column: Any) -> str:
    """What a column contains by its type alone: "number", "text", "date" or "datetime".

    Types of columns are public; no cell is read. Columns of objects are taken for texts.
    """
    library = library_of(column)
    if library == "polars":
        return _kind_polars(column.dtype)
    if library == "pyarrow":
        return _kind_arrow(column.type)
    if library == "pandas" and hasattr(column.dtype, "pyarrow_dtype"):
        return _kind_arrow(column.dtype.pyarrow_dtype)
    kind = getattr(getattr(column, "dtype", None), "kind", None)
    if kind is None:
        return ""
    return {"M": "datetime", **dict.fromkeys("biuf", "number")}.get(kind, "text")


def _kind_polars(kind: Any) -> str:
    import polars as pl

    if kind.is_numeric() or kind == pl.Boolean:
        return "number"
    return {pl.Date: "date", pl.Datetime: "datetime"}.get(kind.base_type(), "text")


def _kind_arrow(kind: Any) -> str:
    from pyarrow import types

    tests = (
        (types.is_integer, "number"), (types.is_floating, "number"), (types.is_boolean, "number"),
        (types.is_decimal, "number"), (types.is_date, "date"), (types.is_timestamp, "datetime"),
    )  # fmt: skip
    return next((name for test, name in tests if test(kind)), "text")
