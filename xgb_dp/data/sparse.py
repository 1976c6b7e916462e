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

__all__ = ["check_sparse"]

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


def check_sparse(table: Any) -> None:
    """Refuse rows of a SciPy matrix or array that are no function of themselves."""
    scipy = sys.modules.get("scipy.sparse")  # a matrix of SciPy has loaded it
    if scipy is None or not scipy.issparse(table) or len(table.shape) != 2:
        return
    if table.format == "bsr":
        raise PrivacyParameterError(_BLOCKS)
    if table.format == "dok":  # a key is there once
        _check_inside(np.array(list(table.keys()), dtype=np.int64).reshape(-1, 2), table.shape)
        return
    if table.format == "dia":  # an offset is there once, and what lies outside is no cell
        return
    if table.format == "lil":
        rows = [np.asarray(row, dtype=np.int64) for row in table.rows]
        lengths = [len(row) for row in rows]
        _check_lines(
            np.append(0, np.cumsum(lengths, dtype=np.int64)),
            np.concatenate([*rows, np.empty(0, dtype=np.int64)]),
            table.shape[1],
        )
    elif table.format == "coo":
        if not len(table.row) == len(table.col) == len(table.data):
            raise RowDomainError(_ILL_FORMED)
        cells = np.stack([np.asarray(table.row), np.asarray(table.col)], axis=1).astype(np.int64)
        _check_inside(cells, table.shape)
        order = np.lexsort((cells[:, 1], cells[:, 0]))
        if (np.diff(cells[order], axis=0) == 0).all(axis=1).any():
            raise RowDomainError(_TWICE)
    else:
        lines, across = table.shape if table.format == "csr" else table.shape[::-1]
        indptr = np.asarray(table.indptr)
        if len(indptr) != lines + 1 or len(table.indices) != len(table.data):
            raise RowDomainError(_ILL_FORMED)
        _check_lines(indptr, np.asarray(table.indices), across)


def _check_inside(cells: Integers, shape: tuple[int, int]) -> None:
    if not ((cells >= 0) & (cells < np.array(shape))).all():
        raise RowDomainError(_OUTSIDE)


def _check_lines(indptr: Integers, indices: Integers, across: int) -> None:
    """Each line, from `indptr[i]` to `indptr[i + 1]`, has distinct indices below `across`."""
    indptr = indptr.astype(np.int64)
    lengths = indptr[1:] - indptr[:-1]
    if indptr[0] != 0 or (lengths < 0).any() or indptr[-1] > len(indices):
        raise RowDomainError(_ILL_FORMED)
    indices = indices[: indptr[-1]]
    if not ((indices >= 0) & (indices < across)).all():
        raise RowDomainError(_OUTSIDE)
    rising = indices[1:] > indices[:-1]
    starts = indptr[1:-1]  # a line begins here, whatever came before
    rising[starts[(starts > 0) & (starts < len(indices))] - 1] = True
    if rising.all():
        return
    line = np.repeat(np.arange(len(lengths)), lengths)
    order = np.lexsort((indices, line))
    if ((np.diff(indices[order]) == 0) & (np.diff(line[order]) == 0)).any():
        raise RowDomainError(_TWICE)
