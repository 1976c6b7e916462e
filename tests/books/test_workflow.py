"""One budget from the first look to the judgement: a plan that fits, a book that stays right."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import xgboost as xgb

import xgb_dp

WALK = """
import sys
import numpy as np, pandas as pd, xgboost as xgb, xgb_dp
rng = np.random.default_rng(0)
rows = pd.DataFrame({"age": rng.integers(18, 90, 2000), "town": rng.choice(["a", "b"], 2000)})
y = (rows["age"] > 50).astype(int)
book = xgb_dp.Budget(sys.argv[1])
print("start", flush=True)
for i in range(50):
    xgb_dp.discover(rows, epsilon=0.01, delta=1e-9, budget=book)
    print("look", flush=True)
    params = {"tree_method": "dp_hist", "objective": "binary:logistic", "dp_epsilon": 0.02,
              "dp_delta": 1e-9, "max_depth": 2, "nthread": 1, "verbosity": 0}
    model = book.train(params, xgb.DMatrix(rows[["age"]], y), 2)
    print("model", flush=True)
    xgb_dp.evaluate(model, xgb.DMatrix(rows[["age"]], y), epsilon=0.01, delta=1e-9, budget=book)
    print("score", flush=True)
"""


@pytest.mark.parametrize("epsilon", [0.3, 2.0, 8.0])
@pytest.mark.parametrize("selection", [0.0, 0.25])
def test_the_plan_fits(tmp_path, epsilon, selection):
    book = xgb_dp.Budget(
        tmp_path / "b.json", epsilon=epsilon, delta=1e-6, selection_epsilon=selection * epsilon
    )
    plan = book.plan()
    assert list(plan) == ["discover", "train", "evaluate", *(["select"] if selection else [])]
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"age": rng.integers(18, 90, 400), "town": rng.choice(["a", "b"], 400)})
    y = (rows["age"] > 50).astype(int)
    xgb_dp.discover(rows, **plan["discover"], budget=book)
    target = {f"dp_{name}": value for name, value in plan["train"].items()}
    params = {"tree_method": "dp_hist", "objective": "binary:logistic", "nthread": 1} | target
    matrix = xgb.DMatrix(rows[["age"]], y)
    model = book.train({**params, "verbosity": 0}, matrix, 5)
    xgb_dp.evaluate(model, matrix, **plan["evaluate"], budget=book)
    assert [e.state for e in book.entries] == ["spent"] * 3
    book.verify()
    if selection:
        assert plan["select"]["epsilon"] == pytest.approx(selection * epsilon, rel=1e-3)
    left = book.plan()
    assert left["train"]["epsilon"] < plan["train"]["epsilon"]


@pytest.mark.parametrize("seed", range(3))
def test_killed_at_any_moment_the_book_is_right(tmp_path, seed):
    """Whatever was shown is in the book, as spent or as reserved."""
    path: Path = tmp_path / "book.json"
    book = xgb_dp.Budget(path, epsilon=8.0, delta=1e-5)
    child = subprocess.Popen(
        [sys.executable, "-c", WALK, str(path)], stdout=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "start\n"
    time.sleep(random.Random(seed).uniform(0.05, 2.5))
    child.kill()
    shown = child.stdout.read().split()
    child.wait()
    book.verify()
    entries = book.entries
    assert len(shown) <= len(entries) <= len(shown) + 1
    assert all(entry.state == "spent" for entry in entries[: len(shown)])
    kinds = {"look": "discovery", "model": "training", "score": "evaluation"}
    assert [kinds[s] for s in shown] == [entry.note for entry in entries[: len(shown)]]
