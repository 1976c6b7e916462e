"""Cards and registry entries hold the figures of the report, and name the source of all else."""

import json
import math
import re
from pathlib import Path

import pytest
import xgboost as xgb

import xgb_dp
from xgb_dp.errors import LedgerError, PrivacyParameterError, PrivacyRefusal
from xgb_dp.record.formatting import round_up
from xgb_dp.record.model_card import registry_entry

from ..cli.calls import run
from ..conftest import arrays

NAMES = ["a|b", "x", "y", "z"]


@pytest.fixture
def model(params, matrix):
    p = params(dp_feature_bounds={"a|b": (-4, 4, "even")})
    return xgb.train(p, matrix(feature_names=NAMES), 4)


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
                   "rows drawn afresh", "4 rounds, trees of depth 2", "a\\|b",
                   *(f"| {spent.release} |" for spent in report.spending())):  # fmt: skip
        assert phrase in card, phrase
    assert not re.search(r"\$[a-z]", card)
    widths = [len(re.findall(r"(?<!\\)\|", line)) for line in card.splitlines() if line[:1] == "|"]
    assert set(widths) <= {3, 4, 7}  # two, three or six columns
    gains = model.get_score(importance_type="total_gain")
    best = max(gains, key=lambda name: gains[name])
    share = gains[best] / sum(gains.values())
    assert f"{best.replace('|', chr(92) + '|')} | number | {share:.3f} |" in card


def test_card_of_estimators_paths_and_continued_models(params, matrix, model, tmp_path):
    path = tmp_path / "model.json"
    model.save_model(path)
    card = xgb_dp.model_card(path)
    assert card == xgb_dp.model_card(model)
    for phrase in ('| public_cuts | `["a\\|b"]` |', "| budget_shares |", "No metrics provided.",
                   "Not stated."):  # fmt: skip
        assert phrase in card
    longer = xgb.train(params(), matrix(feature_names=NAMES), 1, xgb_model=model)
    assert "(training 2)" in xgb_dp.model_card(longer)
    estimator = xgb.XGBClassifier(
        tree_method="dp_hist", dp_epsilon=1.0, dp_delta=1e-6, dp_classes=2, n_estimators=2
    )
    estimator.fit(*arrays())
    assert "2 rounds, trees of depth 6" in xgb_dp.model_card(estimator)


def test_own_template(model):
    assert xgb_dp.model_card(model, template="$name: $delta, $$1") == (
        "Private XGBoost model: 1e-06, $1"
    )
    for bad in ("$nothing_of_that_name", "$"):
        with pytest.raises(PrivacyParameterError, match="template"):
            xgb_dp.model_card(model, template=bad)


def test_entries_hold_the_report(model):
    entry = registry_entry(model, name="a model", contact="nobody")
    report = xgb_dp.privacy_report(model)
    assert (entry["epsilon"], entry["delta"]) == (report.epsilon, report.delta)
    assert entry["name"] == "a model" and entry["data"] == "not stated"
    json.dumps(entry, allow_nan=False)
    assert entry["privacy_unit"] == "one row"
    assert entry["epsilon_if_one_is_replaced"] > entry["epsilon"]
    assert entry["format_version"] == 1


def test_wrong_calls(model, params, matrix):
    with pytest.raises(PrivacyParameterError, match="metrics_source"):
        xgb_dp.model_card(model, metrics={"AUC": 0.9})
    with pytest.warns(xgb_dp.PrivacyWarning, match="NOT private"):
        bare = xgb.train(params(dp_epsilon=math.inf), matrix(), 1)
    for call in (xgb_dp.model_card, registry_entry):
        with pytest.raises(PrivacyRefusal, match="not differentially private"):
            call(bare)
    with pytest.raises(LedgerError):
        xgb_dp.model_card(xgb.train({"objective": "binary:logistic"}, matrix(), 1))


@pytest.mark.parametrize("kind", ["markdown", "registry"])
def test_on_the_command_line(model, tmp_path, kind):
    pytest.importorskip("click")
    model.save_model(tmp_path / "model.json")
    run("card", tmp_path / "model.json", "--format", kind, "--out", tmp_path / "card")
    text = Path(tmp_path / "card").read_text()
    assert ("epsilon" in text) and (kind == "markdown" or json.loads(text))
