"""The pair test: what two rows give alone is what they give together, or both raise.

What one row gives must not depend on another one. A reader gives one result for each row of a
container. :func:`check_pairs` reads every row alone, every two of them together in both orders, and
compares.
"""

import math
from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import numpy as np

from xgb_dp.errors import PrivacyError

Reader = Callable[[Any], Sequence[Any]]


def _outcome(read: Reader, container: Any, rows: int) -> tuple[str, ...] | None:
    """One text for each row; None where the reader refuses. All other errors fail the test."""
    try:
        results = list(read(container))
    except PrivacyError:
        return None
    assert len(results) == rows
    return tuple(map(_text, results))


def _text(value: Any) -> str:
    if isinstance(value, (float, np.number)):
        value = float(value)
        return "missing" if math.isnan(value) else repr(value)
    return repr(value)


def check_pairs(make: Callable[[list[Any]], Any], cells: Sequence[Any], *readers: Reader) -> None:
    """Compare what readers make of all pairs of cells with what they make of each alone."""

    def outcomes(picked: list[Any]) -> list[tuple[str, ...] | None]:
        container = make(picked)
        return [_outcome(read, container, len(picked)) for read in readers]

    alone = [outcomes([cell]) for cell in cells]
    wrong = []
    for (i, a), (j, b) in product(enumerate(cells), repeat=2):
        each = zip(alone[i], alone[j], outcomes([a, b]), strict=True)
        for number, (first, second, together) in enumerate(each):
            expected = None if first is None or second is None else first + second
            if together != expected:
                shown = f"{a!r} and {b!r} give {together}, alone {first} and {second}"
                wrong.append(f"reader {number}: {shown}")
    assert not wrong, "\n".join(wrong[:10])
    outcomes([])


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
