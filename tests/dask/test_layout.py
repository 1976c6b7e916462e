"""Nothing about the cluster changes the model: with a known noise tape its bytes stay the same.

However the rows lie on workers, in partitions, pages of external memory or threads, the sums are
the same integers, and rank 0 alone draws.
"""

from typing import Any

import dask.array as da
import numpy as np
import pytest
import xgboost as xgb
from xgboost import dask as dxgb

from tests.batches import Batches
from xgb_dp.testing import fixed_noise

from .conftest import KEY

N, F = 2400, 4
COMMON: dict[str, Any] = {"dp_epsilon": 4.0, "dp_delta": 1e-6, "max_depth": 4, "verbosity": 0}
KINDS: dict[str, dict[str, Any]] = {
    "binary": {"tree_method": "dp_hist", "objective": "binary:logistic"},
    "regression": {"tree_method": "dp_approx", "objective": "reg:squarederror",
        "dp_target_bounds": (-3.0, 3.0)},
    "multiclass": {"tree_method": "dp_hist", "objective": "multi:softprob", "num_class": 3},
    "noisy histograms": {"tree_method": "dp_hist", "objective": "binary:logistic",
        "dp_split": "histogram", "max_depth": 3},
    "random": {"tree_method": "dp_hist", "objective": "binary:logistic", "dp_split": "random"},
    "counts": {"tree_method": "dp_hist", "objective": "count:poisson", "dp_target_bounds": (0, 10),
        "dp_base_margin": True, "dp_exposure_bounds": (0.2, 1.0)},
    "quantiles": {"tree_method": "dp_hist", "objective": "reg:quantileerror",
        "quantile_alpha": [0.25, 0.75], "dp_target_bounds": (-4, 4)},
    "times": {"tree_method": "dp_hist", "objective": "survival:aft",
        "dp_target_bounds": (0.1, 500.0)},
    "targets": {"tree_method": "dp_hist", "objective": "reg:squarederror",
        "dp_target_bounds": [(-4, 4), (10, 90)]},
    "labels": {"tree_method": "dp_hist", "objective": "binary:logistic"},
}  # fmt: skip
# Rows of each partition; more partitions than workers lie together.
LAYOUTS = [(N,), (1, N - 1), (0, N), (800, 800, 800), (500, 0, 700, 300, 900)]


def rows(kind: str) -> dict[str, np.ndarray]:
    """What a matrix is made of."""
    rng = np.random.default_rng(4)
    X = rng.normal(size=(N, F)).astype(np.float32)
    X[rng.random(X.shape) < 0.1] = np.nan
    signal = np.nan_to_num(X[:, 0]) + np.nan_to_num(X[:, 1] * X[:, 2]) + 0.3 * rng.normal(size=N)
    exposure, time = rng.uniform(0.2, 1.0, N), np.exp(2 + signal / 2)
    end = np.exp(rng.normal(2.5, 1.0, N))
    meta = {
        "regression": {"label": signal},
        "quantiles": {"label": signal},
        "multiclass": {"label": np.digitize(signal, [-0.5, 0.5])},
        "counts": {
            "label": rng.poisson(exposure * np.exp(signal / 2)),
            "base_margin": np.log(exposure),
        },
        "times": {
            "label_lower_bound": np.minimum(time, end),
            "label_upper_bound": np.where(time <= end, time, np.inf),
        },
        "targets": {"label": np.stack([signal, 50 - 9 * signal], axis=1)},
        "labels": {"label": np.stack([signal > 0, signal > 1], axis=1)},
    }.get(kind, {"label": signal > 0})
    return {"data": X, **{name: values.astype(np.float32) for name, values in meta.items()}}


def alone(kind: str, d: xgb.DMatrix | None = None, **extra: Any) -> bytes:
    """The model of one machine that holds all rows in memory."""
    with fixed_noise(KEY):
        d = d or xgb.DMatrix(**rows(kind), nthread=1)
        model = xgb.train(COMMON | KINDS[kind] | extra, d, 4)
    return bytes(model.save_raw("ubj"))


@pytest.mark.parametrize("kind", KINDS)
def test_workers_and_partitions(kind, client, known_noise):
    expected = alone(kind)
    for layout in LAYOUTS if kind in ("binary", "targets") else LAYOUTS[-1:]:
        spread = {
            name: da.from_array(values, chunks=(layout, *values.shape[1:]))
            for name, values in rows(kind).items()
        }
        model = dxgb.train(client, COMMON | KINDS[kind], dxgb.DaskDMatrix(client, **spread), 4)
        assert bytes(model["booster"].save_raw("ubj")) == expected, layout


def test_order_of_rows():
    order = np.random.default_rng(0).permutation(N)
    d = xgb.DMatrix(**{name: values[order] for name, values in rows("binary").items()})
    assert alone("binary", d) == alone("binary")


@pytest.mark.parametrize("kind", KINDS)
def test_threads(kind):
    assert alone(kind, nthread=1) == alone(kind, nthread=2)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("sizes", [(N,), (900, 100, 1400)], ids=str)
def test_external_memory(kind, sizes, tmp_path):
    parts = {n: np.split(v, np.cumsum(sizes)[:-1]) for n, v in rows(kind).items()}
    batches = [{n: v[i] for n, v in parts.items()} for i in range(len(sizes))]
    d = xgb.DMatrix(Batches(batches, tmp_path))
    assert d.num_row() == N
    assert alone(kind, d) == alone(kind)
