"""Flips single bits of a saved private model and reads what came out, in a process of its own.

``python -m tests.budget.flips numbers ubj,json 1 300``: kind of model, forms of the file, seed,
flips of each. A crash ends this process, and not that of the tests; the number of the flip is its
last line.
"""

import random
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xgboost as xgb

import xgb_dp
from xgb_dp.engine.saved_model import load_booster
from xgb_dp.errors import LedgerError

KINDS = ("numbers", "names", "classes")
ROWS = 60


def rows(kind: str) -> tuple[Any, np.ndarray]:
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(ROWS, 3)), columns=["a", "b", "c"])
    y = rng.integers(3 if kind == "classes" else 2, size=ROWS)
    if kind != "numbers":
        X["b"] = pd.Categorical(rng.choice(["low", "mid", "high"], ROWS), ["low", "mid", "high"])
        X["c"] = pd.Categorical(rng.integers(5, size=ROWS), list(range(5)))
    return X, y


def matrix(kind: str) -> xgb.DMatrix:
    return xgb.DMatrix(*rows(kind), enable_categorical=True, nthread=1)


def model(kind: str) -> xgb.Booster:
    """Three rounds of trees that split, so that there is something to damage."""
    params = {"tree_method": "dp_hist", "objective": "binary:logistic", "nthread": 1}
    params |= {"dp_epsilon": 50.0, "dp_delta": 1e-6, "max_depth": 3, "verbosity": 0}
    params |= {"dp_feature_bounds": {"a": (-3, 3)}, "dp_no_split": False}
    if kind == "numbers":
        params["dp_feature_bounds"] = dict.fromkeys("abc", (-3, 3))
    else:
        params["dp_categories"] = {"b": ["low", "mid", "high"], "c": list(range(5))}
    if kind == "classes":
        params |= {"objective": "multi:softprob", "num_class": 3}
    return xgb.train(params, matrix(kind), 3)


def flip_all(kind: str, form: str, seed: int, flips: int) -> tuple[int, int]:
    """How many damaged files were refused, and how many gave wrong predictions or none."""
    rng = random.Random(seed)
    booster, data = model(kind), matrix(kind)
    true = xgb_dp.privacy_report(booster).epsilon
    raw = bytes(booster.save_raw(form))
    refused = useless = 0
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"model.{form}"
        for number in range(flips):
            bit = rng.randrange(8 * len(raw))
            print(number, bit, flush=True)
            damaged = bytearray(raw)
            damaged[bit // 8] ^= 1 << bit % 8
            path.write_bytes(damaged)
            try:
                report = xgb_dp.privacy_report(path)
                assert report.private
                assert report.epsilon >= true
            except LedgerError:
                refused += 1
                continue
            try:
                load_booster(path).predict(data)
            except (xgb.core.XGBoostError, ValueError):
                useless += 1
    return refused, useless


if __name__ == "__main__":
    for form in sys.argv[2].split(","):
        print(*flip_all(sys.argv[1], form, int(sys.argv[3]), int(sys.argv[4])))
