"""A range of the target that is declared too wide costs little: the unit follows the labels."""

import numpy as np
import pytest
import xgboost as xgb
from sklearn.metrics import r2_score

import xgb_dp
from xgb_dp.accounting.sensitivity import LABEL_CELLS
from xgb_dp.training.cells import edges, seen

ROWS = 4_000
PARAMS = {"tree_method": "dp_hist", "dp_epsilon": 8.0, "dp_delta": 1e-6, "nthread": 1}
LABELS = {
    "amounts": lambda rng: np.exp(rng.normal(12.0, 0.6, ROWS)),
    "shares": lambda rng: rng.uniform(0.0, 1.0, ROWS),
    "far from 0": lambda rng: rng.normal(300.0, 12.0, ROWS),
    "on both sides": lambda rng: rng.normal(-1.0, 3.0, ROWS),
}


def counted(y: np.ndarray, low: float, high: float, deviation: float, rng) -> list[float]:
    cells = np.searchsorted(edges(low, high), np.clip(y, low, high), side="right")
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
    told = seen(counted(y, low, high, deviation, rng), deviation, low, high)
    assert told is not None
    # Cells of a factor of two are wide for labels far from 0.
    widest = 6.0 if kind == "far from 0" else 2.0
    assert y.std() / 2.0 < told.spread < widest * y.std()
    assert np.mean((y < told.low) | (y > told.high)) < 0.05


def test_noise_alone_says_nothing():
    """Of 500 tables without rows none is taken for labels; nor is a lump of labels at 0."""
    rng = np.random.default_rng(1)
    nothing = np.zeros(0)
    assert not any(seen(counted(nothing, 0.0, 9.0, 5.0, rng), 5.0, 0.0, 9.0) for _ in range(500))
    assert seen(counted(np.zeros(ROWS), 0.0, 9.0, 5.0, rng), 5.0, 0.0, 9.0) is None


@pytest.mark.parametrize(("low", "high"), [(0.0, 5.0), (-3.0, 9.0), (2.0, 1e30), (-1e30, -1e29)])
def test_edges_rise(low, high):
    inner = edges(low, high)
    assert len(inner) == LABEL_CELLS - 1
    assert inner == sorted(inner)
    assert low <= inner[0] <= inner[-1] <= high


def table(seed: int = 2):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(ROWS, 3))
    y = np.exp(1.0 + 0.5 * x[:, 0] + 0.3 * np.sign(x[:, 1]) + 0.2 * rng.normal(size=ROWS))
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


def test_the_ledger_tells_of_it(tmp_path):
    """One event, which is in the claim; it says what was enforced; and the model is verified."""
    x, y = table()
    params = {**PARAMS, "dp_target_bounds": (0.0, 1e4)}
    model = xgb.train(params, xgb.DMatrix(x, y), 5)
    report = xgb_dp.privacy_report(model)
    assert "where the labels lie" in str(report)
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
        assert "where the labels lie" not in str(xgb_dp.privacy_report(model))


@pytest.mark.parametrize(
    "more",
    [
        {"objective": "binary:logistic"},
        {"dp_target_bounds": [(0.0, 1.0), (0.0, 2.0)]},
        {"dp_target_bounds": (0.0, 1.0), "dp_accountant": "pure"},
    ],
)
def test_what_has_no_unit(more):
    params = {**PARAMS, "dp_target_unit": "released", **more}
    labels = np.zeros((4, 2)) if isinstance(more.get("dp_target_bounds"), list) else np.zeros(4)
    with pytest.raises(xgb_dp.PrivacyParameterError, match="one target"):
        xgb.train(params, xgb.DMatrix(np.zeros((4, 1)), labels), 2)
