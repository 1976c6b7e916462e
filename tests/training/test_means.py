"""Counts, amounts and times, end to end: what is told, what is refused, what stock predicts."""

import math
from typing import Any

import numpy as np
import pytest
import xgboost as xgb

import xgb_dp
from tests.conftest import private
from xgb_dp.errors import PrivacyParameterError, RowDomainError
from xgb_dp.request.objectives import MEANS
from xgb_dp.training.hook import prepare

from ..models import event, starts

PARAMS = private(dp_epsilon=4.0, nthread=1)
MEAN_OBJECTIVES = ("count:poisson", "reg:tweedie", "reg:gamma")


def rows(objective: str, n: int = 8000, seed: int = 0) -> tuple[Any, Any, Any]:
    """Features, labels, and the true means; amounts are rare or skewed, all within (0, 500)."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3)).astype(np.float32)
    rate = 0.3 * np.exp(0.6 * X[:, 0])
    if objective == "count:poisson":
        return X, rng.poisson(rate), rate
    if objective == "reg:tweedie":
        return X, np.minimum(rng.poisson(rate) * rng.gamma(0.5, 20.0, n), 500), 10 * rate
    return X, np.clip(rng.gamma(1.0, 30.0 * rate), 1e-3, 500), 30 * rate


def intervals(n: int = 6000, seed: int = 0) -> tuple[Any, Any, Any]:
    """Features and both ends of times: seen, censored from the right, or within an interval."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3)).astype(np.float32)
    time = np.exp(2 + X[:, 0] + 0.6 * rng.logistic(size=n))
    end = np.exp(rng.normal(2.5, 1.0, n))
    lower = np.minimum(time, end)
    upper = np.where(time <= end, time, np.inf)
    upper[::5] = np.where(time <= end, 1.5 * time, np.inf)[::5]
    return X, lower, upper


def times(X: Any, lower: Any, upper: Any, **more: Any) -> xgb.DMatrix:
    """A matrix of intervals."""
    return xgb.DMatrix(X, label_lower_bound=lower, label_upper_bound=upper, **more)


AFT = PARAMS | {"objective": "survival:aft", "dp_target_bounds": (0.01, 1000.0)}


@pytest.mark.parametrize("objective", MEAN_OBJECTIVES)
def test_means_follow_the_truth(objective):
    """The range is wide: what is cut for the trees comes back in the mean."""
    X, y, mean = rows(objective)
    high = 10 if objective == "count:poisson" else 100
    params = PARAMS | {"objective": objective, "dp_target_bounds": (0, high), "dp_epsilon": 10.0}
    model = xgb.train(params, xgb.DMatrix(X, y), 40)
    predicted = model.predict(xgb.DMatrix(X))
    assert np.corrcoef(np.log(predicted), np.log(mean))[0, 1] > 0.75
    # The ratio is 1, or 0.97 for reg:tweedie, with a deviation of 0.01.
    assert predicted.mean() / y.mean() == pytest.approx(1.0, abs=0.1)
    # And of 0.017 without a correction, which mends what trees have left out.
    trees = xgb.train(params | {"dp_mean_correction": False}, xgb.DMatrix(X, y), 40)
    assert trees.predict(xgb.DMatrix(X)).mean() / y.mean() == pytest.approx(1.0, abs=0.15)
    report = xgb_dp.privacy_report(model)
    assert 9.75 < report.epsilon <= 10.0
    assert event(model, "intercept")["count"] == event(model, "correction")["count"] == 2


@pytest.mark.parametrize("high", [3, 500])
def test_without_noise_the_intercept_is_the_mean(high):
    """Labels that are small in their range are not rounded to its lower end."""
    X, y, _ = rows("count:poisson", 2000)
    for objective in ("count:poisson", "reg:squarederror"):
        params = PARAMS | {"objective": objective, "dp_target_bounds": (0, high)}
        model = xgb.train(params | {"dp_epsilon": math.inf}, xgb.DMatrix(X, y), 1)
        assert starts(model)[0] == pytest.approx(np.minimum(y, high).mean(), rel=1e-3)


def test_exposures_start_in_the_first_tree():
    """Rows of half a year have half of the claims, and predictions for a year are twice that."""
    rng = np.random.default_rng(1)
    X, _, rate = rows("count:poisson", 12_000)
    exposure = rng.uniform(0.05, 1.0, len(X))
    y = rng.poisson(rate * exposure)
    params = PARAMS | {
        "objective": "count:poisson",
        "dp_target_bounds": (0, 8),
        "dp_base_margin": True,
        "dp_exposure_bounds": (0.01, 1.0),
        "dp_epsilon": 10.0,
    }
    d = xgb.DMatrix(X, y, base_margin=np.log(exposure))
    model = xgb.train(params, d, 30)
    predicted = model.predict(d)
    assert predicted.mean() / y.mean() == pytest.approx(1.0, abs=0.1)
    whole = model.predict(xgb.DMatrix(X, base_margin=np.zeros(len(X))))
    np.testing.assert_allclose(whole * exposure, predicted, rtol=1e-4)
    assert "the exposure bounds" in xgb_dp.privacy_report(model).statement()
    # Without margins XGBoost starts from the intercept, which is that of an exposure of one.
    stock = model.predict(xgb.DMatrix(X), validate_features=False)
    np.testing.assert_allclose(stock, whole, rtol=1e-5)
    one_tree = xgb.train(params, d, 1).predict(d)
    assert one_tree.mean() / y.mean() == pytest.approx(1.0, abs=0.35)


@pytest.mark.parametrize("distribution", ["normal", "logistic", "extreme"])
def test_times_follow_the_truth(distribution):
    X, lower, upper = intervals()
    d = times(X, lower, upper)
    model = xgb.train(AFT | {"aft_loss_distribution": distribution}, d, 40)
    predicted = np.log(model.predict(times(X, lower, upper)))
    assert np.corrcoef(predicted, X[:, 0])[0, 1] > 0.9
    assert predicted.mean() == pytest.approx(2.0 if distribution != "extreme" else 2.3, abs=0.5)


def test_censoring_from_the_right_is_known():
    """Half of the times end early: taken for seen, they would be shorter."""
    X, lower, upper = intervals()
    params = AFT | {"dp_epsilon": math.inf, "aft_loss_distribution_scale": 0.6}
    known = np.log(xgb.train(params, times(X, lower, upper), 30).predict(xgb.DMatrix(X)))
    taken = np.log(xgb.train(params, times(X, lower, lower), 30).predict(xgb.DMatrix(X)))
    assert known.mean() == pytest.approx(2.0, abs=0.15)
    assert taken.mean() < known.mean() - 0.3


@pytest.mark.parametrize(
    ("lower", "upper"),
    [(-1.0, 2.0), (2.0, 1.0), (math.nan, 1.0), (math.inf, math.inf), (1.0, math.nan), (0.0, 0.0)],
)
def test_rows_without_an_interval_are_refused(lower, upper):
    X, first, last = intervals(60)
    first[7], last[7] = lower, upper
    with pytest.raises(RowDomainError, match="no valid time interval") as refusal:
        xgb.train(AFT, times(X, first, last), 2)
    assert not any(c in str(refusal.value) for c in ("7", "-1", "nan"))


def test_other_labels_are_refused():
    X, lower, upper = intervals(60)
    with pytest.raises(PrivacyParameterError, match="label_lower_bound"):
        xgb.train(AFT, xgb.DMatrix(X, lower), 2)
    d = xgb.DMatrix(X, lower, label_lower_bound=lower, label_upper_bound=upper)
    with pytest.raises(RowDomainError, match="survival"):
        xgb.train(PARAMS | {"dp_target_bounds": (0, 9)}, d, 2)
    with pytest.raises(PrivacyParameterError, match="dp_target_bounds"):
        xgb.train(AFT | {"dp_target_bounds": (0.0, 9.0)}, times(X, lower, upper), 2)
    for objective, least in (("count:poisson", -1.0), ("reg:gamma", 0.0), ("reg:tweedie", -1e-6)):
        y = np.ones(60)
        y[3] = least
        params = PARAMS | {"objective": objective, "dp_target_bounds": (0, 9)}
        with pytest.raises(RowDomainError, match="label that is not"):
            xgb.train(params, xgb.DMatrix(X, y), 2)


def test_parts_of_a_split_keep_their_intervals():
    X, lower, upper = intervals(3000)
    parts = xgb_dp.split(times(X, lower, upper), test=0.3)
    model = xgb.train(AFT, parts.train, 5)
    assert model.num_boosted_rounds() == 5


def test_the_cap_follows_the_mean():
    from xgb_dp.request.schema import read_schema

    schema = read_schema(xgb.DMatrix(np.zeros((2, 1))))
    counts = prepare(
        PARAMS | {"objective": "count:poisson", "dp_target_bounds": (0, 5)}, schema, 5
    ).settings
    assert [MEANS.cap(counts, m) for m in (1e-9, 0.1, 1.0, 9.0)] == [1.0, 1.0, 2.0, 5.0]
    amounts = prepare(
        PARAMS | {"objective": "reg:gamma", "dp_target_bounds": (10, 1010)}, schema, 5
    ).settings
    assert [MEANS.cap(amounts, m) for m in (10.0, 100.0, 900.0)] == [20.0, 200.0, 1010.0]
    assert MEANS.cap(amounts, 1.0) == 11.0  # above the lower end, whatever the noise says
