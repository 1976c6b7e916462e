"""Other libraries of trees and of linear models, as they come."""

from __future__ import annotations

import math
import os
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


# Of its published runs on Adult, the best settings at a small and at a larger budget.
SBDT_SMALL = {"nb_trees": 100, "l2_threshold": 0.3, "l2_lambda": 10.0}
SBDT_LARGE = {"nb_trees": 200, "l2_threshold": 0.8, "l2_lambda": 5.0}
SBDT = {
    "subsampling_ratio": 1.0,
    "learning_rate": 0.1,
    "max_depth": 6,
    "newton_boosting": True,
    "balance_partition": False,
    "lambda_reg_mode": 1,
    "reg_delta": 2.0,
    "min_samples_split": 0,
    "ignore_split_constraints": True,
    "max_features": 0,
    "max_feature_values": 0,
    "criterion": 0,
    "reuse_attr": True,
    "use_dp": True,
    "privacy_budget_init_score_ratio": 0.01,
    "privacy_budget_gain_ratio": 0.0,
    "leaf_denom_noise_weight": 0.1,
    "hess_l2_threshold": 0.1,
    "init_score_threshold": 1.0,
    "numeric_feature_weight": 1.0,
    "leaf_noise": 1,
    "use_privacy_filter": False,
    "approximate_privacy_filter": False,
    "pf_additional_nb_trees": 0,
    "pf_l2_threshold": 0.1,
    "pf_hess_l2_threshold": 1.0,
    "pf_subsampling_ratio_factor": 1.0,
    "additional_nb_trees": 0,
    "refine_splits_rounds": 0,
    "num_split_candidates": 32,
    "gradient_filtering": False,
    "leaf_clipping": False,
    "cyclical_feature_interactions": True,
    "refine_splits": False,
    "random_splits_from_candidates": True,
    "refine_splits_subsample": 1.0,
    "cut_off_leaf_denom": True,
    "custom_noise_scale": -1.0,
    "verbosity": 4,
    "task": "BinaryClassification",
    "feature_val_border": (0.0, 100.0),
    "continuous_learning": False,
    "scale_y": False,
}


def sbdt(request: dict[str, Any], data: Any) -> np.ndarray:
    """S-BDT, built from its source.

    Its delta is a macro of the build. Built with ``-DDELTA='atof(getenv("SBDT_DELTA"))'`` it is
    that of the request, else 5e-8.
    """
    os.environ["SBDT_DELTA"] = repr(request["delta"])
    import sbdt as library

    nominal = request["nominal"]
    both = np.concatenate(filled(data, nominal))
    low, high = both.min(axis=0), both.max(axis=0)
    scaled = 100.0 * (both - low) / np.maximum(high - low, 1e-12)
    x = np.ascontiguousarray(np.where(nominal, both, scaled))
    train = len(data["x_train"])
    model = library.S_BDT(
        privacy_budget=request["epsilon"],
        cat_idx=[j for j, n in enumerate(nominal) if n],
        num_idx=[j for j, n in enumerate(nominal) if not n],
        cat_values=[np.unique(both[:, j]).tolist() if n else [] for j, n in enumerate(nominal)],
        **SBDT | (SBDT_SMALL if request["epsilon"] < 0.3 else SBDT_LARGE),
    )
    model.train(x[:train].copy(), data["y_train"].astype(np.float64), "table")
    margins = np.clip(model.predict(x[train:].copy()), -30, 30)
    return 1 / (1 + np.exp(-margins))
