"""Whether an object still holds the rows that it held: a digest of what is in it.

The digests are kept in memory for as long as the object lives, and are shown to nobody.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

import numpy as np


def digest(thing: Any) -> bytes | None:
    """A digest of what may be changed in place; None for what cannot be read, by its type alone."""
    state = hashlib.blake2b(digest_size=16)
    try:
        for piece in _pieces(thing):
            state.update(piece)
    except Exception:  # a container of its own kind: whatever it raises, it is not known
        return None
    return state.digest()


def _pieces(thing: Any) -> Iterator[bytes]:
    """Everything that counts, one array after the other."""
    module = type(thing).__module__.partition(".")[0]
    if module == "xgboost":  # its features cannot be changed
        for read in (thing.get_label, thing.get_weight, thing.get_base_margin):
            yield from _of_array(np.asarray(read()))
        for name in ("label_lower_bound", "label_upper_bound"):  # labels that are intervals
            yield from _of_array(np.asarray(thing.get_float_info(name)))
    elif module == "pandas":
        columns = [thing] if thing.ndim == 1 else [thing.iloc[:, i] for i in range(thing.shape[1])]
        for column in columns:
            yield ascii(getattr(column, "name", None)).encode()
            yield from _of_column(column)
    elif module == "polars":
        yield ascii(thing.columns if hasattr(thing, "columns") else thing.name).encode()
        hashed = thing.hash_rows() if hasattr(thing, "hash_rows") else thing.hash()
        yield hashed.to_numpy().tobytes()
    elif hasattr(thing, "indptr"):
        for name in ("data", "indices", "indptr"):
            yield from _of_array(getattr(thing, name))
    elif isinstance(thing, np.ndarray):
        yield from _of_array(thing)
    elif module not in ("pyarrow", "xgb_dp"):  # these never change
        raise TypeError("a container of another kind")


def _of_column(column: Any) -> Iterator[bytes]:
    """A column of pandas, whose own hashes refuse some texts and objects."""
    import pandas as pd

    kind = column.dtype
    if isinstance(kind, pd.CategoricalDtype):
        yield from _of_array(column.cat.codes.to_numpy())
        yield from _of_array(np.asarray(kind.categories, dtype=object))
    elif kind == "object" or isinstance(kind, pd.StringDtype):
        yield from _of_array(column.to_numpy(dtype=object))
    else:
        yield pd.util.hash_pandas_object(column, index=False).to_numpy().tobytes()


def _of_array(values: np.ndarray) -> Iterator[bytes]:
    yield repr((values.shape, values.dtype.str)).encode()
    if values.dtype.hasobject:
        cells = values.ravel().tolist()
        yield np.fromiter(map(_hash, cells), dtype=np.int64, count=len(cells)).tobytes()
    else:
        yield np.ascontiguousarray(values).tobytes()


def _hash(cell: Any) -> int:
    """A hash of any object: whether a digest exists must not depend on one cell."""
    try:
        return hash(cell)
    except Exception:  # of what has none, such as a list, which no training reads
        return hash(id(cell))
