"""Ranges of targets and weights that are declared too wide cost little: units follow the rows."""

from typing import Any

import numpy as np
import pytest
import xgboost as xgb
from sklearn.metrics import r2_score, roc_auc_score
from xgboost.core import XGBoostError

import xgb_dp
from tests.conftest import private
from tests.reference.comparison import SQUARED, make_plan
from tests.reference.test_families_against_cpp import ON_GRID
from tests.stated import describe_plan
from xgb_dp.accounting.sensitivity import LABEL_CELLS
from xgb_dp.mechanisms.label_range import edges, weight_edges
from xgb_dp.planning import dump
from xgb_dp.training.start import label_range_from_counts, top_weight

ROWS = 4_000
PARAMS = private(dp_epsilon=8.0, nthread=1)
LABELS = {
    "amounts": lambda rng: np.exp(rng.normal(12.0, 0.6, ROWS)),
    "shares": lambda rng: rng.uniform(0.0, 1.0, ROWS),
    "far from 0": lambda rng: rng.normal(300.0, 12.0, ROWS),
    "on both sides": lambda rng: rng.normal(-1.0, 3.0, ROWS),
}


def counted(values: np.ndarray, inner: list[float], deviation: float, rng) -> list[float]:
    """Rows in the cells between these edges, with noise."""
    cells = np.searchsorted(inner, values, side="right")
    return list(np.bincount(cells, minlength=LABEL_CELLS) + rng.normal(0.0, deviation, LABEL_CELLS))


@pytest.mark.parametrize("kind", LABELS)
@pytest.mark.parametrize("times", [1.0, 10.0, 1e4])
@pytest.mark.parametrize("deviation", [0.0, 20.0])
def test_the_spread_of_labels(kind, times, deviation):
    """Up to a factor of two or so, however wide the declared range; and nearly all are inside."""
    rng = np.random.default_rng(0)
    y = LABELS[kind](rng)
    low = -1.2 * abs(min(y.min(), 0.0)) * times
    high = 1.2 * y.max() * times
    read = label_range_from_counts(
        counted(y, edges(low, high), deviation, rng), deviation, low, high
    )
    assert read is not None
    # Cells of a factor of two are wide for labels far from 0.
    widest = 6.0 if kind == "far from 0" else 2.0
    assert y.std() / 2.0 < read.spread < widest * y.std()
    assert np.mean((y < read.low) | (y > read.high)) < 0.05


def test_noise_alone_says_nothing():
    """Of 500 tables without rows none is taken for labels; nor is a lump of labels at 0."""
    rng = np.random.default_rng(1)
    nothing, inner = np.zeros(0), edges(0.0, 9.0)
    assert not any(
        label_range_from_counts(counted(nothing, inner, 5.0, rng), 5.0, 0.0, 9.0)
        for _ in range(500)
    )
    assert label_range_from_counts(counted(np.zeros(ROWS), inner, 5.0, rng), 5.0, 0.0, 9.0) is None


@pytest.mark.parametrize("most", [3.0, 10.0, 300.0])
@pytest.mark.parametrize("deviation", [0.0, 20.0])
def test_the_top_of_weights(most, deviation):
    """Nearly the largest weight of many rows, however wide the bound; 1 where there is nothing."""
    rng = np.random.default_rng(0)
    ones, inner = np.ones(ROWS), weight_edges(most)
    assert 0.9 < top_weight(counted(ones, inner, deviation, rng), deviation, most) <= 1.0
    classes = np.where(rng.random(ROWS) < 0.2, 3.0, 1.0)
    assert 2.7 < top_weight(counted(classes, inner, deviation, rng), deviation, most) < 3.5
    few = np.where(np.arange(ROWS) < 20, most, 1.0)
    assert top_weight(counted(few, inner, deviation, rng), deviation, most) <= most
    assert top_weight(counted(ones[:0], inner, 20.0, rng), 20.0, most) == 1.0


RANGES = [(0.0, 5.0), (-3.0, 9.0), (2.0, 1e30), (-1e30, -1e29)]


@pytest.mark.parametrize(
    ("inner", "low", "high"),
    [
        *((edges(*ends), *ends) for ends in RANGES),
        *((weight_edges(most), 0.0, most) for most in (1.5, 10.0, 1e6)),
    ],
)
def test_edges_rise(inner, low, high):
    assert len(inner) == LABEL_CELLS - 1
    assert inner == sorted(inner)
    assert low <= inner[0] <= inner[-1] <= high
    assert high not in inner or low < 0.0


def table() -> tuple[np.ndarray, np.ndarray]:
    """Columns, and amounts."""
    rng = np.random.default_rng(2)
    x = rng.normal(size=(ROWS, 3))
    y = np.exp(1.0 + 0.5 * x[:, 0] + 0.3 * np.sign(x[:, 1]) + 0.2 * rng.normal(size=ROWS))
    return x, y


def classes() -> tuple[np.ndarray, np.ndarray]:
    """Columns, and labels of 0 and 1."""
    rng = np.random.default_rng(2)
    x = rng.normal(size=(ROWS, 3))
    y = (rng.random(ROWS) < 1.0 / (1.0 + np.exp(-2.0 * x[:, 0] - x[:, 1]))).astype(float)
    return x, y


OBJECTIVES = ("reg:squarederror", "reg:absoluteerror", "reg:pseudohubererror", "reg:gamma",
              "reg:tweedie")  # fmt: skip


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_a_wide_range_costs_little(objective):
    """A range that is 10,000 times too wide, at an epsilon that shows what a row says."""
    x, y = table()
    scores = []
    for high in (20.0, 2e5):
        params = {**PARAMS, "objective": objective, "dp_target_bounds": (1e-3, high)}
        model = xgb.train(params, xgb.DMatrix(x, y), 30)
        scores.append(r2_score(y, model.predict(xgb.DMatrix(x))))
    assert scores[0] > 0.55, scores
    assert scores[1] > scores[0] - 0.15, scores


def test_a_wide_bound_costs_little():
    """Unit weights, a bound that is 100 times too wide."""
    x, y = classes()
    scores = []
    for most in (1.0, 100.0):
        d = xgb.DMatrix(x, y, weight=np.ones(ROWS))
        params = {**PARAMS, **LOGISTIC, "dp_epsilon": 4.0, "dp_max_weight": most}
        scores.append(roc_auc_score(y, xgb.train(params, d, 30).predict(d)))
    assert scores[1] > scores[0] - 0.03, scores


LOGISTIC = {"objective": "binary:logistic"}
AMOUNTS: dict[str, Any] = {"dp_target_bounds": (0.0, 100.0)}
HEAVY: dict[str, Any] = {"dp_max_weight": 10.0}


@pytest.mark.parametrize(
    ("released", "given"),
    [
        ({"the range of the labels"}, {"dp_target_bounds": (0.0, 1e4)}),
        ({"row weights"}, LOGISTIC | HEAVY),
        ({"the range of the labels", "row weights"}, AMOUNTS | HEAVY),
        ({"the range of the labels", "row weights"}, AMOUNTS | HEAVY | {"objective": "reg:gamma"}),
    ],
)
def test_the_ledger_tells_of_it(tmp_path, released, given):
    """One event, which is in the claim; it says what was enforced; and the model is verified."""
    x, y = classes() if "objective" in given else table()
    model = xgb.train({**PARAMS, **given}, xgb.DMatrix(x, y + ("dp_target_bounds" in given)), 5)
    report = xgb_dp.privacy_report(model)
    assert all(words in str(report) for words in released)
    assert report.get_epsilon(1e-6) <= 8.0
    path = tmp_path / "model.json"
    model.save_model(path)
    assert xgb_dp.verify(path).verdict == "passed"


def test_a_declared_unit_is_as_wide_as_the_range():
    """Whoever sets the bound of gradients in half widths has them."""
    x, y = table()
    for more in ({"dp_target_unit": "declared"}, {"dp_gradient_bound": 0.3}):
        params = {**PARAMS, "dp_target_bounds": (0.0, 20.0), **more}
        model = xgb.train(params, xgb.DMatrix(x, y), 3)
        assert "the range of the labels" not in str(xgb_dp.privacy_report(model))


@pytest.mark.parametrize(
    "more", [{}, {"dp_max_weight": 1.0}, {"dp_max_weight": 9.0, "dp_weight_unit": "declared"}]
)
def test_where_no_weights_are_counted(more):
    x, y = classes()
    model = xgb.train({**PARAMS, **LOGISTIC, **more}, xgb.DMatrix(x, y), 3)
    assert "row weights (noisy counts)" not in str(xgb_dp.privacy_report(model))


@pytest.mark.parametrize(
    ("bound", "score", "message"),
    [
        ({"max_weight": "1.0", "unit_hessian": True}, "gain", "unbounded if Hessians vary"),
        ({"max_weight": "0", "unit_hessian": True}, "l1", "`weight_unit` requires"),
        ({"max_weight": "1.0", "weight_unit": "0.0001"}, "l1", "weight_unit"),
    ],
)
def test_plans_that_no_proof_covers(bound, score, message):
    """The library refuses a unit where it would change a range, whoever wrote the plan."""
    row_bound = {"mode": "clip", "weight_unit": "10.0", **bound}
    plan = make_plan(SQUARED, True, ON_GRID, score=score, row_bound=row_bound)
    with pytest.raises(XGBoostError, match=message):
        describe_plan(dump({**plan, "id": "hand-made"}))
