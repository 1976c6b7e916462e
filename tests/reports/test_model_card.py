"""Model cards hold the figures of the report, and say where all else comes from."""

import math
import re

import pytest
import xgboost as xgb

import xgb_dp
from xgb_dp.errors import LedgerError, PrivacyParameterError, PrivacyRefusal
from xgb_dp.record.report_views import round_up

from ..conftest import arrays


@pytest.fixture
def model(params, matrix):
    p = params(dp_feature_bounds={"a|b": (-4, 4, "even")})
    return xgb.train(p, matrix(feature_names=["a|b", "x", "y", "z"]), 4)


def test_card_states_the_report(model):
    card = xgb_dp.model_card(
        model, name="Card of a test", description="Signs of sums.", intended_use="Tests.",
        data="Drawn at random.", metrics={"AUC": 0.91234}, license="CC0-1.0", contact="nobody",
        metrics_source="rows drawn afresh, which are public",
    )  # fmt: skip
    report = xgb_dp.privacy_report(model)
    assert f"epsilon = {round_up(report.epsilon)}, delta = 1e-06" in card
    assert report.statement() in card
    for phrase in ("# Card of a test", "Signs of sums.", "Drawn at random.", "0.9123", "CC0-1.0",
                   "rows drawn afresh", "4 rounds of trees of depth 2", "a\\|b"):  # fmt: skip
        assert phrase in card, phrase
    for spent in report.spending():
        assert f"| {spent.release} |" in card
    assert not re.search(r"\$[a-z]", card)
    widths = [len(re.findall(r"(?<!\\)\|", line)) for line in card.splitlines() if line[:1] == "|"]
    assert set(widths) <= {3, 4, 7}  # two, three or six columns
    gains = model.get_score(importance_type="total_gain")
    best = max(gains, key=lambda name: gains[name])
    share = gains[best] / sum(gains.values())
    assert f"{best.replace('|', chr(92) + '|')} | number | {share:.3f} |" in card


def test_card_lists_what_was_public(model):
    card = xgb_dp.model_card(model)
    assert '| public_cuts | `["a\\|b"]` |' in card
    assert "| budget_shares |" in card
    assert "No scores were given." in card
    assert "Not stated." in card


def test_card_of_estimators_paths_and_continued_models(params, matrix, model, tmp_path):
    path = tmp_path / "model.json"
    model.save_model(path)
    assert xgb_dp.model_card(path) == xgb_dp.model_card(model)
    longer = xgb.train(params(), matrix(feature_names=["a|b", "x", "y", "z"]), 1, xgb_model=model)
    assert "(training 2)" in xgb_dp.model_card(longer)
    estimator = xgb.XGBClassifier(
        tree_method="dp_hist", dp_epsilon=1.0, dp_delta=1e-6, dp_classes=2, n_estimators=2
    )
    estimator.fit(*arrays())
    assert "2 rounds of trees of depth 6" in xgb_dp.model_card(estimator)


def test_scores_need_their_source(model):
    with pytest.raises(PrivacyParameterError, match="metrics_source"):
        xgb_dp.model_card(model, metrics={"AUC": 0.9})


def test_own_template(model):
    assert xgb_dp.model_card(model, template="$name: $delta, $$1") == (
        "Private XGBoost model: 1e-06, $1"
    )
    for bad in ("$nothing_of_that_name", "$"):
        with pytest.raises(PrivacyParameterError, match="template"):
            xgb_dp.model_card(model, template=bad)


def test_models_without_privacy_get_no_card(params, matrix):
    with pytest.warns(UserWarning, match="NOT private"):
        loud = xgb.train(params(dp_epsilon=math.inf), matrix(), 1)
    with pytest.raises(PrivacyRefusal, match="not differentially private"):
        xgb_dp.model_card(loud)
    with pytest.raises(LedgerError):
        xgb_dp.model_card(xgb.train({"objective": "binary:logistic"}, matrix(), 1))
