"""XGBoost's JSON of a model, written: trees that are put in, and margins that are scaled."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from .saved_model import SavedModel
from .tree_json import LEAF

_PARENT_OF_ROOT = 2**31 - 1

Floats = npt.NDArray[np.float64]


class ChangedModel(SavedModel):
    """A model whose trees are replaced or scaled; everything else stays as XGBoost wrote it."""

    def set_trees(self, trees: list[dict[str, Any]]) -> None:
        """Put in trees of one output, each a round of its own."""
        self._trees["trees"] = trees
        self._trees["tree_info"] = [0] * len(trees)
        self._trees["iteration_indptr"] = list(range(len(trees) + 1))
        self._trees["gbtree_model_param"]["num_trees"] = str(len(trees))

    def scale_margins(self, offset: float, slope: float) -> None:
        """Make the margins of a model of two classes offset + slope times what they were."""
        for tree in self._trees["trees"]:
            tree["base_weights"] = _scaled(tree["base_weights"], slope)
            leaf = np.array(tree["left_children"]) == LEAF
            ends = np.array(tree["split_conditions"], dtype=np.float32)
            ends[leaf] = np.array(_scaled(ends[leaf], slope), dtype=np.float32)
            tree["split_conditions"] = ends.astype(np.float64).tolist()
        score = offset + slope * self.intercept_margin
        if self.objective == "binary:logistic":
            score = 1.0 / (1.0 + math.exp(-score))
        listed = isinstance(json.loads(self._numbers["base_score"]), list)
        self._numbers["base_score"] = json.dumps([score] if listed else score)


def _scaled(values: Any, slope: float) -> list[float]:
    return (slope * np.array(values, dtype=np.float64)).astype(np.float32).tolist()


def complete_tree(
    number: int,
    width: int,
    splits: Sequence[tuple[int, float]],
    weights: Floats,
    covers: Floats,
    gains: Floats,
) -> dict[str, Any]:
    """The JSON of a tree whose splits of one depth are the same; its nodes level by level."""
    inner = (1 << len(splits)) - 1
    nodes, leaves = np.arange(2 * inner + 1), inner + 1
    depths = 1 << np.arange(len(splits))
    columns = np.repeat([column for column, _ in splits], depths).tolist()
    thresholds = np.repeat([threshold for _, threshold in splits], depths)
    none = [LEAF] * leaves
    return {
        "base_weights": _shortest(weights),
        "categories": [],
        "categories_nodes": [],
        "categories_segments": [],
        "categories_sizes": [],
        "default_left": [1] * inner + [0] * leaves,
        "id": number,
        "left_children": (2 * nodes[:inner] + 1).tolist() + none,
        "loss_changes": _shortest(gains),
        "parents": [_PARENT_OF_ROOT, *((nodes[1:] - 1) // 2).tolist()],
        "right_children": (2 * nodes[:inner] + 2).tolist() + none,
        "split_conditions": _shortest(np.concatenate([thresholds, weights[inner:]])),
        "split_indices": columns + [0] * leaves,
        "split_type": [0] * len(nodes),
        "sum_hessian": _shortest(covers),
        "tree_param": _param(width, len(nodes)),
    }


def _param(width: int, nodes: int) -> dict[str, str]:
    return {
        "num_deleted": "0",
        "num_feature": str(width),
        "num_nodes": str(nodes),
        "size_leaf_vector": "1",
    }


def _shortest(values: Floats) -> list[float]:
    """The shortest decimals that read back as the same 32-bit floats."""
    return [float(str(v)) for v in values.astype(np.float32)]
