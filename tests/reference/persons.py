"""The bound of all rows of a person, on integers that keep that of a row."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from .splits import Doubles, Ints, RowBound

FRACTION = 1 << 10  # of a unit, in which the norms of rows are summed


def bound_persons(
    bound: RowBound, by_class: list[Ints], codes: npt.NDArray[np.int64], norms: Doubles
) -> None:
    """Let the rows of each person together count no more than a person may, in place.

    Args:
        bound: Of a row, and of a person.
        by_class: Of each class, (gradient, Hessian, 1) of every row.
        codes: The person of every row.
        norms: The largest norm of each row over the labels, where C = 1; for "prediction" only.
    """
    together = bound.mode == "prediction"
    for person in np.flatnonzero(np.bincount(codes) > 1):
        rows = np.flatnonzero(codes == person)
        for group in [by_class] if together else [[pairs] for pairs in by_class]:
            given = np.hstack([pairs[rows, :2] for pairs in group])
            kept = bound_person(bound, given, norms[rows] if together else None)
            for k, pairs in enumerate(group):
                pairs[rows, :2] = kept[:, 2 * k : 2 * k + 2]


def bound_person(bound: RowBound, given: Ints, norms: Doubles | None) -> Ints:
    """The integers of one person whose norms sum to at most P."""
    limit = bound.most * FRACTION
    size = size_of(bound, given)
    if norms is None:
        scale = min(1.0, limit / size) if size else 1.0
    else:
        total = 0.0
        for norm in norms:
            total += float(norm)
        scale = (bound.most / bound.B) / max(total, bound.most / bound.B)
    kept = spread(given, scale) if scale < 1.0 else given
    for i in range(4):
        size = size_of(bound, kept)
        if size <= limit:
            return kept
        scale *= limit / size * (1.0 - 2.0 ** (2 * i - 13))
        kept = spread(given, scale)
    size = size_of(bound, kept)
    if size > limit:
        kept = np.array([[int(math.copysign(abs(int(v)) * limit // size, v)) for v in row]
                         for row in kept])  # fmt: skip
    return kept


def size_of(bound: RowBound, rows: Ints) -> int:
    """Sum of the norms of some rows, each rounded up to a fraction of a unit."""
    size = 0
    for row in rows:
        values = [int(v) for v in row]
        if bound.mode in ("prediction", "row_weight"):
            square = sum(v * v for v in values) * FRACTION**2
            root = math.isqrt(square)
            size += root + (root * root < square)
        else:
            largest = max(abs(values[0]) * bound.hessian_max, values[1] * bound.B)
            size += -(-largest * FRACTION // bound.hessian_max)
    return size


def spread(given: Ints, scale: float) -> Ints:
    """Rows times a factor; what rounding takes from one of them, the next ones get."""
    out = np.zeros_like(given)
    for j in range(given.shape[1]):
        left = 0.0
        for i, value in enumerate(given[:, j]):
            exact = float(value) * scale + left
            most = abs(float(value))
            out[i, j] = int(min(max(np.rint(exact), -most), most))
            left = exact - float(out[i, j])
    return out
