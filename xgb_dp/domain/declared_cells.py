"""Columns read the way they are declared: no type, category or class is taken from them.

Every cell is read by itself. A cell outside its declaration raises, and that there is one is all
that the error says; see "Errors" in ``docs/guarantee.md``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
import numpy.typing as npt

from ..data.arrays import cells_of, codes_in, is_arrow, is_table, library_of, type_of
from ..data.cells import ABSENT, Names, numbers_among, numbers_of, read_data
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


def features(
    pieces: Iterable[Any], columns: Mapping[str, Column], missing: Sequence[str]
) -> dict[str, Any]:
    """Every feature in the form that XGBoost takes; one error for all that are outside.

    Args:
        pieces: The rows, as data frames of any library, or mappings of names to arrays.
        columns: What is declared of the columns to read.
        missing: Texts that stand for a missing cell.
    """
    import pandas as pd

    read: dict[tuple[str, str], _Cells] = {}
    errors: dict[str, set[str]] = {}
    for cells in pieces:
        for name, column in columns.items():
            try:
                for feature, values in _feature(name, column, cells[name], missing).items():
                    if not errors:
                        read.setdefault((name, feature), _Cells()).add(values)
            except RowDomainError as error:
                errors.setdefault(name, set()).add(str(error))
                read.clear()
    if errors:  # of one column one, whatever lies in which piece
        said: dict[str, list[str]] = {}
        for name in (name for name in columns if name in errors):
            said.setdefault(max(errors[name]), []).append(name)
        raise RowDomainError(" ".join(f"{', '.join(map(repr, n))}: {e}" for e, n in said.items()))
    out: dict[str, Any] = {}
    for (name, feature), cells in read.items():
        names = columns[name].names
        array = cells.all()
        out[feature] = array if names is None else pd.Categorical.from_codes(array, list(names))
    return out


def _feature(name: str, column: Column, cells: Any, missing: Sequence[str]) -> dict[str, Any]:
    """What a column becomes: numbers, or codes of its categories."""
    if column.date is not None:
        parts = parts_of_dates(cells, column.date, column.since or EPOCH, missing)
        return {f"{name}_{part}": values.astype(np.float32) for part, values in parts.items()}
    if column.categories is None:
        return {name: _finite(numbers(cells, missing))}
    return {name: codes(cells, column.categories, missing, column.other).astype(np.int32)}


class _Cells:
    """One feature, whose array grows in its place: memory never holds it twice."""

    def __init__(self) -> None:
        self._array: npt.NDArray[Any] | None = None
        self._rows = 0

    def add(self, values: npt.NDArray[Any]) -> None:
        start, self._rows = self._rows, self._rows + len(values)
        if self._array is None:
            self._array = values
            return
        if self._rows > len(self._array):
            self._array.resize(self._rows * 9 // 8, refcheck=False)
        self._array[start : self._rows] = values

    def all(self) -> npt.NDArray[Any]:
        assert self._array is not None
        self._array.resize(self._rows, refcheck=False)
        return self._array


def numbers(cells: Any, missing: Sequence[str]) -> Floats:
    """Numbers of a column as 32-bit floats; texts of missing cells that are numbers by value."""
    texts = [text.strip() for text in missing]
    values: npt.NDArray[Any] | None = None
    with suppress(ValueError):
        column = cells.array.__arrow_array__() if is_arrow(cells) else cells
        if library_of(column) == "pyarrow" and type_of(column) == "text":
            values = _of_texts(column, texts)
        else:
            array = read_data(cells_of, cells, "number")
            if array.dtype.kind in "biuf":
                values = array
            elif array.dtype.kind == "O":
                values = _of_cells(array.tolist(), texts)
    if values is None:
        raise RowDomainError(
            "a row holds something that is not a number. Numbers are written as 1234.5: decimal "
            "commas and separated thousands of CSV files need `--decimal , --thousands .`, and a "
            "per cent sign has to be removed. Dates are declared as `{date: [days, month]}` in a "
            "schema file. If the column holds categories, declare them (`--categories "
            "COLUMN=a,b,c`, or in a schema file); if it is not a feature, such as a key, leave it "
            "out (`--drop COLUMN`); if such texts stand for missing cells, list them under "
            "`missing` in a schema file."
        )
    values = values.astype(np.float64, copy=False)
    if absent := numbers_among(missing):
        values = np.where(np.isin(values, absent), np.nan, values)
    with np.errstate(over="ignore"):
        return values.astype(np.float32)


def _of_cells(cells: Sequence[Any], missing: Sequence[str]) -> npt.NDArray[np.float64]:
    absent = frozenset(missing)
    return numbers_of(
        ["nan" if isinstance(cell, str) and cell.strip() in absent else cell for cell in cells]
    )


# Texts that Arrow and Python read as the same number, the nearest to what is written.
_DIGITS = r"^-?[0-9]{1,40}(\.[0-9]{0,40})?([eE][+-]?[0-9]{1,2})?$"


def _of_texts(texts: Any, missing: Sequence[str]) -> npt.NDArray[np.float64]:
    """Numbers of texts; if Arrow reads not all, those that are not in digits one by one."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if str(texts.type) == "string_view":
        texts = texts.cast(pa.large_string())  # of views Arrow knows less
    with suppress(pa.ArrowInvalid):
        return _sound(texts.cast(pa.float64()))
    absent, none = pc.is_in(texts, pa.array(missing, texts.type)), pa.scalar(None, texts.type)
    with suppress(pa.ArrowInvalid):
        return _sound(pc.if_else(absent, none, texts).cast(pa.float64()))
    plain = pc.and_not(pc.match_substring_regex(texts, _DIGITS), absent).fill_null(False)
    kept = pc.if_else(plain, texts, none)
    values = np.array(kept.cast(pa.float64()).to_numpy(zero_copy_only=False), dtype=np.float64)
    others = np.flatnonzero(~plain.to_numpy(zero_copy_only=False).astype(bool))
    values[others] = _of_cells(texts.take(pa.array(others)).to_pylist(), missing)
    return values


def _sound(values: Any) -> npt.NDArray[np.float64]:
    """Numbers that Arrow has read, where all of them are: it reads "nan(1)", which is none."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pc.any(pc.is_nan(values)).as_py():
        raise pa.ArrowInvalid
    return np.asarray(values.to_numpy(zero_copy_only=False))


def _finite(values: Floats) -> Floats:
    if np.isinf(values).any():
        raise RowDomainError(
            "a row holds an infinite number, or one beyond 32-bit floats. Features are finite or "
            "missing. Drop or replace such cells by a rule that looks at one row at a time."
        )
    return values


def codes(
    cells: Any, declared: Sequence[Any], missing: Sequence[str], other: str
) -> npt.NDArray[np.int64]:
    """Code of each cell, -1 for missing; see :class:`..data.cells.Names`."""
    names = Names(declared, "A list of categories or classes", absent=missing)
    indices = read_data(codes_in, cells, names.codes, "category")
    outside = indices < ABSENT
    if other == "error" and outside.any():
        raise RowDomainError(
            "a row holds something that is not declared. Names in quotes match by spelling, and "
            "numbers without quotes by value. Declare all that may occur, or say in a schema file "
            "what others are (`other: missing` or `other: NAME`)."
        )
    if other not in ("error", "missing"):
        indices[outside] = list(map(str, declared)).index(other)
    indices[indices < ABSENT] = ABSENT
    return indices
