"""Slices, pasted trees and interrupted trainings carry a ledger for all that was released."""

import json

import pytest
import xgboost as xgb
from xgboost.core import XGBoostError

import xgb_dp
from xgb_dp.accounting import make_accountant
from xgb_dp.errors import LedgerError

from .scan import COMMON, OBJECTIVE, small


def test_slices_keep_the_whole_ledger_and_cannot_be_extended_in_place():
    model = xgb.train(COMMON | OBJECTIVE["binary"], small(), 4)
    whole = xgb_dp.privacy_report(model)
    for part in (model[:2], model[2:], model[::2], model[3]):
        report = xgb_dp.privacy_report(part)
        assert report.ledger == whole.ledger and report.epsilon == whole.epsilon
        with pytest.raises(XGBoostError):
            part.update(small(), 9)


def test_training_on_a_slice_pays_for_both():
    """Slices put together again by `xgb_model` carry every training of which trees were used."""
    params = COMMON | OBJECTIVE["binary"]
    model = xgb.train(params, small(), 4)
    both = xgb.train(params, small(), 2, xgb_model=model[:2])
    report = xgb_dp.privacy_report(both)
    assert both.num_boosted_rounds() == 4
    assert [t["rounds"] for t in report.ledger["trainings"]] == [4, 2]
    assert report.epsilon > 1.2 * xgb_dp.privacy_report(model).epsilon


def test_trees_put_together_by_hand_exceed_the_ledger():
    """Models are files: trees of another training pasted into one are noticed."""
    params = COMMON | OBJECTIVE["binary"]
    one, other = (json.loads(xgb.train(params, small(), 2).save_raw("json")) for _ in range(2))
    parts = [m["learner"]["gradient_booster"]["model"] for m in (one, other)]
    for tree in parts[1]["trees"]:
        tree["id"] += 2
    parts[0]["trees"] += parts[1]["trees"]
    parts[0]["tree_info"] += parts[1]["tree_info"]
    parts[0]["iteration_indptr"] = [0, 1, 2, 3, 4]
    parts[0]["gbtree_model_param"]["num_trees"] = "4"
    pasted = xgb.Booster(model_file=bytearray(json.dumps(one).encode()))
    assert pasted.num_boosted_rounds() == 4
    with pytest.raises(LedgerError, match="ledger"):
        xgb_dp.privacy_report(pasted)


def test_an_interrupted_training_has_claimed_its_plan():
    """Whatever a callback keeps of a training that failed carries a ledger for all of it.

    It is not private: nothing says who has grown its trees.
    """
    kept: list[xgb.Booster] = []

    class Fail(xgb.callback.TrainingCallback):
        def after_iteration(self, model: xgb.Booster, epoch: int, evals_log: dict) -> bool:
            kept.append(model)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        xgb.train(COMMON | OBJECTIVE["binary"], small(), 3, callbacks=[Fail()])
    report = xgb_dp.privacy_report(kept[0])
    claimed = make_accountant("exact", report.record.events).get_epsilon(report.delta)
    assert 0.99 * 2.0 <= claimed <= 2.0
    assert not report.private and report.epsilon == float("inf")
