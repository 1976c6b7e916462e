"""One model, and the rows it was trained on."""

import pytest
import xgboost as xgb

from xgb_dp.request import default_plans

from .families import SHORT
from .test_training import PARAMS, rows


@pytest.fixture(scope="module")
def dtrain() -> xgb.DMatrix:
    return xgb.DMatrix(*rows(400))


@pytest.fixture()
def booster(dtrain: xgb.DMatrix) -> xgb.Booster:
    return xgb.train(PARAMS, dtrain, 3)


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two plans that take no time: 2 rounds below 1,000 rows at epsilon = 1, else 3."""
    monkeypatch.setattr(default_plans, "SIZES", dict.fromkeys(default_plans.SIZES, SHORT))
