"""A prepared training is the training that ``xgboost.train`` makes of the same parameters."""

import math

import pytest
import xgboost as xgb

from tests.parameters.test_presets import data, params, rounds
from xgb_dp import PrivacyParameterError, privacy_report, testing
from xgb_dp.audit import PreparedTraining
from xgb_dp.presets import PRESETS


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 4.0])
@pytest.mark.parametrize("kind", ["binary", "regression"])
@pytest.mark.parametrize("name", list(PRESETS))
def test_it_trains_what_xgboost_trains(name: str, kind: str, epsilon: float) -> None:
    X, y = data(kind, 300)
    config = params(name, kind, dp_epsilon=epsilon)
    dtrain, count = xgb.DMatrix(X, y), min(rounds(name), 4)
    prepared = PreparedTraining(config, dtrain, count)
    with testing.fixed_noise(7):
        prepared_model, trained_model = prepared(dtrain), xgb.train(config, dtrain, count)
    assert prepared_model.save_raw("json") == trained_model.save_raw("json")
    report = privacy_report(prepared(dtrain))
    assert report.private
    # The claim is that of what was drawn.
    assert prepared.claim.get_epsilon(1e-6) == pytest.approx(report.get_epsilon(1e-6))


def test_open_rounds_claim_the_choice_among_plans() -> None:
    X, y = data(n=300)
    config = {k: v for k, v in params("default").items() if v is not None}
    dtrain = xgb.DMatrix(X, y)
    prepared = PreparedTraining(config, dtrain, None)
    report = privacy_report(prepared(dtrain))
    assert report.ledger["trainings"][0]["events"][0]["mechanism"] == "choice"
    assert prepared.claim.get_epsilon(1e-6) == report.get_epsilon(1e-6)
    with pytest.raises(PrivacyParameterError, match="rounds"):
        prepared.plan("ab" * 32)


@pytest.mark.parametrize(
    "changes", [{"dp_accountant": "rdp"}, {"subsample": 0.5}, {"dp_epsilon": 0.05}]
)
def test_whatever_the_parameters_say(changes: dict) -> None:
    X, y = data(n=300)
    config = params("default", **changes)
    dtrain = xgb.DMatrix(X, y)
    prepared = PreparedTraining(config, dtrain, 2)
    with testing.fixed_noise(7):
        prepared_model, trained_model = prepared(dtrain), xgb.train(config, dtrain, 2)
    assert prepared_model.save_raw("json") == trained_model.save_raw("json")


def test_without_noise_there_is_no_claim() -> None:
    X, y = data(n=50)
    with pytest.raises(PrivacyParameterError, match="infinite"):
        PreparedTraining(params("default", dp_epsilon=math.inf), xgb.DMatrix(X, y))
