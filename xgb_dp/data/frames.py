"""Prepare tables and labels for private training: numbers, declared categories and classes.

The set of categories in a data frame and their order are statistics of its rows, and the model must
not contain either. The model's categories are therefore the declared ones, whatever the data frame
lists. Column types are public, except in object columns, whose cells are read one by one. An
estimator encodes each label as its position in the declared classes, row by row.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from ..errors import PrivacyParameterError, RowDomainError, alias, named
from .arrays import (
    as_cells,
    as_numbers,
    collect_table,
    describe_column_type,
    encode,
    find_library,
    is_sparse,
    is_table,
)
from .cells import ABSENT, DATES, Names, is_unicode, read_data

_INTEGER = 2.0**53


def prepare_table(X: Any, categories: Mapping[Any, Any] | None) -> Any:
    """Prepare a feature table of any supported type for an ``xgboost.DMatrix``."""
    X = collect_table(X)
    if is_sparse(X):
        return X
    if not is_table(X):
        if hasattr(X, "columns") or hasattr(X, "column_names"):
            raise PrivacyParameterError(
                f"Unknown table type {type(X).__module__}.{type(X).__name__}. Convert the data to "
                "a pandas or polars data frame or a pyarrow table."
            )
        return as_numbers(X, "feature")
    check_names(list_columns(X))
    declared = _declared(X, categories)
    kinds = {
        name: describe_column_type(X[name]) for name in list_columns(X) if name not in declared
    }
    _refuse_undeclared([n for n, kind in kinds.items() if kind == "text"], "text columns")
    _refuse_undeclared([n for n, kind in kinds.items() if kind == "names"], "categorical columns")
    coded = {name: _categories(X, name, names) for name, names in declared.items()}
    read = {name: _numbers(X, name, kind) for name, kind in kinds.items()}
    return _replaced(X, coded | {name: cells for name, cells in read.items() if cells is not None})


def list_columns(X: Any) -> list[Any]:
    """Return the column names of a data frame or table; they are public."""
    return list(X.column_names if hasattr(X, "column_names") else X.columns)


def has_column(X: Any, name: str) -> bool:
    """Return whether `X` is a table with exactly one column of this name."""
    if hasattr(X, "collect_schema"):
        return list(X.collect_schema().names()).count(name) == 1
    return is_table(X) and list_columns(X).count(name) == 1


def without_column(X: Any, name: str) -> tuple[Any, Any]:
    """Split a column off a table; return the remaining table and the column."""
    if not has_column(X, name):
        raise PrivacyParameterError(
            f"The data does not have exactly one column {name!r} with the privacy ids. Pass the "
            "name of a column of a data frame, or the ids themselves: one per row."
        )
    X = collect_table(X)
    if find_library(X) == "pandas":
        return X.drop(columns=[name]), X[name]
    return (X.drop if find_library(X) == "polars" else X.drop_columns)([name]), X[name]


def check_names(names: Sequence[Any]) -> None:
    """Check that XGBoost can store the column names."""
    strings = [" ".join(map(str, n)) if isinstance(n, tuple) else str(n) for n in names]
    twice = sorted(text for text, count in Counter(strings).items() if count > 1)
    if twice:
        raise PrivacyParameterError(
            f"Several columns have the name {', '.join(map(repr, twice))} (numbers are compared "
            "as strings). Give every column a different name."
        )
    for text in strings:
        if any(c in text for c in "[]<") or not is_unicode(text):
            raise PrivacyParameterError(
                f"The column name {text!a} is invalid: a name must be valid Unicode and must not "
                "contain '[', ']' or '<'. Rename the column."
            )


def _declared(X: Any, categories: Mapping[Any, Any] | None) -> dict[Any, list[Any]]:
    """Return the declared names of the categories of each column."""
    declared: dict[Any, list[Any]] = {}
    columns = list_columns(X)
    for key, names in categories.items() if isinstance(categories, Mapping) else ():
        if isinstance(names, (int, np.integer)):
            continue  # the number of categories of a coded column
        if isinstance(names, str) or not isinstance(names, (Sequence, np.ndarray)):
            got = f"string {names!r}" if isinstance(names, str) else type(names).__name__
            raise PrivacyParameterError(
                f"{named.dp_categories} of {key!r} must be a list of names, in the order of their "
                f"codes; got the {got}."
            )
        if isinstance(key, (int, np.integer)) and key not in columns and key < len(columns):
            key = columns[key]
        if key in columns:
            declared[key] = list(names)
    return declared


_HOW_TO_DECLARE = (
    "Use domain knowledge, or let xgb_dp.discover find common categories with noise, but do not "
    "list those of the rows."
)


def _refuse_undeclared(columns: Sequence[Any], what: str) -> None:
    """Refuse undeclared categories: their codes would depend on which rows are in the data."""
    if columns:
        raise PrivacyParameterError(
            f"The categories of {what} are missing: {', '.join(map(repr, columns))}. If they "
            "contain numbers, such as '1,234', convert them to numbers. Otherwise declare every "
            "category that may occur by name (the number of categories does not say which name has "
            f"which code): {alias('dp_categories')}={{{columns[0]!r}: ['a', 'b', ...]}}. "
            f"{_HOW_TO_DECLARE} Drop columns that are not features, such as names and keys."
        )


def _categories(X: Any, column: Any, names: list[Any]) -> Any:
    """Convert a column of names to a categorical column with the declared categories."""
    what = f"{named.dp_categories} of column {column!r}"
    codes = read_data(encode, X[column], Names(names, what).codes, "category")
    if (codes < ABSENT).any():
        raise RowDomainError(
            f"A row has an undeclared category in column {column!r}. Declare every category that "
            "may occur, or drop or replace undeclared ones row by row."
        )
    stored = _stored(names, what)
    if find_library(X) == "pandas":
        import pandas as pd

        return pd.Categorical.from_codes(codes, categories=stored)
    import pyarrow as pa

    places = pa.array(codes, pa.int32(), mask=codes == ABSENT)
    return pa.DictionaryArray.from_arrays(places, pa.array(map(str, stored), pa.string()))


def _stored(names: list[Any], what: str) -> list[Any]:
    """Return the names in a form that XGBoost can store: all strings or all numbers."""
    names = [int(name) if isinstance(name, (bool, np.bool_)) else name for name in names]
    strings = [str(name) for name in names]
    if len(set(strings)) < len(strings):
        raise PrivacyParameterError(
            f"{what} contains a number and the same number as a string; a model cannot "
            "distinguish them. Remove one, or rename both."
        )
    return strings if any(isinstance(name, str) for name in names) else names


def _numbers(X: Any, column: Any, kind: str) -> Any:
    """Convert a column to numbers, cell by cell; None if the column needs no change."""
    if kind in ("object", "decimal"):
        with suppress(RowDomainError):
            return as_numbers(X[column], "feature")
        raise RowDomainError(
            f"A row has a cell in column {column!r} that is not a number. If the column contains "
            f"strings, declare their names: categories={{{column!r}: ['a', 'b', ...]}}. "
            f"{_HOW_TO_DECLARE} {DATES} Drop columns that are not features, such as names and keys."
        )
    declared = X[column].type if find_library(X) == "pyarrow" else X[column].dtype
    if kind == "number":
        wide = find_library(X) != "pandas" and str(declared).lower() in ("int64", "uint64")
        return _rounded(X[column], str(declared).lower()) if wide else None
    if kind == "complex":
        declared = "complex (Complex data not supported)"
    fix = "Convert the column to numbers by a public rule, or drop it."
    raise PrivacyParameterError(
        f"The column {column!r} has type {declared}; expected numbers or declared categories. "
        f"{DATES if kind in ('date', 'datetime', 'time') else fix}"
    )


def _rounded(values: Any, kind: str) -> Any:
    """Round 64-bit integers to 64-bit floats; None if no value is above 2^53 in magnitude."""
    # The column keeps its integer type, because column types are part of a model. The patched
    # XGBoost rounds pandas columns in the same way (`read-cells-alone.patch`).
    import pyarrow as pa

    floats = as_cells(values, "feature")
    if not (np.abs(floats) > _INTEGER).any():
        return None
    largest, missing = np.iinfo(kind).max, np.isnan(floats)
    above = floats >= float(largest)
    whole = np.where(above | missing, 0.0, floats).astype(kind)
    whole[above] = largest
    return pa.array(whole, mask=missing)


def _replaced(X: Any, columns: Mapping[Any, Any]) -> Any:
    """Return the table with some of its columns replaced."""
    if not columns:
        return X
    if find_library(X) == "pandas":
        X = X.copy(deep=False)
        for name, values in columns.items():
            X[name] = values
        return X
    import pyarrow as pa

    as_arrow = {name: X[name] for name in list_columns(X) if name not in columns}
    if find_library(X) == "polars":
        as_arrow = {name: column.to_arrow() for name, column in as_arrow.items()}
    return pa.table({name: {**as_arrow, **columns}[name] for name in list_columns(X)})


_MOST = 1 << 16  # classes


def parse_classes(classes: Any) -> np.ndarray:
    """Return the declared classes in increasing order, as in scikit-learn."""
    if isinstance(classes, (int, np.integer)) and 2 <= classes <= _MOST:  # True counts as 1
        return np.arange(classes)
    try:
        values = [] if isinstance(classes, (str, bytes)) else list(classes)
        kinds = {isinstance(v, str) for v in values}
        array = np.array(values)
        labels = np.unique(array)
        valid = array.ndim == 1 and 2 <= len(labels) == len(values) and len(kinds) == 1
    except (TypeError, ValueError):
        valid = False
    if not valid:
        raise PrivacyParameterError(
            "`classes` must be the number of classes K, from 2 to 65536, for labels 0..K-1, or a "
            "list of at least two distinct labels, all strings or all numbers, such as "
            "['no', 'yes']."
        )
    Names(values, "`classes`")
    return labels


def encode_labels(y: Any, classes: np.ndarray) -> np.ndarray:
    """Return the position of each label in the declared classes, row by row."""
    labels = as_cells(y, "label")
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels.ravel()
    if labels.ndim > 2 or (labels.ndim == 2 and len(classes) != 2):
        raise PrivacyParameterError(
            "`y` must have one label per row, or several columns of binary labels. Several columns "
            "of labels with more than two classes are not supported: train one model per column "
            "and charge them to one xgb_dp.Budget. For several numeric targets, use "
            "DPXGBRegressor."
        )
    codes = Names(classes.tolist(), "`classes`").codes(labels)
    if (codes < 0).any():
        raise RowDomainError(
            "Unknown label type: a row has a label outside the declared `classes`. Declare every "
            "class that may occur, or drop rows outside the domain by a rule that reads one row "
            "at a time."
        )
    return codes


def label_array(y: Any) -> Any:
    """Convert labels from a list, series or column of any library to an array."""
    if y is None:
        raise PrivacyParameterError("requires y to be passed, but the target y is None")
    return as_cells(y, "label")
