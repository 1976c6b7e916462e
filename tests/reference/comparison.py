"""Training from a hand-made plan in C++ and in the oracle, compared tree by tree."""

from typing import Any

import numpy as np
import numpy.typing as npt
import xgboost as xgb

from tests.models import trees
from tests.reference.plans import base_plan, merge
from tests.reference.trainer import Model, Plan, Tree, train
from xgb_dp.engine import native
from xgb_dp.testing import train_with_plan

KEY = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"
LOGISTIC, SQUARED, SOFTMAX = "binary:logistic", "reg:squarederror", "multi:softprob"
RAW, ARGMAX = "binary:logitraw", "multi:softmax"  # the same gradients as their siblings
BINARY, MULTICLASS = (LOGISTIC, RAW), (SOFTMAX, ARGMAX)
OBJECTIVES = (LOGISTIC, SQUARED, SOFTMAX)
SHAPES = ("alternate", "per_node", "oblivious")
CLASSES = 3
PRIVATE_FEATURE = {"kind": "private", "grid": []}
MIXED = [
    PRIVATE_FEATURE,
    {"kind": "cuts", "cuts": [-1.5, -0.25, 0.0, 0.125, 1.0]},
    PRIVATE_FEATURE,
    {"kind": "categorical", "size": 5},
]


def make_plan(objective: str, noise_free: bool, features: list[Plan], **changes: Any) -> Plan:
    """A plan for three rounds of depth three; noise, where it is on, about as large as signal."""
    plan = base_plan(
        features,
        noise_free=noise_free,
        objective=objective,
        num_class=CLASSES if objective in MULTICLASS else 1,
        rounds=3,
        depth=3,
        row_bound={"max_weight": "2.0"},
    )
    if objective == SQUARED:
        bound = {"gradient_bound": "0.3", "hessian_weight": "0.25", "scale": "4.0"}
        plan = merge(plan, {"row_bound": bound | {"target_lower": "-4.0", "target_upper": "4.0"}})
    if not noise_free:
        noise = {
            "test_key": KEY,
            "selection": {"eps_num": 3 << 39},
            "leaf": {"sigma2": 1 << 38},
            "candidates": {"sigma2": (1 << 22) * any(f["kind"] == "private" for f in features)},
        }
        plan = merge(plan, noise)
    return merge(plan, changes)


def make_data(objective: str, n: int = 240) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Columns for MIXED: a point mass at zero, plain, very skewed, categorical; all with holes."""
    rng = np.random.default_rng(5)
    z = rng.normal(size=(n, 3))
    X = np.empty((n, 4), dtype=np.float32)
    X[:, 0] = np.where(z[:, 0] < 0.2, 0, z[:, 0])
    X[:, 1] = z[:, 1]
    X[:, 2] = np.sinh(4 * z[:, 2])
    X[:, 3] = rng.integers(0, 4, n)  # the declared category 4 never occurs
    signal = z[:, 0] + np.sin(2 * z[:, 1]) + z[:, 2] * (X[:, 3] == 2) + 0.4 * rng.normal(size=n)
    X[rng.random(X.shape) < 0.12] = np.nan
    if objective in BINARY:
        y = signal > 0
    elif objective in MULTICLASS:
        y = np.digitize(signal, (-0.5, 0.8))
    else:
        y = 2 * signal  # some beyond the declared bounds
    return X, y.astype(np.float32)


def types(features: list[Plan]) -> list[str]:
    """XGBoost's feature types."""
    return ["c" if spec["kind"] == "categorical" else "q" for spec in features]


def trees_of(booster: xgb.Booster) -> list[Tree]:
    """The trees of a model, in the oracle's form."""
    out = []
    for tree in trees(booster):
        categories: list[Any] = [()] * len(tree["left_children"])
        spans = zip(tree["categories_segments"], tree["categories_sizes"], strict=True)
        for node, (begin, size) in zip(tree["categories_nodes"], spans, strict=True):
            categories[node] = tuple(tree["categories"][begin : begin + size])
        out.append(
            {
                "split_index": tree["split_indices"],
                "split_condition": tree["split_conditions"],
                "default_left": [bool(d) for d in tree["default_left"]],
                "left": tree["left_children"],
                "right": tree["right_children"],
                "leaf": tree["split_conditions"],
                "categories": categories,
                "sum_hess": tree["sum_hessian"],
                "base_weight": tree["base_weights"],
                "loss_chg": tree["loss_changes"],
            }
        )
    return out


def assert_same_trees(actual: list[Tree], expected: list[Tree], exact: bool) -> None:
    """Same structure and thresholds; same leaves, bit by bit if `exact`."""
    assert len(actual) == len(expected)
    for a, e in zip(actual, expected, strict=True):
        assert a["left"] == e["left"]
        assert a["right"] == e["right"]
        inner = [i for i, left in enumerate(e["left"]) if left != -1]
        leaves = [i for i, left in enumerate(e["left"]) if left == -1]
        for i in inner:
            for name in ("split_index", "default_left", "categories"):
                assert a[name][i] == e[name][i], (name, i)
            if not e["categories"][i]:
                assert np.float32(a["split_condition"][i]) == e["split_condition"][i]
        grown = np.array([a["leaf"][i] for i in leaves], dtype=np.float32)
        values = np.array([e["leaf"][i] for i in leaves], dtype=np.float32)
        if exact:
            np.testing.assert_array_equal(grown, values)
        else:
            np.testing.assert_allclose(grown, values, rtol=1e-5, atol=1e-7)
        for name in ("sum_hess", "base_weight", "loss_chg"):
            np.testing.assert_allclose(a[name], e[name], rtol=1e-4, atol=1e-5, err_msg=name)


def check(
    plan: Plan,
    X: Any,
    y: npt.NDArray[Any],
    weight: npt.NDArray[Any] | None = None,
    dense: npt.NDArray[Any] | None = None,
    base_margin: npt.NDArray[Any] | None = None,
    exact: bool = True,
    persons: npt.NDArray[Any] | None = None,
    upper: npt.NDArray[Any] | None = None,
    **extra: Any,
) -> Model:
    """Train both, compare trees and margins.

    `dense` is what the oracle sees if `X` is sparse; `upper` are the ends of intervals that begin
    at `y`; `extra` are parameters of XGBoost.
    """
    margins = [-1.0, -0.5, 0.25]
    bases: Any = {LOGISTIC: 0.4, RAW: -0.4, SQUARED: 0.5, SOFTMAX: margins, ARGMAX: margins}
    outputs = int(plan["num_class"])
    base = [0.5] * outputs if "loss" in plan else bases[plan["objective"]]
    d = xgb.DMatrix(
        X,
        y if upper is None else None,
        weight=weight,
        base_margin=base_margin,
        feature_types=types(plan["features"]),
        enable_categorical=True,
    )
    if upper is not None:
        d.set_float_info("label_lower_bound", y)
        d.set_float_info("label_upper_bound", upper)
    native.set_persons(d, persons)
    booster = train_with_plan(plan, d, plan["rounds"], base, nthread=1, **extra)
    seen = X if dense is None else dense
    model = train(
        plan, seen, y, weight, base, base_margin=base_margin, persons=persons, upper=upper
    )
    assert_same_trees(trees_of(booster), model.trees, exact=exact and plan["objective"] == SQUARED)
    margin = booster.predict(d, output_margin=True).reshape(model.margin.shape)
    np.testing.assert_allclose(margin, model.margin, rtol=1e-4, atol=1e-5)
    return model
