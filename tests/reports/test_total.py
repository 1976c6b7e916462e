"""The total of several models of one table."""

import math
from dataclasses import replace

import numpy as np
import pytest
import xgboost as xgb

import xgb_dp
from tests.conftest import private
from xgb_dp import PrivacyParameterError
from xgb_dp.accounting import make_accountant
from xgb_dp.errors import LedgerError
from xgb_dp.record.privacy_report import PrivacyReport, PrivacyTotal

rng = np.random.default_rng(0)
X = rng.normal(size=(400, 2))
DATA = xgb.DMatrix(X, X[:, 0] > 0)
PARAMS = private(objective="binary:logistic", max_depth=2, nthread=1)


def train(**more):
    return xgb.train({**PARAMS, **more}, DATA, 4)


@pytest.fixture(scope="module")
def model():
    return train()


def test_events_of_all_are_composed(model):
    other = train(dp_delta=1e-5)
    total = xgb_dp.privacy_report([model, other])
    events = [*xgb_dp.privacy_report(model).record.events,
              *xgb_dp.privacy_report(other).record.events]  # fmt: skip
    assert total.delta == 1e-5 and total.private
    assert total.epsilon == make_accountant("exact", events).get_epsilon(1e-5, 1)
    assert total.get_epsilon(1e-6, 2) > total.get_epsilon(1e-6) > 1.3
    assert "Together, these 2 models are" in str(total)


def test_what_is_shared_counts_once(model, tmp_path):
    alone = xgb_dp.privacy_report(model).epsilon
    assert xgb_dp.privacy_report([model, model[:2], model.copy()]).epsilon == alone
    more = xgb.train(PARAMS, DATA, 2, xgb_model=model)
    assert xgb_dp.privacy_report([model, more]).epsilon == xgb_dp.privacy_report(more).epsilon
    # Two trainings with the same settings have the same plan and events, and share nothing.
    assert xgb_dp.privacy_report([model, train()]).epsilon > 1.3 * alone
    budget = xgb_dp.Budget(tmp_path / "b.json", epsilon=3.0, delta=1e-5)
    budgeted = budget.train(PARAMS, DATA, 4)
    judged = xgb_dp.evaluate(budgeted, DATA, epsilon=0.5, delta=1e-6, budget=budget)
    curve = judged.calibrated(budgeted)
    assert xgb_dp.privacy_report([budgeted, curve]).epsilon == xgb_dp.privacy_report(curve).epsilon


def test_one_training_has_one_record(model):
    """Whoever writes the name of another training into a ledger hides what it cost."""
    reports = [xgb_dp.privacy_report(trained) for trained in (model, train())]
    first, second = (report.record.trainings[0] for report in reports)
    twin = replace(reports[1].record, trainings=(replace(second, id=first.id),)).to_json()
    with pytest.raises(LedgerError, match="contain the same training"):
        PrivacyTotal((reports[0], PrivacyReport(twin)))


def test_models_without_trees_are_not_taken_for_one():
    class Stop(xgb.callback.TrainingCallback):
        def before_iteration(self, model, epoch, evals_log):
            return True

    empty = [xgb.train(PARAMS, DATA, 2, callbacks=[Stop()]) for _ in range(2)]
    alone = xgb_dp.privacy_report(empty[0]).epsilon
    assert xgb_dp.privacy_report(empty).epsilon > 1.2 * alone


def test_what_has_no_total(model):
    with pytest.raises(PrivacyParameterError, match="different privacy units"):
        xgb_dp.privacy_report([model, train(dp_group_size=2)])
    with pytest.raises(PrivacyParameterError, match="different privacy units"):
        xgb_dp.privacy_report([model, train(dp_privacy_id=np.arange(400) // 2)])
    with pytest.raises(PrivacyParameterError, match="empty"):
        xgb_dp.privacy_report([])
    costly = xgb_dp.privacy_report([model, train(dp_epsilon=math.inf)])
    assert costly.epsilon == math.inf and "Not all of these" in costly.statement()
