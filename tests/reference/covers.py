"""Covers and gains of a tree, from noisy Hessians of its leaves and from their weights."""

import math

import numpy as np

from .grow import Tree


def share_mean(value: float, deviation: float, centre: float, precision: float) -> float:
    """Posterior mean of a share that was measured with noise; its log-odds have a normal prior."""
    if deviation == 0.0:
        return min(max(value, 0.0), 1.0)
    ends = np.clip([value - 6.0 * deviation, value + 6.0 * deviation], 1e-4, 1.0 - 1e-4)
    odds = np.linspace(*np.log(ends / (1.0 - ends)), 64)
    shares = 1.0 / (1.0 + np.exp(-odds))
    exponent = ((shares - value) / deviation) ** 2 + precision * (odds - centre) ** 2
    return float(np.average(shares, weights=np.exp((exponent.min() - exponent) / 2.0)))


def estimate_covers(
    tree: Tree, raw: dict[int, float], noise2: dict[int, float]
) -> dict[int, float]:
    """Covers of all nodes, from the top: nodes of a level with the same split have similar shares.

    `raw` and `noise2` are the noisy Hessians of the leaves and the variances of their noise.
    """
    raw, noise2 = dict(raw), dict(noise2)
    parent: dict[int, tuple[int, int]] = {}
    for node in reversed(range(len(tree["left"]))):
        children = tree["left"][node], tree["right"][node]
        if children[0] != -1:
            raw[node] = sum(raw[c] for c in children)
            noise2[node] = sum(noise2[c] for c in children)
            parent.update({c: (node, side) for side, c in enumerate(children)})

    def way(node: int) -> list[tuple[int, int]]:
        return [*way(parent[node][0]), parent[node]] if node in parent else []

    def split(node: int) -> tuple[object, ...]:
        categories = tuple(tree["categories"][node])
        threshold = None if categories else float(np.float32(tree["split_condition"][node]))
        return tree["split_index"][node], threshold, categories, bool(tree["default_left"][node])

    levels: dict[int, dict[object, list[int]]] = {}
    for node, left in enumerate(tree["left"]):
        if left != -1:
            above = way(node)
            column = tree["split_index"][node]
            same = tuple((split(n), side) for n, side in above if tree["split_index"][n] == column)
            levels.setdefault(len(above), {}).setdefault((split(node), same), []).append(node)

    covers = {0: max(raw[0], math.sqrt(noise2[0]), 1e-6)}

    def measured(nodes: list[int]) -> tuple[float, float]:
        """What of their cover goes to the right, as both sides have it together."""
        cover = sum(covers[n] for n in nodes)
        left, right = (
            (sum(raw[tree[s][n]] for n in nodes), sum(noise2[tree[s][n]] for n in nodes))
            for s in ("left", "right")
        )
        both = left[1] + right[1]
        if both == 0.0:
            return (right[0] + cover - left[0]) / (2.0 * cover), 0.0
        value = (left[1] * right[0] + right[1] * (cover - left[0])) / both
        return value / cover, math.sqrt(left[1] * right[1] / both) / cover

    for _, groups in sorted(levels.items()):
        for nodes in groups.values():
            common = share_mean(*measured(nodes), 0.0, 0.0)
            for node in nodes:
                share = common
                if len(nodes) > 1:
                    odds = math.log(common / (1.0 - common)) if 0.0 < common < 1.0 else 0.0
                    share = share_mean(*measured([node]), odds, 1.0 / 0.5**2)
                covers[tree["left"][node]] = max(covers[node] * (1.0 - share), 1e-6)
                covers[tree["right"][node]] = max(covers[node] * share, 1e-6)
    return covers


def explained_gains(tree: Tree, weights: dict[int, float]) -> None:
    """What each split explains of the spread of the leaf weights, by the covers of the tree."""
    weights = dict(weights)
    for node in reversed(range(len(tree["left"]))):
        children = [tree["left"][node], tree["right"][node]]
        if children[0] == -1:
            continue
        cover = np.array([tree["sum_hess"][c] for c in children], dtype=np.float64)
        value = np.array([weights[c] for c in children])
        weights[node] = float(np.average(value, weights=cover))
        gain = float(np.sum(cover * (value - weights[node]) ** 2))
        tree["loss_chg"][node] = np.float32(gain)
