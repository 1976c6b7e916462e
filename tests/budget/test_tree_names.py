"""Names of trees: the library has the same as Python, which reads the file of a model."""

import json
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xgboost as xgb

import xgb_dp
from tests.conftest import private
from xgb_dp.engine import native
from xgb_dp.engine.model_json import TREES, ModelJson
from xgb_dp.record import ledger

DP = private(dp_epsilon=4.0, max_depth=3, dp_categories={"kind": ["x", "y", "z"]})
# Every form of a number that Python has: fixed, with an exponent, whole, negative, tiny, huge.
EDGES = (
    0.0, -0.0, 1.0, -1.0, 10.0, 0.1, -0.25, 1e-4, 9.9999e-5, 1e-5, -1.5e-5, 123456.7, 1e15,
    9.999999e15, 1e16, 1.5e16, -1e22, 3.4028235e38, 1.1754944e-38, 1e-45,
    16777216.0, 0.33333334, 7.0e-10,
)  # fmt: skip


def trees(booster: xgb.Booster) -> list[dict[str, Any]]:
    model: list[dict[str, Any]] = ModelJson.from_booster(booster).part(TREES)["trees"]
    return model


def name_of(tree: dict[str, Any]) -> str:
    """The name of a tree by the library, which reads the tree first."""
    return native.call_for_string("XGDPTestTreeDigest", json.dumps(tree).encode()).decode()


def data(n: int = 400) -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(n, 3)), columns=["a", "b", "c"])
    X.loc[rng.random(n) < 0.2, "b"] = np.nan
    X["kind"] = pd.Categorical.from_codes(rng.integers(0, 3, n), ["x", "y", "z"])
    return X, (X["a"].to_numpy() + rng.normal(size=n) > 0).astype(float)


@pytest.mark.parametrize(
    "changes",
    [
        {"objective": "binary:logistic"},
        {"objective": "multi:softprob", "num_class": 3},
        *(
            {"objective": objective, "dp_target_bounds": (0.0, 1.0)}
            for objective in ("reg:squarederror", "reg:absoluteerror", "count:poisson")
        ),
    ],
    ids=lambda changes: changes["objective"],
)
def test_names_of_trained_trees(changes):
    """Also where an objective of XGBoost would renew leaves after the updater."""
    X, y = data()
    d = xgb.DMatrix(X, y, enable_categorical=True)
    model = xgb.train(DP | changes, d, 4)
    model = xgb.train(DP | changes, d, 2, xgb_model=model)
    assert [name_of(tree) for tree in trees(model)] == ModelJson.from_booster(model).tree_names()
    record = xgb_dp.privacy_report(model).ledger
    names = [name for training in record["trainings"] for name in training["trees"]]
    assert names == ledger.tree_names(model)


def test_names_of_every_form_of_a_number():
    """In turn, and any bits of a float that is a number."""
    X, y = data()
    y = y + 2.0 * (X["kind"] == "y").to_numpy()
    d = xgb.DMatrix(X, y, enable_categorical=True)
    stock = xgb.train({"max_depth": 5, "tree_method": "hist", "max_cat_to_onehot": 1}, d, 20)
    saved = json.loads(stock.save_raw("json"))
    stored = saved["learner"]["gradient_booster"]["model"]["trees"]
    rng = np.random.default_rng(1)
    for number, tree in enumerate(stored):
        for field in ("loss_changes", "sum_hessian", "base_weights"):
            size = len(tree[field])
            bits = rng.integers(0, 1 << 32, size, dtype=np.uint32).view(np.float32)
            floats = np.where(np.isfinite(bits), bits, 0.5).tolist()
            tree[field] = np.resize(EDGES, size).tolist() if number < 3 else floats
    edited = xgb.Booster(model_file=bytearray(json.dumps(saved).encode()))
    assert max(len(tree["loss_changes"]) for tree in stored[:3]) >= len(EDGES)
    assert any(tree["categories"] for tree in stored)
    assert [name_of(tree) for tree in trees(edited)] == ModelJson.from_booster(edited).tree_names()
