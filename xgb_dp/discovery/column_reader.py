"""The columns of a table as a discovery reads them: texts, numbers, and dates as numbers.

The names and kinds of the columns are declared, or are the types of a data frame, and public. Every
cell is read alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ..data.arrays import as_cells, describe_column_type, parts_of_dates
from ..data.cells import is_unicode, read_data, read_value, spellings
from ..data.frames import list_columns
from ..domain.columns import read_numbers as declared_numbers
from ..errors import PrivacyParameterError, RowDomainError

DATES = {"date": ("days", "month", "weekday"), "datetime": ("days", "month", "weekday", "hour")}
"""Parts of a date that become columns, by the kind of the column."""
KINDS = ("text", "number", *DATES)
_ONE_TEXT = (str, int, float, bool)
"""Types of cells whose texts are looked up once."""
_SEVERAL = "A column has a cell with several values. Give it one text or number for each row."


def column_kinds(data: Any, columns: Any) -> dict[str, str]:
    """The kind of each column to look at."""
    names = _names(data)
    if columns is None:
        columns = names
    if isinstance(columns, Mapping):
        kinds = dict(columns)
    elif isinstance(columns, (list, tuple)) and all(isinstance(n, str) for n in columns):
        if len(set(columns)) != len(columns):
            raise PrivacyParameterError("`columns` names a column twice. Name each column once.")
        kinds = {name: _kind_of_type(data, name) for name in columns}
    else:
        raise PrivacyParameterError(
            "`columns` must map names to kinds, such as {'age': 'number', 'sex': 'text'}, or be a "
            "list of names."
        )
    if not kinds:
        raise PrivacyParameterError("`columns` is empty. Name at least one column to look at.")
    for name, kind in kinds.items():
        if not isinstance(name, str) or names.count(name) != 1:
            raise PrivacyParameterError(
                f"`columns`: the data does not have exactly one column {name!r}. Check the name, "
                "and rename columns that share one."
            )
        if not is_unicode(name):
            raise PrivacyParameterError(
                f"`columns`: the name {name!a} is not valid Unicode. Rename the column."
            )
        if kind not in KINDS:
            raise PrivacyParameterError(
                f"`columns`: the kind of {name!r} must be one of {', '.join(KINDS)}."
            )
    return kinds


def _names(data: Any) -> list[Any]:
    if isinstance(data, Mapping):
        return list(data)
    if not hasattr(data, "__getitem__") or not (
        hasattr(data, "columns") or hasattr(data, "column_names")
    ):
        raise PrivacyParameterError(
            "`data` must be a data frame, or a mapping of names of columns to arrays; got a "
            f"{type(data).__name__}."
        )
    return list_columns(data)


def _kind_of_type(data: Any, name: Any) -> str:
    """The kind of a column by its type alone, which is public; no cell is read."""
    if _names(data).count(name) != 1:
        return ""
    kind = describe_column_type(data[name])
    if kind in ("", "object"):  # one missing cell makes truth values objects
        raise PrivacyParameterError(
            f"The type of column {name!r} does not say what the column contains. Give `columns` "
            "as a mapping, such as {'age': 'number', 'sex': 'text'}."
        )
    if kind == "decimal":
        return "number"
    return kind if kind in KINDS else "text"


def cells_by_name(data: Any, names: Sequence[str]) -> dict[str, np.ndarray]:
    """The cells of some columns, which all have the same number."""
    cells = {name: as_cells(data[name], "value") for name in names}
    if any(column.ndim != 1 for column in cells.values()):
        raise RowDomainError(_SEVERAL)
    if len(set(map(len, cells.values()))) > 1:
        raise PrivacyParameterError("The columns of `data` must have the same number of rows.")
    return cells


def read_strings(cells: Any, missing: Sequence[str]) -> tuple[npt.NDArray[np.int64], list[str]]:
    """Texts of a column by code; -1 for a missing cell."""
    code: dict[str, int] = {}
    known: dict[Any, int] = {}
    column = as_cells(cells, "value")
    out = np.empty(len(column), dtype=np.int64)
    readable = column.dtype.kind not in "mM" and column.ndim == 1
    for i, cell in enumerate(column.tolist() if readable else ()):
        kind = type(cell), cell  # 1, 1.0 and True are equal; "True" is the name of the last
        place = known.get(kind) if kind[0] in _ONE_TEXT else None
        if place is None:
            text = _text(cell)
            readable = readable and text is not None
            absent = not text or text in missing
            place = -1 if absent else code.setdefault(str(text), len(code))
            if kind[0] in _ONE_TEXT and cell == cell:
                known[kind] = place
        out[i] = place
    if not readable:
        raise RowDomainError(
            "A text column has a cell that is neither a text nor a number, such as a list or an "
            "object. Give it one text for each row."
        )
    return out, list(code)


def _text(cell: Any) -> str | None:
    """A cell as schema files name it, whole numbers by their digits; empty for a missing one.

    None for what is not a cell, or a number beyond the range of floats.
    """
    try:
        value = read_value(cell)
    except ValueError:
        return None
    if value is None:
        return ""
    if isinstance(value, float):
        return spellings(cell)[0]
    return value.encode("utf-8", "replace").decode().strip()  # what a file can hold


def read_numbers(cells: Any, kind: str, since: str, missing: Sequence[str]) -> npt.NDArray[Any]:
    """Numbers of a column as 32-bit floats; of a date its days."""
    column = as_cells(cells, "number")
    values: npt.NDArray[Any]
    if kind in DATES:
        values = read_data(parts_of_dates, column, ("days",), since, missing)["days"]
    else:
        values = declared_numbers(column, missing)
    if column.ndim != 1:
        raise RowDomainError(_SEVERAL)
    with np.errstate(over="ignore"):
        floats = np.asarray(values, dtype=np.float64).astype(np.float32)
    if np.isinf(floats).any():
        raise RowDomainError(
            "A row has an infinite number, or one beyond 32-bit floats. Numbers must be finite "
            "or missing. Drop or replace such cells row by row."
        )
    return floats
