"""Tables and labels as private training takes them: numbers, declared categories and classes.

Which categories occur, and in which order a data frame lists them, are statistics of the rows. A
model must contain neither, so the dictionary is the declared one, whatever the frame contains.
Types of columns are public, except that of a column of objects, whose cells are read one by one.
Labels of estimators are coded by the declared classes, each row alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from ..errors import PrivacyParameterError, RowDomainError, named, spelt
from .arrays import (
    as_cells,
    as_numbers,
    collected,
    describe_column_type,
    encode,
    find_library,
    is_sparse,
    is_table,
)
from .cells import ABSENT, DATES, Names, is_unicode, read_data

_INTEGER = 2.0**53


def prepare_table(X: Any, categories: Mapping[Any, Any] | None) -> Any:
    """A table of features of any kind, ready for an ``xgboost.DMatrix``."""
    X = collected(X)
    if is_sparse(X):
        return X
    if not is_table(X):
        if hasattr(X, "columns") or hasattr(X, "column_names"):
            raise PrivacyParameterError(
                f"A table of type {type(X).__module__}.{type(X).__name__} is not known. Turn it "
                "into a data frame of pandas or polars, or a table of pyarrow."
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
    """Names of the columns of a data frame or table; public."""
    return list(X.column_names if hasattr(X, "column_names") else X.columns)


def has_column(X: Any, name: str) -> bool:
    """Whether a table has exactly one column of this name; False for what is no table."""
    if hasattr(X, "collect_schema"):
        return list(X.collect_schema().names()).count(name) == 1
    return is_table(X) and list_columns(X).count(name) == 1


def without_column(X: Any, name: str) -> tuple[Any, Any]:
    """A table without one of its columns, and that column."""
    if not has_column(X, name):
        raise PrivacyParameterError(
            f"The data does not have exactly one column {name!r}, which should say who a row "
            "belongs to. Give the name of a column of a data frame, or the ids themselves: one "
            "for each row."
        )
    X = collected(X)
    if find_library(X) == "pandas":
        return X.drop(columns=[name]), X[name]
    return (X.drop if find_library(X) == "polars" else X.drop_columns)([name]), X[name]


def check_names(names: Sequence[Any]) -> None:
    """Names of columns as XGBoost can keep them."""
    strings = [" ".join(map(str, n)) if isinstance(n, tuple) else str(n) for n in names]
    twice = sorted(text for text, count in Counter(strings).items() if count > 1)
    if twice:
        raise PrivacyParameterError(
            f"Several columns have the name {', '.join(map(repr, twice))} (numbers count as their "
            "texts). Give every column a name of its own."
        )
    for text in strings:
        if any(c in text for c in "[]<") or not is_unicode(text):
            raise PrivacyParameterError(
                f"The column name {text!a} is refused: a name must not contain '[', ']' or '<', "
                "and must be valid Unicode. Rename the column."
            )


def _declared(X: Any, categories: Mapping[Any, Any] | None) -> dict[Any, list[Any]]:
    """The declared names of categories, by the names of the columns."""
    declared: dict[Any, list[Any]] = {}
    columns = list_columns(X)
    for key, names in categories.items() if isinstance(categories, Mapping) else ():
        if isinstance(names, str):
            raise PrivacyParameterError(
                f"`categories` of {key!r} is one text, {names!r}, and a list of names was expected."
            )
        if not isinstance(names, (Sequence, np.ndarray)):
            continue
        if isinstance(key, (int, np.integer)) and key not in columns and key < len(columns):
            key = columns[key]
        if key in columns:
            declared[key] = list(names)
    return declared


def _refuse_undeclared(columns: Sequence[Any], what: str) -> None:
    """Refuse names of categories that nobody has declared: one row may change codes of others."""
    if columns:
        raise PrivacyParameterError(
            f"The categories of {what} are missing: {', '.join(map(repr, columns))}. Declare the "
            "name of every category that may occur (a number of codes does not say which name has "
            "which code), from knowledge of the domain and not from the rows: "
            f"{spelt('dp_categories')}={{{columns[0]!r}: ['a', 'b', ...]}}. Leave out columns that "
            "are not features, such as names and keys."
        )


def _categories(X: Any, column: Any, names: list[Any]) -> Any:
    """A column of names as a category of the declared ones."""
    what = f"{named.dp_categories} of column {column!r}"
    codes = read_data(encode, X[column], Names(names, what).codes, "category")
    if (codes < ABSENT).any():
        raise RowDomainError(
            f"A row has a category of column {column!r} that is not declared. Declare every "
            "category that may occur, or drop or replace others row by row."
        )
    stored = _stored(names, what)
    if find_library(X) == "pandas":
        import pandas as pd

        return pd.Categorical.from_codes(codes, categories=stored)
    import pyarrow as pa

    places = pa.array(codes, pa.int32(), mask=codes == ABSENT)
    return pa.DictionaryArray.from_arrays(places, pa.array(map(str, stored), pa.string()))


def _stored(names: list[Any], what: str) -> list[Any]:
    """Names as XGBoost can store them: all texts or all numbers."""
    names = [int(name) if isinstance(name, (bool, np.bool_)) else name for name in names]
    strings = [str(name) for name in names]
    if len(set(strings)) < len(strings):
        raise PrivacyParameterError(
            f"{what} names a number and the text of it, which a model stores alike. Keep one of "
            "them, or give both other names."
        )
    return strings if any(isinstance(name, str) for name in names) else names


def _numbers(X: Any, column: Any, kind: str) -> Any:
    """A column as numbers, each cell by itself; None if it can stay as it is."""
    if kind in ("object", "decimal"):
        with suppress(RowDomainError):
            return as_numbers(X[column], "feature")
        raise RowDomainError(
            f"A row has a cell in column {column!r} that is not a number. If the column holds "
            "texts, declare every category that may occur, from knowledge of the domain and not "
            f"from the rows: categories={{{column!r}: ['a', 'b', ...]}}. {DATES} Leave out columns "
            "that are no features, such as names and keys."
        )
    declared = X[column].type if find_library(X) == "pyarrow" else X[column].dtype
    if kind == "number":
        wide = find_library(X) != "pandas" and str(declared).lower() in ("int64", "uint64")
        return _rounded(X[column], str(declared).lower()) if wide else None
    if kind == "complex":
        declared = "complex (Complex data not supported)"
    fix = "Turn the column into numbers by a public rule, or leave it out."
    raise PrivacyParameterError(
        f"The column {column!r} is of type {declared}; numbers or declared categories were "
        f"expected. {DATES if kind in ('date', 'datetime', 'time') else fix}"
    )


def _rounded(values: Any, kind: str) -> Any:
    """Whole numbers of 64 bits as the 64-bit floats that they count as; None if all are such."""
    # They stay whole numbers, as the type of a column is part of a model. XGBoost reads columns of
    # pandas so by itself (`read-cells-alone.patch`).
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
    """A table with other columns in the places of some."""
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
    """The declared classes, which are in increasing order, as scikit-learn keeps them."""
    if isinstance(classes, (int, np.integer)) and 2 <= classes <= _MOST:  # no truth value is
        return np.arange(classes)
    try:
        values = [] if isinstance(classes, (str, bytes)) else list(classes)
        kinds = {isinstance(v, str) for v in values}
        array = np.array(values)
        labels = np.unique(array)
        sound = array.ndim == 1 and 2 <= len(labels) == len(values) and len(kinds) == 1
    except (TypeError, ValueError):
        sound = False
    if not sound:
        raise PrivacyParameterError(
            "`classes` must be the number of classes K, 2 to 65536, for labels 0..K-1, or the "
            "list of at least two different labels, all texts or all numbers, e.g. ['no', 'yes']."
        )
    Names(values, "`classes`")
    return labels


def encode_labels(y: Any, classes: np.ndarray) -> np.ndarray:
    """Positions of the labels in the declared classes; each row by itself."""
    labels = as_cells(y, "label")
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels.ravel()
    if labels.ndim > 2 or (labels.ndim == 2 and len(classes) != 2):
        raise PrivacyParameterError(
            "`y` must have one label for each row, or several columns of labels of two classes. "
            "Several labels of more classes are refused: train a model for each, and book them in "
            "one xgb_dp.Budget. Several numbers are targets of DPXGBRegressor."
        )
    codes = Names(classes.tolist(), "`classes`").codes(labels)
    if (codes < 0).any():
        raise RowDomainError(
            "Unknown label type: a row has a label outside the declared `classes`. Declare every "
            "class that may occur, or drop rows outside the domain by a rule that looks at one row "
            "at a time."
        )
    return codes


def label_array(y: Any) -> Any:
    """Labels as an array, from lists, series and columns of any library."""
    if y is None:
        raise PrivacyParameterError("requires y to be passed, but the target y is None")
    return as_cells(y, "label")
