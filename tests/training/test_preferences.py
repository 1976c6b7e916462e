"""Preferences that are public cost nothing: what is released, and with which noise, stays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import xgboost as xgb

from xgb_dp.accounting import Event
from xgb_dp.request.features import Schema
from xgb_dp.request.objectives import OBJECTIVES
from xgb_dp.training.prepare import prepare

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
    said: dict[str, Any] = {
        "tree_method": "dp_hist", "objective": objective, "dp_epsilon": 1.0, "dp_delta": 1e-6,
    }  # fmt: skip
    if OBJECTIVES[objective].kind == "multiclass":
        said["num_class"] = 3
    if OBJECTIVES[objective].kind == "regression":
        said["dp_target_bounds"] = (0.25, 0.75)  # labels that each of them knows
    return prepare(said | changes, SCHEMA, 20).events


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("name", PREFERENCES)
def test_what_is_released_stays(objective: str, name: str) -> None:
    if name == "rare class" and OBJECTIVES[objective].kind != "binary":
        pytest.skip("for two classes only")
    assert events(objective, PREFERENCES[name]) == events(objective, {})


@pytest.mark.parametrize("objective", ["binary:logistic", "binary:logitraw"])
def test_weights_within_the_bound_of_a_row_are_free(objective: str) -> None:
    """A public bound of weights moves no noise: a row is bounded with its weight."""
    made = [events(objective, {"dp_max_weight": w}) for w in (1.0, 10.0, 100.0)]
    assert made[0] == made[1] == made[2]


def test_constraints_hold_by_name(params: Any) -> None:
    """On data where the noise would break them, for each kind of trees of the default."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3)).astype(np.float32)
    y = (X[:, 0] + rng.normal(size=400) > 0).astype(np.float32)
    names = ["age", "dose", "site"]
    grid = np.zeros((200, 3), dtype=np.float32)
    grid[:, 0] = np.linspace(-3, 3, 200)
    for shape in ("oblivious", "per_node", "alternate"):
        said = params(monotone_constraints={"age": 1}, dp_tree_shape=shape, dp_epsilon=0.3)
        model = xgb.train(said, xgb.DMatrix(X, y, feature_names=names), 20)
        made = model.predict(xgb.DMatrix(grid, feature_names=names), output_margin=True)
        assert (np.diff(made) >= -1e-6).all()
