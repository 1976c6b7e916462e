"""Small data and models to evaluate."""

from typing import Any

import numpy as np
import pytest
import xgboost as xgb

import xgb_dp
from tests.conftest import private


def rows(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Five columns, the last of three codes, and labels of two classes."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5)).astype(np.float32)
    X[:, 4] = rng.integers(0, 3, n)
    p = 1.0 / (1.0 + np.exp(1.0 - 2.0 * X[:, 0] - X[:, 1] * X[:, 2]))
    return X, (rng.random(n) < p).astype(int)


def stock(X: Any, y: Any, **params: Any) -> xgb.Booster:
    """A model without privacy, of which nothing is to be hidden here."""
    params = {"objective": "binary:logistic", "max_depth": 3, "nthread": 1, **params}
    return xgb.train(params, xgb.DMatrix(X, y), 15)


PRIVATE = private(
    objective="binary:logistic", dp_feature_bounds=dict.fromkeys(range(5), (-4.0, 4.0)), nthread=1
)
COMMON = {k: v for k, v in PRIVATE.items() if k not in ("dp_epsilon", "dp_delta")}
TARGET = {"epsilon": 1.0, "delta": 1e-6}


def refused(error: type[Exception], match: str, *args: Any, **kwargs: Any) -> None:
    with pytest.raises(error, match=match):
        xgb_dp.evaluate(*args, **{**TARGET, **kwargs})
