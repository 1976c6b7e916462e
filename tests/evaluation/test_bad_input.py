"""Whatever is wrong is said before anything is drawn, and shows nothing of the rows."""

from typing import Any

import numpy as np
import pytest
import xgboost as xgb

import xgb_dp
from tests.evaluation.tasks import TARGET, refused, rows, stock
from xgb_dp.errors import PrivacyParameterError, PrivacyRefusal, RowDomainError
from xgb_dp.evaluation import measure

X, Y = rows(400)
SECRET = "SECRET-CELL"


@pytest.fixture(autouse=True)
def nothing_is_released(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measure, "release", lambda *args: pytest.fail("released"))


@pytest.fixture(scope="module")
def model() -> Any:
    return stock(X, Y)


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("epsilon", [0, "a", np.nan, np.inf]),
        ("delta", [0.0, 1.0, None]),
        ("level", [1.0]),
        ("by", [99, "nobody", 1.5, {4: []}, {4: [1, 1]}, {4: "ab"}, {4: [[1], [2]]},
                {"nobody": [1]}, {3: [1], 4: [2]}, {4: list(range(99))}]),
        ("privacy_id", [[1, 2]]),
        ("budget", [3]),
    ],
)  # fmt: skip
def test_arguments(model, name, values):
    for value in values:
        refused(PrivacyParameterError, name, model, (X, Y), **{name: value})


def test_data_of_another_kind(model):
    tables = [X, (X,), (X, Y, Y), (X, Y[:-1]), (X[:, :3], Y), (X[0], Y)]
    for data in (*tables, xgb.DMatrix(X), xgb.QuantileDMatrix(X, Y), None, "file.csv"):
        refused(PrivacyParameterError, ".", model, data)


def test_models_of_another_kind():
    refused(PrivacyParameterError, "model", 3, (X, Y))
    refused(PrivacyParameterError, "no model file", "nothing.json", (X, Y))
    refused(PrivacyParameterError, "objective", stock(X, Y, objective="binary:hinge"), (X, Y))


@pytest.mark.parametrize("n", [0, 1, 2, 400])
def test_models_of_several_predictions(n):
    """Set beside one label each, they would count a row twice, or fail by how many rows are."""
    regression = {"objective": "reg:squarederror"}
    for params in (regression, {}):
        model = stock(X, np.c_[Y, Y], **params)
        refused(PrivacyParameterError, "several targets", model, (X[:n], Y[:n]))


def test_rows_outside_the_domain_show_nothing(model):
    labels = np.where(np.arange(400) == 7, 3, Y)
    refused(RowDomainError, "declared classes", model, (X, labels))
    cells = X.astype(object)
    cells[3, 2] = SECRET
    strings = np.where(np.arange(400) == 7, SECRET, "0").astype(object)
    for data in ((cells, Y), (X, strings)):
        with pytest.raises(RowDomainError) as caught:
            xgb_dp.evaluate(model, data, **TARGET)
        assert SECRET not in str(caught.value)
        assert caught.value.__context__ is None or data[0] is X


def test_weights_are_refused(model):
    for field, match in (("weight", "weights"), ("base_margin", "base_margin")):
        data = xgb.DMatrix(X, Y, **{field: np.ones(400)})
        refused(PrivacyRefusal, match, model, data)


def test_splits():
    for change in ({"test": 0}, {"test": 1}, {"test": "x"}, {"privacy_id": [1]}):
        with pytest.raises(PrivacyParameterError, match=next(iter(change))):
            xgb_dp.split((X, Y), **change)
    for data in (X, (X, Y[:-1]), None, ([[1]], [1]), xgb.QuantileDMatrix(X, Y)):
        with pytest.raises(PrivacyParameterError):
            xgb_dp.split(data)
