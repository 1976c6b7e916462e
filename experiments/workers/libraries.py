"""Other libraries of trees and of linear models, as they come."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .codes import dense, filled


def sarus(request: dict[str, Any], data: Any) -> np.ndarray:
    """Sarus' own package with the settings of its paper, section 5."""
    import dp_xgboost as xgb

    rounds, rate = request["rounds"], 0.1
    # Amplification by sampling, T log(1 + q (e^e - 1)) = epsilon, solved for each tree's e.
    each = math.log1p(math.expm1(request["epsilon"] / rounds) / rate)
    low, high = request["target"]
    y = data["y_train"]
    if not request["binary"]:
        y = 2 * (y - low) / (high - low) - 1
    bounds = data["bounds"]
    ranges = {"feature_min": list(bounds[:, 0]), "feature_max": list(bounds[:, 1])}
    train = xgb.DMatrix(data["x_train"], label=y, **ranges)
    params = {
        "objective": "reg:squarederror",
        "tree_method": "approxDP",
        "dp_epsilon_per_tree": each,
        "max_depth": 6,
        "learning_rate": 0.3,
        "lambda": 0.1,
        "base_score": 0.5 if request["binary"] else 0.0,
        "subsample": rate,
        "min_child_weight": request["params"].get("min_child_weight", 50.0),
        "nthread": 1,
        "seed": request["seed"],
        "verbosity": 0,
    }
    predicted = xgb.train(params, train, rounds).predict(xgb.DMatrix(data["x_test"], **ranges))
    return predicted if request["binary"] else low + (predicted + 1) * (high - low) / 2


def ebm(request: dict[str, Any], data: Any) -> np.ndarray:
    """interpret's DP-EBM with its own defaults."""
    from interpret.privacy import (
        DPExplainableBoostingClassifier,
        DPExplainableBoostingRegressor,
    )

    kinds = ["nominal" if n else "continuous" for n in request["nominal"]]
    bounds = dict(enumerate(tuple(pair) for pair in data["bounds"]))
    train, test = filled(data, request["nominal"])
    common = {
        "epsilon": request["epsilon"],
        "delta": request["delta"],
        "feature_types": kinds,
        "privacy_bounds": bounds,
        "random_state": None,
        "n_jobs": 1,
    }
    if request["binary"]:
        model = DPExplainableBoostingClassifier(**common)
        model.fit(train, data["y_train"].astype(int))
        return model.predict_proba(test)[:, 1]
    low, high = request["target"]
    model = DPExplainableBoostingRegressor(
        **common, privacy_target_min=low, privacy_target_max=high
    )
    return model.fit(train, data["y_train"]).predict(test)


def diffprivlib(request: dict[str, Any], data: Any) -> np.ndarray:
    """diffprivlib's random forest for classes, linear regression for numbers."""
    from diffprivlib.models import LinearRegression, RandomForestClassifier

    bounds = (data["bounds"][:, 0], data["bounds"][:, 1])
    train, test = filled(data, [False] * len(request["nominal"]))
    if request["binary"]:
        model = RandomForestClassifier(
            epsilon=request["epsilon"], bounds=bounds, classes=[0, 1], n_estimators=10, n_jobs=1
        )
        model.fit(train, data["y_train"].astype(int))
        return model.predict_proba(test)[:, 1]
    model = LinearRegression(
        epsilon=request["epsilon"], bounds_X=bounds, bounds_y=tuple(request["target"])
    )
    return model.fit(train, data["y_train"]).predict(test)


def logistic(request: dict[str, Any], data: Any) -> np.ndarray:
    """diffprivlib's logistic regression on rows of norm at most 1."""
    from diffprivlib.models import LogisticRegression

    x = dense(data, request["nominal"], "unit")
    x = x / np.sqrt((x**2).sum(axis=1).max())
    train = len(data["x_train"])
    model = LogisticRegression(
        epsilon=request["epsilon"], data_norm=1.0, C=request["params"]["C"], max_iter=1000
    )
    model.fit(x[:train], data["y_train"].astype(int))
    return model.predict_proba(x[train:])[:, 1]
