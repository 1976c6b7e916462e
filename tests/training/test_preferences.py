"""Preferences that are public cost nothing: what is released, and with which noise, stays."""

from typing import Any

import numpy as np
import pytest
import xgboost as xgb
from xgboost.core import XGBoostError

import xgb_dp
from tests.conftest import private
from xgb_dp.accounting import Event
from xgb_dp.errors import PrivacyParameterError
from xgb_dp.request.objectives import OBJECTIVES
from xgb_dp.request.schema import LARGEST_WEIGHT, Schema, integer_weights
from xgb_dp.training.hook import prepare

from ..models import training

SCHEMA = Schema(["age", "dose", "site"], named=True, categorical=frozenset(), dictionaries={})
PREFERENCES: dict[str, dict[str, Any]] = {
    "monotone by name": {"monotone_constraints": {"age": 1, "dose": -1}},
    "monotone by position": {"monotone_constraints": (1, -1, 0)},
    "interactions by name": {"interaction_constraints": [["age", "dose"], ["site"]]},
    "columns of a tree": {"colsample_bytree": 0.7},
    "rare class": {"scale_pos_weight": 5.0},
}


def events(objective: str, changes: dict[str, Any]) -> tuple[Event, ...]:
    """What a training is charged with."""
    config: dict[str, Any] = private(objective=objective)
    if OBJECTIVES[objective].kind == "multiclass":
        config["num_class"] = 3
    if OBJECTIVES[objective].kind == "regression":
        config["dp_target_bounds"] = (0.25, 0.75)  # labels that each of them knows
    return prepare(config | changes, SCHEMA, 20).events


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("name", PREFERENCES)
def test_what_is_released_stays(objective, name):
    if name == "rare class" and OBJECTIVES[objective].kind != "binary":
        pytest.skip("for two classes only")
    assert events(objective, PREFERENCES[name]) == events(objective, {})


@pytest.mark.parametrize("objective", ["binary:logistic", "binary:logitraw"])
def test_weights_within_the_bound_of_a_row_are_free(objective):
    """A public bound of weights moves no noise: a row is bounded with its weight."""
    bounds = [{"dp_max_weight": w} for w in (1.0, 10.0, 100.0)]
    kept = [events(objective, bound | {"dp_weight_unit": "declared"}) for bound in bounds]
    assert kept[0] == kept[1] == kept[2] == events(objective, bounds[0])
    # Nor does it move that of the release of their unit.
    assert events(objective, bounds[1]) == events(objective, bounds[2])


def weighted(weights: Any, columns: int = 3) -> xgb.DMatrix:
    rng = np.random.default_rng(5)
    X = rng.normal(size=(300, columns)).astype(np.float32)
    return xgb.DMatrix(X, (X[:, 0] > 0).astype(np.float32), feature_weights=weights)


def used(model: xgb.Booster) -> list[set[str]]:
    """The columns of each tree."""
    table = model.trees_to_dataframe()
    splits = table[table.Feature != "Leaf"]
    return [set(of_tree.Feature) for _, of_tree in splits.groupby("Tree")]


def test_weights_of_columns_cost_nothing_and_are_recorded(params):
    config = params(colsample_bytree=0.7)
    even, other = (xgb.train(config, weighted(w), 5) for w in (None, [1.0, 0.5, 3.0]))
    records = [training(m) for m in (even, other)]
    assert records[0]["events"] == records[1]["events"]
    assert "feature_weights" not in records[0]["public"]
    assert records[1]["public"]["feature_weights"] == ["1.0", "0.5", "3.0"]


def test_estimators_take_weights_of_columns():
    X, y = np.random.default_rng(0).normal(size=(300, 3)), np.arange(300) % 2
    config: Any = {"classes": 2, "epsilon": 1.0, "delta": 1e-6, "n_estimators": 60, "max_depth": 1}
    model = xgb_dp.DPXGBClassifier(colsample_bytree=0.34, feature_weights=[0, 0, 1], **config)
    columns = used(model.fit(X, y).get_booster())
    # A weight of 0 counts as 1e-6: two of 60 trees have such a column with a chance of 7e-9.
    assert len(columns) == 60
    assert columns.count({"f2"}) >= 59


def test_a_weight_for_each_column(params):
    with pytest.raises((PrivacyParameterError, XGBoostError), match="feature_weights"):
        xgb.train(params(colsample_bytree=0.5), weighted([1.0, 2.0]), 2)


def test_whole_weights_never_vanish():
    assert integer_weights(None) == []
    assert integer_weights((0.0, 0.0)) == [LARGEST_WEIGHT, LARGEST_WEIGHT]
    assert integer_weights((1.0, 1e30, 0.0)) == [1, LARGEST_WEIGHT, 1]
    assert integer_weights((1.0, 2.0)) == [LARGEST_WEIGHT // 2, LARGEST_WEIGHT]
