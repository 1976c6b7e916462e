"""Cards and registry entries hold the figures of the report, and name the source of all else."""

import datetime
import math
import re
from pathlib import Path

import numpy as np
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


def test_card_and_page_include_the_figures_of_this_model(params, matrix, model):
    data = matrix(feature_names=NAMES)
    evaluation = xgb_dp.evaluate(model, data, epsilon=1.0, delta=1e-6)
    calibrated = evaluation.calibrated(model)
    for one, earlier in ((model, False), (calibrated, True)):
        page = xgb_dp.privacy_report(one).to_html(evaluation=evaluation)
        for text in (page, xgb_dp.model_card(one, evaluation=evaluation)):
            assert f"AUC {evaluation.auc}; log loss {evaluation.log_loss}; " in text
            assert ("for the model before it was calibrated" in text) == earlier
    assert "No metrics provided" not in xgb_dp.model_card(model, evaluation=evaluation)
    other = xgb.train(params(), data, 1)
    of_other = xgb_dp.evaluate(other, data, epsilon=1.0, delta=1e-6)
    twice = xgb_dp.evaluate(calibrated, data, epsilon=1.0, delta=1e-6).calibrated(calibrated)
    assert "before it was calibrated" in xgb_dp.model_card(twice, evaluation=evaluation)
    pairs = (other, evaluation), (model, of_other), (calibrated, of_other), (twice, of_other)
    for one, figures in pairs:
        with pytest.raises(PrivacyParameterError, match="evaluated another model"):
            xgb_dp.model_card(one, evaluation=figures)


def test_card_names_clipped_figures(params, matrix):
    data = matrix()
    data.set_label(np.arange(data.num_row()) % 40)
    model = xgb.train(params(objective="count:poisson", dp_target_bounds=(0, 8)), data, 1)
    evaluation = xgb_dp.evaluate(model, data, epsilon=1.0, delta=1e-6)
    card = xgb_dp.model_card(model, evaluation=evaluation)
    for text in (f"clipped RMSE {evaluation.rmse}", f"clipped Gini coefficient {evaluation.gini}",
                 f"clipped mean prediction / mean label {evaluation.mean_ratio}"):  # fmt: skip
        assert text in card


@pytest.mark.parametrize("column", ["kind", "size"])
def test_usage_of_the_card_predicts(column, tmp_path, monkeypatch):
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"kind": rng.choice(["b", "a"], 500), "size": rng.random(500)})[[column]]
    model = xgb_dp.DPXGBClassifier(
        epsilon=1.0, delta=1e-6, classes=2, n_estimators=2,
        categories={"kind": ["b", "a", "c"]} if column == "kind" else None,
    )  # fmt: skip
    model.fit(rows, rng.integers(0, 2, 500))
    monkeypatch.chdir(tmp_path)
    model.save_model("model.json")
    (usage,) = re.findall("```python\n(.*?)```", xgb_dp.model_card(model), re.DOTALL)
    scope = {"rows": rows}
    exec(usage, scope)
    np.testing.assert_array_equal(scope["predictions"], model.predict_proba(rows)[:, 1])


def test_own_template(model):
    assert xgb_dp.model_card(model, template="$name: $delta, $$1") == (
        "Private XGBoost model: 1e-06, $1"
    )
    for bad in ("$nothing_of_that_name", "$"):
        with pytest.raises(PrivacyParameterError, match="template"):
            xgb_dp.model_card(model, template=bad)


# The keys and enumerations of the registry's schema, July 2026; "!" marks required keys.
SCHEMA: dict = {
    "url_slug!": str,
    "status!": {"Draft", "Pending", "Approved"},
    "tier!": {1, 2, 3},
    "deployment!": {
        "basic!": {
            "name!": str, "data_curators!": [str], "description!": str, "intended_use!": str,
            "data_product_type!": {"Machine learning model"}, "data_product_region!": str,
            "publication_date!": datetime.date.fromisoformat,
            "data_product_sector": {"Technology", "Healthcare", "Education", "Government"},
        },
        "dp_variant": {
            "variant_name": {"Pure DP", "Approximate DP"}, "data_domain": str,
            "unprotected_quantities": str,
        },
        "privacy_loss": {
            "privacy_unit": str, "privacy_unit_details": str,
            "privacy_parameters": {"epsilon": float, "delta": float, "rho": float},
            "privacy_parameters_details": str,
        },
        "deployment_model": {
            "model_name": {"Local", "Central", "Shuffle", "Federated"}, "model_name_details": str,
            "actors": str, "release_type": {"One release", "Many releases"},
            "release_type_details": str, "data_source_type": {"Static", "Dynamic"},
            "data_source_type_details": str, "access_type": {"Interactive", "Non-interactive"},
            "access_type_details": str,
        },
        "accounting": {"post_processing": str, "composition": str},
        "implementation": {
            "preprocessing_and_hyperparameter_tuning": str, "mechanisms": str,
            "justification": str,
        },
        "administrative": {"sources": str, "notes": str, "registry_authors!": [str]},
    },
}  # fmt: skip


def check_entry(value, schema, where="entry"):
    if isinstance(schema, dict):
        known = {key.rstrip("!") for key in schema}
        required = {key.rstrip("!") for key in schema if key.endswith("!")}
        assert required <= set(value) <= known, where
        for key, inner in schema.items():
            if key.rstrip("!") in value:
                check_entry(value[key.rstrip("!")], inner, f"{where}.{key}")
    elif isinstance(schema, set):
        assert value in schema, where
    elif isinstance(schema, list):
        assert isinstance(value, list) and value, where
        for one in value:
            check_entry(one, schema[0], where)
    elif isinstance(schema, type):
        assert isinstance(value, schema), where
    else:
        schema(value)


@pytest.mark.parametrize("contact", ["", "A. Author"])
def test_entries_fit_the_registry_and_hold_the_report(model, contact):
    entry = registry_entry(model, name="A model", contact=contact)
    check_entry(entry, SCHEMA)
    report, loss = xgb_dp.privacy_report(model), entry["deployment"]["privacy_loss"]
    assert loss["privacy_parameters"] == {"epsilon": report.epsilon, "delta": report.delta}
    assert loss["privacy_unit"] == "one row"
    assert entry["url_slug"] == "a-model"
    for spent in report.spending():
        assert spent.noise in entry["deployment"]["implementation"]["mechanisms"]


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
    assert "epsilon" in text
    if kind == "registry":
        check_entry(pytest.importorskip("yaml").safe_load(text), SCHEMA)
