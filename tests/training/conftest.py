"""One model, and the rows it was trained on."""

from __future__ import annotations

import pytest
import xgboost as xgb

from .test_training import PARAMS, rows


@pytest.fixture(scope="module")
def dtrain() -> xgb.DMatrix:
    return xgb.DMatrix(*rows(400))


@pytest.fixture()
def booster(dtrain: xgb.DMatrix) -> xgb.Booster:
    return xgb.train(PARAMS, dtrain, 3)
