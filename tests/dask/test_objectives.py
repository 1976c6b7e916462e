"""Objectives with losses of their own on real workers: margins, label bounds, several outputs."""

from typing import Any

import dask.array as da
import numpy as np
import pytest
import xgboost as xgb
from xgboost import dask as dxgb

import xgb_dp
from tests.conftest import private
from xgb_dp.errors import PrivacyParameterError

N = 1800
PARAMS = private(dp_epsilon=8.0, max_depth=3, verbosity=0)


def spread(values: np.ndarray) -> Any:
    """The same in three parts."""
    chunks = (N // 3, *values.shape[1:])
    return da.from_array(values, chunks=chunks)


@pytest.fixture(scope="module")
def rows() -> Any:
    """Features, exposures, counts, and times with their ends."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(N, 3)).astype(np.float32)
    exposure = rng.uniform(0.2, 1.0, N)
    counts = rng.poisson(exposure * np.exp(X[:, 0]))
    time = np.exp(2 + X[:, 0] + 0.5 * rng.logistic(size=N))
    end = np.exp(rng.normal(2.5, 1.0, N))
    return X, exposure, counts, np.minimum(time, end), np.where(time <= end, time, np.inf)


def learnt(model: Any, X: Any, **given: Any) -> float:
    """How far predictions follow the first column, from the booster alone."""
    margins = model["booster"].predict(xgb.DMatrix(X, **given), output_margin=True)
    return float(np.corrcoef(margins.reshape(len(X), -1)[:, 0], X[:, 0])[0, 1])


@pytest.mark.filterwarnings("ignore:Epsilon is above 10")
def test_counts_with_exposures(client, rows):
    """With little noise the mean, of deviation 0.2%, says whether margins were read: 40% less."""
    X, exposure, counts, _, _ = rows
    d = dxgb.DaskDMatrix(client, spread(X), spread(counts), base_margin=spread(np.log(exposure)))
    params = PARAMS | {
        "objective": "count:poisson", "dp_target_bounds": (0, 10), "dp_base_margin": True,
        "dp_exposure_bounds": (0.2, 1.0), "dp_epsilon": 100.0,
    }  # fmt: skip
    model = dxgb.train(client, params, d, 15)
    assert learnt(model, X) > 0.75
    margin = np.log(exposure)
    predicted = model["booster"].predict(xgb.DMatrix(X, base_margin=margin))
    assert predicted.mean() == pytest.approx(counts.mean(), rel=0.05)
    events = xgb_dp.privacy_report(model["booster"]).ledger["trainings"][0]["events"]
    assert {e["release"]: e["count"] for e in events}["intercept"] == 2


def test_quantiles(client, rows):
    X = rows[0]
    y = X[:, 0] + 0.5 * np.random.default_rng(2).normal(size=N)
    params = PARAMS | {
        "objective": "reg:quantileerror", "quantile_alpha": [0.25, 0.75],
        "dp_target_bounds": (-4, 4),
    }  # fmt: skip
    model = dxgb.train(client, params, dxgb.DaskDMatrix(client, spread(X), spread(y)), 15)
    predicted = model["booster"].predict(xgb.DMatrix(X))
    assert predicted.shape == (N, 2)
    below = (y[:, None] <= predicted).mean(axis=0)
    assert below == pytest.approx([0.25, 0.75], abs=0.15)


def test_times(client, rows):
    X, _, _, lower, upper = rows
    params = PARAMS | {"objective": "survival:aft", "dp_target_bounds": (0.1, 500.0)}
    d = dxgb.DaskDMatrix(
        client, spread(X), label_lower_bound=spread(lower), label_upper_bound=spread(upper)
    )
    model = dxgb.train(client, params, d, 15)
    assert learnt(model, X) > 0.75
    assert 7.5 < xgb_dp.privacy_report(model["booster"]).epsilon <= 8.0


@pytest.mark.parametrize("parts", [3, 1], ids=["all workers", "one worker"])
def test_several_targets(client, rows, parts):
    """Also where workers have no rows; labels of these have as many columns."""
    X = rows[0]
    noise = np.random.default_rng(2).normal(size=(N, 2))
    Y = np.stack([X[:, 0], 50 - 9 * X[:, 1]], axis=1) + noise * [0.3, 3.0]
    table, labels = (da.from_array(v, chunks=(N // parts, v.shape[1])) for v in (X, Y))
    params = PARAMS | {"dp_target_bounds": [(-4, 4), (10, 90)]}
    model = dxgb.train(client, params, dxgb.DaskDMatrix(client, table, labels), 15)
    predicted = model["booster"].predict(xgb.DMatrix(X))
    assert predicted.shape == (N, 2)
    for k in range(2):
        assert np.corrcoef(predicted[:, k], Y[:, k])[0, 1] > 0.75


def test_several_labels(client, rows):
    """A matrix of labels of two classes, in parts on every worker."""
    X = rows[0]
    labels = np.stack([X[:, 0] > 0, X[:, 0] + X[:, 1] > 1], axis=1).astype(int)
    d = dxgb.DaskDMatrix(client, spread(X), spread(labels))
    model = dxgb.train(client, PARAMS | {"objective": "binary:logistic"}, d, 10)
    assert learnt(model, X) > 0.7
    predicted = model["booster"].predict(xgb.DMatrix(X))
    assert predicted.shape == (N, 2)
    assert ((predicted > 0.5) == labels).mean() > 0.8
    assert 0 < xgb_dp.privacy_report(model["booster"]).epsilon <= 8.0


def test_a_set_of_several_targets_on_one_worker(client, rows):
    """The part of a worker without rows of the set has no labels to count."""
    X = rows[0]
    table, labels = (da.from_array(v, chunks=(N // 3, v.shape[1])) for v in (X, X[:, :2]))
    first = (da.from_array(v[:50], chunks=(50, v.shape[1])) for v in (X, X[:, :2]))
    params = PARAMS | {"dp_target_bounds": (-4, 4), "dp_public_evals": True}
    d = dxgb.DaskDMatrix(client, table, labels)
    result = dxgb.train(client, params, d, 3, evals=[(dxgb.DaskDMatrix(client, *first), "public")])
    assert len(result["history"]["public"]["rmse"]) == 3
    fewer = dxgb.DaskDMatrix(client, table, labels[:, 0])
    with pytest.raises(PrivacyParameterError, match="as many as the training data"):
        dxgb.train(client, params, d, 3, evals=[(fewer, "public")])
