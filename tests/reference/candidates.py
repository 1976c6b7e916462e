"""Where splits may be: the private quantile tree on float keys, cuts read from it, and bins."""

import math
from collections.abc import Sequence
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
    """A leaf of a walk: the keys [low, high), and the estimated count of rows in it."""

    low: int
    high: int
    estimate: float


class KeyCells:
    """The finest cells of a tree: runs of keys between public ends, or of all keys without."""

    def __init__(self, levels: int, ends: npt.ArrayLike = ()) -> None:
        keys = key_of(np.asarray(ends, dtype=np.float32))
        self.low, self.high = (int(keys[0]), int(keys[-1])) if len(keys) else (0, (1 << 32) - 1)
        # The narrowest cells of which the tree has enough.
        self.shift = next(
            s for s in range(33) if (self.high >> s) - (self.low >> s) < 1 << (levels - 1)
        )

    def of(self, values: Floats) -> Ints:
        """The cell of each value; beyond the ends the first and the last one."""
        cells: Ints = np.clip(key_of(values), self.low, self.high) >> self.shift
        return cells - (self.low >> self.shift)

    def begin(self, cell: int) -> int:
        """Its first key; of cells beyond the ends the one after them."""
        key = ((self.low >> self.shift) + cell) << self.shift
        return min(max(key, self.low), self.high + 1)


class Walk:
    """The walk of one column's tree, level by level; from noisy counts only."""

    def __init__(
        self,
        column: Floats,
        options: dict[str, Any],
        noise: Noise,
        weight: Ints | None = None,
        ends: npt.ArrayLike = (),
    ) -> None:
        self.levels, self.sigma2 = int(options["levels"]), int(options["sigma2"])
        self.scale, self.noise = 1 << int(options["shift"]), noise
        here = ~np.isnan(column)
        self.keys = KeyCells(self.levels, ends)
        self.at = self.keys.of(column[here])
        ones = np.full(len(column), self.scale, dtype=np.int64)
        self.counted = (ones if weight is None else weight)[here]
        root = max(self._noisy(0, 0), 0.0)
        self.target = max(root / int(options["max_bin"]), 1.0)
        deviation = 0.0 if noise.off else math.sqrt(self.sigma2) / self.scale
        self.threshold = max(self.target, 2 * deviation)
        self.open = {0: root}  # estimates of the cells of this level
        self._closed: list[Cell] = []

    def _noisy(self, level: int, cell: int) -> float:
        count = int(self.counted[self.at >> (self.levels - 1 - level) == cell].sum())
        return (count + self.noise.gaussian(self.sigma2)) / float(self.scale)

    def descend(self, level: int) -> None:
        """From the cells of a level to those of the next."""
        children: dict[int, float] = {}
        for cell, estimate in self.open.items():
            if level == self.levels - 1 or estimate <= self.threshold:
                width = self.levels - 1 - level
                begin, end = (self.keys.begin(c << width) for c in (cell, cell + 1))
                self._closed.append(Cell(begin, end, estimate))
                continue
            left = self._noisy(level + 1, 2 * cell)
            right = self._noisy(level + 1, 2 * cell + 1)
            excess = (estimate - left - right) / 2  # children must add up to their parent
            left += excess
            right += excess
            if left < 0:
                left, right = 0.0, estimate
            elif right < 0:
                left, right = estimate, 0.0
            children |= {2 * cell: left, 2 * cell + 1: right}
        self.open = children

    @property
    def cells(self) -> list[Cell]:
        """The leaves, in ascending order."""
        return sorted(self._closed)


def walk(
    columns: list[Floats],
    options: dict[str, Any],
    noise: Noise,
    weight: Ints | None = None,
    ends: Sequence[npt.ArrayLike] | None = None,
) -> list[Walk]:
    """The trees of all columns, one level of all at a time; of some at once where they are many."""
    at_once = (1 << 25) >> (int(options["levels"]) - 1)
    done: list[Walk] = []
    for begin in range(0, len(columns), at_once):
        walks = [
            Walk(columns[k], options, noise, weight, ends[k] if ends else ())
            for k in range(begin, min(begin + at_once, len(columns)))
        ]
        for level in range(int(options["levels"])):
            for tree in walks:
                tree.descend(level)
        done += walks
    return done


def private_cuts(tree: Walk) -> Floats:
    """Cut values of one feature; data-free after the walk."""
    cells, target = tree.cells, tree.target
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
    values = [value_of(key) for key in sorted(cuts) if tree.keys.low < key <= tree.keys.high]
    values = sorted({FLT_MIN if 0 < v < FLT_MIN else v for v in values})  # never subnormal
    kept = [v for v in values if v == 0 or (FLT_MIN <= abs(v) <= FLT_MAX and v != FLT_MAX)]
    return np.array([*kept, FLT_MAX], dtype=np.float32)


@dataclass
class Feature:
    """One column in bins: `bins` holds a bin or MISSING per row, `cuts` is None if categorical."""

    cuts: Floats | None
    size: int
    bins: Ints


def equal_mass(edges: Floats, mass: Ints, bins: int) -> Floats:
    """Inner edges with at least total / bins of the mass between two of them."""
    total, passed = int(np.maximum(mass, 0).sum()), 0
    cuts = []
    for edge, m in zip(edges[1:-1], mass[:-1], strict=True):
        passed += max(int(m), 0)
        if passed > 0 and passed * bins >= total:
            cuts.append(edge)
            passed = 0
    return np.array(cuts, dtype=np.float32)


def refine(edges: Floats, mass: Ints, bins: int) -> Floats:
    """Edges of at most `bins` bins: light neighbours merged, heavy bins cut into pieces."""
    target = max(float(mass.sum()) / bins, 1.0)
    merged: list[tuple[float, float, float]] = []  # begin, end, mass
    light: list[int] = []
    for i, m in enumerate([*mass, None]):
        if light and (m is None or m >= target or float(sum(mass[light])) >= target):
            ends = float(edges[light[0]]), float(edges[light[-1] + 1])
            merged.append((*ends, float(sum(mass[light]))))
            light = []
        if m is not None and m >= target:
            merged.append((float(edges[i]), float(edges[i + 1]), float(m)))
        elif m is not None:
            light.append(i)
    pieces = [1] * len(merged)
    for _ in range(bins - len(merged)):
        each = [m / n for (_, _, m), n in zip(merged, pieces, strict=True)]
        if max(each) > 0:
            pieces[int(np.argmax(each))] += 1
    out = [np.float32(edges[0])]
    for (low, high, _), n in zip(merged, pieces, strict=True):
        for k in range(1, n + 1):
            edge = np.float32(high if k == n else low + (high - low) * k / n)
            if abs(edge) < FLT_MIN:
                edge = np.float32(0.0)
            if edge > out[-1]:
                out.append(edge)
    return np.array(out, dtype=np.float32)


class Candidates:
    """Cuts of all columns; private ones are released again in the first rounds of a plan."""

    def __init__(
        self, plan: dict[str, Any], X: Floats, noise: Noise, sharing: Ints | None = None
    ) -> None:
        self.plan, self.X, self.noise = plan, X, noise
        self.sharing = np.ones(len(X), dtype=np.int64) if sharing is None else sharing
        self.options = plan.get("candidates", {})
        self.edges = [np.array(s.get("grid", []), dtype=np.float32) for s in plan["features"]]

    def due(self, t: int) -> bool:
        """Whether round `t` has candidates of its own."""
        private = any(s["kind"] == "private" for s in self.plan["features"])
        return t == 0 or (private and t < int(self.options.get("rounds", 1)))

    def release(self, pairs: Ints) -> list[Feature]:
        """Cuts and bins of every column; `pairs` holds the Hessians that may be weights."""
        features = []
        ones = (1 << int(self.options.get("shift", 0))) // self.sharing
        weight = pairs[:, 1] if self.options.get("hessian") else ones
        trees = iter(self._trees(weight))
        for f, spec in enumerate(self.plan["features"]):
            column = self.X[:, f]
            absent = np.isnan(column)
            if spec["kind"] == "categorical":
                codes = np.where(absent, MISSING, np.nan_to_num(column)).astype(np.int64)
                features.append(Feature(None, int(spec["size"]), codes))
                continue
            if spec["kind"] == "cuts":
                cuts = np.array([*spec["cuts"], FLT_MAX], dtype=np.float32)
            elif self.options.get("kind", "quantile_tree") == "quantile_tree":
                cuts = private_cuts(next(trees))
            else:
                cuts = np.append(self._histogram_cuts(f, weight), np.float32(FLT_MAX))
            bins = np.minimum(np.searchsorted(cuts, column, side="right"), len(cuts) - 1)
            features.append(Feature(cuts, len(cuts), np.where(absent, MISSING, bins)))
        return features

    def _trees(self, weight: Ints) -> list[Walk]:
        kinds = [spec["kind"] for spec in self.plan["features"]]
        private = [f for f, kind in enumerate(kinds) if kind == "private"]
        if not private or self.options.get("kind", "quantile_tree") != "quantile_tree":
            return []
        columns, ends = [self.X[:, f] for f in private], [self.edges[f] for f in private]
        return walk(columns, self.options, self.noise, weight, ends)

    def _histogram_cuts(self, f: int, weight: Ints) -> Floats:
        column, edges, options = self.X[:, f], self.edges[f], self.options
        here = ~np.isnan(column)
        mass = np.zeros(len(edges) - 1, dtype=np.int64)
        np.add.at(mass, np.searchsorted(edges[1:-1], column[here], side="right"), weight[here])
        for i in range(len(mass)):
            mass[i] += (
                self.noise.laplace(int(options["scale"]))
                if options["laplace"]
                else self.noise.gaussian(int(options["sigma2"]))
            )
        if options["kind"] == "histogram":
            return equal_mass(edges, mass, int(options["max_bin"]))
        self.edges[f] = refine(edges, mass, int(options["max_bin"]))
        return self.edges[f][1:-1]


def bin_features(plan: dict[str, Any], X: Floats, noise: Noise) -> list[Feature]:
    """Cuts and bins of every column in the first round, rows counted."""
    return Candidates(plan, X, noise).release(np.ones((len(X), 3), dtype=np.int64))
