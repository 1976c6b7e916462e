"""The plan of a budget fits: a discovery, a training, an evaluation and a selection."""

import numpy as np
import pandas as pd
import pytest
import xgboost as xgb

import xgb_dp

PARAMS = {"tree_method": "dp_hist", "objective": "binary:logistic", "nthread": 1, "verbosity": 0}


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
    assert [e.part is not None for e in budget.entries] == [False, split, split]
    budget.verify()
    assert 1.0 - budget.spent.mu2 / budget.capacity.mu2 < 0.02
    if selection:
        assert plan["select"]["epsilon"] == pytest.approx(selection * epsilon, rel=1e-3)
        more = {**plan["select"], "num_boost_round": 2, "mean_runs": 2, "budget": budget}
        xgb_dp.select(PARAMS, matrix, [{"max_depth": 1}, {"max_depth": 2}], **more)
        assert budget.remaining_selection() < 0.01
        budget.verify()
    assert budget.plan()["train"]["epsilon"] < plan["train"]["epsilon"]
