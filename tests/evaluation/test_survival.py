"""Times: concordance against that of all pairs, and what one row changes."""

from typing import Any

import numpy as np
import pytest
import xgboost as xgb
from hypothesis import given, settings
from hypothesis import strategies as st

import xgb_dp
from tests.evaluation.tasks import TARGET, refused
from xgb_dp.evaluation.rows import Groups, Rows, read_evaluated_model
from xgb_dp.evaluation.survival import Survival
from xgb_dp.noisy_sums import Layout

from .test_kinds import CLEAR, EXAMPLES, moved

ANY = st.one_of(st.floats(width=32), st.sampled_from([0.0, 1.0, 1e-30, 3e38]))
BOUNDS = (0.5, 2000.0)


def data(n: int) -> tuple[Any, Any, Any]:
    """Features, times, and whether their ends were seen."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(n, 4)).astype(np.float32)
    X[:, 3] = rng.integers(0, 2, n)
    time = np.exp(3 + X[:, 0] + 0.5 * X[:, 1] + 0.7 * rng.logistic(size=n))
    end = np.exp(rng.normal(3.5, 1.0, n))
    return X, np.minimum(time, end), time <= end


def matrix(X: Any, time: Any, seen: Any) -> xgb.DMatrix:
    upper = np.where(seen, time, np.inf)
    return xgb.DMatrix(X, label_lower_bound=time, label_upper_bound=upper)


def harrell(p: Any, time: Any, seen: Any) -> float:
    """Of all pairs, one by one."""
    first = seen[:, None] & (time[:, None] < time)
    right = (p[:, None] < p) + 0.5 * (p[:, None] == p)
    return float(right[first].mean())


@pytest.fixture(scope="module")
def judge() -> Any:
    """A model without privacy, and rows that did not train it."""
    X, time, seen = data(5000)
    params = {"objective": "survival:aft", "max_depth": 2, "nthread": 1, "eta": 0.3}
    model = xgb.train(params, matrix(X[:2000], time[:2000], seen[:2000]), 25)
    rest = X[2000:], time[2000:], seen[2000:]
    return model, rest, model.predict(xgb.DMatrix(rest[0]))


@pytest.mark.usefixtures("quiet")
def test_without_noise(judge):
    model, (X, time, seen), p = judge
    d = matrix(X, time, seen)
    report = xgb_dp.evaluate(model, d, target_bounds=BOUNDS, by={3: [0, 1]}, **CLEAR)
    assert float(report.concordance) == pytest.approx(harrell(p, time, seen), abs=0.01)
    assert float(report.observed) == pytest.approx(seen.mean(), abs=2e-3)
    assert float(report.rows) == pytest.approx(len(X), rel=2e-3)
    members = X[:, 3] == 1
    exact = harrell(p[members], time[members], seen[members])
    assert float(report.groups["1"].concordance) == pytest.approx(exact, abs=0.01)


@pytest.mark.usefixtures("known")
def test_with_noise(judge):
    """No bias, though both rows of a pair share the noise: the mean of 30 releases."""
    model, (X, time, seen), p = judge
    d = matrix(X, time, seen)
    figures = [
        xgb_dp.evaluate(model, d, target_bounds=BOUNDS, epsilon=1.0, delta=1e-6).concordance
        for _ in range(30)
    ]
    exact = harrell(p, time, seen)
    noise = np.std([float(f) for f in figures])
    assert np.mean([f.noise for f in figures]) == pytest.approx(noise, rel=0.5)
    mean = np.mean([float(f) for f in figures])
    assert abs(mean - exact) < 4.5 * noise / np.sqrt(len(figures)) + 0.01
    assert sum(f.low <= exact <= f.high for f in figures) >= 26


@settings(EXAMPLES, max_examples=25)
@given(rows=st.lists(st.tuples(ANY, ANY, ANY, st.integers(0, 2)), min_size=1, max_size=4))
def test_one_row(judge, rows):
    prediction, lower, upper, group = (np.array(v) for v in zip(*rows, strict=True))
    groups = Groups("g", ("a", "b"))
    plan = Survival.from_model(read_evaluated_model(judge[0]), groups, BOUNDS)
    cells = plan.cells(Rows(prediction, np.stack([lower, upper], axis=1), group))
    for block, members in zip(plan.blocks, cells, strict=True):
        assert ((members >= 0) & (members < block.cells)).all()
    assert 0 < moved(plan, cells, len(rows)) <= Layout(plan.blocks).sensitivity2


def test_what_is_refused(judge):
    model, (X, time, seen), _ = judge
    d = matrix(X, time, seen)
    refused(xgb_dp.PrivacyParameterError, "target_bounds", model, d)
    refused(xgb_dp.PrivacyParameterError, "target_bounds", model, d, target_bounds=(0, 9))
    refused(xgb_dp.PrivacyParameterError, "error_bound", model, d, target_bounds=BOUNDS,
            error_bound=1.0)  # fmt: skip
    refused(xgb_dp.PrivacyParameterError, "DMatrix", model, (X, time), target_bounds=BOUNDS)
    refused(xgb_dp.PrivacyParameterError, "label_lower_bound", model, xgb.DMatrix(X, time),
            target_bounds=BOUNDS)  # fmt: skip
    later = xgb.DMatrix(X, label_lower_bound=time, label_upper_bound=0.5 * time)
    refused(xgb_dp.RowDomainError, "interval", model, later, target_bounds=BOUNDS)


@pytest.mark.parametrize("n", [0, 1])
def test_hardly_any_rows(judge, n):
    model, rows, _ = judge
    d = matrix(*(v[:n] for v in rows))
    report = xgb_dp.evaluate(model, d, target_bounds=BOUNDS, **TARGET)
    assert all(np.isfinite(f.value) for f in report.figures().values())
