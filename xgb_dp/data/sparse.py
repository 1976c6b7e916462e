"""Sparse matrices whose rows are read alone: each cell is given once, in a column that there is.

What libraries make of a cell that is given twice depends on the other rows: SciPy adds such entries
or keeps them by the format, and XGBoost keeps the first or the last one by whether all rows are in
order. So a row with such a cell is refused by itself, before anything reads the matrix.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import PrivacyParameterError, RowDomainError

_TWICE = (
    "A row has two entries in one column. Give every cell of a sparse matrix once, and drop or "
    "mend such rows one by one."
)
_OUTSIDE = (
    "A row has an entry in a column that the matrix does not have, or an entry is in no row. Give "
    "the matrix its number of columns, and drop such rows."
)
_BLOCKS = (
    "A sparse matrix in the format bsr stores a cell of 0 where another cell of its block is none: "
    "other rows say whether a cell is 0 or missing. Give it as csr: matrix.tocsr()."
)
_ILL_FORMED = (
    "A row of the sparse matrix does not say which entries it has: `indptr`, `indices` and `data` "
    "do not fit each other. Build the matrix anew from its cells."
)

Integers = npt.NDArray[np.integer[Any]]


def is_sparse(table: Any) -> bool:
    """Whether something is a matrix or array of SciPy, which has then been loaded."""
    scipy = sys.modules.get("scipy.sparse")
    return scipy is not None and bool(scipy.issparse(table))


def check_sparse(table: Any) -> None:
    """Refuse rows of a SciPy matrix or array that are no function of themselves."""
    if not is_sparse(table) or len(table.shape) != 2:
        return
    if table.format == "bsr":
        raise PrivacyParameterError(_BLOCKS)
    if table.format == "dia":  # an offset is there once, and what lies outside is no cell
        return
    lines, places = _entries(table)
    n_lines, n_places = table.shape[::-1] if table.format == "csc" else table.shape
    inside = (lines >= 0) & (lines < n_lines) & (places >= 0) & (places < n_places)
    if not inside.all():
        raise RowDomainError(_OUTSIDE)
    if _is_rising(lines, places):
        return
    order = np.lexsort((places, lines))
    if not _is_rising(lines[order], places[order]):
        raise RowDomainError(_TWICE)


def _is_rising(lines: Integers, places: Integers) -> bool:
    """Whether each entry comes behind the one before, line by line."""
    same_line = lines[1:] == lines[:-1]
    behind = (lines[1:] > lines[:-1]) | (same_line & (places[1:] > places[:-1]))
    return bool(behind.all())


def _entries(table: Any) -> tuple[Integers, Integers]:
    """The line (a row, or a column of csc) of each entry, and its place there."""
    if table.format == "dok":
        keys = np.array(list(table.keys()), dtype=np.int64).reshape(-1, 2)
        return keys[:, 0], keys[:, 1]
    if table.format == "coo":
        if not len(table.row) == len(table.col) == len(table.data):
            raise RowDomainError(_ILL_FORMED)
        return np.asarray(table.row), np.asarray(table.col)
    if table.format == "lil":
        rows = [np.asarray(row, dtype=np.int64) for row in table.rows]
        lengths = np.array([len(row) for row in rows], dtype=np.int64)
        places = np.concatenate([*rows, np.empty(0, dtype=np.int64)])
    else:
        indptr = np.asarray(table.indptr).astype(np.int64)
        lengths, places = np.diff(indptr), np.asarray(table.indices)
        n_lines = table.shape[1] if table.format == "csc" else table.shape[0]
        fits = len(indptr) == n_lines + 1 and len(places) == len(table.data)
        if not fits or indptr[0] != 0 or (lengths < 0).any() or indptr[-1] > len(places):
            raise RowDomainError(_ILL_FORMED)
        places = places[: indptr[-1]]
    kind = np.int32 if len(lengths) < 1 << 31 else np.int64
    return np.repeat(np.arange(len(lengths), dtype=kind), lengths), places
