"""Where splits may be: the private quantile tree on float keys, cuts read from it, and bins."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from .draws import Noise

Floats = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int64]

FLT_MAX = float(np.finfo(np.float32).max)
FLT_MIN = float(np.finfo(np.float32).tiny)
KEY_OF_ZERO = 0x80000000
OCTAVE = 1 << 23  # keys of one octave: the mantissa of a float32
MISSING = -1


def key_of(values: Floats) -> Ints:
    """Order-preserving 32-bit keys of finite floats; -0 is +0."""
    positive_zero = np.where(values == 0, np.float32(0), values).astype(np.float32)
    bits = positive_zero.view(np.uint32).astype(np.int64)
    return np.where(bits & KEY_OF_ZERO, bits ^ 0xFFFFFFFF, bits | KEY_OF_ZERO)


def value_of(key: int) -> float:
    """The float of a key: the inverse of `key_of`."""
    bits = key ^ KEY_OF_ZERO if key >= KEY_OF_ZERO else key ^ 0xFFFFFFFF
    return float(np.array(bits, dtype=np.uint32).view(np.float32))


class Cell(NamedTuple):
    """A leaf of the walk: the keys [low, high), and the estimated count of rows in it."""

    low: int
    high: int
    estimate: float


def walk(column: Floats, options: dict[str, Any], noise: Noise) -> tuple[list[Cell], float]:
    """Cells in ascending order, and the target count of a bin, both from noisy counts only."""
    levels, sigma2 = int(options["levels"]), int(options["sigma2"])
    scale = 1 << int(options["shift"])
    keys = key_of(column[~np.isnan(column)])

    def noisy(level: int, cell: int) -> float:
        count = int(np.count_nonzero(keys >> (32 - level) == cell))
        return (count * scale + noise.gaussian(sigma2)) / float(scale)

    deviation = 0.0 if noise.off else math.sqrt(sigma2) / scale
    root = max(noisy(0, 0), 0.0)
    target = max(root / int(options["max_bin"]), 1.0)
    threshold = max(target, 2 * deviation)
    cells: list[Cell] = []

    def visit(level: int, cell: int, estimate: float) -> None:
        if level == levels - 1 or estimate <= threshold:
            width = 1 << (32 - level)
            cells.append(Cell(cell * width, (cell + 1) * width, estimate))
            return
        left = noisy(level + 1, 2 * cell)
        right = noisy(level + 1, 2 * cell + 1)
        excess = (estimate - left - right) / 2  # children must add up to their parent
        left += excess
        right += excess
        if left < 0:
            left, right = 0.0, estimate
        elif right < 0:
            left, right = estimate, 0.0
        visit(level + 1, 2 * cell, left)
        visit(level + 1, 2 * cell + 1, right)

    visit(0, 0, root)
    return cells, target


def private_cuts(column: Floats, options: dict[str, Any], noise: Noise) -> Floats:
    """Cut values of one feature; data-free after the walk."""
    cells, target = walk(column, options, noise)
    powers = [float(m * 2.0**k) for k in range(-6, 18) for m in (1, 1.5)]
    public = key_of(np.array([0.0, *powers, *(-p for p in powers)], dtype=np.float32))
    cuts: set[int] = set()
    collected = 0.0
    for low, high, estimate in cells:
        heavy = estimate >= 1.5 * target
        if collected >= target or heavy:
            cuts.add(low)
            collected = 0.0
        if not heavy:
            collected += estimate
            continue
        if low < KEY_OF_ZERO < high or high - low > OCTAVE:
            cuts.update(int(k) for k in public if low < k < high)
        else:
            pieces = min(16, math.ceil(estimate / target))
            cuts.update(low + i * (high - low) // pieces for i in range(1, pieces))
        cuts.add(high)
    values = [value_of(key) for key in sorted(cuts) if 0 < key < 1 << 32]
    values = sorted({FLT_MIN if 0 < v < FLT_MIN else v for v in values})  # never subnormal
    kept = [v for v in values if v == 0 or (FLT_MIN <= abs(v) <= FLT_MAX and v != FLT_MAX)]
    return np.array([*kept, FLT_MAX], dtype=np.float32)


@dataclass
class Feature:
    """One column in bins: `bins` holds a bin or MISSING per row, `cuts` is None if categorical."""

    cuts: Floats | None
    size: int
    bins: Ints


def bin_features(plan: dict[str, Any], X: Floats, noise: Noise) -> list[Feature]:
    """Cuts (private ones draw noise, in ascending order of features) and bins of every column."""
    features = []
    for column, spec in zip(X.T, plan["features"], strict=True):
        absent = np.isnan(column)
        if spec["kind"] == "categorical":
            codes = np.where(absent, MISSING, np.nan_to_num(column)).astype(np.int64)
            features.append(Feature(None, int(spec["size"]), codes))
            continue
        if spec["kind"] == "private":
            cuts = private_cuts(column, plan["candidates"], noise)
        else:
            cuts = np.array([*spec["cuts"], FLT_MAX], dtype=np.float32)
        bins = np.minimum(np.searchsorted(cuts, column, side="right"), len(cuts) - 1)
        features.append(Feature(cuts, len(cuts), np.where(absent, MISSING, bins)))
    return features
