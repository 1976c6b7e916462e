"""Names that a saved model would lose are refused before anything is spent."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import xgboost as xgb

import xgb_dp
from tests.cli.calls import fails
from tests.conftest import arrays, private
from xgb_dp.engine.model_json import check_carried
from xgb_dp.errors import PrivacyParameterError

LOST = ["C:\\users", "µ\\u", "a\\u0041", "a\x08b", "a\x1bb", "\x0c"]
KEPT = ["\\", "a\\U", "\\n", "a\nb", "\t", "\r", "\x7f", "\x85", "é\\é", "😀", "\u2028", '"', "{x}"]


def is_carried(text: str) -> bool:
    try:
        check_carried([{"a": (text,)}], "names")
    except PrivacyParameterError:
        return False
    return True


def comes_back(model: xgb.Booster, text: str) -> bool:
    """Whether a model keeps it as a name of a column, and in a JSON text like a ledger."""
    model = model.copy()
    model.feature_names = [text, "z", "c", "d"]
    model.set_attr(k=json.dumps({"a": text}))
    raw = model.save_raw("json")
    try:
        again, read = xgb.Booster(model_file=raw), json.loads(bytes(raw))["learner"]
        kept = json.loads(again.attr("k")), json.loads(read["attributes"]["k"])
    except (ValueError, xgb.core.XGBoostError):
        return False
    names = again.feature_names[0], read["feature_names"][0]
    return kept == ({"a": text},) * 2 and names == (text, text)


def test_the_rule_is_that_of_xgboost():
    X, y = arrays("binary")
    model = xgb.train({"objective": "binary:logistic", "nthread": 1}, xgb.DMatrix(X, y), 1)
    strings = [chr(code) for code in range(1, 0x180)]
    strings += [f"a\\{character}b" for character in strings] + LOST + KEPT
    strings = [text for text in strings if not set(text) & set("[]<")]
    assert [is_carried(text) for text in strings] == [comes_back(model, text) for text in strings]


@pytest.fixture
def budget(tmp_path):
    budget = xgb_dp.Budget(tmp_path / "budget.json", epsilon=5.0, delta=1e-5)
    yield budget
    assert not budget.entries


@pytest.mark.parametrize("name", LOST)
def test_nothing_is_booked(name, budget):
    X, y = arrays("binary")
    params = private(objective="binary:logistic", nthread=1)
    cut = X[:, :2]
    common = {"epsilon": 1.0, "delta": 1e-6, "n_estimators": 1, "budget": budget}
    classes = sorted([name, "b"])
    labels = np.array(classes, object)[y.astype(int)]
    trainings = {
        "a column": lambda: budget.train(params, xgb.DMatrix(cut, y, feature_names=[name, "b"]), 1),
        "a class": lambda: xgb_dp.DPXGBClassifier(classes=classes, **common).fit(cut, labels),
        "a column of ids": lambda: xgb_dp.DPXGBClassifier(classes=2, **common).fit(
            pd.DataFrame(cut, columns=["a", "b"]).assign(**{name: np.arange(len(X))}), y,
            privacy_id=name,
        ),
        "a selection": lambda: xgb_dp.select(
            {k: v for k, v in params.items() if k not in ("dp_epsilon", "dp_delta")},
            xgb.DMatrix(cut, y, feature_names=[name, "b"]), {"max_depth": [1, 2]},
            epsilon=1.0, delta=1e-6, num_boost_round=1, budget=budget,
        ),
    }  # fmt: skip
    for what, train in trainings.items():
        with pytest.raises(PrivacyParameterError, match="cannot be stored") as caught:
            train()
        assert caught.value.args[0].isprintable(), what


def test_the_command_line(tmp_path, monkeypatch, budget):
    monkeypatch.chdir(tmp_path)
    pd.DataFrame({"C:\\users": [1.0, 2.0], "y": ["a", "b"]}).to_csv("rows.csv", index=False)
    call = ["train", "rows.csv", "--target", "y", "--classes", "a,b", "--epsilon", "1", "--delta",
            "1e-6", "--budget", budget.path]  # fmt: skip
    assert "cannot be stored" in fails(*call)
    assert not Path("model.json").exists()


@pytest.mark.parametrize("name", LOST)
def test_categories_are_stored_in_another_way(name):
    X, y = arrays("binary")
    kinds = pd.Categorical([name, "b"] * (len(X) // 2), categories=[name, "b"])
    matrix = xgb.DMatrix(pd.DataFrame({"k": kinds}), y, enable_categorical=True)
    params = private(objective="binary:logistic", nthread=1, dp_categories={"k": [name, "b"]})
    model = xgb.train(params, matrix, 1)
    again = xgb.Booster(model_file=model.save_raw("json"))
    stored = [m.get_categories(export_to_arrow=True).to_arrow() for m in (model, again)]
    assert stored[0] == stored[1]
    assert xgb_dp.privacy_report(again).epsilon == xgb_dp.privacy_report(model).epsilon
