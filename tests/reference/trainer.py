"""The whole private training in NumPy: the algorithm of the docs, read from top to bottom.

An oracle for tests, written without looking at the C++: with the noise off, or with the noise of
a fixed key, both must grow the same trees. Sums are exact int64, the rest is float64 in a fixed
order of operations, and float32 only where XGBoost itself uses it (objective, cuts, leaves).
It is slow, holds everything in memory and checks no input.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from .candidates import MISSING, Feature, bin_features
from .draws import Noise
from .objective import gradients, initial_margin

Floats = npt.NDArray[np.float32]
Doubles = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Plan = dict[str, Any]
Tree = dict[str, list[Any]]


# ---------------------------------------------------------------------------- gradients
@dataclass
class RowBound:
    """What one row may add to the sums; every sensitivity and range follows from it."""

    mode: str
    C: float
    r: float
    h_max: float
    scale: float
    target: tuple[float, float]
    B: int

    @classmethod
    def of(cls, plan: Plan) -> RowBound:
        b = plan["row_bound"]
        target = (float(b.get("target_lower", "-inf")), float(b.get("target_upper", "inf")))
        C, r, h_max = (float(b[k]) for k in ("gradient_bound", "hessian_weight", "hessian_bound"))
        B = 1 << int(plan["grid_bits"])
        return cls(b["mode"], C, r, h_max, float(b["scale"]), target, B)

    @property
    def g_unit(self) -> float:
        """Gradient of one grid unit (in units of `scale`)."""
        return self.C / self.B

    @property
    def h_unit(self) -> float:
        """Hessian of one grid unit."""
        return self.C / (math.sqrt(self.r) * self.B)

    @property
    def hessian_max(self) -> int:
        """Largest Hessian integer of a row."""
        return math.ceil(math.sqrt(self.r) * self.h_max * self.B / self.C)

    def quantise(self, g: Doubles, h: Doubles, y: Doubles, regression: bool) -> Ints:
        """Rows (gradient, Hessian, 1) of grid integers that keep the bound exactly."""
        if regression:
            g = g + h * (y - np.clip(y, *self.target))
        g = g / self.scale
        finite = np.isfinite(g) & np.isfinite(h)
        g, h = np.where(finite, g, 0.0), np.where(finite, h, 0.0)
        B, C, r = self.B, self.C, self.r
        if self.mode == "row_weight":
            norm = np.sqrt(g * g + r * h * h)
            shrink = np.where(norm > C, C / np.where(norm > C, norm, 1.0), 1.0)
            gi = np.clip(np.rint(g * shrink * (B / C)), -B, B).astype(np.int64)
            hi = np.clip(np.rint(math.sqrt(r) * h * shrink * (B / C)), 0, B).astype(np.int64)
            for i in np.flatnonzero(gi * gi + hi * hi > B * B):
                hi[i] = math.isqrt(B * B - int(gi[i]) ** 2)
        else:
            gi = np.clip(np.rint(np.clip(g, -C, C) * (B / C)), -B, B).astype(np.int64)
            hi = np.rint(math.sqrt(r) * np.clip(h, 0.0, self.h_max) * (B / C))
            hi = np.minimum(hi, self.hessian_max).astype(np.int64)
        return np.stack([gi, hi, np.ones_like(gi)], axis=1)


# ---------------------------------------------------------------------------- splits
@dataclass
class Score:
    """phi of a node from its exact sums, in integer utility units, and the range of a change."""

    name: str
    bound: RowBound
    tau: float
    lam: float

    def phi(self, sums: Ints) -> Ints:
        """Utility of each row of `sums` (gradient, Hessian, rows) standing alone as one leaf."""
        if self.name == "l1":
            return np.abs(sums[..., 0])
        return np.floor(self.value(sums)).astype(np.int64)

    def ordered(self, below: Ints, above: Ints) -> Ints:
        """Utility of children whose weights must not decrease from `below` to `above`.

        Where the best weights are out of order the children share the best common one: a leaf
        with the sums of both and the penalty twice.
        """
        if self.name == "l1":  # weights of -1 and 1 only
            return np.maximum(np.abs(below[..., 0] + above[..., 0]), below[..., 0] - above[..., 0])
        pooled = Score(self.name, self.bound, self.tau, 2 * self.lam).phi(below + above)
        free = np.floor(self.value(below) + self.value(above)).astype(np.int64)
        return np.where(self.weight(below) <= self.weight(above), free, pooled)

    def weight(self, sums: Ints) -> Doubles:
        """The best weight of a leaf with these sums."""
        if self.name == "gain":
            return -sums[..., 0] / self.bound.B / np.maximum(sums[..., 2] + self.lam, 1e-300)
        g, h = sums[..., 0] * self.bound.g_unit, sums[..., 1] * self.bound.h_unit + self.lam
        w = np.where(np.abs(g) > self.tau * h, np.sign(g) * -self.tau, -g / np.maximum(h, 1e-300))
        return np.asarray(w)

    def value(self, sums: Ints) -> Doubles:
        """`phi` before it is rounded down."""
        if self.name == "gain":  # published gain S^2 / (n + lambda), S in units of C, n rows
            S, denominator = sums[..., 0] / self.bound.B, sums[..., 2] + self.lam
            value = np.where(denominator > 0, S * S / np.maximum(denominator, 1e-300), 0.0)
            return np.asarray(value * self.bound.B)
        g, h = sums[..., 0] * self.bound.g_unit, sums[..., 1] * self.bound.h_unit + self.lam
        w = self.weight(sums)
        return np.asarray(-(2.0 * w * g + h * w * w) / self.bound.g_unit)

    @property
    def range_int(self) -> int:
        """sup - inf over rows of the change of a utility, with slack for rounding."""
        B = self.bound.B
        if self.name == "l1":
            return 2 * B
        if self.name == "gain":
            return 4 * B + 64
        tau, r = self.tau, self.bound.r
        if self.bound.mode == "gradient":
            e = self.bound.hessian_max / (math.sqrt(r) * B)
            real = 4.0 * tau if tau * e <= 1.0 else (1.0 + tau * e) ** 2 / e
        else:  # the supremum over rows, on a fine sweep of the ellipse instead of its closed form
            angle = np.linspace(0.0, math.pi / 2, 2_000_001)
            g, h = np.cos(angle), np.sin(angle) / math.sqrt(r)
            w = np.minimum(tau, g / np.maximum(h, 1e-300))  # where 2wg - hw^2 is largest
            real = float(np.max(2 * tau * g + tau * tau * h + 2 * w * g - h * w * w))
        return math.ceil(real * B * (1.0 + 1e-12)) + 64


def left_sides(histogram: Ints, total: Ints, categorical: bool) -> Ints:
    """Sums going left for each candidate of one feature: each bin, missing right then left."""
    missing = total - histogram.sum(axis=0)
    # bins 0..i go left; or category c alone goes right
    left = histogram.sum(axis=0) - histogram if categorical else np.cumsum(histogram, axis=0)
    both = np.stack([left, left + missing], axis=1).reshape(-1, left.shape[1])
    return both if categorical else both[:-1]  # last cut: everything but the missing, once


def utilities(
    plan: Plan, features: list[Feature], allowed: list[int], pairs: Ints, rows: Ints, score: Score
) -> Ints:
    """Utility of every candidate at the node that holds `rows` (without "no split")."""
    total = pairs[rows].sum(axis=0)
    parts = []
    for f in allowed:
        feature, direction = features[f], plan["monotone"][f]
        bins = feature.bins[rows]
        histogram = np.zeros((feature.size, pairs.shape[1]), dtype=np.int64)
        np.add.at(histogram, bins[bins != MISSING], pairs[rows][bins != MISSING])
        left = left_sides(histogram, total, feature.cuts is None)
        right = total - left
        if direction == 0:
            parts.append(score.phi(left) + score.phi(right))
        else:
            parts.append(score.ordered(*((left, right) if direction > 0 else (right, left))))
    return np.concatenate(parts)


class Split(NamedTuple):
    """A candidate: bins up to `bin` go left, or category `bin` goes right."""

    feature: int
    bin: int
    missing_left: bool


def candidates(features: list[Feature], allowed: list[int]) -> list[Split]:
    """All candidates in the order of `utilities`."""
    out = []
    for f in allowed:
        feature = features[f]
        every = [Split(f, b, left) for b in range(feature.size) for left in (False, True)]
        out += every if feature.cuts is None else every[:-1]
    return out


def tree_features(plan: Plan, t: int, noise: Noise) -> list[int]:
    """Features of tree `t` of its class: all, the next ones in turn, or random ones."""
    n, k = plan["n_features"], plan["features_per_tree"]
    order = list(range(n))
    if k == n:
        return order
    if plan["cyclic_features"]:
        return sorted((t * k + i) % n for i in range(k))
    for i in range(k):
        j = i + noise.below(n - i)
        order[i], order[j] = order[j], order[i]
    return sorted(order[:k])


def allowed_features(plan: Plan, every: list[int], above: frozenset[int]) -> list[int]:
    """Features of the tree that may follow splits on those `above`."""
    if not plan["interactions"] or not above:
        return every
    return [
        f for f in every
        if f in above or any(above | {f} <= set(group) for group in plan["interactions"])
    ]  # fmt: skip


# ---------------------------------------------------------------------------- trees
COLUMNS = {
    "split_index": 0, "split_condition": float("nan"), "default_left": False, "left": -1,
    "right": -1, "leaf": 0.0, "categories": (), "sum_hess": 0.0, "base_weight": 0.0,
    "loss_chg": 0.0,
}  # fmt: skip


def add_node(tree: Tree) -> int:
    """Append a leaf and return its id."""
    for name, value in COLUMNS.items():
        tree[name].append(value)
    return len(tree["left"]) - 1


def expand(tree: Tree, node: int, split: Split, feature: Feature) -> tuple[int, int]:
    """Turn a leaf into a split; its children get the next two ids."""
    left, right = add_node(tree), add_node(tree)
    tree["left"][node], tree["right"][node] = left, right
    tree["split_index"][node] = split.feature
    tree["default_left"][node] = split.missing_left
    if feature.cuts is None:
        tree["categories"][node] = (split.bin,)
    else:
        tree["split_condition"][node] = np.float32(feature.cuts[split.bin])
    return left, right


def grow(
    plan: Plan, t: int, features: list[Feature], pairs: Ints, noise: Noise
) -> tuple[Tree, Ints]:
    """The structure of tree `t` of its class, and the leaf of every row."""
    bound = RowBound.of(plan)
    score = Score(plan["score"], bound, float(plan["tau"]), float(plan["leaf"]["lambda"]))
    of_tree = tree_features(plan, t, noise)
    oblivious = plan["shape"] == "oblivious" or (plan["shape"] == "alternate" and t % 2 == 0)
    gamma = round(float(plan["gamma"]) * bound.B)  # given in units of C
    tree: Tree = {name: [] for name in COLUMNS}
    level = [add_node(tree)]
    above: dict[int, frozenset[int]] = {level[0]: frozenset()}
    where = np.zeros(len(pairs), dtype=np.int64)
    for _ in range(int(plan["depth"])):
        if not level:  # "no split" won everywhere
            break
        # one selection for the level, or one for each of its nodes
        chosen: dict[int, Split] = {}
        for group in [level] if oblivious else [[node] for node in level]:
            rows = [np.flatnonzero(where == node) for node in group]
            allowed = allowed_features(plan, of_tree, above[group[0]])
            splits = candidates(features, allowed)
            if plan["split"] == "random":  # a feature, then one of its candidates
                f = allowed[noise.below(len(allowed))]
                own = candidates(features, [f])
                chosen.update(dict.fromkeys(group, own[noise.below(len(own))]))
                continue
            u = np.sum(
                [utilities(plan, features, allowed, pairs, at, score) for at in rows], axis=0
            )
            if plan["no_split"]:
                alone = sum(int(score.phi(pairs[at].sum(axis=0))) for at in rows)
                u = np.append(u, alone + gamma)
            choice = noise.choose(u, int(plan["selection"]["eps_num"]), score.range_int)
            if choice < len(splits):  # "no split" is the last candidate
                chosen.update(dict.fromkeys(group, splits[choice]))
        level = []
        for node, split in chosen.items():
            feature = features[split.feature]
            left, right = expand(tree, node, split, feature)
            above[left] = above[right] = above[node] | {split.feature}
            bins = feature.bins
            goes_left = bins != split.bin if feature.cuts is None else bins <= split.bin
            goes_left = np.where(bins == MISSING, split.missing_left, goes_left)
            where = np.where(where == node, np.where(goes_left, left, right), where)
            level += [left, right]
    return tree, where


# ---------------------------------------------------------------------------- leaves
def order_leaves(plan: Plan, tree: Tree, h: dict[int, float], w: dict[int, float]) -> None:
    """Clip leaf weights so that they follow the monotone constraints."""
    if not any(plan["monotone"]):
        return

    def mean(a: int, b: int) -> float:
        return (h[a] * w[a] + h[b] * w[b]) / (h[a] + h[b])

    nodes = range(len(tree["left"]))
    for node in reversed(nodes):
        if tree["left"][node] != -1:
            w[node] = mean(tree["left"][node], tree["right"][node])
    bounds = {0: (-math.inf, math.inf)}
    for node in nodes:
        low, high = bounds[node]
        w[node] = min(max(w[node], low), high)
        left, right = tree["left"][node], tree["right"][node]
        if left == -1:
            continue
        bounds[left] = bounds[right] = (low, high)
        direction = plan["monotone"][tree["split_index"][node]]
        if direction:
            a, b = (left, right) if direction > 0 else (right, left)
            middle = 0.5 * (w[a] + w[b]) if w[a] <= w[b] else mean(left, right)
            middle = min(max(middle, low), high)
            bounds[a], bounds[b] = (low, middle), (middle, high)


@dataclass
class Shrinkage:
    """Running empirical-Bayes estimate of one class: how large leaf weights really are."""

    a: float = 0.0
    b: float = 0.0
    started: bool = False

    def prior(self, g: list[float], h: list[float], g_noise: float, largest: float) -> float:
        """Prior variance of a leaf weight after seeing one more tree's noisy sums."""
        A = sum((gi * gi - g_noise * g_noise) / hi for gi, hi in zip(g, h, strict=True))
        total = sum(h)
        if self.started:
            self.a, self.b = 0.8 * self.a + 0.2 * A, 0.8 * self.b + 0.2 * total
        else:
            self.a, self.b, self.started = max(A, 0.0), total, True
        return min(max(2.0 * max(self.a, 0.0) / self.b, 1e-9), largest)


def fill_leaves(plan: Plan, tree: Tree, sums: Ints, shrinkage: Shrinkage, noise: Noise) -> None:
    """Release noisy sums of every leaf; all that the tree says follows from them."""
    bound, leaf = RowBound.of(plan), plan["leaf"]
    sigma2 = int(leaf["sigma2"])
    eta = float(leaf["eta"]) / plan["parallel_trees"]
    lam, alpha = float(leaf["lambda"]), float(leaf["alpha"])
    step, smallest = float(leaf["max_delta_step"]), float(leaf["min_child_weight"])
    deviation = 0.0 if noise.off else math.sqrt(sigma2)
    g_noise, h_noise = deviation * bound.g_unit, deviation * bound.h_unit

    def clipped(w: float) -> float:
        return min(max(w, -step), step) if step > 0 else w

    def soft(G: float) -> float:
        return math.copysign(max(abs(G) - alpha, 0.0), G)

    leaves = [node for node, left in enumerate(tree["left"]) if left == -1]
    g: dict[int, float] = {}
    h: dict[int, float] = {}
    w: dict[int, float] = {}
    for node in leaves:
        G, H = int(sums[node, 0]), int(sums[node, 1])
        g[node] = (G + noise.gaussian(sigma2)) * bound.g_unit
        h[node] = (H + noise.gaussian(sigma2)) * bound.h_unit
        h[node] = max(h[node], h_noise, smallest, 1e-6)
    prior = shrinkage.prior(list(g.values()), list(h.values()), g_noise, float(leaf["prior_max"]))
    for node in leaves:
        penalty = g_noise * g_noise / (prior * h[node]) if leaf["shrinkage"] else 0.0
        w[node] = clipped(-soft(g[node]) / (h[node] + lam + penalty))
        tree["sum_hess"][node] = np.float32(h[node])
    for node in reversed(range(len(tree["left"]))):  # children have larger ids than parents
        left, right = tree["left"][node], tree["right"][node]
        if left == -1:
            continue
        g[node], h[node] = g[left] + g[right], h[left] + h[right]
        gain = {i: soft(g[i]) * soft(g[i]) / (h[i] + lam) for i in (left, right, node)}
        tree["loss_chg"][node] = np.float32(max(0.0, gain[left] + gain[right] - gain[node]))
        w[node] = clipped(-soft(g[node]) / (h[node] + lam))
        tree["sum_hess"][node] = np.float32(tree["sum_hess"][left] + tree["sum_hess"][right])
    order_leaves(plan, tree, h, w)
    for node, left in enumerate(tree["left"]):
        tree["base_weight"][node] = np.float32(w[node] * bound.scale)
        if left == -1:
            tree["leaf"][node] = np.float32(eta * w[node] * bound.scale)


# ---------------------------------------------------------------------------- training
class Model(NamedTuple):
    """Trees (round by round, class by class), cuts per feature, final margins (rows, classes)."""

    trees: list[Tree]
    cuts: list[Floats | None]
    margin: Floats


def train(
    plan: Plan, X: Floats, y: Floats, weight: Floats | None = None,
    base_score: float | list[float] = 0.5, rounds: int | None = None,
    base_margin: Floats | None = None,
) -> Model:  # fmt: skip
    """Train as the plan says (NaN in `X` is missing; `rounds` defaults to the plan's)."""
    X, y = np.asarray(X, dtype=np.float32), np.asarray(y, dtype=np.float32)
    weight = np.ones_like(y) if weight is None else np.asarray(weight, dtype=np.float32)
    objective, classes, bound = plan["objective"], int(plan["num_class"]), RowBound.of(plan)
    noise = Noise(plan)
    features = bin_features(plan, X, noise)
    margin = initial_margin(objective, base_score, len(y), classes)
    if base_margin is not None:
        margin = np.array(base_margin, dtype=np.float32).reshape(len(y), classes)
    shrinkage = [Shrinkage() for _ in range(classes)]
    trees = []
    for t in range(int(plan["rounds"]) if rounds is None else rounds):
        g, h = (v.astype(np.float64) for v in gradients(objective, margin, y, weight))
        parallel = int(plan["parallel_trees"])
        sampled = int(plan["sampling_num"]) < 1 << 32
        kept = noise.sample(int(plan["sampling_num"]), len(y)) if sampled else slice(None)
        for k in range(classes):
            labels = y.astype(np.float64)
            pairs = bound.quantise(g[:, k], h[:, k], labels, objective == "reg:squarederror")
            if sampled:
                pairs[~kept] = 0
            for i in range(parallel):
                tree, where = grow(plan, t * parallel + i, features, pairs, noise)
                sums = np.zeros((len(tree["left"]), 3), dtype=np.int64)
                np.add.at(sums, where, pairs)
                fill_leaves(plan, tree, sums, shrinkage[k], noise)
                margin[:, k] += np.array(tree["leaf"], dtype=np.float32)[where]
                trees.append(tree)
    return Model(trees, [feature.cuts for feature in features], margin)
