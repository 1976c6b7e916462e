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
from .cells import ABSENT, DATES, Names, is_unicode, read_data
from .columns import cells_of, codes_in, collected, numbers

__all__ = [
    "check_names",
    "columns_of",
    "has_column",
    "prepared",
    "refuse_undeclared",
    "with_categories",
    "without_column",
]


def prepared(X: Any, categories: Mapping[Any, Any] | None) -> Any:
    """A table of features of any kind, ready for an ``xgboost.DMatrix``."""
    X = collected(X)
    scipy = sys.modules.get("scipy.sparse")  # a matrix of SciPy has loaded it
    if scipy is not None and scipy.issparse(X):
        return X
    if _kind(X) is None:
        if hasattr(X, "columns") or hasattr(X, "column_names"):
            raise PrivacyParameterError(
                f"A table of type {type(X).__module__}.{type(X).__name__} is not known. Turn it "
                "into a data frame of pandas or polars, or a table of pyarrow."
            )
        return numbers(X, "feature")
    check_names(columns_of(X))
    X = with_categories(X, categories)
    refuse_undeclared(X, categories)
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
    """A table without one of its columns, and that column."""
    if not has_column(X, name):
        raise PrivacyParameterError(
            f"The data does not have exactly one column {name!r}, which should say who a row "
            "belongs to. Give the name of a column of a data frame, or the ids themselves: one "
            "for each row."
        )
    X = collected(X)
    column = X[name]
    if hasattr(X, "drop_columns"):  # pyarrow
        return X.drop_columns([name]), column
    return X.drop(columns=[name]) if _kind(X) == "pandas" else X.drop(name), column


def check_names(names: Sequence[Any]) -> None:
    """Names of columns as XGBoost can keep them."""
    texts = [" ".join(map(str, n)) if isinstance(n, tuple) else str(n) for n in names]
    twice = sorted({text for text in texts if texts.count(text) > 1}) if _repeats(texts) else []
    if twice:
        named = ", ".join(map(repr, twice))
        raise PrivacyParameterError(
            f"Several columns have the name {named} (numbers count as their texts). Give every "
            "column a name of its own."
        )
    for text in texts:
        if any(c in text for c in "[]<") or not is_unicode(text):
            raise PrivacyParameterError(
                f"The column name {text!a} is refused: a name must not contain '[', ']' or '<', "
                "and must be valid Unicode. Rename the column."
            )


def _repeats(texts: list[str]) -> bool:
    return len(set(texts)) < len(texts)


def with_categories(X: Any, categories: Mapping[Any, Any] | None) -> Any:
    """The same table with every declared column of names as a category of the declared names."""
    kind = _kind(X)
    if kind is None:
        return X
    for column, names in _declared(X, categories).items():
        what = f"`categories` (`dp_categories`) of column {column!r}"
        codes = read_data(codes_in, X[column], Names(names, what), "category")
        if (codes < ABSENT).any():
            raise RowDomainError(
                f"A row has a category of column {column!r} that is not declared. Declare every "
                "category that may occur, or drop or replace others row by row."
            )
        X = _CODE[kind](X, column, codes, _stored(names, what))
    return X


def _stored(names: list[Any], what: str) -> list[Any]:
    """Names as XGBoost can store them: all texts or all numbers."""
    names = [int(name) if isinstance(name, (bool, np.bool_)) else name for name in names]
    texts = [str(name) for name in names]
    if len(set(texts)) < len(texts):
        raise PrivacyParameterError(
            f"{what} names a number and the text of it, which a model stores alike. Keep one of "
            "them, or give both other names."
        )
    return texts if any(isinstance(name, str) for name in names) else names


def _declared(X: Any, categories: Mapping[Any, Any] | None) -> dict[Any, list[Any]]:
    """The declared names of columns, by the names of the columns."""
    out: dict[Any, list[Any]] = {}
    columns = columns_of(X)
    for key, names in categories.items() if isinstance(categories, Mapping) else ():
        if isinstance(names, str) or not isinstance(names, (Sequence, np.ndarray)):
            continue
        if isinstance(key, (int, np.integer)) and key not in columns and key < len(columns):
            key = columns[key]
        if key in columns:
            out[key] = list(names)
    return out


def refuse_undeclared(X: Any, categories: Mapping[Any, Any] | None) -> None:
    """Refuse a table with names of categories that nobody has declared; others are left alone.

    XGBoost would refuse texts, but take the codes of a dictionary that a data frame has made of its
    rows: then one more row may give all others another code. Types of columns are public.
    """
    kind = _kind(X)
    if kind is None:
        return
    declared = _declared(X, categories)
    for found, what in zip(_NAMED[kind](X), ("text columns", "categorical columns"), strict=True):
        missing = [name for name in found if name not in declared]
        if missing:
            named = ", ".join(map(repr, missing))
            raise PrivacyParameterError(
                f"The categories of {what} are missing: {named}. Declare the name of every "
                "category that may occur (a number of codes does not say which name has which "
                "code), from knowledge of the domain and not from the rows: "
                f"categories={{{missing[0]!r}: ['a', 'b', ...]}} (`dp_categories`). Leave out "
                "columns that are not features, such as names and keys."
            )


def _kind(X: Any) -> str | None:
    """The library of a table; None for what is no table."""
    for module, kind in (("pandas", "DataFrame"), ("polars", "DataFrame"), ("pyarrow", "Table")):
        loaded = sys.modules.get(module)  # a table of a library has loaded that library
        if loaded is not None and isinstance(X, getattr(loaded, kind)):
            return module
    return None


def _code_pandas(X: Any, column: Any, codes: Any, names: list[Any]) -> Any:
    import pandas as pd

    X = X.copy(deep=False)
    X[column] = pd.Categorical.from_codes(codes, categories=names)
    return X


def _code_polars(X: Any, column: str, codes: Any, names: list[Any]) -> Any:
    import polars as pl

    text = [str(name) for name in names]
    place = pl.Series(codes).replace({ABSENT: None})
    return X.with_columns(pl.Series(text, dtype=pl.Enum(text)).gather(place).alias(column))


def _code_arrow(X: Any, column: str, codes: Any, names: list[Any]) -> Any:
    import pyarrow as pa

    text = pa.array([str(name) for name in names], pa.string())
    place = pa.array(codes, pa.int32(), mask=codes == ABSENT)
    coded = pa.DictionaryArray.from_arrays(place, text)
    return X.set_column(X.column_names.index(column), column, coded)


# Names of the columns of texts, and of those with a dictionary.
def _named_pandas(X: Any) -> tuple[list[Any], list[Any]]:
    import pandas as pd

    kinds = list(zip(X.columns, X.dtypes, strict=True))
    texts = [name for name, kind in kinds if isinstance(kind, pd.StringDtype)]
    arrow = {name: getattr(kind, "pyarrow_dtype", None) for name, kind in kinds}
    texts += [name for name, kind in arrow.items() if kind is not None and _is_text(kind)]
    own = [name for name, kind in kinds if isinstance(kind, pd.CategoricalDtype)]
    return texts, own + [name for name, kind in arrow.items() if hasattr(kind, "value_type")]


def _named_polars(X: Any) -> tuple[list[Any], list[Any]]:
    import polars as pl

    texts = [name for name, kind in X.schema.items() if kind == pl.String]
    return texts, [n for n, kind in X.schema.items() if kind in (pl.Categorical, pl.Enum)]


def _named_arrow(X: Any) -> tuple[list[Any], list[Any]]:
    import pyarrow as pa

    texts = [field.name for field in X.schema if _is_text(field.type)]
    return texts, [field.name for field in X.schema if pa.types.is_dictionary(field.type)]


def _is_text(kind: Any) -> bool:
    return str(kind) in ("string", "large_string", "string_view")


def _as_numbers(X: Any) -> Any:
    """A table without columns of objects, of nothing, or of decimals."""
    return _NUMBERS[str(_kind(X))](X)


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


_WHOLE = 2.0**53


def _rounded(values: Any, signed: bool) -> tuple[np.ndarray, np.ndarray] | None:
    """Whole numbers of 64 bits as the 64-bit floats that they count as, and which are missing.

    None where all of them are such floats already. They stay whole numbers, as the type of a column
    is part of a model. XGBoost reads columns of pandas so by itself (`read-cells-alone.patch`).
    """
    cells = cells_of(values, "feature")
    with np.errstate(invalid="ignore"):
        if not len(cells) or not ((cells > _WHOLE) | (cells < -_WHOLE)).any():
            return None
    kind = np.int64 if signed else np.uint64
    floats = np.nan_to_num(cells.astype(np.float64))
    top = floats >= float(np.iinfo(kind).max)
    whole = np.where(top, 0.0, floats).astype(kind)
    whole[top] = np.iinfo(kind).max
    return whole, np.isnan(cells.astype(np.float64))


def _numbers_pandas(X: Any) -> Any:
    import pandas as pd

    is_type, changed = pd.api.types, {}
    for name, kind in zip(X.columns, X.dtypes, strict=True):
        column, arrow = X[name], str(getattr(kind, "pyarrow_dtype", ""))
        if is_type.is_object_dtype(kind) or arrow == "null" or arrow.startswith("decimal"):
            changed[name] = _cells_of(name, column)
        elif isinstance(kind, pd.CategoricalDtype) or is_type.is_bool_dtype(kind):
            continue
        elif not is_type.is_numeric_dtype(kind):
            _refuse_type(name, kind, dates=getattr(kind, "kind", "") in ("m", "M"))
        elif getattr(kind, "kind", "f") == "c":
            _refuse_type(name, "complex (Complex data not supported)", dates=False)
    if not changed:
        return X
    X = X.copy(deep=False)
    for name, values in changed.items():
        X[name] = pd.Series(values, index=X.index)
    return X


def _numbers_polars(X: Any) -> Any:
    import polars as pl

    changed = []
    for name, kind in X.schema.items():
        if kind in (pl.Int64, pl.UInt64):
            found = _rounded(X[name], kind == pl.Int64)
            if found is not None:
                changed.append(pl.Series(pl.from_arrow(_masked(*found))).alias(name))
        elif kind in (pl.Object, pl.Null, pl.Int128) or kind.is_decimal():
            changed.append(pl.Series(name, _cells_of(name, X[name])))
        elif not (kind.is_numeric() or kind in (pl.Boolean, pl.Categorical, pl.Enum)):
            _refuse_type(name, kind, dates=kind.is_temporal())
    return X.with_columns(changed)


def _numbers_arrow(X: Any) -> Any:
    import pyarrow as pa

    types = pa.types
    for index, field in enumerate(X.schema):
        kind = field.type
        if types.is_null(kind) or types.is_decimal(kind):
            X = X.set_column(index, field.name, pa.array(_cells_of(field.name, X[field.name])))
        elif types.is_int64(kind) or types.is_uint64(kind):
            found = _rounded(X[field.name], types.is_int64(kind))
            if found is not None:
                X = X.set_column(index, field.name, _masked(*found))
        elif not (
            types.is_integer(kind)
            or types.is_floating(kind)
            or types.is_boolean(kind)
            or types.is_dictionary(kind)
        ):
            _refuse_type(field.name, kind, dates=types.is_temporal(kind))
    return X


def _masked(whole: np.ndarray, missing: np.ndarray) -> Any:
    import pyarrow as pa

    return pa.array(whole, mask=missing)


_CODE = {"pandas": _code_pandas, "polars": _code_polars, "pyarrow": _code_arrow}
_NUMBERS = {"pandas": _numbers_pandas, "polars": _numbers_polars, "pyarrow": _numbers_arrow}
_NAMED = {"pandas": _named_pandas, "polars": _named_polars, "pyarrow": _named_arrow}
