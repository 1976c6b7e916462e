"""The structure of one tree in NumPy: splits level by level, or several levels at a time."""

from typing import Any

import numpy as np

from .candidates import MISSING, Feature
from .draws import Noise
from .history import History
from .noise import PublicWords
from .noisy_splits import Side, noisy_gain, noisy_sides, random_side
from .partitions import Part, cell_of, cell_sums, draw_partition, finest_bound
from .splits import (
    Ints,
    Plan,
    RowBound,
    Score,
    Split,
    allowed_features,
    candidates,
    tree_features,
    utilities,
)

Tree = dict[str, list[Any]]


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
    plan: Plan, t: int, features: list[Feature], pairs: Ints, noise: Noise, history: History
) -> tuple[Tree, Ints, dict[int, Side]]:
    """The structure of tree `t` of its class, the leaf of every row, sums that are released.

    `pairs` has three columns, or three for each class where all of them share the structure.
    """
    bound = RowBound.of(plan)
    name = "norm" if plan["class_trees"] == "joint" else plan["score"]
    reals = float(plan["score_clip"]), float(plan["leaf"]["lambda"])
    score = Score(name, bound, *reals, int(plan["depth"]))
    of_tree = tree_features(plan, t, noise)
    oblivious = plan["shape"] == "oblivious" or (plan["shape"] == "alternate" and t % 2 == 0)
    gamma = round(float(plan["gamma"]) * bound.B)  # given in units of C
    tree: Tree = {name: [] for name in COLUMNS}
    released: dict[int, Side] = {}
    if int(plan["split_levels"]) > 1:
        where = grow_by_partitions(
            plan, features, pairs, noise, tree, of_tree, score, oblivious, history
        )
        return tree, where, {}
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
        for together in [level] if oblivious else [[node] for node in level]:
            rows = [np.flatnonzero(where == node) for node in together]
            allowed = allowed_features(plan, of_tree, above[together[0]])
            splits = candidates(features, allowed)
            if plan["split"] == "random":  # a feature, then one of its candidates
                f = allowed[noise.below(len(allowed))]
                of_feature = candidates(features, [f])
                chosen.update(dict.fromkeys(together, of_feature[noise.below(len(of_feature))]))
                continue
            if sides:
                splits = offered.get(together[0], splits)
                gain = np.zeros(len(splits))
                for node in together:
                    gain += [sum(noisy_gain(plan, bound, s) for s in pair) for pair in sides[node]]
                choice = int(np.argmax(gain))
                chosen.update(dict.fromkeys(together, splits[choice]))
                best.update({node: sides[node][choice] for node in together})
                continue
            u = np.sum(
                [utilities(plan, features, allowed, pairs, at, score) for at in rows], axis=0
            )
            offset = dict(zip(allowed, history.offsets(allowed, score), strict=True))
            u = u + [offset[s.feature] for s in splits]
            if plan["no_split"]:
                alone = sum(int(score.phi(pairs[at].sum(axis=0))) for at in rows)
                u = np.append(u, alone + gamma)
            choice = noise.choose(u, int(plan["selection"]["eps_num"]), score.range_int)
            if choice < len(splits):  # "no split" is the last candidate
                chosen.update(dict.fromkeys(together, splits[choice]))
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


def grow_by_partitions(
    plan: Plan, features: list[Feature], pairs: Ints, noise: Noise, tree: Tree, of_tree: list[int],
    score: Score, oblivious: bool, history: History,
) -> Ints:  # fmt: skip
    """Grow a tree of which one selection fills several levels; the leaf of every row."""
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
                             where, history)  # fmt: skip
        else:
            chosen = {}
            name = noise.below(1 << 63)  # of all partitions of the levels
            for number, nodes in enumerate([level] if oblivious else [[node] for node in level]):
                allowed = allowed_features(plan, of_tree, above[nodes[0]])
                rows = [np.flatnonzero(where == node) for node in nodes]
                drawn = [
                    [
                        draw_partition(f, features[f], m, PublicWords(name, number, f, i))
                        for i in range(int(plan["split_candidates"]))
                    ]
                    for f in allowed
                ]
                offsets = np.array(history.offsets(allowed, score), dtype=np.int64)
                u = np.array(
                    [
                        [_cells_score(score, p, features[f], pairs, rows) for p in of_feature]
                        for f, of_feature in zip(allowed, drawn, strict=True)
                    ],
                    dtype=np.int64,
                )
                u += offsets[:, None]
                bounds = u.max(axis=1)
                if score.name == "l1":
                    finest = [sum(finest_bound(features[f], pairs, at) for at in rows)
                              for f in allowed]  # fmt: skip
                    bounds = offsets + np.array(finest, dtype=np.int64)
                choice = noise.choose_grouped(
                    u, bounds, int(plan["selection"]["eps_num"]), score.range_int
                )
                f, i = divmod(choice, u.shape[1])
                chosen.update(dict.fromkeys(nodes, drawn[f][i]))
        level, where = expand_levels(tree, features, level, chosen, above, where)
    return where


def _cells_score(
    score: Score, partition: list[Part], feature: Feature, pairs: Ints, rows: list[Ints]
) -> int:
    """The score of all cells of a partition, in all nodes that share a choice."""
    return sum(int(score.phi(cell_sums(partition, feature, pairs, at)).sum()) for at in rows)


def _single(
    plan: Plan, features: list[Feature], pairs: Ints, noise: Noise, of_tree: list[int],
    score: Score, oblivious: bool, level: list[int], above: dict[int, frozenset[int]],
    where: Ints, history: History,
) -> dict[int, list[Part]]:  # fmt: skip
    """One selection of a single level, as partitions of one split."""
    chosen = {}
    for nodes in [level] if oblivious else [[node] for node in level]:
        allowed = allowed_features(plan, of_tree, above[nodes[0]])
        splits = candidates(features, allowed)
        rows = [np.flatnonzero(where == node) for node in nodes]
        u = np.sum([utilities(plan, features, allowed, pairs, at, score) for at in rows], axis=0)
        for f, offset in zip(allowed, history.offsets(allowed, score), strict=True):
            u[[s.feature == f for s in splits]] += offset
        s = splits[noise.choose(u, int(plan["selection"]["eps_num"]), score.range_int)]
        right = frozenset([s.bin]) if features[s.feature].cuts is None else frozenset()
        chosen.update({n: [Part(s.feature, s.bin, right, s.missing_left)] for n in nodes})
    return chosen


def expand_levels(
    tree: Tree, features: list[Feature], level: list[int], chosen: dict[int, list[Part]],
    above: dict[int, frozenset[int]], where: Ints,
) -> tuple[list[int], Ints]:  # fmt: skip
    """Expand all nodes by their partitions, one level of the tree after the other."""
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
        partition = chosen[node]
        feature = features[partition[0].feature]
        rows = np.flatnonzero(where == node)
        below = heaps[node][size:]
        cells = cell_of(partition, feature.bins[rows], feature.cuts is None)
        out[rows] = np.array(below, dtype=np.int64)[cells]
        for child in below:
            above[child] = above[node] | {partition[0].feature}
        children += below
    return children, out
