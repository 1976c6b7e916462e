"""The pair test: what two rows give alone is what they give together, or both raise.

What one row gives must not depend on another one. A reader is a function of a list of rows that
gives one result for each of them, whatever stands between the rows and the results: a container, a
batch, a partition, a matrix. :func:`check_pairs` reads every row alone, every two of them together
in both orders, and compares.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import numpy as np

from xgb_dp.errors import PrivacyError

Reader = Callable[[list[Any]], Sequence[Any]]


def outcome(read: Reader, rows: list[Any]) -> tuple[str, ...] | None:
    """One text for each row; None where the reader refuses. All other errors fail the test."""
    try:
        found = list(read(rows))
    except PrivacyError:
        return None
    assert len(found) == len(rows)
    return tuple(map(_text, found))


def _text(value: Any) -> str:
    if isinstance(value, (float, np.number)):
        value = float(value)
        return "missing" if math.isnan(value) else repr(value)
    return repr(value)


def check_pairs(read: Reader, rows: Sequence[Any], what: str = "") -> int:
    """Compare all pairs of rows with what each of them gives alone.

    Args:
        read: See the module. It may raise a ``PrivacyError``; then each pair with the row must.
        rows: Rows of any kind.
        what: Says which reader it is, if the test fails.

    Returns:
        Number of pairs.
    """
    alone = [outcome(read, [row]) for row in rows]
    wrong = []
    for (i, a), (j, b) in product(enumerate(rows), repeat=2):
        first, second = alone[i], alone[j]
        expected = None if first is None or second is None else first + second
        found = outcome(read, [a, b])
        if found != expected:
            wrong.append(f"{what}: {a!r} and {b!r} give {found}, alone {first} and {second}")
    assert not wrong, "\n".join(wrong[:10])
    outcome(read, [])
    return len(rows) ** 2


def objects(cells: list[Any]) -> np.ndarray:
    out = np.empty(len(cells), dtype=object)
    for i, cell in enumerate(cells):
        out[i] = cell
    return out


HIDDEN = "314159"  # the cell that a mask hides


def masked(cells: list[Any], kind: Any) -> Any:
    """A column of a masked array: the hidden cell is missing, whatever fills the others."""
    hidden = [[type(cell) is str and cell == HIDDEN] for cell in cells]
    values = np.array([[cell] for cell in objects(cells)], kind).reshape(-1, 1)
    return np.ma.masked_array(values, np.array(hidden, bool).reshape(-1, 1))


class Converted:
    """A container that NumPy reads by giving all cells one type."""

    def __init__(self, cells: list[Any]) -> None:
        self.cells = cells

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return np.array(self.cells, dtype)
