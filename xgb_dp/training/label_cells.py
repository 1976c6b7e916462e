"""Where labels lie, from noisy counts of them in cells: of their declared range, and of a part.

Reads what was released and public numbers only. The cells of the declared range grow with the
distance from 0, or from its end that is nearest to 0: a range that is too wide is so by a factor.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from scipy.optimize import isotonic_regression

from ..mechanisms.label_range import JUST_ABOVE, edges, weight_edges
from ..request.settings import Seen

_DEVIATIONS = 2.5631  # between the first and the last decile of a normal distribution
# Deviations of the noise of a sum that tell it from none, in any of the cells.
_CLEAR = 5.0
# The least spread, in widths of the declared range.
_LEAST = 1e-9
# Share of the rows that the spread leaves out at the far end.
_TAIL = 0.01
_LOST = 0.05  # share of all weight that may be cut off

Floats = npt.NDArray[np.float64]


def quantiles(
    sums: list[int], levels: tuple[float, ...], low: float, high: float, floor: float
) -> list[float]:
    """Values below which the given shares of the labels lie, in rising order."""
    # The nearest sequence that never falls, by squares.
    below = isotonic_regression(np.cumsum(np.asarray(sums, dtype=np.float64))).x
    total = float(below[-1])
    edges = np.linspace(low, high, len(sums) + 1)
    if total <= floor:
        return [low + level * (high - low) for level in levels]
    shares = np.concatenate([[0.0], np.clip(below / total, 0.0, 1.0)])
    return [float(np.interp(level, shares, edges)) for level in levels]


def spread(sums: list[int], low: float, high: float, floor: float) -> float:
    """About the standard deviation of the labels, at least half a cell; in their unit."""
    first, last = quantiles(sums, (0.1, 0.9), low, high, floor)
    return max((last - first) / _DEVIATIONS, (high - low) / (2 * len(sums)))


def top_weight(counts: Sequence[float], deviation: float, most: float) -> float:
    """A weight above which rows have a small share of all weight; 1 where noise hides all of it.

    Args:
        counts: Noisy numbers of rows, cell by cell.
        deviation: Standard deviation of their noise, in rows.
        most: The declared bound of weights.
    """
    ends = np.array([*weight_edges(most), most])
    rows = np.asarray(counts, dtype=np.float64)
    top = len(rows) - 1 - _first_holding(rows[::-1], deviation)
    if top < 0:
        return 1.0
    rows, ends = rows[: top + 1], ends[: top + 1]
    lost = math.fsum(rows * ends) * _LOST
    while top and math.fsum(rows[top:] * (ends[top:] - ends[top - 1])) <= lost:
        top -= 1
    return float(ends[top]) / (JUST_ABOVE if ends[top] < most else 1.0)


def seen(counts: Sequence[float], deviation: float, low: float, high: float) -> Seen | None:
    """What counts of the cells say; None where noise hides all of it."""
    ends = np.array([low, *edges(low, high), high])
    left, right = ends[:-1], ends[1:]
    anchor = min(max(0.0, low), high)
    values = np.asarray(counts, dtype=np.float64)
    places = np.arange(len(values))
    # From the far end of each side to the anchor.
    sides = [places[right <= anchor], places[left >= anchor][::-1]]
    there = np.concatenate([side[_holding(values[side], deviation)] for side in sides])
    if set(there) <= {side[-1] for side in sides if len(side)}:
        return None  # next to the anchor, no cell has a scale
    rows = np.zeros_like(values)
    rows[there] = np.maximum(values[there], 0.0)
    low_end, high_end = float(left[there.min()]), float(right[there.max()])
    for side in sides:  # few rows far away say nothing of the others
        rows[side[np.cumsum(rows[side]) < _TAIL * rows.sum()]] = 0.0
    middles = (left + right) / 2.0
    mean = math.fsum(rows * middles) / math.fsum(rows)
    # Labels are spread evenly in a cell, as far as anybody knows.
    squares = (middles - mean) ** 2 + (right - left) ** 2 / 12.0
    spread = math.sqrt(math.fsum(rows * squares) / math.fsum(rows))
    # So far below the declared width, 32-bit labels do not differ: it is noise in an empty cell.
    return Seen(low_end, high_end, spread) if spread > _LEAST * (high - low) else None


def _holding(counts: Floats, deviation: float) -> slice:
    """The cells from the first to the last that hold rows, as far as noise shows them."""
    first = _first_holding(counts, deviation)
    return slice(first, max(len(counts) - _first_holding(counts[::-1], deviation), first))


def _first_holding(counts: Floats, deviation: float) -> int:
    """Where the sum of some adjacent counts first stands out, and most of all; else their number.

    That of counts without rows does so with a probability of about 0.0003.
    """
    sums = np.concatenate([[0.0], np.cumsum(counts)])
    for last in range(1, len(sums)):
        clear = (sums[last] - sums[:last]) / np.sqrt(np.arange(last, 0, -1))
        if clear.max() > _CLEAR * deviation:
            return int(np.argmax(clear))
    return len(counts)
