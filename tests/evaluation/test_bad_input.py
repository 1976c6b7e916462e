"""Whatever is wrong is said before anything is drawn, and shows nothing of the rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import xgboost as xgb

import xgb_dp
from tests.evaluation.tasks import TARGET, refused, rows, stock
from xgb_dp.errors import PrivacyParameterError, PrivacyRefusal, RowDomainError
from xgb_dp.evaluation import run

X, Y = rows(400)
SECRET = "SECRET-CELL"


@pytest.fixture(autouse=True)
def nothing_is_released(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "release", lambda *args: pytest.fail("released"))


@pytest.fixture(scope="module")
def model() -> Any:
    return stock(X, Y)


@pytest.mark.parametrize(
    "change",
    [
        {"epsilon": 0},
        {"epsilon": "a"},
        {"epsilon": np.nan},
        {"epsilon": np.inf},
        {"delta": 0.0},
        {"delta": 1.0},
        {"delta": None},
        {"level": 1.0},
        {"by": 99},
        {"by": "nobody"},
        {"by": {4: []}},
        {"by": {4: [1, 1]}},
        {"by": {4: "ab"}},
        {"by": {4: [[1], [2]]}},
        {"by": {"nobody": [1]}},
        {"by": {3: [1], 4: [2]}},
        {"by": {4: list(range(99))}},
        {"by": 1.5},
        {"privacy_id": [1, 2]},
        {"budget": 3},
    ],
    ids=repr,
)
def test_arguments(model: Any, change: dict[str, Any]) -> None:
    name = next(iter(change))
    refused(PrivacyParameterError, name, model, (X, Y), **change)


@pytest.mark.parametrize(
    "data",
    [
        None,
        X,
        (X,),
        (X, Y, Y),
        (X, Y[:-1]),
        (X[:, :3], Y),
        (X[0], Y),
        xgb.DMatrix(X),
        xgb.QuantileDMatrix(X, Y),
        "file.csv",
    ],
    ids=lambda value: type(value).__name__,
)
def test_data_of_another_kind(model: Any, data: Any) -> None:
    refused(PrivacyParameterError, "", model, data)


def test_models_of_another_kind() -> None:
    refused(PrivacyParameterError, "model", 3, (X, Y))
    refused(PrivacyParameterError, "no model file", "nothing.json", (X, Y))
    refused(PrivacyParameterError, "objective", stock(X, Y, objective="binary:hinge"), (X, Y))


@pytest.mark.parametrize("n", [0, 1, 2, 400])
def test_models_of_several_predictions(n: int) -> None:
    """Set beside one label each, they would count a row twice, or fail by how many rows are."""
    regression = {"objective": "reg:squarederror"}
    for params in (regression, {}):
        model = stock(X, np.c_[Y, Y], **params)
        refused(PrivacyParameterError, "several targets", model, (X[:n], Y[:n]))


def test_rows_outside_the_domain_show_nothing(model: Any) -> None:
    with pytest.raises(RowDomainError, match="declared classes"):
        xgb_dp.evaluate(model, (X, np.where(np.arange(400) == 7, 3, Y)), **TARGET)
    cells = X.astype(object)
    cells[3, 2] = SECRET
    with pytest.raises(RowDomainError) as found:
        xgb_dp.evaluate(model, (cells, Y), **TARGET)
    assert SECRET not in str(found.value) and found.value.__context__ is None
    texts = np.where(np.arange(400) == 7, SECRET, "0").astype(object)
    with pytest.raises(RowDomainError) as found:
        xgb_dp.evaluate(model, (X, texts), **TARGET)
    assert SECRET not in str(found.value)


def test_weights_are_refused(model: Any) -> None:
    with pytest.raises(PrivacyRefusal, match="weights"):
        xgb_dp.evaluate(model, xgb.DMatrix(X, Y, weight=np.ones(400)), **TARGET)
    with pytest.raises(PrivacyRefusal, match="base_margin"):
        xgb_dp.evaluate(model, xgb.DMatrix(X, Y, base_margin=np.ones(400)), **TARGET)


def test_splits() -> None:
    for change in ({"test": 0}, {"test": 1}, {"test": "x"}, {"privacy_id": [1]}):
        with pytest.raises(PrivacyParameterError, match=next(iter(change))):
            xgb_dp.split((X, Y), **change)
    for data in (X, (X, Y[:-1]), None, ([[1]], [1]), xgb.QuantileDMatrix(X, Y)):
        with pytest.raises(PrivacyParameterError):
            xgb_dp.split(data)
