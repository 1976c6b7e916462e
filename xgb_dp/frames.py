"""Declared categories in data frames: columns of names are coded by the declaration.

Which categories occur, and in which order a data frame lists them, are statistics of the rows. A
model must hold neither, so the dictionary is the declared one, whatever the frame brings.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .errors import PrivacyParameterError, RowDomainError

__all__ = ["refuse_texts", "with_categories"]


def with_categories(X: Any, categories: Mapping[Any, Any] | None) -> Any:
    """The same table with every declared column of names as a category of the declared names.

    Args:
        X: pandas or polars DataFrame, pyarrow Table, or anything else, which is returned as it is.
        categories: ``dp_categories``: column name or index to names (or to a number of codes, which
            needs no coding).

    Returns:
        A new table; missing values stay missing. Nothing is learnt from the rows.

    Raises:
        RowDomainError: A row has a category that is not declared. The message shows neither.
    """
    if not isinstance(categories, Mapping):
        return X
    code = _coder(X)
    if code is None:
        return X
    columns = list(X.column_names if hasattr(X, "column_names") else X.columns)
    for key, names in categories.items():
        if isinstance(names, str) or not isinstance(names, (Sequence, np.ndarray)):
            continue
        if isinstance(key, (int, np.integer)) and key not in columns and key < len(columns):
            key = columns[key]
        if key in columns:
            X = code(X, key, list(names))
    return X


def refuse_texts(X: Any) -> None:
    """Refuse a table whose columns of names were not all declared; others are left alone.

    XGBoost refuses them too, but cannot know what is missing. Types of columns are public.

    Raises:
        PrivacyParameterError: Some columns hold texts.
    """
    code = _coder(X)
    found = _TEXTS[code](X) if code is not None else []
    if found:
        named = ", ".join(map(repr, found))
        raise PrivacyParameterError(
            f"Columns of texts: {named}. Declare every category that may occur, from knowledge of "
            f"the domain and not from the rows: categories={{{found[0]!r}: ['a', 'b', ...]}}. "
            "Leave out columns that are no features, such as names and keys."
        )


def _coder(X: Any) -> Any:
    """How to code a column of this kind of table; None for others."""
    for module, kind, code in (
        ("pandas", "DataFrame", _code_pandas),
        ("polars", "DataFrame", _code_polars),
        ("pyarrow", "Table", _code_arrow),
    ):
        loaded = sys.modules.get(module)  # a table of a library has loaded that library
        if loaded is not None and isinstance(X, getattr(loaded, kind)):
            return code
    return None


def _refuse(undeclared: bool, column: Any) -> None:
    if undeclared:
        raise RowDomainError(
            f"A row has a category of column {column!r} that is not declared. Declare every "
            "category that may occur, or drop or replace others row by row."
        )


def _code_pandas(X: Any, column: Any, names: list[Any]) -> Any:
    import pandas as pd

    values = X[column].astype(object)
    _refuse(not bool((values.isin(names) | values.isna()).all()), column)
    X = X.copy(deep=False)
    X[column] = pd.Categorical(values, categories=names)
    return X


def _code_polars(X: Any, column: str, names: list[Any]) -> Any:
    import polars as pl

    text = [str(name) for name in names]
    values = X[column].cast(pl.String)
    _refuse(not bool((values.is_in(text) | values.is_null()).all()), column)
    return X.with_columns(values.cast(pl.Enum(text)).alias(column))


def _code_arrow(X: Any, column: str, names: list[Any]) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc

    text = pa.array([str(name) for name in names])
    values = X[column]
    if pa.types.is_dictionary(values.type):
        values = values.cast(values.type.value_type)
    values = values.cast(pa.string()).combine_chunks()
    codes = pc.index_in(values, value_set=text)
    _refuse(codes.null_count > values.null_count, column)
    coded = pa.DictionaryArray.from_arrays(codes.cast(pa.int32()), text)
    return X.set_column(X.column_names.index(column), column, coded)


def _texts_pandas(X: Any) -> list[Any]:
    import pandas as pd

    kinds = zip(X.columns, X.dtypes, strict=True)
    return [
        name
        for name, kind in kinds
        if pd.api.types.is_object_dtype(kind) or isinstance(kind, pd.StringDtype)
    ]


def _texts_polars(X: Any) -> list[Any]:
    import polars as pl

    return [name for name, kind in X.schema.items() if kind == pl.String]


def _texts_arrow(X: Any) -> list[Any]:
    import pyarrow as pa

    return [f.name for f in X.schema if f.type in (pa.string(), pa.large_string())]


_TEXTS = {_code_pandas: _texts_pandas, _code_polars: _texts_polars, _code_arrow: _texts_arrow}
