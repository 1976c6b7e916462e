"""The first trees of a start from columns: they add up what each column says of the label.

A tree of a few columns splits on each of them in turn, whether a cell is above 0, so that its
leaves hold every sum of their effects. Made of what was released and of public numbers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from xgboost.core import Booster

from ..engine.model_json import ModelJson
from ..engine.tree_json import complete_tree
from ..releases.column_sums import PRESENT
from .column_effects import ColumnEffects

_COLUMNS_OF_TREE = 8
_MOST_COLUMNS = 1024
_LEAST_EFFECT = 1e-3  # of a column that a tree is grown for, in log-odds
_BITS = 20  # of covers, so that 32-bit floats add them up exactly

Floats = npt.NDArray[np.float64]


def trees_of(effects: ColumnEffects) -> list[dict[str, Any]]:
    """The trees as XGBoost stores them in JSON, the columns that move most predictions first."""
    moved = effects.effects**2 * effects.rates
    order = np.argsort(-moved, kind="stable")
    chosen = order[np.abs(effects.effects[order]) >= _LEAST_EFFECT][:_MOST_COLUMNS]
    cover = max(effects.rows * effects.share * (1.0 - effects.share), 1.0)
    return [
        _tree(chosen[i : i + _COLUMNS_OF_TREE], effects, cover, i // _COLUMNS_OF_TREE)
        for i in range(0, len(chosen), _COLUMNS_OF_TREE)
    ]


def booster_with(
    trees: list[dict[str, Any]], model: Any, params: Mapping[str, Any], cache: Sequence[Any]
) -> Booster:
    """A booster with these trees, each a round of its own, in place of one that has none."""
    content = ModelJson.of(model)
    content.set_trees(trees)
    return Booster(dict(params), list(cache), content.to_bytes())


def _tree(
    columns: npt.NDArray[np.int64], effects: ColumnEffects, total: float, number: int
) -> dict[str, Any]:
    """A complete tree, level by level: to the left of a split the cell is not above 0."""
    weights, covers = np.zeros(1), np.full(1, total)
    for column in columns:
        rate = effects.rates[column]
        weights = np.stack([weights, weights + effects.effects[column]], axis=1).ravel()
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
    splits = [(int(column), PRESENT) for column in columns]
    return complete_tree(number, len(effects.effects), splits, weights, covers, gains)
