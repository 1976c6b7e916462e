"""The measurement of several targets: one budget, and predictions of all targets."""

import numpy as np
import xgboost as xgb

from experiments import targets
from tests.training.families import SHORT
from xgb_dp.accounting import make_accountant
from xgb_dp.request import default_plans
from xgb_dp.request.schema import read_schema
from xgb_dp.training.hook import prepare

DELTA = 1e-5


def rows(n: int = 3000) -> tuple[targets.Floats, targets.Floats]:
    """Two columns, and targets within the ranges of the table."""
    x = np.random.default_rng(1).uniform(size=(n, 2))
    signal = np.stack([x[:, 0], x[:, 1], x.mean(axis=1)], axis=1)
    return x, signal * [high for _, high in targets.BOUNDS.values()]


def test_models_that_share_a_budget_are_it_together(monkeypatch):
    """Also where few plans may be taken, which are calibrated in no time."""
    monkeypatch.setattr(default_plans, "SIZES", dict.fromkeys(default_plans.SIZES, SHORT))
    each = targets.share(2, 1.0, DELTA, 2)
    assert 0.5 < each < 1.0
    schema = read_schema(xgb.DMatrix(np.empty((0, 2)), np.empty(0)))
    params = targets.usual(each, DELTA, 1) | {"dp_target_bounds": (0.0, 1.0)}
    both = make_accountant("exact", prepare(params, schema, None).events * 2)
    assert 0.99 < both.get_epsilon(DELTA) <= 1.0


def test_every_trainer_predicts_all_targets():
    x, y = rows()
    given = (x, y, 8.0, DELTA, 1)
    for predict in (
        targets.together(*given),
        targets.together(*given, "per_class"),
        targets.apart(*given),
        targets.stock(x, y, 0, 1),
    ):
        assert (targets.explained(predict, x, y) > 0.7).all()


def test_a_constant_explains_nothing():
    x, y = rows()
    share = targets.explained(lambda rows: np.broadcast_to(y.mean(axis=0), y.shape), x, y)
    np.testing.assert_allclose(share, 0.0, atol=1e-9)
