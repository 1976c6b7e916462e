"""Figures of a regression are those of the population where nothing lies beyond the bounds."""

from typing import Any

import numpy as np
import pytest
import xgboost as xgb
from sklearn import metrics

import xgb_dp
from xgb_dp.evaluation.measure import plan_evaluation
from xgb_dp.evaluation.rows import Groups, Rows, events_for, read_evaluated_model
from xgb_dp.noisy_sums import Layout, release

BOUNDS = (0.0, 500_001.0)  # of the labels of houses, which many of them reach
CLEAR = {"epsilon": 10.0, "delta": 1e-3}
TIMES = 100
LEAST = 73  # where 95% cover, fewer have a probability below 1e-11


@pytest.fixture(scope="module")
def houses() -> tuple[Any, np.ndarray, np.ndarray, np.ndarray]:
    """A small model of prices with heavy tails: 2% of the errors are above half of the range."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40_000, 3)).astype(np.float32)
    price = 1e5 * np.exp(0.6 * X[:, 0] + 0.6 * rng.normal(size=len(X)))
    y = np.where(rng.random(len(X)) < 0.02, BOUNDS[1], np.clip(price, *BOUNDS))
    model = xgb.train({"max_depth": 3, "nthread": 1}, xgb.DMatrix(X[:4000], y[:4000]), 10)
    return model, X[4000:], y[4000:], model.predict(xgb.DMatrix(X[4000:])).astype(np.float64)


def exact_of(y: np.ndarray, p: np.ndarray) -> dict[str, float]:
    error = p - y
    return {
        "rmse": float(np.sqrt(np.mean(error**2))),
        "mae": float(np.abs(error).mean()),
        "bias": float(error.mean()),
        "r2": float(metrics.r2_score(y, p)),
        "mean_label": float(y.mean()),
        "mean_prediction": float(p.mean()),
    }


@pytest.mark.usefixtures("quiet")
def test_without_noise_nothing_lies_beyond(houses):
    """Errors beyond a fourth of the range are a half of the mean square here."""
    model, X, y, p = houses
    report = xgb_dp.evaluate(model, (X, y), target_bounds=BOUNDS, **CLEAR)
    for name, exact in exact_of(y, p).items():
        figure = report.figures()[f"clipped {name.replace('_', ' ')}"]
        assert figure == getattr(report, name)
        assert float(figure) == pytest.approx(exact, rel=5e-3, abs=50 if name == "bias" else 0)
        assert figure.low <= exact <= figure.high
    for name in ("labels beyond", "errors beyond"):
        share = report.figures()[name]
        assert 0.0 <= share.low <= float(share) <= share.high < 3e-4
    for share in (0.05, 0.5, 0.9):
        quantile = np.quantile(p - y, share)
        assert float(report.quantile(share)) == pytest.approx(quantile, abs=0.01 * BOUNDS[1])


@pytest.mark.usefixtures("quiet")
@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_errors_of_the_declared_width_count_fully(sign):
    X = np.zeros((500, 1), dtype=np.float32)
    model = xgb.train({"base_score": max(sign, 0.0), "nthread": 1}, xgb.DMatrix(X, X[:, 0]), 0)
    y = np.full(500, max(-sign, 0.0))
    y[250:] = max(sign, 0.0)  # a half has no error
    report = xgb_dp.evaluate(model, (X, y), target_bounds=(0, 1), **CLEAR)
    exact = {"rmse": 0.5**0.5, "mae": 0.5, "bias": 0.5 * sign, "r2": -1.0}
    for name, value in exact.items():
        assert float(getattr(report, name)) == pytest.approx(value, abs=1e-3), name


@pytest.mark.usefixtures("quiet")
def test_a_narrow_bound_is_named(houses):
    model, X, y, p = houses
    report = xgb_dp.evaluate(model, (X, y), target_bounds=BOUNDS, error_bound=1e5, **CLEAR)
    error = np.clip(p - y, -1e5, 1e5)
    figures = report.figures()
    assert float(figures["clipped rmse"]) == pytest.approx(np.sqrt(np.mean(error**2)), rel=5e-3)
    assert not {"rmse", "mae", "bias", "r2", "clipped r2"} & set(figures)
    assert "does not account for errors beyond" in report.statement()
    with pytest.raises(xgb_dp.PrivacyParameterError, match="not clipped"):
        _ = report.r2
    assert float(report.mean_prediction) == pytest.approx(y.mean() + error.mean(), rel=5e-3)
    bare = xgb_dp.evaluate(model, (X, y), error_bound=1e5, **CLEAR)
    for name in ("mean_label", "r2"):
        with pytest.raises(xgb_dp.PrivacyParameterError, match=r"requires? target bounds"):
            getattr(bare, name)
    wide = xgb_dp.evaluate(model, (X, y), target_bounds=BOUNDS, error_bound=6e5, **CLEAR)
    assert float(wide.r2) == pytest.approx(metrics.r2_score(y, p), abs=5e-3)
    for name, wrong in (
        ("error_bound", {}),
        ("error_bound", {"error_bound": 0}),
        ("target_bounds", {"target_bounds": (1, 1)}),
    ):
        with pytest.raises(xgb_dp.PrivacyParameterError, match=name):
            xgb_dp.evaluate(model, (X, y), **wrong, **CLEAR)


@pytest.mark.parametrize("epsilon", [1e6, 1e12, 1e300])
@pytest.mark.parametrize("persons", [False, True])
def test_hardly_any_noise(houses, epsilon, persons):
    model, X, y, p = (part[:2000] if isinstance(part, np.ndarray) else part for part in houses)
    ids = np.arange(len(y)) if persons else None
    with pytest.warns(xgb_dp.PrivacyWarning, match="Epsilon"):
        report = xgb_dp.evaluate(
            model, (X, y), target_bounds=BOUNDS, epsilon=epsilon, delta=1e-6, privacy_id=ids
        )
    assert float(report.r2) == pytest.approx(metrics.r2_score(y, p), abs=0.01)


@pytest.mark.usefixtures("known")
@pytest.mark.parametrize("epsilon", [0.5, 8.0])
def test_intervals_cover_the_population(houses, epsilon):
    """Of all rows and of a group, with noise that is most of the spread and with little."""
    model, X, y, p = houses
    group = (X[:, 1] > 0).astype(np.int64)
    truth = exact_of(y, p)
    truth |= {f"{name} of 1": v for name, v in exact_of(y[group == 1], p[group == 1]).items()}
    plan = plan_evaluation((read_evaluated_model(model),), Groups(1, (0, 1)), None, BOUNDS)
    layout = Layout(plan.blocks)
    events = events_for(layout, epsilon, 1e-6)
    hits, rng = dict.fromkeys(truth, 0), np.random.default_rng(1)
    for _ in range(TIMES):
        at = rng.integers(0, len(y), 2000)
        sums = release(layout, events, plan.cells(Rows(p[at], y[at], group[at])), None)
        overall, groups = plan.views(sums, 0.95)
        for name in exact_of(y[:9], p[:9]):
            for suffix, view in (("", overall), (" of 1", groups["1"])):
                figure = getattr(view, name)
                hits[name + suffix] += figure.low <= truth[name + suffix] <= figure.high
    assert min(hits.values()) >= LEAST, hits


def test_a_declared_range_that_is_too_wide_costs_little():
    """What the training released of the labels bounds them, and the statement says so."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(12_000, 3)).astype(np.float32)
    y = np.clip(10 + 3 * X[:, 0] + rng.normal(size=len(X)), 0, 20)
    rows, held = xgb.DMatrix(X[:6000], y[:6000]), (X[6000:], y[6000:])
    params = {"tree_method": "dp_hist", "dp_epsilon": 2.0, "dp_delta": 1e-6, "nthread": 1}
    squared = {**params, "objective": "reg:squarederror", "dp_target_bounds": (0, 2e4)}
    model = xgb.train(squared, rows, 5)
    error = model.predict(xgb.DMatrix(held[0])) - held[1]
    exact = float(np.sqrt(np.mean(error**2)))

    def judged_within(**bounds: Any) -> Any:
        return xgb_dp.evaluate(model, held, epsilon=2.0, delta=1e-6, **bounds)

    followed, declared = judged_within(), judged_within(target_bounds=(0, 2e4))
    assert abs(float(followed.rmse) - exact) < 6 * followed.rmse.noise
    assert followed.rmse.high < 3 * exact
    assert declared.rmse.noise > 50 * exact  # the end of its interval is 0 in some runs
    low, high = followed.overall.within
    assert low <= y.min() and y.max() <= high < 100
    assert f"above {high:g} are clipped" in followed.statement()
    assert "much wider than the range in which the training saw labels" in followed.statement()
    assert {"clipped rmse", "clipped r2"} < set(followed.figures()) & set(declared.figures())
    assert declared.overall.within is None
    assert "Labels below 0 or above 20000 are clipped" in declared.statement()
    assert "saw labels" not in declared.statement()
