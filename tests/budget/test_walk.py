"""A walk on real data with one budget: what it spends, and that its plan fits."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
import xgboost as xgb

import xgb_dp

datasets = pytest.importorskip("statsmodels.datasets")

PARAMS = {"tree_method": "dp_hist", "objective": "binary:logistic", "nthread": 1, "verbosity": 0}


def rows() -> tuple[pd.DataFrame, Any]:
    """The first years of the health insurance experiment, and whether somebody saw a doctor."""
    table = datasets.randhie.load_pandas().data.iloc[:8000].reset_index(drop=True)
    poor, fair, good = (table.pop(name) > 0 for name in ("hlthp", "hlthf", "hlthg"))
    health = np.select([poor, fair, good], ["poor", "fair", "good"], "excellent")
    table["health"] = pd.array(health, dtype="string")
    return table, (table.pop("mdvis") > 0).astype(int)


def test_the_walk_spends_what_it_planned(tmp_path):
    total = {"epsilon": 2.0, "delta": 1e-6, "selection_epsilon": 0.9}
    budget = xgb_dp.Budget(tmp_path / "table.json", **total)
    plan = budget.plan()
    for step, epsilon in (("discover", 0.116), ("train", 1.04), ("evaluate", 0.2), ("select", 0.9)):
        assert plan[step]["epsilon"] == pytest.approx(epsilon, rel=0.1)
    table, y = rows()
    discovery = xgb_dp.discover(table, **plan["discover"], budget=budget)
    matrix = xgb.DMatrix(discovery.apply(table), y, enable_categorical=True)
    parts = xgb_dp.split(matrix, test=0.3)
    params = {**PARAMS, **discovery.params()}
    spend = {f"dp_{name}": value for name, value in plan["train"].items()}
    model = budget.train({**params, **spend}, parts.train, 3, note="train")
    report = xgb_dp.evaluate(model, parts, **plan["evaluate"], budget=budget)
    more = {**plan["select"], "num_boost_round": 2, "mean_runs": 2, "budget": budget}
    xgb_dp.select(params, matrix, [{"max_depth": 1}, {"max_depth": 2}], **more)
    assert [e.state for e in budget.entries] == ["spent"] * 4
    assert report.cost.parallel and [e.part is None for e in budget.entries] == [
        True, False, False, True,
    ]  # fmt: skip
    assert budget.remaining_selection() < 0.01
    assert "(2, 1e-06)-differentially private" in budget.statement()
    budget.verify()


@pytest.mark.parametrize("split", [False, True])
@pytest.mark.parametrize(
    ("epsilon", "selection"), [(0.3, 0.0), (0.3, 0.25), (2.0, 0.0), (8.0, 0.25)]
)
def test_the_plan_fits(tmp_path, epsilon, selection, split):
    budget = xgb_dp.Budget(
        tmp_path / "b.json", epsilon=epsilon, delta=1e-6, selection_epsilon=selection * epsilon
    )
    plan = budget.plan(split=split)
    assert list(plan) == ["discover", "train", "evaluate", *(["select"] if selection else [])]
    rng = np.random.default_rng(0)
    town = pd.array(rng.choice(["a", "b"], 400), dtype="string")
    table = pd.DataFrame({"age": rng.integers(18, 90, 400), "town": town})
    xgb_dp.discover(table, **plan["discover"], budget=budget)
    params = PARAMS | {f"dp_{name}": value for name, value in plan["train"].items()}
    matrix = xgb.DMatrix(table[["age"]], table["age"] > 50)
    parts = xgb_dp.split(matrix, test=0.3) if split else None
    model = budget.train(params, matrix if parts is None else parts.train, 5)
    xgb_dp.evaluate(model, parts or matrix, **plan["evaluate"], budget=budget)
    assert [e.state for e in budget.entries] == ["spent"] * 3
    budget.verify()
    assert 1.0 - budget.spent.mu2 / budget.capacity.mu2 < 0.02
    if selection:
        assert plan["select"]["epsilon"] == pytest.approx(selection * epsilon, rel=1e-3)
    assert budget.plan()["train"]["epsilon"] < plan["train"]["epsilon"]
