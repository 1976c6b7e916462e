"""What an attacker reads in a model file: the trees, their leaves as boxes, and their statistics.

Nothing here asks the library that trained the model. A file of stock XGBoost and one of private
training are read alike.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["Leaf", "Model", "read"]

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Leaf:
    """A leaf of a tree.

    Attributes:
        low: Lowest value of each column in the leaf, of shape (columns,).
        high: Values of each column lie below these.
        value: What the leaf adds to the margin.
        hessian: The stored sum of Hessians of its rows.
    """

    low: Floats
    high: Floats
    value: float
    hessian: float


@dataclass(frozen=True)
class Model:
    """A model of one output.

    Attributes:
        margin: The margin of every row before the first tree: log odds, or a value of the target.
        trees: The leaves of each tree.
    """

    margin: float
    trees: list[list[Leaf]]


def read(raw: bytes | bytearray, low: Floats, high: Floats) -> Model:
    """Read a model in XGBoost's JSON format.

    Args:
        raw: The file.
        low: Lowest value of each column, which is public.
        high: Highest value of each column.
    """
    learner = json.loads(raw)["learner"]
    start = float(learner["learner_model_param"]["base_score"].strip("[]"))
    if learner["objective"]["name"] == "binary:logistic":
        start = math.log(start / (1 - start))
    trees = [_leaves(tree, low, high) for tree in learner["gradient_booster"]["model"]["trees"]]
    return Model(start, trees)


def _leaves(tree: dict[str, Any], low: Floats, high: Floats) -> list[Leaf]:
    """The leaves of one tree, from left to right."""
    leaves = []
    # The box of a node is closed below and open above, as XGBoost compares.
    stack = [(0, low.copy(), np.nextafter(high, np.inf))]
    while stack:
        node, below, above = stack.pop()
        left, right = tree["left_children"][node], tree["right_children"][node]
        value = float(tree["split_conditions"][node])
        if left < 0:
            leaves.append(Leaf(below, above, value, float(tree["sum_hessian"][node])))
            continue
        column = tree["split_indices"][node]
        middle = min(max(value, below[column]), above[column])
        inner, outer = above.copy(), below.copy()
        inner[column], outer[column] = middle, middle
        stack.append((right, outer, above))
        stack.append((left, below, inner))
    return leaves
