"""Shape functions of additive models, with the standard deviation of their noise.

A model whose trees use one feature each (``dp_features_per_tree=1``) is a sum of functions of one
feature. All of it is post-processing of a model that is private already: it costs nothing. Source:
Nori et al. (2021), section 4.

    >>> shapes = xgb_dp.plotting.shape_functions(booster)       # doctest: +SKIP
    >>> xgb_dp.plotting.plot_shapes(booster)                    # doctest: +SKIP
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ..engine.saved_model import SavedModel
from ..engine.tree_json import Tree
from ..errors import PrivacyParameterError
from ..record.ledger import read_ledger
from .reports import labelled

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class ShapeFunction:
    """What one feature adds to the margin.

    Attributes:
        feature: Name of the feature, or "f0", "f1", ...
        edges: Where the function steps, in units of the feature, in ascending order; empty for
            categories.
        values: Its value between two edges, one more than there are edges; or of each category. In
            units of the margin (log odds for binary labels, the target for regression).
        std: Standard deviation of the noise in each value, given the released Hessians of the
            leaves; for shrunk leaves an upper bound. NaN where leaf values were released directly.
        missing: The value for missing entries.
        categories: Number of categories; 0 for a numeric feature.

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


def shape_functions(model: Any) -> list[ShapeFunction]:
    """Shape functions of an additive private model, one for each feature that it uses.

    Privacy: free post-processing.

    Args:
        model: xgboost.Booster, or a fitted scikit-learn estimator of xgboost.

    Returns:
        list of ShapeFunction: Their sum at a row, plus the intercept, is the row's margin.

    Raises:
        PrivacyParameterError: A tree splits on several features, or there are several classes,
            quantiles or targets.

    Examples:
        >>> additive = xgb.train(params | {"dp_features_per_tree": 1}, data, 6)
        >>> shapes = xgb_dp.plotting.shape_functions(additive)
        >>> {shape.feature for shape in shapes} <= set(data.feature_names)
        True
    """
    booster = model.get_booster() if hasattr(model, "get_booster") else model
    content = SavedModel.of(booster)
    if max(content.classes, content.targets) > 1:
        raise PrivacyParameterError(
            "Shape functions can be drawn for models with one output only. This model has "
            "several classes, quantiles or targets."
        )
    noise = _leaf_noise(booster, content.tree_count)
    names = booster.feature_names or [f"f{i}" for i in range(booster.num_features())]
    by_feature: dict[int, list[tuple[Tree, _LeafNoise]]] = {}
    for tree, of_tree in zip(content.trees, noise, strict=True):
        features = {tree.features[node] for node in tree.splits}
        if len(features) > 1:
            raise PrivacyParameterError(
                "A tree of this model splits on several features, so the model is not a sum of "
                "functions of one feature each. Train with dp_features_per_tree=1."
            )
        for feature in features:
            by_feature.setdefault(feature, []).append((tree, of_tree))
    return [_shape(names[f], f, by_feature[f]) for f in sorted(by_feature)]


@dataclass(frozen=True)
class _LeafNoise:
    """Noise of the two sums of a leaf whose value is -factor G / (H + offset)."""

    grad: float
    hess: float
    factor: float
    offset: float

    def variance(self, value: float, hess: float) -> float:
        """To first order in the noise."""
        weight = value / self.factor
        return (self.factor / (hess + self.offset)) ** 2 * (
            self.grad**2 + (weight * self.hess) ** 2
        )


def training_plan(booster: Any) -> dict[str, Any]:
    """The plan of the last private training of a model, in the unit of its labels.

    Raises:
        PrivacyParameterError: The model contains none.
    """
    updaters = SavedModel.config_of(booster).updaters
    params = [u["dp_train_param"] for u in updaters if "dp_train_param" in u]
    if not params or not params[0]["dp_plan"]:
        raise PrivacyParameterError(
            "The model does not contain the plan of a private training, which says how large its "
            "noise is. Load the saved model of a private training."
        )
    plan: dict[str, Any] = json.loads(params[0]["dp_plan"])
    state = json.loads(params[0]["dp_state"])
    plan["row_bound"]["scale"] = state.get("scale", plan["row_bound"]["scale"])
    return plan


def gradient_noise(plan: Mapping[str, Any]) -> float:
    """Standard deviation of the noise in the gradient sum of a leaf; NaN for noisy leaf values."""
    leaf = plan["leaf"]
    step = float(plan["row_bound"]["gradient_bound"]) / 2 ** plan["grid_bits"]
    variance = {
        "gaussian": float(leaf["sigma2"] or plan["histogram"]["sigma2"]),
        "laplace": 2.0 * float(leaf["scale"]) ** 2,
        "output": math.nan,
    }[leaf["noise"]]
    return step * math.sqrt(variance)


def _leaf_noise(booster: Any, trees: int) -> list[_LeafNoise]:
    """The noise of each tree, whose learning rates may rise from round to round.

    The plan is that of the last training. Trees before those of it are taken for trees of its last
    round.
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
    last_round, start = int(plan["rounds"]) - 1, float(leaf.get("eta_start", 1.0))
    noise = [last] * (trees - count)
    for i in range(count):
        to_go = 1.0 - i // int(plan["parallel_trees"]) / last_round if last_round else 0.0
        noise.append(replace(last, factor=last.factor * (1.0 - (1.0 - start) * to_go)))
    return noise


def _shape(name: str, feature: int, parts: Sequence[tuple[Tree, _LeafNoise]]) -> ShapeFunction:
    edges = np.unique(
        [
            float(np.float32(tree.conditions[node]))
            for tree, _ in parts
            for node in tree.splits
            if node not in tree.right_categories
        ]
    )
    # The last cut only parts missing values from all others.
    edges = edges[edges < np.finfo(np.float32).max]
    used = [c for tree, _ in parts for right in tree.right_categories.values() for c in right]
    categories = max(used, default=-1) + 1
    if categories:
        points = np.arange(categories, dtype=np.float64)
    else:
        points = np.concatenate([[-math.inf], edges])  # the left end belongs to its interval
    values, variances = np.zeros(len(points)), np.zeros(len(points))
    missing = 0.0
    for tree, noise in parts:
        for i, point in enumerate(points):
            leaf = tree.leaf_of({feature: float(point)})
            values[i] += tree.conditions[leaf]
            variances[i] += noise.variance(tree.conditions[leaf], tree.covers[leaf])
        missing += tree.conditions[tree.leaf_of({feature: math.nan})]
    edges = edges[:0] if categories else edges
    return ShapeFunction(name, edges, values, np.sqrt(variances), missing, categories)


def plot_shapes(
    model: Any, features: Sequence[str] | None = None, axes: Sequence[Any] | None = None
) -> list[Any]:
    """Draw shape functions, with bands of two standard deviations of their noise.

    Privacy: free post-processing.

    Args:
        model: See :func:`shape_functions`.
        features: Names of the features to draw; all that the model uses by default.
        axes: matplotlib axes, one for each; new ones by default.

    Returns:
        list: The axes.

    Raises:
        PrivacyParameterError: The model is not additive, or does not use a feature.
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
            f"`features` are some of {', '.join(shapes)}; got {', '.join(names)}."
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
        ax.bar(
            range(shape.categories),
            shape.values,
            yerr=2 * shape.std,
            color="C0",
            alpha=0.7,
            label="effect, and ± 2 standard deviations of the noise",
        )
    else:
        margin = 0.05 * float(np.ptp(shape.edges)) if len(shape.edges) > 1 else 0.1
        ends = shape.edges[[0, -1]] + [-margin, margin] if len(shape.edges) else (-1.0, 1.0)
        x = np.concatenate([ends[:1], shape.edges, ends[1:]])
        ax.stairs(shape.values, x, baseline=None, color="C0", label="effect")
        band = "± 2 standard deviations of the noise"
        ax.stairs(high, x, baseline=low, fill=True, alpha=0.25, color="C0", label=band)
    column = f"{shape.feature} (category)" if shape.categories else shape.feature
    labelled(ax, f"Effect of {shape.feature}", column, "added to the margin")
