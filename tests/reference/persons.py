"""The bound of all rows of a person, on integers that keep that of a row."""

import math

import numpy as np
import numpy.typing as npt

from .splits import Doubles, Floats, Ints, RowBound

FRACTION = 1 << 10  # of a unit, in which the norms of rows are summed


def bound_persons(
    bound: RowBound,
    by_class: list[Ints],
    codes: npt.NDArray[np.int64],
    norms: Doubles,
    keys: npt.NDArray[np.uint64] | None = None,
) -> None:
    """Let the rows of each person together count no more than a person may, in place."""
    keys = np.zeros(len(codes), dtype=np.uint64) if keys is None else keys
    together = bound.mode == "prediction"
    for person in np.flatnonzero(np.bincount(codes) > 1):
        rows = np.flatnonzero(codes == person)
        rows = rows[np.argsort(keys[rows], kind="stable")]
        for group in [by_class] if together else [[pairs] for pairs in by_class]:
            given = np.hstack([pairs[rows, :2] for pairs in group])
            kept = bound_person(bound, given, norms[rows] if together else None)
            for k, pairs in enumerate(group):
                pairs[rows, :2] = kept[:, 2 * k : 2 * k + 2]


def keys_of_rows(X: Floats, *columns: Floats | None) -> npt.NDArray[np.uint64]:
    """A number for what each row holds, wherever it lies."""
    keys = np.zeros(len(X), dtype=np.uint64)
    for part in columns:
        for column in np.reshape(part, (len(keys), -1)).T if part is not None else ():
            keys = _mixed(keys, 0, column)
    for j, column in enumerate(X.T):
        keys = np.where(np.isnan(column), keys, _mixed(keys, j + 1, column))
    return keys


def _mixed(keys: npt.NDArray[np.uint64], place: int, column: Floats) -> npt.NDArray[np.uint64]:
    """The mixer of splitmix, of the place and the bits of a number."""
    bits = np.ascontiguousarray(column, dtype=np.float32).view(np.uint32).astype(np.uint64)
    z = keys + (np.uint64(place << 32) | bits) + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(z ^ (z >> np.uint64(31)))


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
            shares = [
                -(-abs(v) * bound.B * FRACTION // most)
                for v, most in zip(values, bound.output_max * (len(values) // 2), strict=True)
            ]
            size += max(root + (root * root < square), *shares)
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


def spread_persons(
    bound: RowBound, variance: float, given: list[Ints], bounded: list[Ints], codes: Ints,
    where: Ints, nodes: int,
) -> Ints:  # fmt: skip
    """By class and node, what leaves gain where persons may count more than in the splits."""
    out = np.zeros((len(given), nodes, 3), dtype=np.int64)
    K = bound.most / bound.B
    of_hessian = K * bound.B / bound.most_leaf_hessian
    if variance > 0:
        of_hessian = 2.0 * variance / (math.sqrt(bound.r) * bound.C)
    of_hessian /= bound.B
    for person in np.flatnonzero(np.bincount(codes) > 1):
        rows = np.flatnonzero(codes == person)
        hessian = float(sum(int(pairs[rows, 1].sum()) for pairs in given))
        factor = K / max(K, math.sqrt(of_hessian * hessian))
        vector = {}
        for leaf in np.unique(where[rows]).tolist():
            here = rows[where[rows] == leaf]
            sums = np.array([pairs[here, :2].sum(axis=0) for pairs in given])
            vector[leaf] = np.rint(sums * factor).astype(np.int64)
            for k, pairs in enumerate(bounded):
                out[k, leaf, :2] -= pairs[here, :2].sum(axis=0)
        for leaf, value in within(bound, vector).items():
            out[:, leaf, :2] += value
    return out


def within(bound: RowBound, vector: dict[int, Ints]) -> dict[int, Ints]:
    """A vector of leaf sums within the bounds of gradients and Hessians each."""
    for j, most in enumerate((bound.most, bound.most_leaf_hessian)):
        squares = sum(int(v) ** 2 for value in vector.values() for v in value[:, j])
        size = math.isqrt(squares)
        size += size * size < squares
        for value in vector.values() if size > most else ():
            for k, v in enumerate(value[:, j]):
                value[k, j] = int(math.copysign(abs(int(v)) * most // size, v))
    return vector
