"""Small real data and the shortest private parameters."""

import os
from collections.abc import Callable
from typing import Any

# Before NumPy and XGBoost load theirs: on small matrices, threads that wait for each other cost far
# more than they save, most of all where several processes of tests share the cores.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

import numpy as np
import pytest
import xgboost as xgb
from hypothesis import HealthCheck, settings

from xgb_dp.record import privacy_warnings

# The same examples in every run, however busy the machine is: a run says something about the code
# and not about its luck. `--hypothesis-profile=default` looks for new ones.
settings.register_profile(
    "same",
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("same")

Params = Callable[..., dict[str, Any]]
OBJECTIVE = {
    "binary": {"objective": "binary:logistic"},
    "regression": {"objective": "reg:squarederror", "dp_target_bounds": (-3.0, 3.0)},
    "multiclass": {"objective": "multi:softprob", "num_class": 3},
}


def private(**changes: Any) -> dict[str, Any]:
    """Parameters of a private training with a usual budget, before its objective."""
    return {"tree_method": "dp_hist", "dp_epsilon": 1.0, "dp_delta": 1e-6} | changes


@pytest.fixture
def params() -> Params:
    """Private parameters of one kind of labels, with changes; None removes a key."""

    def make(kind: str = "binary", **changes: Any) -> dict[str, Any]:
        merged = private(max_depth=2, nthread=1, verbosity=0) | OBJECTIVE[kind] | changes
        return {k: v for k, v in merged.items() if v is not None}

    return make


def arrays(kind: str = "binary", n: int = 300) -> tuple[np.ndarray, np.ndarray]:
    """Four columns, the third with missing values, and labels that depend on the first two."""
    rng = np.random.default_rng(7)
    X = rng.normal(size=(n, 4)).astype(np.float32)
    X[rng.random(n) < 0.3, 2] = np.nan
    signal = X[:, 0] - 0.5 * X[:, 1]
    if kind == "binary":
        return X, (signal > 0).astype(np.float32)
    if kind == "multiclass":
        return X, np.digitize(signal, [-0.5, 0.5]).astype(np.float32)
    return X, signal.astype(np.float32)


@pytest.fixture
def matrix() -> Callable[..., xgb.DMatrix]:
    """A DMatrix of one kind of labels."""

    def make(kind: str = "binary", **kwargs: Any) -> xgb.DMatrix:
        X, y = arrays(kind)
        return xgb.DMatrix(X, y, **kwargs)

    return make


@pytest.fixture(autouse=True)
def no_earlier_training():
    """Trainings of other tests have no influence on warnings about a second training."""
    privacy_warnings._trained.clear()
