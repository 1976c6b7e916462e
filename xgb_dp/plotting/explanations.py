"""Explain private models: feature importance with noise levels, and shape functions.

The gains and covers in the nodes of a private model are computed from noisy sums
(``docs/leaks.md``), so anything derived from them is free post-processing.

A model in which each tree uses one feature (``dp_features_per_tree=1``) is a sum of functions of
single features with known noise. Source: Nori et al. (2021), section 4.

    >>> shapes = xgb_dp.plotting.shape_functions(booster)       # doctest: +SKIP
    >>> xgb_dp.plotting.plot_shapes(booster)                    # doctest: +SKIP
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.stats import chi2

from ..engine.saved_model import SavedModel, StoredTree, read_category_names
from ..errors import PrivacyParameterError
from ..record.ledger import read_ledger
from ..record.model_card import column_names, importance, private_booster
from .reports import labelled, new_axes

Floats = npt.NDArray[np.float64]
_Parts: TypeAlias = "Sequence[tuple[StoredTree, _LeafNoise]]"


@dataclass(frozen=True)
class ShapeFunction:
    """Step function of one feature in an additive model.

    Attributes:
        feature: Name of the feature, or "f0", "f1", ...
        edges: Steps in ascending order, in units of the feature; empty for categorical features.
        values: Values of the intervals between edges (one more than there are edges), or of each
            category. In units of the margin (log odds for binary labels, the target for
            regression).
        std: Standard deviation of the noise in each value, given the released hessians of the
            leaves; an upper bound if leaves were shrunk. NaN if leaf values were released directly.
        missing: Value for missing entries.
        categories: Number of categories; 0 for a numeric feature.
        names: Names of the categories; empty if the model stores only codes.

    Examples:
        >>> additive = xgb.train(params | {"dp_features_per_tree": 1}, data, 6)
        >>> shape = xgb_dp.plotting.shape_functions(additive)[0]
        >>> len(shape.values) == len(shape.edges) + 1
        True
    """

    feature: str
    edges: Floats
    values: Floats
    std: Floats
    missing: float
    categories: int = 0
    names: tuple[Any, ...] = ()


def shape_functions(model: Any) -> list[ShapeFunction]:
    """Compute the shape functions of an additive private model, one per feature that it uses.

    Privacy: free post-processing.

    Args:
        model: xgboost.Booster, or a fitted scikit-learn estimator of xgboost.

    Returns:
        list of ShapeFunction: The margin of a row is the intercept plus the sum of their values.

    Raises:
        PrivacyParameterError: A tree splits on several features, or the model has several classes,
            quantiles or targets.

    Examples:
        >>> additive = xgb.train(params | {"dp_features_per_tree": 1}, data, 6)
        >>> shapes = xgb_dp.plotting.shape_functions(additive)
        >>> {shape.feature for shape in shapes} <= set(data.feature_names)
        True
    """
    booster = model.get_booster() if hasattr(model, "get_booster") else model
    content = SavedModel.from_booster(booster)
    if max(content.classes, content.targets) > 1:
        raise PrivacyParameterError(
            "Shape functions require a model with one output, but this model has several classes, "
            "quantiles or targets. Train one model per output."
        )
    noise = _leaf_noise(booster, content.tree_count)
    names = booster.feature_names or [f"f{i}" for i in range(booster.num_features())]
    by_feature: dict[int, list[tuple[StoredTree, _LeafNoise]]] = {}
    for tree, of_tree in zip(content.trees, noise, strict=True):
        features = {tree.features[node] for node in tree.splits}
        if len(features) > 1:
            raise PrivacyParameterError(
                "A tree of this model splits on several features, so the model is not a sum of "
                "functions of single features. Train with dp_features_per_tree=1."
            )
        for feature in features:
            by_feature.setdefault(feature, []).append((tree, of_tree))
    known = read_category_names(booster)
    return [
        _shape(names[f], f, by_feature[f], tuple(known.get(names[f], known.get(f, ()))))
        for f in sorted(by_feature)
    ]


@dataclass(frozen=True)
class _LeafNoise:
    """Noise of the sums G and H of a leaf with value -factor * G / (H + offset)."""

    grad: float
    hess: float
    factor: float
    offset: float

    def variance(self, value: float, hess: float) -> float:
        """Return the variance of a leaf value, to first order in the noise."""
        weight = value / self.factor
        return (self.factor / (hess + self.offset)) ** 2 * (
            self.grad**2 + (weight * self.hess) ** 2
        )


def training_plan(booster: Any) -> dict[str, Any]:
    """Return the plan of a model's last private training, in the unit of the labels.

    Raises:
        PrivacyParameterError: The model does not contain a plan.
    """
    updaters = SavedModel.from_config(booster).updaters
    params = [u["dp_train_param"] for u in updaters if "dp_train_param" in u]
    if not params or not params[0]["dp_plan"]:
        raise PrivacyParameterError(
            "The model does not contain the plan of a private training, which determines the size "
            "of its noise. Pass the booster returned by a private training."
        )
    plan: dict[str, Any] = json.loads(params[0]["dp_plan"])
    state = json.loads(params[0]["dp_state"])
    plan["row_bound"]["scale"] = state.get("scale", plan["row_bound"]["scale"])
    return plan


def gradient_noise(plan: Mapping[str, Any]) -> float:
    """Return the noise's standard deviation in a leaf's gradient sum; NaN for noisy leaf values."""
    leaf = plan["leaf"]
    step = float(plan["row_bound"]["gradient_bound"]) / 2 ** plan["grid_bits"]
    variance = {
        "gaussian": float(leaf["sigma2"] or plan["histogram"]["sigma2"]),
        "laplace": 2.0 * float(leaf["scale"]) ** 2,
        "output": math.nan,
    }[leaf["noise"]]
    return step * math.sqrt(variance)


def _leaf_noise(booster: Any, trees: int) -> list[_LeafNoise]:
    """Return the leaf noise of each tree, with learning rates that may rise from round to round.

    Only the plan of the last training is stored. Trees from earlier trainings are treated like
    trees of its last round.
    """
    plan = training_plan(booster)
    leaf, bound = plan["leaf"], plan["row_bound"]
    deviation = gradient_noise(plan)
    parallel = plan["parallel_trees"]
    last = _LeafNoise(
        grad=deviation,
        hess=deviation / math.sqrt(float(bound["hessian_weight"])),
        factor=float(leaf["eta"]) / parallel * float(bound["scale"]),
        offset=float(leaf["lambda"]),
    )
    count = len(read_ledger(booster).trainings[-1].trees or ())
    last_round, start = int(plan["rounds"]) - 1, float(leaf["eta_warmup"])
    noise = [last] * (trees - count)
    for i in range(count):
        to_go = 1.0 - i // int(plan["parallel_trees"]) / last_round if last_round else 0.0
        noise.append(replace(last, factor=last.factor * (1.0 - (1.0 - start) * to_go)))
    return noise


def _shape(name: str, feature: int, parts: _Parts, names: tuple[Any, ...]) -> ShapeFunction:
    edges = np.unique(
        [
            float(np.float32(tree.conditions[node]))
            for tree, _ in parts
            for node in tree.splits
            if node not in tree.right_categories
        ]
    )
    # The last cut only separates missing values from all others.
    edges = edges[edges < np.finfo(np.float32).max]
    used = [c for tree, _ in parts for right in tree.right_categories.values() for c in right]
    categories = max([*used, len(names) - 1]) + 1 if used else 0
    if categories:
        points = np.arange(categories, dtype=np.float64)
    else:
        points = np.concatenate([[-math.inf], edges])  # intervals are closed on the left
    values, variances = np.zeros(len(points)), np.zeros(len(points))
    missing = 0.0
    for tree, noise in parts:
        for i, point in enumerate(points):
            leaf = tree.find_leaf({feature: float(point)})
            values[i] += tree.conditions[leaf]
            variances[i] += noise.variance(tree.conditions[leaf], tree.covers[leaf])
        missing += tree.conditions[tree.find_leaf({feature: math.nan})]
    edges = edges[:0] if categories else edges
    return ShapeFunction(name, edges, values, np.sqrt(variances), missing, categories, names)


def plot_shapes(
    model: Any, features: Sequence[str] | None = None, axes: Sequence[Any] | None = None
) -> list[Any]:
    """Plot shape functions with bands of two standard deviations of their noise.

    Privacy: free post-processing.

    Args:
        model: See :func:`shape_functions`.
        features: Names of the features to draw. Default: all features that the model uses.
        axes: matplotlib axes, one per feature. Default: new axes.

    Returns:
        list: The axes.

    Raises:
        PrivacyParameterError: The model is not additive, or does not use one of `features`.
        ImportError: matplotlib is not installed (``pip install matplotlib``).

    Examples:
        >>> additive = xgb.train(params | {"dp_features_per_tree": 1}, data, 6)
        >>> axes = xgb_dp.plotting.plot_shapes(additive)
        >>> len(axes) >= 1
        True
    """
    import matplotlib.pyplot as plt

    shapes = {s.feature: s for s in shape_functions(model)}
    names = list(shapes) if features is None else list(features)
    if not set(names) <= set(shapes):
        raise PrivacyParameterError(
            f"`features` must be features that the model uses ({', '.join(shapes)}); got "
            f"{', '.join(names)}."
        )
    if axes is None:
        columns = min(3, max(len(names), 1))
        height = -(-len(names) // columns)
        size = (4 * columns, 3 * height)
        _, grid = plt.subplots(height, columns, figsize=size, squeeze=False, layout="constrained")
        axes = list(grid.flat)
    for ax, name in zip(axes, names, strict=False):
        _draw(ax, shapes[name])
    if names:
        axes[0].legend(frameon=False, fontsize=8)
    for ax in list(axes)[len(names) :]:
        ax.set_visible(False)
    return list(axes)[: len(names)]


def _draw(ax: Any, shape: ShapeFunction) -> None:
    low, high = shape.values - 2 * shape.std, shape.values + 2 * shape.std
    if shape.categories:
        names = shape.names or range(shape.categories)
        # With few or no rows, the noise of "other" would hide all effects.
        hidden = shape.std > np.ptp(shape.values)
        kept = [i for i, name in enumerate(names) if name != "other" or not hidden[i]]
        label = "effect ± 2 standard deviations of the noise"
        bars = {"yerr": 2 * shape.std[kept], "color": "C0", "alpha": 0.7, "label": label}
        ax.bar(range(len(kept)), shape.values[kept], **bars)
        ax.set_xticks(range(len(kept)), [str(names[i]) for i in kept], rotation=30, ha="right")
    else:
        margin = 0.05 * float(np.ptp(shape.edges)) if len(shape.edges) > 1 else 0.1
        ends = shape.edges[[0, -1]] + [-margin, margin] if len(shape.edges) else (-1.0, 1.0)
        x = np.concatenate([ends[:1], shape.edges, ends[1:]])
        ax.stairs(shape.values, x, baseline=None, color="C0", label="effect")
        band = "± 2 standard deviations of the noise"
        ax.stairs(high, x, baseline=low, fill=True, alpha=0.25, color="C0", label=band)
    column = f"{shape.feature} (category)" if shape.categories else shape.feature
    labelled(ax, f"Effect of {shape.feature}", column, "added to the margin")


def plot_importance(
    model: Any, kind: str = "total_gain", max_features: int = 15, ax: Any = None
) -> Any:
    """Plot feature importance, see :func:`importance`.

    A mark on each bar shows the noise level of the feature, see :func:`importance_noise`. A bar
    that ends before its mark cannot be distinguished from noise.

    Privacy: free post-processing.

    Args:
        model: See :func:`importance`.
        kind: See :func:`importance`.
        max_features: Number of features to draw, starting with the most important one.
        ax: matplotlib axes. Default: new axes.

    Returns:
        matplotlib.axes.Axes: One bar per feature.

    Raises:
        PrivacyParameterError, PrivacyRefusal, LedgerError: See :func:`importance`.

    Examples:
        >>> ax = xgb_dp.plotting.plot_importance(model)
        >>> ax.get_xlabel()
        'total gain (noisy)'
    """
    ax = _bars(importance(model, kind), max_features, ax)
    noise = importance_noise(model, kind)
    marked = [
        (noise[label.get_text()], at)
        for at, label in enumerate(ax.get_yticklabels())
        if label.get_text() in noise
    ]
    if marked:
        ax.plot(*zip(*marked, strict=True), "|", color="0.2", ms=11, mew=2, label="noise alone")
        ax.legend(loc="lower right", frameon=False, fontsize=9)
    return labelled(ax, "Importance of the columns", f"{kind.replace('_', ' ')} (noisy)")


def _bars(values: Mapping[str, float], most: int, ax: Any) -> Any:
    names = sorted(values, key=lambda name: -abs(values[name]))[:most]
    ax = new_axes(ax, height=0.8 + 0.28 * len(names))
    shown = [values[name] for name in names]
    ax.barh(names, shown, color=["C0" if v >= 0 else "C3" for v in shown])
    ax.invert_yaxis()
    return ax


_KINDS = ("total_gain", "gain")
_ERROR = 0.05  # family-wise error: probability that any feature without effect exceeds its level
_ITERATIONS = 60


def importance_noise(model: Any, kind: str = "total_gain") -> dict[str, float]:
    """Compute, per feature, the importance level that noise alone can reach.

    In 19 of 20 models, every feature without any effect stays below its level. An importance below
    the level cannot be distinguished from noise. The level of a feature depends on the model's
    splits on it, their covers, and the noise of the leaf sums below them. Initial trees built from
    column sums do not contribute to it.

    Privacy: free post-processing.

    Args:
        model: xgboost.Booster, or a fitted scikit-learn estimator of xgboost; private.
        kind: "total_gain" or "gain".

    Returns:
        dict: Level of each feature that is used by a split of a grown tree. Empty for other kinds,
        for models with directly released leaf values instead of sums, and for models without the
        plan of their training, which model files do not contain.

    Raises:
        PrivacyRefusal: The model is not private.
        LedgerError: The model has no ledger.

    Examples:
        >>> levels = xgb_dp.plotting.importance_noise(model)
        >>> set(levels) <= set(data.feature_names)
        True
    """
    return noise_levels(private_booster(model), kind)


def noise_levels(booster: Any, kind: str) -> dict[str, float]:
    """Compute :func:`importance_noise` for a booster, without checking that it is private."""
    try:
        plan = training_plan(booster)
    except PrivacyParameterError:
        return {}
    deviation = gradient_noise(plan)
    if kind not in _KINDS or np.isnan(deviation):
        return {}
    content = SavedModel.from_booster(booster)
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
    # Variance, on the gain scale, of a difference between children without any effect: the noise
    # remaining after shrinkage, and the bias from shrinking the children towards 0.
    variance = cover * (noise2 * kept**2 + ((1.0 - kept) * weight) ** 2)
    names, levels = column_names(booster), {}
    for f in np.unique(column):
        at = column == f
        level = _quantile(variance[at], 1.0 - _ERROR / len(names))
        levels[names[int(f)]] = level if kind == "total_gain" else level / float(at.sum())
    return levels


def _quantile(variances: Floats, probability: float) -> float:
    """Return a quantile of a sum of squared normal variables.

    Uses a shifted and scaled chi-squared variable with the same first three moments (Imhof 1961,
    section 4).
    """
    first, second, third = (float((variances**k).sum()) for k in (1, 2, 3))
    if third <= 0.0:
        return first
    scale, freedom = third / second, second**3 / third**2
    return first + scale * (float(chi2.ppf(probability, freedom)) - freedom)


def _splits(tree: StoredTree) -> list[tuple[float, ...]]:
    """Return the properties of each split that determine its noise level.

    Returns:
        A tuple per split: feature, depth, gain, the cover that converts squared differences of the
        children's weights to gains, the weight of the node, and the noise variance of such a
        difference per unit of noise variance in a leaf.
    """
    covers, values = np.array(tree.covers), np.array(tree.conditions, dtype=np.float64)
    leaves, depth = np.ones(len(covers)), {0: 0}
    out: list[tuple[float, ...]] = []
    for node in tree.splits[::-1]:
        children = [tree.left[node], tree.right[node]]
        leaves[node] = leaves[children].sum()
        values[node] = np.average(values[children], weights=covers[children])
    # Leaf values include the learning rate and the unit of the margin, but gains do not.
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
    """Find the variance of unshrunk differences that matches the sum of shrunk squares."""
    low, high = 0.0, float(squares.sum() + noise2.max() + 1e-30)
    for _ in range(_ITERATIONS):
        middle = 0.5 * (low + high)
        if float((middle**2 / (middle + noise2)).sum()) < squares.sum():
            low = middle
        else:
            high = middle
    return high
