"""What the C++ side refuses by itself, whatever Python does."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import numpy as np
import pytest
import xgboost as xgb
from xgboost.core import XGBoostError

import xgb_dp
from tests.test_training import PARAMS, rows

HIST = {"tree_method": "hist", "objective": "binary:logistic"}


@pytest.fixture(scope="module")
def dtrain() -> xgb.DMatrix:
    return xgb.DMatrix(*rows(400))


@pytest.fixture()
def booster(dtrain: xgb.DMatrix) -> xgb.Booster:
    return xgb.train(PARAMS, dtrain, 3)


def plan_of(booster: xgb.Booster) -> dict:
    updater = json.loads(booster.save_config())["learner"]["gradient_booster"]["updater"][0]
    return json.loads(updater["dp_train_param"]["dp_plan"])


def from_plan(plan: dict, dtrain: xgb.DMatrix, **extra: object) -> xgb.Booster:
    params = {
        "tree_method": "dp_hist",
        "objective": "binary:logistic",
        "base_score": 0.5,
        "dp_plan": json.dumps(plan),
        **extra,
    }
    return xgb.Booster(params, [dtrain])


def test_ledgered_model_takes_no_stock_trees(
    booster: xgb.Booster, dtrain: xgb.DMatrix, tmp_path: Path
) -> None:
    booster.save_model(tmp_path / "m.json")
    with pytest.raises(XGBoostError, match="ledger"):
        xgb.train(HIST, dtrain, 1, xgb_model=tmp_path / "m.json")
    with pytest.raises(XGBoostError, match="ledger"):
        xgb.train(
            {"process_type": "update", "updater": "refresh", "refresh_leaf": True},
            dtrain,
            1,
            xgb_model=tmp_path / "m.json",
        )
    loaded = xgb.Booster(model_file=tmp_path / "m.json")
    with pytest.raises(XGBoostError, match="ledger"):
        loaded.update(dtrain, 3)
    with pytest.raises(XGBoostError, match="ledger"):
        loaded.boost(dtrain, 3, grad=np.ones(400), hess=np.ones(400))
    assert loaded.num_boosted_rounds() == 3


def test_finished_training_is_sealed(booster: xgb.Booster, dtrain: xgb.DMatrix) -> None:
    for sealed in (booster, booster.copy(), pickle.loads(pickle.dumps(booster))):
        with pytest.raises(XGBoostError, match="finished"):
            sealed.update(dtrain, 3)
        assert sealed.num_boosted_rounds() == 3


def test_tree_method_cannot_change(booster: xgb.Booster, dtrain: xgb.DMatrix) -> None:
    booster.set_param({"tree_method": "hist"})
    with pytest.raises(XGBoostError):
        booster.update(dtrain, 3)


def test_uncalibrated_parameters_are_refused(dtrain: xgb.DMatrix) -> None:
    booster = xgb.Booster({**PARAMS, "base_score": 0.5}, [dtrain])
    with pytest.raises(XGBoostError, match="uncalibrated"):
        booster.update(dtrain, 0)


def test_no_plan_no_training_and_no_exact_intercept(dtrain: xgb.DMatrix) -> None:
    booster = xgb.Booster({"tree_method": "dp_hist", "objective": "binary:logistic"}, [dtrain])
    with pytest.raises(XGBoostError, match="base_score"):
        booster.update(dtrain, 0)
    booster.set_param({"base_score": 0.5})
    with pytest.raises(XGBoostError, match="calibrated plan"):
        booster.update(dtrain, 0)


def test_more_trees_than_calibrated(booster: xgb.Booster, dtrain: xgb.DMatrix) -> None:
    again = from_plan(plan_of(booster), dtrain)
    for i in range(3):
        again.update(dtrain, i)
    with pytest.raises(XGBoostError, match="spent"):
        again.update(dtrain, 3)


def test_another_matrix_in_mid_training(booster: xgb.Booster, dtrain: xgb.DMatrix) -> None:
    other = xgb.DMatrix(*rows(400, seed=1))
    again = from_plan(plan_of(booster), dtrain)
    again.update(dtrain, 0)
    with pytest.raises(XGBoostError, match="another"):
        again.update(other, 1)


@pytest.mark.parametrize(
    "change",
    [
        {"eta": 0.1},
        {"updater": "grow_histmaker"},
        {"tree_method": "hist"},
        {"booster": "gblinear"},
        {"subsample": 0.5},
        {"dp_other": 1},
        {"process_type": "update"},
    ],
    ids=str,
)
def test_nothing_changes_in_mid_training(
    booster: xgb.Booster, dtrain: xgb.DMatrix, change: dict
) -> None:
    again = from_plan(plan_of(booster), dtrain)
    again.update(dtrain, 0)
    again.set_param(change)
    with pytest.raises(XGBoostError):
        again.update(dtrain, 1)


@pytest.mark.parametrize("name", ["gblinear", "dart"])
def test_other_boosters(name: str, booster: xgb.Booster, dtrain: xgb.DMatrix) -> None:
    with pytest.raises(XGBoostError, match="gbtree"):
        from_plan(plan_of(booster), dtrain, booster=name).update(dtrain, 0)


def test_custom_gradients(booster: xgb.Booster, dtrain: xgb.DMatrix) -> None:
    with pytest.raises(XGBoostError, match="custom gradients"):
        from_plan(plan_of(booster), dtrain).boost(dtrain, 0, grad=np.ones(400), hess=np.ones(400))


def test_stock_parameters_with_dp_keys(dtrain: xgb.DMatrix) -> None:
    booster = xgb.Booster({**HIST, "dp_epsilon": 1.0}, [dtrain])
    with pytest.raises(XGBoostError, match="without privacy"):
        booster.update(dtrain, 0)


@pytest.mark.parametrize("field", ["leaf", "selection", "row_bound", "features", "rounds", "depth"])
def test_plan_without_a_field(booster: xgb.Booster, dtrain: xgb.DMatrix, field: str) -> None:
    plan = plan_of(booster)
    del plan[field]
    with pytest.raises(XGBoostError, match=field):
        from_plan(plan, dtrain).update(dtrain, 0)


@pytest.mark.parametrize(
    "path, value",
    [
        (("leaf", "sigma2"), 0),
        (("leaf", "sigma2"), -1),
        (("leaf", "sigma2"), 2.5),
        (("selection", "eps_num"), 0),
        (("row_bound", "gradient_bound"), "nan"),
        (("row_bound", "gradient_bound"), "-1"),
        (("candidates", "levels"), 40),
        (("noise_free",), True),
        (("test_key",), "00" * 32),
        (("objective",), "count:poisson"),
        (("score",), "gain"),
    ],
    ids=str,
)
def test_plan_that_contradicts_itself(
    booster: xgb.Booster, dtrain: xgb.DMatrix, path: tuple, value: object
) -> None:
    plan = plan_of(booster)
    inner = plan
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    with pytest.raises(XGBoostError):
        from_plan(plan, dtrain).update(dtrain, 0)


def test_continuation_composes(booster: xgb.Booster, dtrain: xgb.DMatrix) -> None:
    longer = xgb.train(PARAMS, dtrain, 2, xgb_model=booster)
    assert longer.num_boosted_rounds() == 5
    report = xgb_dp.privacy_report(longer)
    assert len(report.ledger["trainings"]) == 2
    assert 1.0 < report.epsilon < 2.0
