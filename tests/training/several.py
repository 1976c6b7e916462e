"""Several targets of a row, or several labels of 0 and 1: rows, and trainings on them."""

from typing import Any

import numpy as np
import numpy.typing as npt
import xgboost as xgb

Floats = npt.NDArray[np.float64]
BOUNDS = [(-4.0, 4.0), (-60.0, 160.0), (-6.0, 6.0)]
CUTS = {i: [-1.0, -0.4, 0.0, 0.5, 1.1] for i in range(4)}
KINDS: dict[str, dict[str, Any]] = {
    "targets": {"dp_target_bounds": BOUNDS},
    "labels": {"objective": "binary:logistic"},
}


def usual(kind: str, **changes: Any) -> dict[str, Any]:
    """Parameters; None removes one."""
    shared = {"tree_method": "dp_hist", "dp_epsilon": 4.0, "dp_delta": 1e-5, "nthread": 1}
    return {k: v for k, v in (shared | KINDS[kind] | changes).items() if v is not None}


def probabilities(X: Floats) -> Floats:
    """Of the labels; the second one is rare."""
    logits = np.stack([2 * X[:, 0], X[:, 1] - 2.5, 1 + X[:, 2] - X[:, 0]], axis=1)
    return np.asarray(1 / (1 + np.exp(-logits)))


def rows(kind: str, n: int = 2000, seed: int = 8) -> tuple[Floats, Floats]:
    """Columns, and labels, or targets of three units."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    if kind == "labels":
        p = probabilities(X)
        return X, (rng.random(p.shape) < p).astype(float)
    noise = rng.normal(size=(n, 3))
    signal = [X[:, 0], 60 * (X[:, 1] > 0) + 10 * X[:, 0] + 20, X[:, 2] + X[:, 0]]
    return X, np.stack(signal, axis=1) + noise * [0.3, 10.0, 0.5]


def matrix(kind: str, n: int = 2000) -> xgb.DMatrix:
    return xgb.DMatrix(*rows(kind, n))


def train(kind: str, rounds: int | None = 10, data: Any = None, **changes: Any) -> xgb.Booster:
    names = ("xgb_model", "evals", "evals_result", "verbose_eval")
    more = {k: changes.pop(k) for k in names if k in changes}
    d = matrix(kind) if data is None else data
    return xgb.train(usual(kind, **changes), d, rounds, **more)
