"""This package and stock XGBoost, in a process of their own."""

from __future__ import annotations

from typing import Any

import numpy as np


def warm_up() -> None:
    """Import what is trained with."""
    import pandas  # noqa: F401
    import xgboost  # noqa: F401

    import xgb_dp  # noqa: F401


def predict(request: dict[str, Any], data: Any) -> tuple[np.ndarray, dict[str, Any]]:
    """Train with the parameters of the request, and say what the model's ledger certifies."""
    import pandas as pd
    import xgboost as xgb

    import xgb_dp

    def matrix(values: np.ndarray, label: np.ndarray | None = None) -> xgb.DMatrix:
        columns = {}
        for index, name in enumerate(request["columns"]):
            column = values[:, index]
            if name in request["categories"]:
                codes = np.where(np.isnan(column), -1, column).astype(int)
                columns[name] = pd.Categorical.from_codes(codes, request["categories"][name])
            else:
                columns[name] = column.astype(np.float32)
        return xgb.DMatrix(pd.DataFrame(columns), label, enable_categorical=True, nthread=1)

    params = dict(request["params"])
    rounds = {} if request["rounds"] is None else {"num_boost_round": request["rounds"]}
    booster = xgb.train(params, matrix(data["x_train"], data["y_train"]), **rounds)
    predicted = booster.predict(matrix(data["x_test"]))
    spent = {"rounds": booster.num_boosted_rounds()}
    if "dp_epsilon" in params:
        report = xgb_dp.privacy_report(booster)
        spent |= {"spent_epsilon": report.epsilon, "spent_delta": report.delta}
    return predicted, spent
