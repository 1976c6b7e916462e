"""The trees of XGBoost's JSON of a model: what each node has."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

LEAF = -1
"""Child of a node that has none."""


@dataclass(frozen=True)
class Tree:
    """One tree; each sequence has an entry for each node, and node 0 is the root."""

    left: Sequence[int]  # left child; -1 at a leaf
    right: Sequence[int]  # right child; -1 at a leaf
    features: Sequence[int]  # column of a split
    # threshold of a split, below which values go left; at a leaf its value
    conditions: Sequence[float]
    default_left: Sequence[int]  # whether missing values go left
    covers: Sequence[float]  # sum of Hessians
    # the categories that go right, of each split by category
    right_categories: Mapping[int, list[int]]
    gains: Sequence[float] = ()  # of splits; 0 at a leaf
    leaf_size: int = 1  # length of the value of a leaf; 0 or 1 if it is a number

    @classmethod
    def of(cls, stored: Mapping[str, Any]) -> Tree:
        """A tree from its JSON."""
        names = ("categories_nodes", "categories_segments", "categories_sizes")
        segments = zip(*(stored[name] for name in names), strict=True)
        categories = stored["categories"]
        return cls(
            stored["left_children"],
            stored["right_children"],
            stored["split_indices"],
            stored["split_conditions"],
            stored["default_left"],
            stored.get("sum_hessian", ()),
            {node: categories[begin : begin + size] for node, begin, size in segments},
            stored.get("loss_changes", ()),
            int(stored["tree_param"]["size_leaf_vector"]),
        )

    @property
    def leaves(self) -> list[int]:
        """The nodes without children."""
        return [node for node, child in enumerate(self.left) if child == LEAF]

    @property
    def splits(self) -> list[int]:
        """The nodes with children."""
        return [node for node, child in enumerate(self.left) if child != LEAF]

    @property
    def leaf_values(self) -> list[float]:
        """The values of the leaves."""
        return [self.conditions[node] for node in self.leaves]

    def leaf_of(self, row: Sequence[float] | Mapping[int, float]) -> int:
        """The leaf of a row, given by its values of the columns on the way."""
        node = 0
        while self.left[node] != LEAF:
            value = row[self.features[node]]
            if math.isnan(value):
                goes_left = bool(self.default_left[node])
            elif node in self.right_categories:
                goes_left = int(value) not in self.right_categories[node]
            else:
                goes_left = bool(value < np.float32(self.conditions[node]))
            node = self.left[node] if goes_left else self.right[node]
        return int(node)
