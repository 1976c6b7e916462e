"""The page of other tools runs, and what it says about them holds (`make test-tools`)."""

import sqlite3
from typing import Any

import numpy as np
import pytest
import xgboost as xgb

import xgb_dp
from tests.docs.test_examples import DOCS, blocks

for name in ("mlflow", "narwhals", "onnxmltools", "onnxruntime", "optuna", "polars", "shap",
             "skops", "treelite"):  # fmt: skip
    pytest.importorskip(name)

ROWS = np.random.default_rng(0).normal(size=(2000, 4)).astype("float32")
LABELS = (ROWS[:, 0] > 0).astype(int)
COMMON: dict[str, Any] = {"tree_method": "dp_hist", "dp_epsilon": 4.0, "dp_delta": 1e-6}
BINARY = {**COMMON, "objective": "binary:logistic"}
QUANTILES = {"objective": "reg:quantileerror", "quantile_alpha": [0.1, 0.9]}
NUMBERS = {"dp_target_bounds": (-3, 3), "objective": "reg:squarederror"}
COUNTS = {"dp_target_bounds": (0, 8), "objective": "count:poisson"}
CLASSES = {"objective": "multi:softprob", "num_class": 3}
# Parameters and labels, and whether ONNX predicts alike.
KINDS: dict[str, tuple[dict[str, Any], Any, bool]] = {
    "binary": (BINARY, LABELS, True),
    "classes": (CLASSES, LABELS + (ROWS[:, 1] > 1), True),
    "numbers": (NUMBERS, ROWS[:, 0].clip(-3, 3), True),
    "counts": (COUNTS, np.round(np.exp(ROWS[:, 0].clip(-2, 2))), True),
    "quantiles": (NUMBERS | QUANTILES, ROWS[:, 0].clip(-3, 3), False),
    "targets": (NUMBERS, ROWS[:, :2].clip(-3, 3), False),
}


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """MLflow keeps runs in the working folder, if it has not been told otherwise."""
    import mlflow

    monkeypatch.chdir(tmp_path)
    mlflow.set_tracking_uri(f"sqlite:///{tmp_path}/mlflow.db")
    yield tmp_path
    mlflow.xgboost.autolog(disable=True)


def test_the_page(folder):
    scope: dict[str, Any] = {}
    for language, text in blocks(DOCS / "howto" / "tools.md"):
        assert language == "python"
        exec(compile(text, "tools.md", "exec"), scope)
    model, new = scope["model"], xgb.DMatrix(scope["new"])
    margin = model.predict(new, output_margin=True)
    explained = scope["explained"].values.sum() + scope["explained"].base_values
    np.testing.assert_allclose(explained, margin, atol=1e-5)
    for probability in (scope["probability"].ravel(), scope["probabilities"][:, 1]):
        np.testing.assert_allclose(probability, model.predict(new), atol=1e-6)
    copied = scope["session"].get_modelmeta().custom_metadata_map["dp_ledger"]
    assert copied == model.attr("dp_ledger")
    assert b"dp_ledger" not in (folder / "model.tl").read_bytes()
    assert scope["chosen"].setting in scope["settings"]
    assert 1.99 < scope["chosen"].report.epsilon <= 2.0
    scope["served"].save_model("served.json")
    assert xgb_dp.verify("served.json", max_epsilon=1.0, delta=1e-6).verdict == "passed"


@pytest.mark.parametrize("kind", KINDS)
def test_converted_models_predict_alike(kind):
    import shap
    import treelite
    from onnxmltools import convert_xgboost
    from onnxmltools.convert.common.data_types import FloatTensorType
    from onnxruntime import InferenceSession

    params, labels, right = KINDS[kind]
    rows = np.where(np.random.default_rng(1).random(ROWS.shape) < 0.1, np.nan, ROWS)
    dtrain = xgb.DMatrix(rows, labels)
    model = xgb.train({**COMMON, **params}, dtrain, 20)
    expected = model.predict(dtrain)

    predicted = treelite.gtil.predict(treelite.frontend.from_xgboost(model), rows)
    np.testing.assert_allclose(predicted.reshape(expected.shape), expected, atol=1e-5)

    explained = shap.TreeExplainer(model)(rows)
    total = explained.values.sum(axis=1) + explained.base_values
    np.testing.assert_allclose(total, model.predict(dtrain, output_margin=True), atol=1e-4)

    converted = convert_xgboost(model, initial_types=[("rows", FloatTensorType([None, 4]))])
    assert b"dp_ledger" not in converted.SerializeToString()
    output = InferenceSession(converted.SerializeToString()).run(None, {"rows": rows})[-1]
    output = output[:, 1] if kind == "binary" else output
    agrees = output.size == expected.size and np.allclose(
        output.reshape(expected.shape), expected, atol=1e-5
    )
    assert agrees == right


def test_what_an_automatic_log_keeps_of_the_rows(folder):
    import mlflow

    def log(rows: np.ndarray, **options: bool) -> list[tuple[str, str]]:
        mlflow.xgboost.autolog(**options)
        assert xgb_dp.privacy_report(xgb.train(BINARY, xgb.DMatrix(rows, LABELS), 2)).private
        with sqlite3.connect(folder / "mlflow.db") as database:
            return list(database.execute("select digest, dataset_profile from datasets"))

    assert not log(ROWS, log_datasets=False, log_input_examples=False)
    assert not list(folder.rglob("input_example.json"))
    log(ROWS, log_input_examples=True)
    (example,) = folder.rglob("input_example.json")
    assert str(float(ROWS[0, 0])) in example.read_text(encoding="utf-8")
    one_changed = ROWS.copy()
    one_changed[7] += 1
    (digest, profile), (other, _) = log(one_changed)
    assert digest != other
    assert "[2000, 4]" in profile


def test_trials_on_private_rows_end_with_the_budget():
    import optuna

    parts = xgb_dp.split(xgb.DMatrix(ROWS, LABELS), test=0.5)
    budget = xgb_dp.Budget("trials.json", epsilon=1.0, delta=1e-5)

    def score(trial: optuna.Trial) -> float:
        params = {**BINARY, "dp_epsilon": 0.5, "max_depth": trial.suggest_int("max_depth", 2, 4)}
        model = budget.train(params, parts.train, 10)
        report = xgb_dp.evaluate(model, parts, epsilon=0.5, delta=1e-6, budget=budget)
        return report.log_loss.value

    study = optuna.create_study()
    with pytest.raises(xgb_dp.BudgetError):
        study.optimize(score, n_trials=20)
    assert 1 <= len(study.trials) < 20
    assert len(budget.entries) in (2 * len(study.trials) - 2, 2 * len(study.trials) - 1)


def test_explanations_with_rows_depend_on_them():
    import shap

    model = xgb.train(BINARY, xgb.DMatrix(ROWS, LABELS), 5)
    bases = {float(shap.TreeExplainer(model, data=rows).expected_value)
             for rows in (ROWS[:50], ROWS[50:100])}  # fmt: skip
    assert len(bases) == 2


def test_expressions_of_the_page_mix_rows():
    import narwhals as nw
    import polars as pl

    frame = nw.from_native(pl.DataFrame({"a": [1.0, 4.0, None, 2.0], "b": [0, 1, 0, 0]}))
    a = nw.col("a")

    def is_alone(expression: Any) -> bool:
        whole, head = (t.select(x=expression)["x"].to_list() for t in (frame, frame.head(3)))
        return whole[:3] == head

    assert is_alone(a.clip(0, 2))
    for mixing in (a - a.mean(), a.rank(), a.max().over("b"), a.fill_null(strategy="backward")):
        assert not is_alone(mixing)
