"""The first trees of a start from columns: they add up what each column says of the label.

A tree of a few columns splits on each of them in turn, whether a cell is above 0, so that its
leaves hold every sum of their effects. Made of what was released and of public numbers.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from xgboost.core import Booster

from .columns import ColumnEffects

__all__ = ["PRESENT", "booster_with", "trees_of"]

PRESENT = float(str(np.finfo(np.float32).tiny))
"""The least cell above 0, from which on a cell is present: the smallest normal 32-bit float."""

_COLUMNS_OF_TREE = 8
_MOST_COLUMNS = 1024
_LEAST_EFFECT = 1e-3  # of a column that a tree is grown for, in log-odds
_ROOT = 2**31 - 1  # the parent of a root
_BITS = 20  # of covers, so that 32-bit floats add them up exactly

Floats = npt.NDArray[np.float64]


def trees_of(found: ColumnEffects) -> list[dict[str, Any]]:
    """The trees as XGBoost stores them in JSON, the columns that move most predictions first."""
    moved = found.effects**2 * found.rates
    order = np.argsort(-moved, kind="stable")
    chosen = order[np.abs(found.effects[order]) >= _LEAST_EFFECT][:_MOST_COLUMNS]
    cover = max(found.rows * found.share * (1.0 - found.share), 1.0)
    return [
        _tree(chosen[i : i + _COLUMNS_OF_TREE], found, cover, i // _COLUMNS_OF_TREE)
        for i in range(0, len(chosen), _COLUMNS_OF_TREE)
    ]


def booster_with(
    trees: list[dict[str, Any]], model: Any, params: Mapping[str, Any], cache: Sequence[Any]
) -> Booster:
    """A booster with these trees, each a round of its own, in place of one that has none."""
    content = json.loads(bytes(model.save_raw("json")))
    stored = content["learner"]["gradient_booster"]["model"]
    stored["trees"] = trees
    stored["tree_info"] = [0] * len(trees)
    stored["iteration_indptr"] = list(range(len(trees) + 1))
    stored["gbtree_model_param"]["num_trees"] = str(len(trees))
    return Booster(dict(params), list(cache), bytearray(json.dumps(content).encode()))


def _tree(
    columns: npt.NDArray[np.int64], found: ColumnEffects, total: float, number: int
) -> dict[str, Any]:
    """A complete tree, level by level: to the left of a split the cell is not above 0."""
    depth = len(columns)
    weights, covers = np.zeros(1), np.full(1, total)
    for column in columns:
        rate = found.rates[column]
        weights = np.stack([weights, weights + found.effects[column]], axis=1).ravel()
        covers = np.stack([covers * (1.0 - rate), covers * rate], axis=1).ravel()
    unit = 2.0 ** (math.ceil(math.log2(total)) - _BITS)
    covers = np.maximum(np.rint(covers / unit), 1.0) * unit
    levels = [(weights, covers, np.zeros_like(covers))]
    while len(levels[0][0]) > 1:
        w, h, _ = levels[0]
        cover = h.reshape(-1, 2).sum(axis=1)
        weight = (w * h).reshape(-1, 2).sum(axis=1) / cover
        gain = (w**2 * h).reshape(-1, 2).sum(axis=1) - weight**2 * cover
        levels.insert(0, (weight, cover, np.maximum(gain, 0.0)))
    weights, covers, gains = (np.concatenate(values) for values in zip(*levels, strict=True))
    inner = (1 << depth) - 1
    nodes, leaves = np.arange(len(weights)), inner + 1
    used = np.repeat(columns, 1 << np.arange(depth))
    conditions = np.concatenate([np.full(inner, PRESENT), weights[inner:]])
    none = np.full(leaves, -1)
    return {
        "base_weights": _floats(weights),
        "categories": [],
        "categories_nodes": [],
        "categories_segments": [],
        "categories_sizes": [],
        "default_left": [1] * inner + [0] * leaves,
        "id": number,
        "left_children": np.concatenate([2 * nodes[:inner] + 1, none]).tolist(),
        "loss_changes": _floats(gains),
        "parents": [_ROOT, *((nodes[1:] - 1) // 2).tolist()],
        "right_children": np.concatenate([2 * nodes[:inner] + 2, none]).tolist(),
        "split_conditions": _floats(conditions),
        "split_indices": [*used.tolist(), *[0] * leaves],
        "split_type": [0] * len(nodes),
        "sum_hessian": _floats(covers),
        "tree_param": {
            "num_deleted": "0",
            "num_feature": str(len(found.effects)),
            "num_nodes": str(len(nodes)),
            "size_leaf_vector": "1",
        },
    }


def _floats(values: Floats) -> list[float]:
    """The shortest decimals that read back as the same 32-bit floats."""
    return [float(str(v)) for v in values.astype(np.float32)]
