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

from .candidates import MISSING, Candidates, Feature
from .draws import Noise
from .groups import Part, cell_of, cell_sums, draw_group
from .objective import gradients, initial_margin
from .splits import (
    Floats,
    Ints,
    Plan,
    RowBound,
    Score,
    Side,
    Split,
    allowed_features,
    candidates,
    noisy_gain,
    noisy_sides,
    random_side,
    tree_features,
    utilities,
)

Tree = dict[str, list[Any]]


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
) -> tuple[Tree, Ints, dict[int, Side]]:
    """The structure of tree `t` of its class, the leaf of every row, sums that are released."""
    bound = RowBound.of(plan)
    score = Score(plan["score"], bound, float(plan["tau"]), float(plan["leaf"]["lambda"]))
    of_tree = tree_features(plan, t, noise)
    oblivious = plan["shape"] == "oblivious" or (plan["shape"] == "alternate" and t % 2 == 0)
    gamma = round(float(plan["gamma"]) * bound.B)  # given in units of C
    tree: Tree = {name: [] for name in COLUMNS}
    released: dict[int, Side] = {}
    if int(plan["split_levels"]) > 1:
        return (*grow_by_groups(plan, features, pairs, noise, tree, of_tree, score, oblivious), {})
    level = [add_node(tree)]
    above: dict[int, frozenset[int]] = {level[0]: frozenset()}
    where = np.zeros(len(pairs), dtype=np.int64)
    for _ in range(int(plan["depth"])):
        if not level:  # "no split" won everywhere
            break
        # one selection for the level, or one for each of its nodes
        chosen: dict[int, Split] = {}
        sides: dict[int, list[tuple[Side, Side]]] = {}
        offered: dict[int, list[Split]] = {}  # "partial": the random cut of each feature
        drawn: list[int] = []
        for i, node in enumerate(level if plan["split"] == "partial" else ()):
            at = np.flatnonzero(where == node)
            allowed = allowed_features(plan, of_tree, above[node])
            if i == 0 or not oblivious:
                drawn = [noise.below(len(candidates(features, [f]))) for f in allowed]
            pick = list(zip(allowed, drawn, strict=True))
            offered[node] = [candidates(features, [f])[c] for f, c in pick]
            sides[node] = [random_side(plan, features[f], pairs, at, noise, c) for f, c in pick]
        if plan["split"] == "histogram":  # every cell is released before anything is chosen
            for node in level:
                at = np.flatnonzero(where == node)
                allowed = allowed_features(plan, of_tree, above[node])
                parts = [noisy_sides(plan, features[f], pairs, at, noise) for f in allowed]
                sides[node] = [pair for part in parts for pair in part]
        best: dict[int, tuple[Side, Side]] = {}
        for group in [level] if oblivious else [[node] for node in level]:
            rows = [np.flatnonzero(where == node) for node in group]
            allowed = allowed_features(plan, of_tree, above[group[0]])
            splits = candidates(features, allowed)
            if plan["split"] == "random":  # a feature, then one of its candidates
                f = allowed[noise.below(len(allowed))]
                own = candidates(features, [f])
                chosen.update(dict.fromkeys(group, own[noise.below(len(own))]))
                continue
            if sides:
                splits = offered.get(group[0], splits)
                gain = np.zeros(len(splits))
                for node in group:
                    gain += [sum(noisy_gain(plan, bound, s) for s in pair) for pair in sides[node]]
                choice = int(np.argmax(gain))
                chosen.update(dict.fromkeys(group, splits[choice]))
                best.update({node: sides[node][choice] for node in group})
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
            if node in best:
                released[left], released[right] = best[node]
            bins = feature.bins
            goes_left = bins != split.bin if feature.cuts is None else bins <= split.bin
            goes_left = np.where(bins == MISSING, split.missing_left, goes_left)
            where = np.where(where == node, np.where(goes_left, left, right), where)
            level += [left, right]
    return tree, where, released


def grow_by_groups(
    plan: Plan, features: list[Feature], pairs: Ints, noise: Noise, tree: Tree, of_tree: list[int],
    score: Score, oblivious: bool,
) -> tuple[Tree, Ints]:  # fmt: skip
    """A tree of which one selection fills several levels."""
    level = [add_node(tree)]
    above: dict[int, frozenset[int]] = {0: frozenset()}
    where = np.zeros(len(pairs), dtype=np.int64)
    left = int(plan["depth"])
    while left > 0:
        m = min(int(plan["split_levels"]), left)
        left -= m
        if m == 1:  # a level that is left over has single splits
            rest = dict(plan, split_levels=1, depth=1)
            chosen = _single(rest, features, pairs, noise, of_tree, score, oblivious, level, above,
                             where)  # fmt: skip
        else:
            chosen = {}
            for nodes in [level] if oblivious else [[node] for node in level]:
                allowed = allowed_features(plan, of_tree, above[nodes[0]])
                drawn = [
                    draw_group(f, features[f], m, noise)
                    for f in allowed
                    for _ in range(int(plan["split_candidates"]))
                ]
                u = np.zeros(len(drawn), dtype=np.int64)
                for i, group in enumerate(drawn):
                    for node in nodes:
                        rows = np.flatnonzero(where == node)
                        sums = cell_sums(group, features[group[0].feature], pairs, rows)
                        u[i] += score.phi(sums).sum()
                choice = noise.choose(u, int(plan["selection"]["eps_num"]), score.range_int)
                chosen.update(dict.fromkeys(nodes, drawn[choice]))
        level, where = _expand(tree, features, level, chosen, above, where)
    return tree, where


def _single(
    plan: Plan, features: list[Feature], pairs: Ints, noise: Noise, of_tree: list[int],
    score: Score, oblivious: bool, level: list[int], above: dict[int, frozenset[int]],
    where: Ints,
) -> dict[int, list[Part]]:  # fmt: skip
    """One selection of a single level, as groups of one split."""
    chosen = {}
    for nodes in [level] if oblivious else [[node] for node in level]:
        allowed = allowed_features(plan, of_tree, above[nodes[0]])
        splits = candidates(features, allowed)
        rows = [np.flatnonzero(where == node) for node in nodes]
        u = np.sum([utilities(plan, features, allowed, pairs, at, score) for at in rows], axis=0)
        s = splits[noise.choose(u, int(plan["selection"]["eps_num"]), score.range_int)]
        right = frozenset([s.bin]) if features[s.feature].cuts is None else frozenset()
        chosen.update(dict.fromkeys(nodes, [Part(s.feature, s.bin, right, s.missing_left)]))
    return chosen


def _expand(
    tree: Tree, features: list[Feature], level: list[int], chosen: dict[int, list[Part]],
    above: dict[int, frozenset[int]], where: Ints,
) -> tuple[list[int], Ints]:  # fmt: skip
    """Expand all nodes by their groups, one level of the tree after the other."""
    heaps = {node: [node] for node in level}
    size = len(next(iter(chosen.values())))
    for at in range(size):
        if at and (at + 1) & at:
            continue  # at is the first of a level: 0, 1, 3, 7
        for node in level:
            for i in range(at, 2 * at + 1):
                part = chosen[node][i]
                feature = features[part.feature]
                split = Split(part.feature, part.bin, part.missing_left)
                heaps[node] += expand(tree, heaps[node][i], split, feature)
                if feature.cuts is None:
                    tree["categories"][heaps[node][i]] = tuple(sorted(part.right))
    out = where.copy()
    children = []
    for node in level:
        group = chosen[node]
        feature = features[group[0].feature]
        rows = np.flatnonzero(where == node)
        below = heaps[node][size:]
        cells = cell_of(group, feature.bins[rows], feature.cuts is None)
        out[rows] = np.array(below, dtype=np.int64)[cells]
        for child in below:
            above[child] = above[node] | {group[0].feature}
        children += below
    return children, out


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

    def prior(self, g: list[float], h: list[float], g_noise: list[float], largest: float) -> float:
        """Prior variance of a leaf weight after seeing one more tree's noisy sums."""
        A = sum((gi * gi - s * s) / hi for gi, hi, s in zip(g, h, g_noise, strict=True))
        total = sum(h)
        if self.started:
            self.a, self.b = 0.8 * self.a + 0.2 * A, 0.8 * self.b + 0.2 * total
        else:
            self.a, self.b, self.started = max(A, 0.0), total, True
        return min(max(2.0 * max(self.a, 0.0) / self.b, 1e-9), largest)


def leaf_value(plan: Plan, sums: Ints, age: int) -> tuple[int, float]:
    """Output perturbation: a leaf's value as an integer, and the unit of it, where C = 1."""
    bound, leaf = RowBound.of(plan), plan["leaf"]
    lam, floor = float(leaf["lambda"]), max(float(leaf["min_child_weight"]), 1.0)
    sensitivity = (2.0 * floor + lam) / ((floor + lam) * (floor + lam + 1.0))
    clip = 1.0
    if leaf["geometric_clip"]:
        clip = max((1.0 - float(leaf["eta"])) ** age, 1e-12)
        sensitivity = min(sensitivity, 2.0 * clip)
    value = -int(sums[0]) / bound.B / (max(float(sums[2]), floor) + lam)
    return math.floor(min(max(value, -clip), clip) / sensitivity * 2**20), sensitivity / 2**20


def fill_leaves(
    plan: Plan, tree: Tree, sums: Ints, given: dict[int, Side], shrinkage: Shrinkage, noise: Noise,
    age: int,
) -> None:  # fmt: skip
    """Release noisy sums of every leaf, unless given; all that the tree says follows from them."""
    bound, leaf = RowBound.of(plan), plan["leaf"]
    sigma2 = int(leaf["sigma2"])
    eta = float(leaf["eta"]) / plan["parallel_trees"]
    lam, alpha = float(leaf["lambda"]), float(leaf["alpha"])
    step, smallest = float(leaf["max_delta_step"]), float(leaf["min_child_weight"])

    def clipped(w: float) -> float:
        return min(max(w, -step), step) if step > 0 else w

    def soft(G: float) -> float:
        return math.copysign(max(abs(G) - alpha, 0.0), G)

    leaves = [node for node, left in enumerate(tree["left"]) if left == -1]
    g: dict[int, float] = {}
    h: dict[int, float] = {}
    w: dict[int, float] = {}
    noise_of: dict[int, float] = {}
    output = leaf["release"] == "output"
    if output:
        lam = alpha = 0.0
    for node in leaves:
        if output:
            whole, unit = leaf_value(plan, sums[node], age)
            value = (whole + noise.laplace(int(leaf["scale"]))) * unit
            g[node], h[node], noise_of[node] = -value * bound.C, 1.0, 0.0
            continue
        if node in given:
            G, H, cells = given[node]
            deviation = math.sqrt(int(plan["histogram"]["sigma2"]) * cells)
        elif leaf["release"] == "laplace":
            G = int(sums[node, 0]) + noise.laplace(int(leaf["scale"]))
            H = int(sums[node, 1]) + noise.laplace(int(leaf["scale"]))
            deviation = math.sqrt(2.0 * float(leaf["scale"]) ** 2)
        else:
            G = int(sums[node, 0]) + noise.gaussian(sigma2)
            H = int(sums[node, 1]) + noise.gaussian(sigma2)
            deviation = math.sqrt(sigma2)
        g[node], noise_of[node] = G * bound.g_unit, deviation * bound.g_unit
        h[node] = max(H * bound.h_unit, deviation * bound.h_unit, smallest, 1e-6)
    if not output:
        prior = shrinkage.prior(
            list(g.values()), list(h.values()), list(noise_of.values()), float(leaf["prior_max"])
        )
    for node in leaves:
        shrinks = leaf["shrinkage"] and not output
        penalty = noise_of[node] ** 2 / (prior * h[node]) if shrinks else 0.0
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
    source = Candidates(plan, X, noise)
    features: list[Feature] = []
    part = np.zeros(len(y), dtype=np.int64)
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
        if int(plan["parts"]) > 1:
            ensemble = int(plan["parts"])
            if t % ensemble == 0:
                part = noise.parts(ensemble, plan["halving"], len(y))
            kept, sampled = part == t % ensemble, True
        for k in range(classes):
            labels = y.astype(np.float64)
            heavy = weight.astype(np.float64)
            if float(plan["row_bound"]["max_weight"]) > 0:
                heavy = np.minimum(heavy, float(plan["row_bound"]["max_weight"]))
            pairs = bound.quantise(
                g[:, k], h[:, k], labels, objective == "reg:squarederror", heavy
            )
            if sampled:
                pairs[~kept] = 0
            if k == 0 and source.due(t):
                features = source.release(pairs)
            for i in range(parallel):
                tree, where, given = grow(plan, t * parallel + i, features, pairs, noise)
                sums = np.zeros((len(tree["left"]), 3), dtype=np.int64)
                np.add.at(sums, where, pairs)
                age = t % int(plan["parts"]) if int(plan["parts"]) > 1 else t
                fill_leaves(plan, tree, sums, given, shrinkage[k], noise, age)
                margin[:, k] += np.array(tree["leaf"], dtype=np.float32)[where]
                trees.append(tree)
    return Model(trees, [feature.cuts for feature in features], margin)
