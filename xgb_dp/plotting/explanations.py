"""Explanations of private models: importance, the importance of noise alone, contributions, shapes.

The gains and covers in the nodes of a private model come from noisy sums (``docs/leaks.md``), so
whatever is computed from them is post-processing and costs nothing. That is not so for a stock
model, nor for the rows whose predictions are explained: the plot shows them.

A model whose trees use one feature each (``dp_features_per_tree=1``) is a sum of functions of one
feature, whose noise is known. Source: Nori et al. (2021), section 4.

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
from scipy.stats import chi2

from ..data.cells import read_data
from ..engine.saved_model import SavedModel, StoredTree
from ..errors import PrivacyParameterError, PrivacyRefusal
from ..record.ledger import read_ledger
from ..record.model_card import column_names, importance, private_booster
from ..record.privacy_report import as_booster
from .reports import labelled, new_axes

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
    content = SavedModel.from_booster(booster)
    if max(content.classes, content.targets) > 1:
        raise PrivacyParameterError(
            "Shape functions can be drawn for models with one output only. This model has "
            "several classes, quantiles or targets."
        )
    noise = _leaf_noise(booster, content.tree_count)
    names = booster.feature_names or [f"f{i}" for i in range(booster.num_features())]
    by_feature: dict[int, list[tuple[StoredTree, _LeafNoise]]] = {}
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
    updaters = SavedModel.from_config(booster).updaters
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
    last_round, start = int(plan["rounds"]) - 1, float(leaf.get("eta_warmup", 1.0))
    noise = [last] * (trees - count)
    for i in range(count):
        to_go = 1.0 - i // int(plan["parallel_trees"]) / last_round if last_round else 0.0
        noise.append(replace(last, factor=last.factor * (1.0 - (1.0 - start) * to_go)))
    return noise


def _shape(
    name: str, feature: int, parts: Sequence[tuple[StoredTree, _LeafNoise]]
) -> ShapeFunction:
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
            leaf = tree.find_leaf({feature: float(point)})
            values[i] += tree.conditions[leaf]
            variances[i] += noise.variance(tree.conditions[leaf], tree.covers[leaf])
        missing += tree.conditions[tree.find_leaf({feature: math.nan})]
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


def plot_importance(
    model: Any, kind: str = "total_gain", max_features: int = 15, ax: Any = None
) -> Any:
    """Draw the importance of features, see :func:`importance`.

    A line on each bar marks the level below which all columns without effect stay in 19 of 20
    models, see :func:`importance_noise`: a bar that ends before its line says nothing about the
    column.

    Privacy: free post-processing.

    Args:
        model: See :func:`importance`.
        kind: See :func:`importance`.
        max_features: Features to draw, the most important ones.
        ax: matplotlib axes; new ones by default.

    Returns:
        matplotlib.axes.Axes: One bar for each feature.

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


def contributions(model: Any, data: Any) -> tuple[Floats, Floats]:
    """What each feature adds to the margin of each row: SHAP values by XGBoost's TreeSHAP.

    Privacy: the model's part (leaf values and covers) is noisy. The result belongs to the rows of
    `data`, as a prediction does; who may see one may see the other.

    Args:
        model: xgboost.Booster, or a fitted scikit-learn estimator of xgboost; private.
        data: xgboost.DMatrix, or what it takes (an array or a data frame), n rows and F columns;
            with an estimator of this package also what that predicts, text columns included.

    Returns:
        Contributions, (n, F), or (n, K, F) for K classes; and the bias of each row, (n,) or (n, K).
        Their sum over the features plus the bias is the margin, e.g. log odds.

    Raises:
        PrivacyParameterError: There are no rows.
        PrivacyRefusal: The model is not private.
        LedgerError: The model carries no ledger.

    Examples:
        >>> each, bias = xgb_dp.plotting.contributions(model, data)
        >>> each.shape, bias.shape
        ((2000, 3), (2000,))
        >>> margin = model.predict(data, output_margin=True)
        >>> bool(np.allclose(each.sum(axis=1) + bias, margin, atol=1e-4))
        True
    """
    from xgboost import DMatrix

    booster = private_booster(model)
    if isinstance(data, DMatrix):
        matrix = data
    else:  # an estimator knows its text columns
        coded = model._coded(data) if hasattr(model, "_coded") else data
        matrix = read_data(DMatrix, coded, enable_categorical=True)
    if not matrix.num_row():
        raise PrivacyParameterError("`data` has no rows to explain. Give at least one.")
    values = np.asarray(booster.predict(matrix, pred_contribs=True), dtype=np.float64)
    return values[..., :-1], values[..., -1]


def plot_contributions(
    model: Any,
    data: Any,
    *,
    public_rows: bool,
    class_index: int | None = None,
    max_features: int = 15,
    ax: Any = None,
) -> Any:
    """Draw contributions: of one row with their signs, of several as mean absolute values.

    Privacy: the plot shows the rows of `data`, which no report covers. Means over the training
    rows, or other private ones, are exact statistics of them.

    Args:
        model: See :func:`contributions`.
        data: See :func:`contributions`.
        public_rows: Must be True: asserts that whoever sees the plot may see these rows.
        class_index: Class to draw, of a model with several.
        max_features: Features to draw, those that contribute most.
        ax: matplotlib axes; new ones by default.

    Returns:
        matplotlib.axes.Axes: One bar for each feature.

    Raises:
        PrivacyRefusal: ``public_rows`` is not True, or the model is not private.
        PrivacyParameterError: There is no such class, or no row.
        LedgerError: The model carries no ledger.

    Examples:
        >>> yours = xgb.DMatrix(table[:1], feature_names=data.feature_names)
        >>> ax = xgb_dp.plotting.plot_contributions(model, yours, public_rows=True)
        >>> ax.get_xlabel()
        'added to the margin'
    """
    if public_rows is not True:
        raise PrivacyRefusal(
            "A plot of contributions shows the rows that it explains, which the privacy of the "
            "model does not cover. Take public rows, or those of the person who sees the plot, and "
            "say so with public_rows=True."
        )
    values, _ = contributions(model, data)
    if values.ndim == 3:
        if class_index is None or not 0 <= class_index < values.shape[1]:
            raise PrivacyParameterError(
                f"`class_index` must be a class from 0 to {values.shape[1] - 1}."
            )
        values = values[:, class_index, :]
    one = len(values) == 1
    mean = values[0] if one else np.abs(values).mean(axis=0)
    by_name = dict(zip(column_names(as_booster(model)), map(float, mean), strict=True))
    label = "added to the margin" if one else "mean absolute contribution to the margin"
    return labelled(_bars(by_name, max_features, ax), "Contributions of the columns", label)


def _bars(values: Mapping[str, float], most: int, ax: Any) -> Any:
    names = sorted(values, key=lambda name: -abs(values[name]))[:most]
    ax = new_axes(ax, height=0.8 + 0.28 * len(names))
    shown = [values[name] for name in names]
    ax.barh(names, shown, color=["C0" if v >= 0 else "C3" for v in shown])
    ax.invert_yaxis()
    return ax


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
    return noise_levels(private_booster(model), kind)


def noise_levels(booster: Any, kind: str) -> dict[str, float]:
    """The same of a booster, whatever it is."""
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


def _splits(tree: StoredTree) -> list[tuple[float, ...]]:
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
