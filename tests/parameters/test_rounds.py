"""Boosting rounds where none are given: one number for private trainings, upstream's for others."""

import inspect
import pickle
from typing import Any

import numpy as np
import pytest
import xgboost as xgb
from xgboost.training import _DefaultRounds

import xgb_dp
from tests.conftest import private

from ..conftest import arrays

PRIVATE = private(max_depth=1)
BINARY = {**PRIVATE, "objective": "binary:logistic", "nthread": 1}


def rounds_of(model: Any) -> int:
    booster = model if isinstance(model, xgb.Booster) else model.get_booster()
    [training] = xgb_dp.privacy_report(booster).ledger["trainings"]
    start = training.get("start") or {"rounds": 0}
    assert training["rounds"] == booster.num_boosted_rounds() - start["rounds"]
    return int(training["rounds"])


def test_given_rounds_are_kept():
    """Also upstream's own default, when it is given."""
    X, y = arrays()
    d = xgb.DMatrix(X, y)
    assert rounds_of(xgb.train(BINARY, d, 10)) == 10
    assert rounds_of(xgb.train(BINARY, d, num_boost_round=np.int64(10))) == 10
    model = xgb.XGBClassifier(**PRIVATE, dp_classes=2, n_jobs=1, n_estimators=100)
    assert rounds_of(model.fit(X, y)) == 100


@pytest.mark.parametrize("module", ["xgboost", "xgboost.dask"])
def test_the_default_shows_as_upstream_writes_it(module):
    train = pytest.importorskip(module).train
    default = inspect.signature(train).parameters["num_boost_round"].default
    assert (default, repr(default), f"{default}") == (10, "10", "10")
    assert isinstance(pickle.loads(pickle.dumps(default)), _DefaultRounds)
