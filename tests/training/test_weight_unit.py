"""A bound of row weights that is declared too wide costs little: their unit follows the weights."""

from __future__ import annotations

import numpy as np
import pytest
import xgboost as xgb
from sklearn.metrics import roc_auc_score
from xgboost.core import XGBoostError

import xgb_dp
from tests.reference.comparison import SQUARED, make_plan
from tests.reference.test_families_against_cpp import ON_GRID
from tests.stated import describe_plan
from xgb_dp.accounting.sensitivity import LABEL_CELLS
from xgb_dp.training.cells import top_weight, weight_edges
from xgb_dp.training.plan import dump_plan

ROWS = 4_000
PARAMS = {"tree_method": "dp_hist", "dp_epsilon": 4.0, "dp_delta": 1e-6, "nthread": 1,
          "objective": "binary:logistic"}  # fmt: skip


def counted(w: np.ndarray, most: float, deviation: float, rng) -> list[float]:
    cells = np.searchsorted(weight_edges(most), w.astype(np.float32), side="right")
    return list(np.bincount(cells, minlength=LABEL_CELLS) + rng.normal(0.0, deviation, LABEL_CELLS))


@pytest.mark.parametrize("most", [3.0, 10.0, 300.0])
@pytest.mark.parametrize("deviation", [0.0, 20.0])
def test_the_top_of_weights(most, deviation):
    """Nearly the largest weight of many rows, however wide the bound; 1 where there is nothing."""
    rng = np.random.default_rng(0)
    ones = np.ones(ROWS)
    assert 0.9 < top_weight(counted(ones, most, deviation, rng), deviation, most) <= 1.0
    classes = np.where(rng.random(ROWS) < 0.2, 3.0, 1.0)
    assert 2.7 < top_weight(counted(classes, most, deviation, rng), deviation, most) < 3.5
    few = np.where(np.arange(ROWS) < 20, most, 1.0)
    assert top_weight(counted(few, most, deviation, rng), deviation, most) <= most
    assert top_weight(counted(ones[:0], most, 20.0, rng), 20.0, most) == 1.0


@pytest.mark.parametrize("most", [1.5, 10.0, 1e6])
def test_edges_rise(most):
    inner = weight_edges(most)
    assert len(inner) == LABEL_CELLS - 1
    assert inner == sorted(inner)
    assert inner[-1] < most


def table(seed: int = 2):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(ROWS, 3))
    y = (rng.random(ROWS) < 1.0 / (1.0 + np.exp(-2.0 * x[:, 0] - x[:, 1]))).astype(float)
    return x, y


def test_a_wide_bound_costs_little():
    """Unit weights, a bound that is 100 times too wide."""
    x, y = table()
    scores = []
    for most in (1.0, 100.0):
        d = xgb.DMatrix(x, y, weight=np.ones(ROWS))
        model = xgb.train({**PARAMS, "dp_max_weight": most}, d, 30)
        scores.append(roc_auc_score(y, model.predict(d)))
    assert scores[1] > scores[0] - 0.03, scores


@pytest.mark.parametrize("objective", ["binary:logistic", "reg:squarederror", "reg:gamma"])
def test_the_ledger_tells_of_it(tmp_path, objective):
    """One event, in the claim; with labels where these are counted too; the model is verified."""
    x, y = table()
    params = {**PARAMS, "objective": objective, "dp_max_weight": 10.0}
    if objective != "binary:logistic":
        params["dp_target_bounds"] = (0.0, 100.0)
    model = xgb.train(params, xgb.DMatrix(x, y + 0.5 * (objective != "binary:logistic")), 5)
    report = xgb_dp.privacy_report(model)
    assert "row weights" in str(report)
    assert report.get_epsilon(1e-6) <= 4.0
    path = tmp_path / "model.json"
    model.save_model(path)
    assert xgb_dp.verify(path).verdict == "passed"


@pytest.mark.parametrize(
    "more", [{}, {"dp_max_weight": 1.0}, {"dp_max_weight": 9.0, "dp_weight_unit": "declared"}]
)
def test_where_nothing_is_released(more):
    x, y = table()
    model = xgb.train({**PARAMS, **more}, xgb.DMatrix(x, y), 3)
    assert "row weights (noisy counts)" not in str(xgb_dp.privacy_report(model))


@pytest.mark.parametrize(
    "more", [{}, {"dp_max_weight": 1.0}, {"dp_max_weight": 9.0, "dp_accountant": "pure"}]
)
def test_what_has_no_unit(more):
    params = {**PARAMS, "dp_weight_unit": "released", **more}
    with pytest.raises(xgb_dp.PrivacyParameterError, match="weights with a"):
        xgb.train(params, xgb.DMatrix(np.zeros((4, 1)), np.zeros(4)), 2)


@pytest.mark.parametrize(
    ("bound", "score", "message"),
    [
        ({"max_weight": "1.0", "unit_hessian": True}, "gain", "the published gain is unbounded"),
        ({"max_weight": "0", "unit_hessian": True}, "l1", "a unit of weights needs a bound"),
        ({"max_weight": "1.0", "weight_unit": "0.0001"}, "l1", "weight_unit"),
    ],
)
def test_plans_that_no_proof_covers(bound, score, message):
    """The library refuses a unit where it would change a range, whoever wrote the plan."""
    row_bound = {"mode": "clip", "weight_unit": "10.0", **bound}
    plan = make_plan(SQUARED, True, ON_GRID, score=score, row_bound=row_bound)
    with pytest.raises(XGBoostError, match=message):
        describe_plan(dump_plan({**plan, "id": "hand-made"}))
