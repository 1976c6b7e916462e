"""Read the columns of a table for column discovery: strings, numbers, and dates as numbers.

The names and kinds of the columns are public: they are declared, or follow from the types of a data
frame. Every cell is read by itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ..data.arrays import as_cells, describe_column_type, split_dates
from ..data.cells import is_unicode, read_data, read_value, spellings
from ..data.frames import list_columns
from ..domain.columns import read_numbers as declared_numbers
from ..errors import PrivacyParameterError, RowDomainError

DATES = {"date": ("days", "month", "weekday"), "datetime": ("days", "month", "weekday", "hour")}
"""Parts of a date that become columns, by the kind of the column."""
KINDS = ("text", "number", *DATES)
_CACHED_TYPES = (str, int, float, bool)
"""Types of cells that are converted to a string only once per distinct value."""
_SEVERAL = "A column has a cell with several values. Pass one string or number per row."


def column_kinds(data: Any, columns: Any) -> dict[str, str]:
    """Return the kind of each column to examine."""
    names = names_of(data)
    columns = names if columns is None else columns
    if isinstance(columns, Mapping):
        kinds = dict(columns)
    elif isinstance(columns, (list, tuple)) and all(isinstance(n, str) for n in columns):
        if len(set(columns)) != len(columns):
            raise PrivacyParameterError("`columns` contains a name twice. Remove the duplicate.")
        kinds = {n: _kind_of_type(data[n], n) if names.count(n) == 1 else "" for n in columns}
    else:
        raise PrivacyParameterError(
            "`columns` must map names to kinds, such as {'age': 'number', 'sex': 'text'}, or be a "
            "list of names."
        )
    if not kinds:
        raise PrivacyParameterError("`columns` is empty. Name at least one column.")
    for name, kind in kinds.items():
        if not isinstance(name, str) or names.count(name) != 1:
            raise PrivacyParameterError(
                f"`columns`: the data does not have exactly one column {name!r}. Check the name, "
                "and rename duplicate columns."
            )
        if not is_unicode(name):
            raise PrivacyParameterError(
                f"`columns`: the name {name!a} is not valid Unicode. Rename the column."
            )
        if kind not in KINDS:
            raise PrivacyParameterError(
                f"`columns`: the kind of {name!r} must be {' or '.join(KINDS)}."
            )
    return kinds


def names_of(data: Any) -> list[Any]:
    """Return the column names of a data frame, or of a mapping from names to arrays."""
    if isinstance(data, Mapping):
        return list(data)
    if not hasattr(data, "__getitem__") or not (
        hasattr(data, "columns") or hasattr(data, "column_names")
    ):
        raise PrivacyParameterError(
            "`data` must be a data frame or a mapping from column names to arrays; got a "
            f"{type(data).__name__}."
        )
    return list_columns(data)


def _kind_of_type(column: Any, name: str) -> str:
    """Return the kind of a column from its public type alone, without reading a cell."""
    kind = describe_column_type(column)
    if kind in ("", "object"):  # a single missing cell turns a boolean column into objects
        raise PrivacyParameterError(
            f"The type of column {name!r} does not determine its kind. Pass `columns` "
            "as a mapping, such as {'age': 'number', 'sex': 'text'}."
        )
    if kind == "decimal":
        return "number"
    return kind if kind in KINDS else "text"


def read_columns(data: Any, names: Sequence[str]) -> dict[str, np.ndarray]:
    """Return the cells of some columns after checking that they have equal lengths."""
    cells = {name: as_cells(data[name], "value") for name in names}
    if any(column.ndim != 1 for column in cells.values()):
        raise RowDomainError(_SEVERAL)
    if len(set(map(len, cells.values()))) > 1:
        raise PrivacyParameterError("The columns of `data` must have the same number of rows.")
    return cells


def read_strings(cells: Any, missing: Sequence[str]) -> tuple[npt.NDArray[np.int64], list[str]]:
    """Return the code of each cell, -1 if missing, and the strings by code."""
    code: dict[str, int] = {}
    known: dict[Any, int] = {}
    column = as_cells(cells, "value")
    out = np.empty(len(column), dtype=np.int64)
    readable = column.dtype.kind not in "mM" and column.ndim == 1
    for i, cell in enumerate(column.tolist() if readable else ()):
        kind = type(cell), cell  # 1, 1.0 and True are equal but spelled differently
        place = known.get(kind) if kind[0] in _CACHED_TYPES else None
        if place is None:
            text = _text(cell)
            readable = readable and text is not None
            absent = not text or text in missing
            place = -1 if absent else code.setdefault(str(text), len(code))
            if kind[0] in _CACHED_TYPES and cell == cell:
                known[kind] = place
        out[i] = place
    if not readable:
        raise RowDomainError(
            "A text column has a cell that is neither a string nor a number, such as a list or an "
            "object. Pass one string per row."
        )
    return out, list(code)


def _text(cell: Any) -> str | None:
    """Return a cell as a schema file spells it; empty if it is missing.

    Returns None for an unsupported type or a number outside the floating-point range.
    """
    try:
        value = read_value(cell)
    except ValueError:
        return None
    if value is None:
        return ""
    if isinstance(value, float):
        return spellings(cell)[0]
    return value.encode("utf-8", "replace").decode().strip()  # a file can store only valid Unicode


def read_numbers(cells: Any, kind: str, since: str, missing: Sequence[str]) -> npt.NDArray[Any]:
    """Read a column as 32-bit floats; a date as its number of days."""
    column = as_cells(cells, "number")
    values: npt.NDArray[Any]
    if kind in DATES:
        values = read_data(split_dates, column, ("days",), since, missing)["days"]
    else:
        values = declared_numbers(column, missing)
    if column.ndim != 1:
        raise RowDomainError(_SEVERAL)
    with np.errstate(over="ignore"):
        floats = np.asarray(values, dtype=np.float64).astype(np.float32)
    if np.isinf(floats).any():
        raise RowDomainError(
            "A row has a number that is infinite or outside the range of 32-bit floats. Numbers "
            "must be finite or missing. Drop or replace such cells row by row."
        )
    return floats
