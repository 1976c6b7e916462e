"""Trains one peer in its own environment: ``python peer_worker.py FOLDER``.

Reads in.npz and request.json from the folder and writes out.npy. Needs NumPy and the peer only.
"""

from __future__ import annotations

import json
import math
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np


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
        "min_child_weight": request["min_child_weight"],
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
        model.fit(data["x_train"], data["y_train"].astype(int))
        return model.predict_proba(data["x_test"])[:, 1]
    low, high = request["target"]
    model = DPExplainableBoostingRegressor(
        **common, privacy_target_min=low, privacy_target_max=high
    )
    return model.fit(data["x_train"], data["y_train"]).predict(data["x_test"])


def diffprivlib(request: dict[str, Any], data: Any) -> np.ndarray:
    """diffprivlib's random forest for classes, linear regression for numbers."""
    from diffprivlib.models import LinearRegression, RandomForestClassifier

    bounds = (data["bounds"][:, 0], data["bounds"][:, 1])
    if request["binary"]:
        model = RandomForestClassifier(
            epsilon=request["epsilon"], bounds=bounds, classes=[0, 1], n_estimators=10
        )
        model.fit(data["x_train"], data["y_train"].astype(int))
        return model.predict_proba(data["x_test"])[:, 1]
    model = LinearRegression(
        epsilon=request["epsilon"], bounds_X=bounds, bounds_y=tuple(request["target"])
    )
    return model.fit(data["x_train"], data["y_train"]).predict(data["x_test"])


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    place = Path(sys.argv[1])
    asked = json.loads((place / "request.json").read_text(encoding="utf-8"))
    trainers = {"dp-xgboost": sarus, "interpret-core": ebm, "diffprivlib": diffprivlib}
    found = trainers[asked["peer"]](asked, np.load(place / "in.npz"))
    np.save(place / "out.npy", np.asarray(found, dtype=np.float64))
