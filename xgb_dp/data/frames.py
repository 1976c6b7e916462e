"""Tables as private training takes them: columns of numbers, and of declared categories.

Which categories occur, and in which order a data frame lists them, are statistics of the rows. A
model must hold neither, so the dictionary is the declared one, whatever the frame brings. Types of
columns are public, except that of a column of objects, whose cells are read one by one.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from ..errors import PrivacyParameterError, RowDomainError
from .cells import DATES, numbers, read_data

__all__ = [
    "check_names",
    "columns_of",
    "has_column",
    "prepared",
    "refuse_texts",
    "with_categories",
    "without_column",
]


def prepared(X: Any, categories: Mapping[Any, Any] | None) -> Any:
    """A table of features of any kind, ready for an ``xgboost.DMatrix``.

    Args:
        X: Array, list, sparse matrix, data frame or table. Kinds that are not known are returned as
            they are.
        categories: ``dp_categories``.

    Returns:
        Columns of numbers, and of the declared categories.

    Raises:
        PrivacyParameterError: A name or type of a column, which are public, is not as needed.
        RowDomainError: A row has a cell that is no number or no declared category.
    """
    if hasattr(X, "collect") and _kind(X) is None:  # a polars LazyFrame
        X = read_data(X.collect)
    if isinstance(X, (list, tuple)) or type(X) is np.ndarray:
        X = numbers(X, "feature")
    if _kind(X) is not None:
        check_names(columns_of(X))
    X = with_categories(X, categories)
    refuse_texts(X)
    return _as_numbers(X)


def columns_of(X: Any) -> list[Any]:
    """Names of the columns of a data frame or table; public."""
    return list(X.column_names if hasattr(X, "column_names") else X.columns)


def has_column(X: Any, name: str) -> bool:
    """Whether a table has exactly one column of this name; False for what is no table."""
    known = _kind(X) is not None or hasattr(X, "collect_schema")
    names = X.collect_schema().names() if hasattr(X, "collect_schema") else None
    return known and list(columns_of(X) if names is None else names).count(name) == 1


def without_column(X: Any, name: str) -> tuple[Any, Any]:
    """A table without one of its columns, and that column.

    Raises:
        PrivacyParameterError: There is no such column, or several, or this is no table.
    """
    if not has_column(X, name):
        raise PrivacyParameterError(
            f"The data does not have exactly one column {name!r}, which should say who a row "
            "belongs to. Give the name of a column of a data frame, or the ids themselves: one "
            "for each row."
        )
    if hasattr(X, "collect"):  # a polars LazyFrame
        X = read_data(X.collect)
    column = X[name]
    if hasattr(X, "drop_columns"):  # pyarrow
        return X.drop_columns([name]), column
    return X.drop(columns=[name]) if _kind(X) == "pandas" else X.drop(name), column


def check_names(names: Sequence[Any]) -> None:
    """Names of columns as XGBoost can keep them.

    Raises:
        PrivacyParameterError: A name occurs twice, or holds what XGBoost refuses.
    """
    texts = [" ".join(map(str, n)) if isinstance(n, tuple) else str(n) for n in names]
    twice = sorted({text for text in texts if texts.count(text) > 1}) if _repeats(texts) else []
    if twice:
        named = ", ".join(map(repr, twice))
        raise PrivacyParameterError(
            f"Several columns have the name {named} (numbers count as their texts). Give every "
            "column a name of its own."
        )
    for text in texts:
        if any(c in text for c in "[]<") or not _encodes(text):
            raise PrivacyParameterError(
                f"The column name {text!a} is refused: a name must not contain '[', ']' or '<', "
                "and must be valid Unicode. Rename the column."
            )


def _repeats(texts: list[str]) -> bool:
    return len(set(texts)) < len(texts)


def _encodes(text: str) -> bool:
    """Whether a text is valid Unicode: one half of a surrogate pair is not."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


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
    kind = _kind(X)
    if kind is None:
        return X
    columns, code = columns_of(X), _CODE[kind]
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
    kind = _kind(X)
    found = _TEXTS[kind](X) if kind is not None else []
    if found:
        named = ", ".join(map(repr, found))
        raise PrivacyParameterError(
            f"The categories of text columns are missing: {named}. Declare every category that "
            "may occur, from knowledge of the domain and not from the rows: "
            f"categories={{{found[0]!r}: ['a', 'b', ...]}}. Leave out columns that are not "
            "features, such as names and keys."
        )


def _kind(X: Any) -> str | None:
    """The library of a table; None for what is no table."""
    for module, kind in (("pandas", "DataFrame"), ("polars", "DataFrame"), ("pyarrow", "Table")):
        loaded = sys.modules.get(module)  # a table of a library has loaded that library
        if loaded is not None and isinstance(X, getattr(loaded, kind)):
            return module
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
    return [name for name, kind in kinds if isinstance(kind, pd.StringDtype)]


def _texts_polars(X: Any) -> list[Any]:
    import polars as pl

    return [name for name, kind in X.schema.items() if kind == pl.String]


def _texts_arrow(X: Any) -> list[Any]:
    import pyarrow as pa

    return [f.name for f in X.schema if f.type in (pa.string(), pa.large_string())]


def _as_numbers(X: Any) -> Any:
    """A table without columns of objects, of nothing, or of decimals; others are left alone."""
    kind = _kind(X)
    if kind == "pandas":
        return _numbers_pandas(X)
    if kind == "polars":
        return _numbers_polars(X)
    return _numbers_arrow(X) if kind == "pyarrow" else X


def _refuse_type(column: Any, kind: Any, *, dates: bool) -> None:
    mend = DATES if dates else "Turn the column into numbers by a public rule, or leave it out."
    raise PrivacyParameterError(
        f"The column {column!r} is of type {kind}; numbers or declared categories were expected. "
        f"{mend}"
    )


def _cells_of(column: Any, values: Any) -> np.ndarray:
    """A column of objects as numbers, each cell by itself."""
    found: np.ndarray | None = None
    with suppress(RowDomainError):
        found = numbers(values, "feature")
    if found is None:
        raise RowDomainError(
            f"A row has a cell in column {column!r} that is not a number. If the column holds "
            "texts, declare every category that may occur, from knowledge of the domain and not "
            f"from the rows: categories={{{column!r}: ['a', 'b', ...]}}. {DATES} Leave out columns "
            "that are no features, such as names and keys."
        )
    return found


def _numbers_pandas(X: Any) -> Any:
    import pandas as pd

    changed: dict[Any, Any] = {}
    for name, kind in zip(X.columns, X.dtypes, strict=True):
        if pd.api.types.is_object_dtype(kind):
            changed[name] = pd.Series(_cells_of(name, X[name].to_numpy()), index=X.index)
        elif isinstance(kind, pd.CategoricalDtype) or pd.api.types.is_numeric_dtype(kind):
            if getattr(kind, "kind", "f") == "c":
                _refuse_type(name, "complex (Complex data not supported)", dates=False)
        elif not pd.api.types.is_bool_dtype(kind):
            _refuse_type(name, kind, dates=getattr(kind, "kind", "") in ("m", "M"))
    return X.assign(**changed) if all(isinstance(n, str) for n in changed) else _set(X, changed)


def _set(X: Any, columns: Mapping[Any, Any]) -> Any:
    X = X.copy(deep=False)
    for name, values in columns.items():
        X[name] = values
    return X


def _numbers_polars(X: Any) -> Any:
    import polars as pl

    changed = []
    for name, kind in X.schema.items():
        if kind == pl.Object:
            changed.append(pl.Series(name, _cells_of(name, np.array(X[name].to_list(), object))))
        elif kind == pl.Null or kind.is_decimal() or kind in (pl.Int128,):
            changed.append(X[name].cast(pl.Float64))
        elif not (kind.is_numeric() or kind in (pl.Boolean, pl.Categorical, pl.Enum)):
            _refuse_type(name, kind, dates=kind.is_temporal())
    return X.with_columns(changed)


def _numbers_arrow(X: Any) -> Any:
    import pyarrow as pa

    types = pa.types
    for index, field in enumerate(X.schema):
        kind = field.type
        if types.is_null(kind) or types.is_decimal(kind):
            X = X.set_column(index, field.name, X[field.name].cast(pa.float64()))
        elif not (
            types.is_integer(kind)
            or types.is_floating(kind)
            or types.is_boolean(kind)
            or types.is_dictionary(kind)
        ):
            _refuse_type(field.name, kind, dates=types.is_temporal(kind))
    return X


_CODE = {"pandas": _code_pandas, "polars": _code_polars, "pyarrow": _code_arrow}
_TEXTS = {"pandas": _texts_pandas, "polars": _texts_polars, "pyarrow": _texts_arrow}
