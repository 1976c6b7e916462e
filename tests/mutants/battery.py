"""Trainings of many kinds in a process with a mistake, and what was really drawn in them.

Nothing of what is written down here passes through a client: noise is read off the library's own
record of draws, and off the answers of its functions.
"""

import json
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["DELTA", "run"]

DELTA = 1e-6
_ROWS = 400
_BASE = {
    "tree_method": "dp_hist", "dp_epsilon": 1.0, "dp_delta": DELTA, "nthread": 1, "max_depth": 2,
}  # fmt: skip
_KINDS: dict[str, dict[str, Any]] = {
    "default": {"objective": "binary:logistic"},
    "regression": {"objective": "reg:squarederror", "dp_target_bounds": (-3.0, 3.0)},
    "poisson": {"objective": "count:poisson", "dp_target_bounds": (0.0, 8.0)},
    "classes": {"objective": "multi:softprob", "num_class": 3},
    "persons": {"objective": "binary:logistic", "dp_privacy_id": np.arange(_ROWS) // 4},
    "newton": {"objective": "binary:logistic", "dp_score": "newton", "num_boost_round": 5},
    "sample": {"objective": "binary:logistic", "subsample": 0.5, "dp_split": "random"},
    "histogram": {
        "objective": "binary:logistic", "dp_split": "histogram",
        "dp_feature_bounds": dict.fromkeys(range(4), (-4.0, 4.0)),
    },
    "laplace": {"objective": "binary:logistic", "dp_leaf_noise": "laplace"},
    "forest": {"objective": "binary:logistic", "num_parallel_tree": 2, "dp_public_num_rows": _ROWS},
    "sarus": {
        "objective": "binary:logistic", "dp_preset": "sarus",
        "dp_feature_bounds": dict.fromkeys(range(4), (-4.0, 4.0)),
    },
    "group": {"objective": "binary:logistic", "dp_group_size": 3, "dp_accountant": "exact"},
}  # fmt: skip


def _labels(kind: str, signal: Any) -> Any:
    objective = _KINDS[kind]["objective"]
    if objective == "reg:squarederror":
        return np.clip(signal, -3.0, 3.0)
    if objective == "count:poisson":
        return np.clip(np.round(np.exp(signal)), 0.0, 8.0)
    if objective == "multi:softprob":
        return np.digitize(signal, (-0.5, 0.5))
    return (signal > 0.0).astype(float)


def trainings() -> Iterator[tuple[str, Callable[[], Any]]]:
    """Each kind of training, as a call that gives the model."""
    import xgboost as xgb

    rng = np.random.default_rng(5)
    X = rng.normal(size=(_ROWS, 4))
    signal = X[:, 0] - 0.5 * X[:, 1] + 0.3 * rng.normal(size=_ROWS)

    def train(kind: str) -> Any:
        params = {**_BASE, **_KINDS[kind]}
        rounds = params.pop("num_boost_round", None if kind == "default" else 4)
        if kind == "sarus":
            params.pop("max_depth")
        matrix = xgb.DMatrix(X, _labels(kind, signal))
        return xgb.train(params, matrix) if rounds is None else xgb.train(params, matrix, rounds)

    for kind in _KINDS:
        yield kind, lambda kind=kind: train(kind)


def run(folder: Path) -> None:
    """Train everything, and write models and draws into a folder."""
    warnings.simplefilter("ignore")
    import xgb_dp  # noqa: F401  # the package with the mistake
    from xgb_dp.engine import native

    before: list[dict[str, Any]] = []
    release = native.release_before_trees

    def recorded(matrix: Any, request: dict[str, Any]) -> dict[str, Any]:
        answer = release(matrix, request)
        before.append({"request": request, "draw": answer.get("event")})
        return answer

    native.release_before_trees = recorded
    for kind, train in trainings():
        before.clear()
        try:
            model = train()
            config = json.loads(model.save_config())["learner"]["gradient_booster"]
            [record] = [u for u in config["updater"] if u.get("dp_ledger")]
            content = {
                "ledger": json.loads(model.attr("dp_ledger")),
                "plan": json.loads(record["dp_train_param"]["dp_plan"]),
                "state": json.loads(record["dp_train_param"]["dp_state"]),
                "draws": json.loads(record["dp_ledger"])["trainings"][-1]["events"],
                "before": list(before),
            }
        except BaseException as error:  # a mistake may end in any error, and in no claim
            content = {"error": f"{type(error).__name__}: {error}"[:200]}
        (folder / f"{kind}.json").write_text(json.dumps(content))
