"""What one row can do is bounded, and what a training takes is declared: clamped, clear or refused.

Also the structure of trees: no exact sum, count, minimum or maximum decides about it.
"""

import json
from typing import Any

import numpy as np
import pytest
import xgboost as xgb
from xgboost.core import XGBoostError

from tests.models import trees
from tests.peers.recover import KINDS, make_rows
from tests.training.plans import from_plan, plan_of
from xgb_dp.testing import fixed_noise

pytestmark = pytest.mark.filterwarnings("ignore:Epsilon is above 10")

BINARY, REGRESSION = KINDS["binary"], KINDS["regression"]


def test_labels_at_the_bounds_train():
    """Labels -1 and 1 with intercept 0, the set-up in which a strict filter drops every row."""
    X, y = make_rows("binary", 3000)
    d = xgb.DMatrix(X, 2 * y - 1)
    with fixed_noise(3):
        model = xgb.train(REGRESSION, d, 20)
    assert trees(model)[0]["sum_hessian"][0] == pytest.approx(3000, rel=0.01)
    assert ((model.predict(d) > 0) == y).mean() > 0.7


@pytest.mark.parametrize("start", [1000.0, -1001.0, -0.5])
@pytest.mark.parametrize("declared", [True, False], ids=["public intercept", "released"])
def test_a_range_far_from_zero(start, declared):
    """Ranges are declared and labels counted from them: a shift of both only shifts predictions."""
    X, y = make_rows("regression", 1000)
    y = np.clip((y + 1) / 2, 0, 1)

    def predict(low: float) -> Any:
        params = REGRESSION | {"dp_target_bounds": (low, low + 1.0)}
        params["base_score"] = low + 0.5 if declared else None
        d = xgb.DMatrix(X, (y.astype(np.float64) + low).astype(np.float32))
        with fixed_noise(9):
            return xgb.train(params, d, 10).predict(d).astype(np.float64)

    shifted = predict(start) - start
    assert np.abs(shifted - predict(0.0)).max() < 0.01  # 32-bit floats at 1000
    assert np.sqrt(np.mean((shifted - y) ** 2)) < 0.8 * y.std()


# ------------------------------------------------------------------------------- structure
@pytest.mark.parametrize("n", [0, 1, 99, 100])
@pytest.mark.parametrize("epsilon", [0.001, 20.0])
def test_no_count_decides_whether_a_node_is_split(n, epsilon):
    """Trees are complete whatever `min_child_weight` is, and whether labels give any gain."""
    X, y = make_rows("binary", 100)
    for labels in (y, np.zeros(100)):
        params = BINARY | {"min_child_weight": 50.0, "dp_epsilon": epsilon}
        for tree in trees(xgb.train(params, xgb.DMatrix(X[:n], labels[:n]), 3)):
            assert sum(left == -1 for left in tree["left_children"]) == 4


def test_constant_labels_leave_nothing_exact():
    """One class, or one value: the intercept is noisy and no tree is an exact constant."""
    # Few enough that none of three noisy means is just 0.625, many enough that none is cut at 1.
    X, _ = make_rows("binary", 400)
    for kind, value in (("binary", 1.0), ("regression", 0.625)):
        params = KINDS[kind] | {"base_score": None, "dp_epsilon": 2.0}
        seen, values = set(), set()
        for _ in range(3):
            model = xgb.train(params, xgb.DMatrix(X, np.full(400, value)), 2)
            saved = json.loads(model.save_raw("json"))["learner"]["learner_model_param"]
            seen.add(float(json.loads(saved["base_score"])[0]))
            for tree in trees(model):
                assert len(tree["left_children"]) == 7
                values |= set(tree["base_weights"])
        assert len(seen) >= 2 or seen == {0.999}  # a released 0.999 is a noisy sum at its limit
        assert value not in seen
        assert len(values) > 30


# ------------------------------------------------------------------------------- refusals
def test_no_column_split():
    """Vertical federation, in which labels and features meet un-noised, is refused.

    The plugin refuses such a matrix where XGBoost can make one. 3.4 makes none any more.
    """
    X, y = make_rows("binary", 50)
    plan = plan_of(xgb.train(BINARY, xgb.DMatrix(X, y), 1))
    if not hasattr(xgb.core, "DataSplitMode"):
        with pytest.raises(ValueError, match="Column-wise data split has been removed"):
            xgb.DMatrix(X, y, data_split_mode=1)
        return
    d = xgb.DMatrix(X, y, data_split_mode=xgb.core.DataSplitMode.COL)
    with pytest.raises(XGBoostError, match="data are split by columns"):
        from_plan(plan, d).update(d, 0)
