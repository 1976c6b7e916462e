"""What the noise of a training alone would give a column as importance."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.stats import chi2

from ..engine.saved_model import SavedModel
from ..engine.tree_json import Tree
from ..errors import PrivacyParameterError
from ..record.importance import column_names, private_booster
from .shapes import gradient_noise, plan_of

Floats = npt.NDArray[np.float64]

_KINDS = ("total_gain", "gain")
_ERROR = 0.05  # share of models in which any column without effect may exceed its level
_ITERATIONS = 60


def importance_noise(model: Any, kind: str = "total_gain") -> dict[str, float]:
    """The importance below which all columns without any effect stay in 19 of 20 models.

    For each column: given the splits that the model has on it, their covers and the noise of the
    leaf sums below them. An importance below this level says nothing about the column. First trees
    that come from column sums add nothing to the level.

    Privacy: free post-processing.

    Args:
        model: xgboost.Booster, or a fitted scikit-learn estimator of xgboost; private.
        kind: "total_gain" or "gain".

    Returns:
        dict: The level of each column that grown trees split on. Empty for other kinds, for models
        whose leaf values were released instead of sums, and for models without the plan of their
        training, which a model file does not hold.

    Raises:
        PrivacyRefusal: The model is not private.
        LedgerError: The model carries no ledger.

    Examples:
        >>> levels = xgb_dp.plotting.importance_noise(model)
        >>> set(levels) <= set(data.feature_names)
        True
    """
    return levels_of(private_booster(model), kind)


def levels_of(booster: Any, kind: str) -> dict[str, float]:
    """The same of a booster, whatever it is."""
    try:
        plan = plan_of(booster)
    except PrivacyParameterError:
        return {}
    deviation = gradient_noise(plan)
    if kind not in _KINDS or np.isnan(deviation):
        return {}
    content = SavedModel.of(booster)
    grown = plan["rounds"] * plan["num_class"] * plan["parallel_trees"]
    splits = [row for tree in list(content.trees)[-grown:] for row in _splits(tree)]
    if not splits:
        return {}
    column, depth, gain, cover, weight, by_cover = np.array(splits, dtype=np.float64).T
    noise2 = deviation**2 * by_cover
    kept = np.zeros(len(splits))
    for level in np.unique(depth):
        at = depth == level
        prior = _prior(gain[at] / cover[at], noise2[at])
        kept[at] = prior / (prior + noise2[at])
    # The variance of a difference without any effect, as a gain: the noise that shrinkage leaves,
    # and what it takes off the weight of a child of which it knows nothing.
    variance = cover * (noise2 * kept**2 + ((1.0 - kept) * weight) ** 2)
    names, levels = column_names(booster), {}
    for f in np.unique(column):
        at = column == f
        level = _quantile(variance[at], 1.0 - _ERROR / len(names))
        levels[names[int(f)]] = level if kind == "total_gain" else level / float(at.sum())
    return levels


def _quantile(variances: Floats, probability: float) -> float:
    """A quantile of a sum of squares of normal variables.

    A chi-squared variable of the same three moments, shifted and scaled (Imhof 1961, section 4).
    """
    first, second, third = (float((variances**k).sum()) for k in (1, 2, 3))
    if third <= 0.0:
        return first
    scale, freedom = third / second, second**3 / third**2
    return first + scale * (float(chi2.ppf(probability, freedom)) - freedom)


def _splits(tree: Tree) -> list[tuple[float, ...]]:
    """What the level needs of each split.

    Returns:
        Column, depth, gain, the cover that turns squared differences of the children's weights into
        gains, the weight of the node, and the squared noise of such a difference for each unit of
        noise in a leaf.
    """
    covers, values = np.array(tree.covers), np.array(tree.conditions, dtype=np.float64)
    leaves, depth = np.ones(len(covers)), {0: 0}
    out: list[tuple[float, ...]] = []
    for node in tree.splits[::-1]:
        children = [tree.left[node], tree.right[node]]
        leaves[node] = leaves[children].sum()
        values[node] = np.average(values[children], weights=covers[children])
    # Leaves have the learning rate and the unit of the margin in them, and gains do not.
    spread = float((covers * (values - values[0]) ** 2)[tree.leaves].sum())
    unit = float(np.sum(tree.gains)) / spread if spread > 0.0 else 0.0
    for node in tree.splits:
        children = [tree.left[node], tree.right[node]]
        depth.update(dict.fromkeys(children, depth[node] + 1))
        noise = float((leaves[children] / covers[children] ** 2).sum())
        cover = float(covers[children].prod() / covers[children].sum())
        weight = math.sqrt(unit) * values[node]
        out.append((tree.features[node], depth[node], tree.gains[node], cover, weight, noise))
    return out


def _prior(squares: Floats, noise2: Floats) -> float:
    """Variance of differences before shrinkage, under which their shrunk squares are expected."""
    low, high = 0.0, float(squares.sum() + noise2.max() + 1e-30)
    for _ in range(_ITERATIONS):
        middle = 0.5 * (low + high)
        if float((middle**2 / (middle + noise2)).sum()) < squares.sum():
            low = middle
        else:
            high = middle
    return high
