"""The same rows in every kind of table that a user may hand over."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import scipy.sparse as sp

Rows = list[tuple[float, str | None]]  # a number, and a category or None
NAMES = ["u", "v", "wé"]


def _numbers(rows: Rows) -> np.ndarray:
    """Codes in place of categories; shape (rows, 2), also without rows."""
    codes = [[a, np.nan if c is None else float(NAMES.index(c))] for a, c in rows]
    return np.array(codes, dtype=np.float32).reshape(len(rows), 2)


def _dense(rows: Rows) -> np.ndarray:
    return np.nan_to_num(_numbers(rows))


def _pandas(rows: Rows, number: Any = "float64", name: Any = "str") -> pd.DataFrame:
    a = pd.Series([a for a, _ in rows], dtype="float64").astype(number)
    c = pd.Series([c for _, c in rows], dtype=object)
    return pd.DataFrame({"a": a, "c": c.astype(name)})


def _polars(rows: Rows, name: Any) -> pl.DataFrame:
    a = pl.Series("a", [a for a, _ in rows], dtype=pl.Float64)
    return pl.DataFrame([a, pl.Series("c", [c for _, c in rows], dtype=pl.String).cast(name)])


def _arrow(rows: Rows, dictionary: bool, chunks: bool) -> pa.Table:
    """One chunk, or as many as there are rows: without rows there is then none."""
    parts = [[row] for row in rows] if chunks else [rows]
    kind = pa.dictionary(pa.int32(), pa.string()) if dictionary else pa.string()
    names = [pa.array([c for _, c in part], pa.string()) for part in parts]
    coded = [n.dictionary_encode() if dictionary else n for n in names]
    a = pa.chunked_array([pa.array([a for a, _ in p], pa.float64()) for p in parts], pa.float64())
    return pa.table({"a": a, "c": pa.chunked_array(coded, kind)})


ARRAYS: dict[str, Callable[[Rows], Any]] = {
    "float32": _numbers,
    "float64": lambda r: _numbers(r).astype(np.float64),
    "float16": lambda r: _numbers(r).astype(np.float16),
    "fortran": lambda r: np.asfortranarray(_numbers(r)),
    "int": lambda r: _dense(r).astype(np.int64),
    "bool": lambda r: _dense(r) > 0,
    "objects": lambda r: _numbers(r).astype(object),
    "csr": lambda r: sp.csr_matrix(_dense(r)),
    "csr array": lambda r: sp.csr_array(_dense(r)),
    "csc": lambda r: sp.csc_matrix(_dense(r)),
    "coo": lambda r: sp.coo_matrix(_dense(r)),
    "lil": lambda r: sp.lil_matrix(_dense(r)),
}
LISTS: dict[str, Callable[[Rows], Any]] = {  # show their columns only if there are rows
    "list": lambda r: _numbers(r).tolist(),
    "tuple": lambda r: tuple(map(tuple, _numbers(r).tolist())),
}
FRAMES: dict[str, Callable[[Rows], Any]] = {
    "pandas": _pandas,
    "pandas nullable": lambda r: _pandas(r, "Float32", "string"),
    "pandas sparse": lambda r: _pandas(r, pd.SparseDtype("float64")),
    "pandas arrow": lambda r: _pandas(r, "double[pyarrow]", "string[pyarrow]"),
    "pandas category": lambda r: _pandas(r, name="category"),
    "pandas objects": lambda r: _pandas(r, object, object),
    "polars": lambda r: _polars(r, pl.String),
    "polars category": lambda r: _polars(r, pl.Categorical),
    "polars enum": lambda r: _polars(r, pl.Enum(NAMES)),
    "polars lazy": lambda r: _polars(r, pl.String).lazy(),
    "arrow": lambda r: _arrow(r, dictionary=False, chunks=False),
    "arrow dictionary": lambda r: _arrow(r, dictionary=True, chunks=False),
    "arrow chunks": lambda r: _arrow(r, dictionary=False, chunks=True),
    "arrow dictionary chunks": lambda r: _arrow(r, dictionary=True, chunks=True),
}
