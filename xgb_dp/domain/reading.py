"""Columns read the way they are declared: no type, category or class is taken from them.

Every cell is read by itself. A cell outside its declaration raises, and that there is one is all
that the error says; see "Errors" in ``docs/guarantee.md``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
import numpy.typing as npt

from ..data.arrays import cells_of, is_arrow, is_table, type_of
from ..data.cells import number_of, numbers_of, read_data, value_of
from ..data.dates import EPOCH, parts_of_dates
from ..data.frames import columns_of
from ..errors import PrivacyParameterError, RowDomainError
from .declared import Column

Floats = npt.NDArray[np.float32]


def names_of(table: Any) -> list[Any]:
    """Names of the columns of a table in memory, or of a mapping of names to arrays."""
    if isinstance(table, Mapping):
        return list(table)
    if not is_table(table):
        raise PrivacyParameterError(
            "A schema is for a data frame, or a mapping of names of columns to arrays; got a "
            f"{type(table).__name__}."
        )
    return columns_of(table)


def features(cells: Any, columns: Mapping[str, Column], missing: Sequence[str]) -> dict[str, Any]:
    """Every feature in the form that XGBoost takes; one error for all that are outside.

    Args:
        cells: A data frame of any library, or a mapping of names to arrays.
        columns: What is declared of the columns to read.
        missing: Texts that stand for a missing cell.
    """
    import pandas as pd

    out: dict[str, Any] = {}
    errors: dict[str, list[str]] = {}
    for name, column in columns.items():
        try:
            if column.date is not None:
                since = column.since or EPOCH
                parts = parts_of_dates(cells[name], column.date, since, missing)
                out |= {f"{name}_{part}": v.astype(np.float32) for part, v in parts.items()}
            elif column.categories is None:
                out[name] = _finite(numbers(cells[name], missing))
            else:
                found = codes(cells[name], column.categories, missing, column.other)
                out[name] = pd.Categorical.from_codes(found, list(column.categories))
        except RowDomainError as error:
            errors.setdefault(str(error), []).append(name)
    if errors:
        raise RowDomainError(
            " ".join(f"{', '.join(map(repr, names))}: {e}" for e, names in errors.items())
        )
    return out


def numbers(cells: Any, missing: Sequence[str]) -> Floats:
    """Numbers of a column as 32-bit floats."""
    values: npt.NDArray[Any] | None = None
    with suppress(ValueError):
        if is_arrow(cells) and type_of(cells) == "text":
            values = _of_texts(cells.array.__arrow_array__(), missing)
        else:
            array = read_data(cells_of, cells, "number")
            if array.dtype.kind in "biuf":
                values = array
            elif array.dtype.kind == "O":
                values = _of_cells(array.tolist(), missing)
    if values is None:
        raise RowDomainError(
            "a row holds something that is not a number. If the column holds categories, declare "
            "them (`--categories COLUMN=a,b,c`, or in a schema file); if it is not a feature, such "
            "as a key, leave it out (`--drop COLUMN`, or no line for it in the schema file); if "
            "such texts stand for missing cells, list them under `missing` in a schema file."
        )
    with np.errstate(over="ignore"):
        return values.astype(np.float64).astype(np.float32)


def _of_cells(cells: Sequence[Any], missing: Sequence[str]) -> npt.NDArray[np.float64]:
    absent = frozenset(missing)
    return numbers_of(
        ["nan" if isinstance(cell, str) and cell.strip() in absent else cell for cell in cells]
    )


# Texts that Arrow and Python read as the same number, the nearest to what is written.
_DIGITS = r"^-?[0-9]{1,40}(\.[0-9]{0,40})?([eE][+-]?[0-9]{1,2})?$"


def _of_texts(texts: Any, missing: Sequence[str]) -> npt.NDArray[np.float64]:
    """Numbers of texts; what is not written in digits is read one by one."""
    import pyarrow as pa
    import pyarrow.compute as pc

    absent = pc.is_in(texts, pa.array(missing, texts.type))
    plain = pc.and_not(pc.match_substring_regex(texts, _DIGITS), absent).fill_null(False)
    kept = pc.if_else(plain, texts, pa.scalar(None, texts.type))
    values = np.array(kept.cast(pa.float64()).to_numpy(), dtype=np.float64)
    others = np.flatnonzero(~plain.to_numpy().astype(bool))
    if len(others):
        values[others] = _of_cells(texts.take(pa.array(others)).to_pylist(), missing)
    return values


def _finite(values: Floats) -> Floats:
    if np.isinf(values).any():
        raise RowDomainError(
            "a row holds an infinite number, or one beyond 32-bit floats. Features are finite or "
            "missing. Drop or replace such cells by a rule that looks at one row at a time."
        )
    return values


def _number(text: str) -> float | None:
    with suppress(ValueError):
        return number_of(text)
    return None


def codes(
    cells: Any, declared: Sequence[str], missing: Sequence[str], other: str
) -> npt.NDArray[np.int64]:
    """Code of each cell, -1 for missing; numbers match as numbers, so that 1.0 is 1."""
    code: dict[str, int] = {text: i for i, text in enumerate(declared)}
    values = [(_number(text), i) for i, text in enumerate(declared)]
    by_value = {value: i for value, i in reversed(values) if value is not None}
    lowest = {"error": -2, "missing": -1}.get(other, code.get(other, -2))

    def of(cell: Any) -> int:
        try:
            value = value_of(cell)
        except ValueError:
            return lowest
        if value is None:
            return -1
        if isinstance(value, str):
            text = value.strip()
            if text in code or text in missing:
                return code.get(text, -1)
            number = _number(text)
            return lowest if number is None else by_value.get(number, lowest)
        # Only the value of a number counts: one missing cell makes 1 a 1.0 in whole columns.
        truth = isinstance(cell, (bool, np.bool_))
        names = [str(bool(value)), str(bool(value)).lower()] if truth else []
        names.append(str(int(value)) if value.is_integer() else str(value))
        exact = next((code[name] for name in names if name in code), None)
        return by_value.get(value, lowest) if exact is None else exact

    array = read_data(cells_of, cells, "category")
    listed = list(array) if array.dtype.kind in "mM" else array.tolist()
    of_texts = {text: of(text) for text in {cell for cell in listed if type(cell) is str}}
    found = np.array([of_texts[c] if type(c) is str else of(c) for c in listed], dtype=np.int64)
    if (found == -2).any():
        raise RowDomainError(
            "a row holds something that is not declared. Declare all that may occur, or say in a "
            "schema file what others are (`other: missing` or `other: NAME`)."
        )
    return found
