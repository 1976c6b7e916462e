"""What the C++ side refuses by itself, whatever Python does."""

import json
import pickle

import numpy as np
import pytest
import xgboost as xgb
from xgboost.core import XGBoostError

import xgb_dp
from tests.batches import Batches
from tests.callbacks import After

from .plans import from_plan, plan_of, strings_of
from .test_training import PARAMS, rows

HIST = {"tree_method": "hist", "objective": "binary:logistic"}


def test_another_number_of_trees_in_a_round_is_a_changed_model(dtrain):
    """Before anything is released: the trainer would refuse it after the intercept."""
    model = json.loads(xgb.train(PARAMS, dtrain, 2).save_raw("json"))
    model["learner"]["gradient_booster"]["model"]["gbtree_model_param"]["num_parallel_tree"] = "7"
    changed = bytearray(json.dumps(model).encode())
    with pytest.raises(xgb_dp.PrivacyRefusal, match="num_parallel_tree"):
        xgb.train(PARAMS, dtrain, 2, xgb_model=changed)


def test_ledgered_model_takes_no_stock_trees(booster, dtrain, tmp_path):
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


def test_finished_training_is_sealed(booster, dtrain):
    for sealed in (booster, booster.copy(), pickle.loads(pickle.dumps(booster))):
        with pytest.raises(XGBoostError, match="finished"):
            sealed.update(dtrain, 3)
        assert sealed.num_boosted_rounds() == 3


@pytest.mark.parametrize("ledger", [True, False])
def test_tree_method_cannot_change(booster, dtrain, ledger):
    """With the attribute removed, the ledger cannot be what stops it."""
    if not ledger:
        booster.set_attr(dp_ledger=None)
    booster.set_param({"tree_method": "hist"})
    with pytest.raises(XGBoostError, match="cannot change from `dp_hist` to `hist`"):
        booster.update(dtrain, 3)


def test_uncalibrated_parameters_are_refused(dtrain):
    booster = xgb.Booster({**PARAMS, "base_score": 0.5}, [dtrain])
    with pytest.raises(XGBoostError, match="uncalibrated"):
        booster.update(dtrain, 0)


def test_no_plan_no_training_and_no_exact_intercept(dtrain):
    booster = xgb.Booster({"tree_method": "dp_hist", "objective": "binary:logistic"}, [dtrain])
    with pytest.raises(XGBoostError, match="base_score"):
        booster.update(dtrain, 0)
    booster.set_param({"base_score": 0.5})
    with pytest.raises(XGBoostError, match="calibrated plan"):
        booster.update(dtrain, 0)


def test_more_trees_than_calibrated(booster, dtrain):
    again = from_plan(plan_of(booster), dtrain)
    for i in range(3):
        again.update(dtrain, i)
    with pytest.raises(XGBoostError, match="spent"):
        again.update(dtrain, 3)


def test_custom_gradients(booster, dtrain):
    with pytest.raises(XGBoostError, match="custom gradients"):
        from_plan(plan_of(booster), dtrain).boost(dtrain, 0, grad=np.ones(400), hess=np.ones(400))


def test_stock_parameters_with_dp_keys(dtrain):
    booster = xgb.Booster({**HIST, "dp_epsilon": 1.0}, [dtrain])
    with pytest.raises(XGBoostError, match="would not be private"):
        booster.update(dtrain, 0)


class Meddle(After):
    """Calls `act(model)` after round `when`, or before training where that is below 0."""

    def before_training(self, model: xgb.Booster) -> xgb.Booster:
        if self.when < 0:
            self.act(model)
        return model


def test_plan_cannot_restart(dtrain):
    """Neither in mid-training nor on a finished model: its noise has been drawn."""

    def restart(model: xgb.Booster) -> None:
        plan, state = strings_of(model)
        model.reset()
        model.set_param({"dp_plan": plan, "dp_state": state, "objective": "binary:logistic"})

    with pytest.raises(XGBoostError, match="cannot be continued"):
        xgb.train(PARAMS, dtrain, 4, callbacks=[Meddle(restart, 1)])
    booster = xgb.train(PARAMS, dtrain, 3)
    restart(booster)
    with pytest.raises(XGBoostError, match="does not account"):
        booster.update(dtrain, 3)


def test_plan_of_another_training_is_not_claimed(dtrain):
    """A slice has room for trees in its ledger, but not for those of another plan."""
    booster = xgb.train(PARAMS, dtrain, 4)
    plan = plan_of(booster)
    plan["leaf"]["sigma2"] = 1 << 20
    changed = {"tree_method": "dp_hist", "objective": "binary:logistic"}
    part = booster[0:2]
    part.set_param({**changed, "dp_plan": json.dumps(plan)})
    with pytest.raises(XGBoostError, match="does not account"):
        part.update(dtrain, 2)
    other = booster[0:2]
    other.set_param({**changed, "dp_plan": json.dumps({**plan, "id": "another"})})
    with pytest.raises(XGBoostError, match="does not account"):
        other.update(dtrain, 2)
    fresh = xgb.Booster({**changed, "base_score": 0.5, "dp_plan": json.dumps(plan)}, [dtrain])
    fresh.set_attr(dp_ledger=booster.attr("dp_ledger"))  # of this plan, and complete
    with pytest.raises(XGBoostError, match="does not account"):
        fresh.update(dtrain, 0)


def test_stopping_early_counts_in_full(dtrain):
    """When a training ended is an outcome of its mechanisms."""
    params = {**PARAMS, "dp_split_levels": 1}
    full = xgb_dp.privacy_report(xgb.train(params, dtrain, 20))
    short = xgb_dp.privacy_report(
        xgb.train(params, dtrain, 20, callbacks=[After(lambda _: True, 1)])
    )
    unsplit = xgb_dp.privacy_report(
        xgb.train({**params, "dp_no_split": True, "gamma": 1e9}, dtrain, 20)
    )
    assert short.epsilon == full.epsilon
    [training] = short.ledger["trainings"]
    assert training["rounds"] == 2
    assert {e["release"]: e["count"] for e in training["drawn"]}["leaves"] == 2
    for report in (short, unsplit):
        assert report.epsilon == pytest.approx(full.epsilon, rel=1e-6)
        assert "drawn" in report.ledger["trainings"][0]
        assert "charged in full" in report.statement()


def test_matrix_is_kept(booster):
    """Another matrix never takes the place of the first one in memory."""
    first = xgb.DMatrix(*rows(400))
    again = from_plan(plan_of(booster), first)
    again.update(first, 0)
    del first
    for n in (400, 200):
        with pytest.raises(XGBoostError, match="not the one that"):
            again.update(xgb.DMatrix(*rows(n)), 1)


def test_failed_training_does_not_go_on(booster):
    x, y = rows(400)
    x[:, 4] = 7.0
    types = ["q"] * 4 + ["c"]
    plan = plan_of(booster)
    plan["features"][4] = {"kind": "categorical", "size": 3}
    matrix = xgb.DMatrix(x, y, feature_types=types, enable_categorical=True)
    again = from_plan(plan, matrix)
    with pytest.raises(XGBoostError, match="category"):
        again.update(matrix, 0)
    with pytest.raises(XGBoostError, match="failed"):
        again.update(matrix, 0)


def test_rows_without_labels(booster):
    """XGBoost does not compare the number of labels if all rows have weights."""
    x, y = rows(200)
    bare = {"data": x, "weight": np.ones(200)}
    matrix = xgb.DMatrix(Batches([bare, {**bare, "label": y}]))
    with pytest.raises(XGBoostError, match="have no label"):
        from_plan(plan_of(booster), matrix).update(matrix, 0)


@pytest.mark.parametrize("label", [0.5, 2.0, -1.0])
def test_labels_of_two_classes(booster, label):
    x, y = rows(400)
    matrix = xgb.DMatrix(x, np.where(y > 0, label, 0.0))
    with pytest.raises(XGBoostError, match="must be 0 or 1"):
        from_plan(plan_of(booster), matrix).update(matrix, 0)


@pytest.mark.parametrize("when", [-1, 0, 1])
@pytest.mark.parametrize("kind", ["binary", "multiclass"])
def test_harmless_parameters_may_change(kind, when):
    x, y = rows(200)
    params = PARAMS
    if kind == "multiclass":
        params = {**PARAMS, "objective": "multi:softprob", "num_class": 3}
    meddle = Meddle(lambda model: model.set_param({"nthread": 1, "verbosity": 1}), when)
    booster = xgb.train(params, xgb.DMatrix(x, y), 3, callbacks=[meddle])
    assert booster.num_boosted_rounds() == 3
