"""Small trainings with known noise, in folders from which driver.cc repeats them without Python."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import xgboost as xgb

from tests.conftest import arrays
from xgb_dp.discovery.discover import plan_discovery
from xgb_dp.engine import native
from xgb_dp.noisy_sums import numbers_request, weights
from xgb_dp.testing import fixed_noise
from xgb_dp.training.run import Training

from ..stated import claim_of

KEY = 7
ROUNDS = 4
PRIVATE: dict[str, Any] = {
    "tree_method": "dp_hist", "dp_epsilon": 2.0, "dp_delta": 1e-6, "max_depth": 3, "nthread": 1,
    "verbosity": 0,
}  # fmt: skip
BINARY = PRIVATE | {"objective": "binary:logistic"}


def program(prediction: Any, label: Any, weight: Any) -> tuple[Any, Any]:
    """A loss of the user's with a function of each kind in it."""
    del weight
    residual = np.tanh(prediction - label)
    return residual, np.maximum(1 - residual**2, 0.05) + 0.01 * np.exp(-prediction)


def loss(objective: str, low: float, high: float, **more: Any) -> dict[str, Any]:
    """Parameters of an objective with a loss of the plugin's own."""
    return PRIVATE | {"objective": objective, "dp_target_bounds": (low, high)} | more


EXPOSURE = {"dp_base_margin": True, "dp_exposure_bounds": (0.01, 1.0)}
# Kind of the labels, and parameters.
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "binary": ("binary", BINARY),
    "threads": ("binary", BINARY | {"nthread": 3}),
    "weights": ("binary", BINARY | {"dp_max_weight": 2.0}),
    "approx": ("binary", BINARY | {"tree_method": "dp_approx"}),
    "histogram": ("binary", BINARY | {"dp_split": "histogram"}),
    "random": ("binary", BINARY | {"dp_split": "random"}),
    "subsample": ("binary", BINARY | {"subsample": 0.5}),
    "laplace": ("binary", BINARY | {"dp_leaf_noise": "laplace"}),
    "persons": ("binary", BINARY | {"dp_privacy_id": np.arange(1500) % 400}),
    "categories": ("binary", BINARY | {"dp_categories": {"f3": 5}}),
    "regression": (
        "regression",
        BINARY | {"objective": "reg:squarederror", "dp_target_bounds": (-3.0, 3.0)},
    ),
    "classes": ("multiclass", BINARY | {"objective": "multi:softprob", "num_class": 3}),
    "absolute": ("regression", loss("reg:absoluteerror", -3.0, 3.0)),
    "quantiles": (
        "regression",
        loss("reg:quantileerror", -3.0, 3.0, quantile_alpha=[0.2, 0.5, 0.8]),
    ),
    "pseudo_huber": ("regression", loss("reg:pseudohubererror", -3.0, 3.0, huber_slope=1.0)),
    "squared_log": ("positive", loss("reg:squaredlogerror", 0.0, 20.0)),
    "shares": ("share", loss("reg:logistic", 0.0, 1.0)),
    "poisson": ("count", loss("count:poisson", 0.0, 10.0)),
    "exposures": ("exposed count", loss("count:poisson", 0.0, 10.0, **EXPOSURE)),
    "gamma": ("positive", loss("reg:gamma", 0.0, 20.0)),
    "tweedie": ("count", loss("reg:tweedie", 0.0, 10.0, tweedie_variance_power=1.3)),
    **{
        f"times-{name}": ("interval", loss("survival:aft", 0.01, 50.0, aft_loss_distribution=name))
        for name in ("normal", "logistic", "extreme")
    },
    "program": ("regression", PRIVATE | {"dp_objective": program, "dp_target_bounds": (-3.0, 3.0)}),
}


def write_lines(path: Path, *lines: str) -> None:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def case_data(kind: str) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Rows, and what XGBoost calls their labels, margins and bounds of labels."""
    X, y = arrays("regression" if kind not in ("binary", "multiclass") else kind, n=1500)
    info = {"label": y}
    if kind == "positive":
        info["label"] = np.exp(y)
    if kind == "share":
        info["label"] = 1 / (1 + np.exp(-y))
    if kind in ("count", "exposed count"):
        info["label"] = np.floor(np.exp(y / 2))
    if kind == "exposed count":
        info["base_margin"] = np.log(np.linspace(0.02, 1.0, len(y)))
    if kind == "interval":
        lower = np.exp(y)
        seen = np.arange(len(y)) % 3  # seen, not seen until then, or within an interval
        upper = np.choose(seen, [lower, np.full(len(y), np.inf), 1.5 * lower])
        info = {"label_lower_bound": lower, "label_upper_bound": upper}
    return X, {name: values.astype(np.float32) for name, values in info.items()}


def write_case(name: str, folder: Path) -> xgb.Booster:
    """Train one case here, and write all that its C++ side was handed."""
    folder.mkdir()
    kind, params = CASES[name]
    X, info = case_data(kind)
    if name == "weights":
        info["weight"] = np.linspace(0.0, 2.0, len(X)).astype(np.float32)
    extra: dict[str, Any] = dict(info)
    if name == "categories":
        X[:, 3] = np.digitize(X[:, 3], [-1.0, -0.3, 0.3, 1.0])
        types = ["q", "q", "q", "c"]
        extra |= {"feature_types": types, "enable_categorical": True}
        extra["feature_names"] = ["f0", "f1", "f2", "f3"]
        write_lines(folder / "types", *types)
    X.tofile(folder / "rows")
    write_lines(folder / "columns", str(X.shape[1]))
    (folder / "info").mkdir()
    for field, values in info.items():
        values.tofile(folder / "info" / field)
    dtrain = xgb.DMatrix(X, **extra)

    handed: dict[str, Any] = {"requests": []}
    start, intercept, persons = Training.start, native.release_before_trees, native.set_persons

    def note_start(self: Training, data: Any) -> Any:
        low, callback = start(self, data)
        handed["low"] = low
        return low, callback

    def note_intercept(data: Any, request: dict[str, Any]) -> dict[str, Any]:
        handed["requests"].append(request)  # counts and amounts have two
        return intercept(data, request)

    def note_persons(data: Any, codes: np.ndarray | None) -> None:
        if codes is not None:
            handed["persons"] = codes
        persons(data, codes)

    Training.start = note_start  # type: ignore[method-assign]
    native.release_before_trees, native.set_persons = note_intercept, note_persons
    try:
        with fixed_noise(KEY):
            model = xgb.train(params, dtrain, ROUNDS)
    finally:
        Training.start = start  # type: ignore[method-assign]
        native.release_before_trees, native.set_persons = intercept, persons

    low = handed["low"] | {"nthread": params["nthread"], "verbosity": 0}
    write_lines(folder / "params", *(f"{key}\t{value}" for key, value in low.items()))
    write_lines(folder / "rounds", str(ROUNDS))
    write_lines(folder / "claim", json.dumps(claim_of(low["dp_plan"])))
    write_lines(folder / "requests", *map(json.dumps, handed["requests"]))
    if "persons" in handed:
        handed["persons"].astype(np.uint32).tofile(folder / "persons")
    return model


def write_discovery(folder: Path) -> None:
    """Columns of numbers, and the request for their rough quantiles."""
    folder.mkdir()
    columns = np.ascontiguousarray(arrays(n=1500)[0].T)
    plan = plan_discovery(1, len(columns), 2.0, 1e-6)
    columns.tofile(folder / "rows")
    weights(None, columns.shape[1], plan.number_shift).tofile(folder / "weights")
    key = KEY.to_bytes(32, "little").hex()
    write_lines(folder / "request", json.dumps(numbers_request(plan, private=False, test_key=key)))
