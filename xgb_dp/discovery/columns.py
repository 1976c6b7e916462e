"""The columns of a table as a discovery reads them: texts, numbers, and dates as numbers.

Which columns there are and of what kind is declared, or is the type of a column of a data frame,
and public. Every cell is read by itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ..data.cells import numbers, read_data, without_missing
from ..data.dates import parts_of_dates
from ..errors import PrivacyParameterError, RowDomainError

__all__ = ["DATES", "KINDS", "cells_of", "kinds_of", "read_numbers", "read_texts"]

DATES = {"date": ("days", "month", "weekday"), "datetime": ("days", "month", "weekday", "hour")}
"""Parts of a date that become columns, by the kind of the column."""
KINDS = ("text", "number", *DATES)
_ONE_TEXT = (str, int, float, bool)
"""Types whose equal values have one text; Decimal("1.0") equals Decimal("1.00"), with two."""


def kinds_of(data: Any, columns: Any) -> dict[str, str]:
    """The kind of each column to look at.

    Args:
        data: Table; see :func:`xgb_dp.discover`.
        columns: Mapping of names to kinds, list of names, or None.

    Raises:
        PrivacyParameterError: No columns, one that is not there or is there twice, or an unknown
            kind.
    """
    names = _names(data)
    if columns is None:
        columns = names
    if isinstance(columns, Mapping):
        found = dict(columns)
    elif isinstance(columns, (list, tuple)) and all(isinstance(n, str) for n in columns):
        found = {name: _kind_of_type(data, name) for name in columns if name in names}
        found |= {name: None for name in columns if name not in names}
        if len(found) != len(columns):
            raise PrivacyParameterError("`columns` names a column twice. Name each column once.")
    else:
        raise PrivacyParameterError(
            "`columns` must map names to kinds, such as {'age': 'number', 'sex': 'text'}, or be a "
            "list of names."
        )
    if not found:
        raise PrivacyParameterError("`columns` is empty. Name at least one column to look at.")
    for name, kind in found.items():
        if not isinstance(name, str) or names.count(name) != 1:
            raise PrivacyParameterError(
                f"`columns`: the data does not have exactly one column {name!r}. Check the name, "
                "and rename columns that share one."
            )
        if kind not in KINDS:
            raise PrivacyParameterError(
                f"`columns`: the kind of {name!r} must be one of {', '.join(KINDS)}."
            )
    return found


def _names(data: Any) -> list[Any]:
    if isinstance(data, Mapping):
        return list(data)
    names = getattr(data, "columns", None)
    if names is None or not hasattr(data, "__getitem__"):
        raise PrivacyParameterError(
            "`data` must be a data frame, or a mapping of names of columns to arrays; got a "
            f"{type(data).__name__}."
        )
    return list(names)


def _kind_of_type(data: Any, name: Any) -> str:
    """The kind of a column by its type alone, which is public; no cell is read."""
    if _names(data).count(name) != 1:
        return ""
    kind = getattr(getattr(data[name], "dtype", None), "kind", None)
    if kind is None:
        raise PrivacyParameterError(
            f"The type of column {name!r} does not say what the column contains. Give `columns` "
            "as a mapping, such as {'age': 'number', 'sex': 'text'}."
        )
    if kind == "M":
        return "datetime"
    return "number" if kind in "biuf" else "text"


def cells_of(data: Any, names: Sequence[str]) -> dict[str, Any]:
    """The cells of some columns, which all have the same number.

    Raises:
        PrivacyParameterError: They have not.
    """
    found = {name: data[name] for name in names}
    lengths = {read_data(len, column) for column in found.values()}
    if len(lengths) > 1:
        raise PrivacyParameterError("The columns of `data` must have the same number of rows.")
    return found


def read_texts(cells: Any, missing: Sequence[str]) -> tuple[npt.NDArray[np.int64], list[str]]:
    """Texts of a column by code; -1 for a missing cell.

    Returns:
        Codes of the rows, and the texts by code. Which texts there are is private.
    """
    code: dict[str, int] = {}
    known: dict[Any, int] = {}

    def of(cell: Any) -> int:
        if cell is None or cell != cell:
            return -1
        text = _text(cell)
        return -1 if text in missing else code.setdefault(text, len(code))

    def read() -> npt.NDArray[np.int64]:
        column = without_missing(np.asarray(cells, dtype=object))
        if column.ndim != 1:
            raise RowDomainError(
                "A text column has a cell with several values. Give it one text for each row."
            )
        out = np.empty(len(column), dtype=np.int64)
        for i, cell in enumerate(column.tolist()):
            if type(cell) not in _ONE_TEXT:  # whichever row comes first must not name the others
                hash(cell)  # a list is no cell
                out[i] = of(cell)
                continue
            kind = (type(cell), cell)  # 1, 1.0 and True are equal
            if kind not in known:
                known[kind] = of(cell)
            out[i] = known[kind]
        return out

    codes = read_data(read)
    return codes, list(code)


def _text(cell: Any) -> str:
    """A cell as schema files name it: whole numbers by their digits."""
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    return str(cell).encode("utf-8", "replace").decode().strip()  # what a file can hold


def read_numbers(cells: Any, kind: str, since: str, missing: Sequence[str]) -> npt.NDArray[Any]:
    """Numbers of a column as 32-bit floats; of a date its days.

    Raises:
        RowDomainError: A cell is no number, or not finite; or no date.
    """
    if kind in DATES:
        values = read_data(parts_of_dates, cells, ("days",), since, missing)["days"]
    else:
        values = numbers(read_data(_with_nan, cells, missing), "feature")
        if np.ndim(values) != 1:
            raise RowDomainError(
                "A column of numbers has a cell with several values. Give it one number for each "
                "row."
            )
    with np.errstate(over="ignore"):
        found = np.asarray(values, dtype=np.float64).astype(np.float32)
    if np.isinf(found).any():
        raise RowDomainError(
            "A row has an infinite number, or one beyond 32-bit floats. Numbers must be finite "
            "or missing. Drop or replace such cells row by row."
        )
    return found


def _with_nan(cells: Any, missing: Sequence[str]) -> npt.NDArray[Any]:
    """The cells, with NaN for texts that stand for a missing one."""
    column = np.asarray(cells)
    if column.dtype.kind not in "OUS":
        return column
    column = without_missing(column)
    absent = np.isin(np.char.strip(column.astype(str)), list(missing))
    return np.where(absent, np.nan, column.astype(object))
