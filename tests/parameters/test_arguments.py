"""Arguments of public functions that are of another kind: one clear error, which names them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xgboost as xgb

import xgb_dp
from tests.conftest import arrays
from xgb_dp.errors import PrivacyParameterError, alias, named, spelling

ODD: list[Any] = [3, 2.5, b"bytes", object(), np.zeros(3), pd.DataFrame({"a": [1]}), True, [[1]],
                  {"a": 1}, "\ud800", [None], 10**400, lambda: 1]  # fmt: skip
DATA = {"age": np.arange(9.0), "city": ["a", "b", "c"] * 3}
TARGET: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    X, y = arrays()
    params = {"tree_method": "dp_hist", "objective": "binary:logistic", "nthread": 1}
    booster = xgb.train(params | {"dp_epsilon": 1.0, "dp_delta": 1e-6}, xgb.DMatrix(X, y), 1)
    path = tmp_path_factory.mktemp("models") / "model.json"
    booster.save_model(path)
    return path


CALLS: dict[str, Callable[[Path, Any], Any]] = {
    "path": lambda _, odd: xgb_dp.Budget(odd, **TARGET),
    "unit": lambda path, odd: xgb_dp.Budget(path.with_name("b"), unit=odd, **TARGET),
    "missing": lambda _, odd: xgb_dp.discover(DATA, {"age": "number"}, missing=odd, **TARGET),
    "note": lambda _, odd: xgb_dp.discover(DATA, {"age": "number"}, note=odd, **TARGET),
    "columns": lambda _, odd: xgb_dp.discover(pd.DataFrame(DATA), odd, **TARGET),
    "budget": lambda _, odd: xgb_dp.discover(DATA, {"age": "number"}, budget=odd, **TARGET),
    "template": lambda path, odd: xgb_dp.model_card(path, template=odd),
    "license": lambda path, odd: xgb_dp.model_card(path, license=odd),
    "description": lambda path, odd: xgb_dp.model_card(path, description=odd),
    "adjacency": lambda path, odd: xgb_dp.verify(path, adjacency=odd),
    "allow": lambda path, odd: xgb_dp.verify(path, allow=odd),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_wrong_kind_is_an_error_that_names_the_argument(model, name):
    for odd in ODD:
        with pytest.raises(PrivacyParameterError) as error:
            CALLS[name](model, odd)
        assert "`" in str(error.value) or name in str(error.value), odd


@pytest.mark.parametrize("y", [3, None, "a"])
def test_labels_that_are_none_cannot_be_divided(y):
    with pytest.raises(PrivacyParameterError, match="labels are in a"):
        xgb_dp.split((arrays()[0], y))


def test_public_rows_of_times_have_bounds_for_labels(params):
    X, y = arrays()
    times = {"label_lower_bound": y + 1, "label_upper_bound": y + 1}
    given = params(
        objective="survival:aft", dp_target_bounds=(1, 3), dp_public_data=xgb.DMatrix(X, **times)
    )
    booster = xgb.train(given, xgb.DMatrix(X, **times), 2)
    assert xgb_dp.privacy_report(booster).private


def test_the_outermost_interface_spells_parameters():
    with spelling({"dp_epsilon": "--epsilon"}), spelling({"dp_epsilon": "e", "dp_delta": "d"}):
        assert (named.dp_epsilon, alias("dp_delta"), alias("eta")) == ("`--epsilon`", "d", "eta")
    assert named.dp_epsilon == "`dp_epsilon`"


def test_names_that_a_caller_wrote_stay():
    model = xgb_dp.DPXGBClassifier(
        epsilon=1.0, delta=1e-6, classes=2, n_estimators=1, feature_bounds={"dp_delta": (0, 1)}
    )
    with pytest.raises(PrivacyParameterError) as caught:
        model.fit(np.zeros((4, 1)), [0, 1, 0, 1])
    assert "`feature_bounds` declares the feature 'dp_delta'" in str(caught.value)
    with pytest.raises(PrivacyParameterError, match="`epsilon` must be a number"):
        model.set_params(epsilon=-1.0).fit(np.zeros((4, 1)), [0, 1, 0, 1])
