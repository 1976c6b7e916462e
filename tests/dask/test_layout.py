"""Nothing about the cluster changes the model: with a known noise tape its bytes stay the same.

However the rows lie on workers, in partitions, pages of external memory or threads, the sums are
the same integers, and rank 0 alone draws.
"""

from collections.abc import Iterator
from typing import Any

import dask.array as da
import numpy as np
import pytest
import xgboost as xgb
from distributed import Client
from xgboost import dask as dxgb

from tests.batches import Batches
from xgb_dp.testing import fix_noise_of_process, fixed_noise

N, F, KEY = 2400, 4, 11
COMMON: dict[str, Any] = {"dp_epsilon": 4.0, "dp_delta": 1e-6, "max_depth": 4, "verbosity": 0}
KINDS: dict[str, dict[str, Any]] = {
    "binary": {"tree_method": "dp_hist", "objective": "binary:logistic"},
    "regression": {
        "tree_method": "dp_approx",
        "objective": "reg:squarederror",
        "dp_target_bounds": (-3.0, 3.0),
    },
    "multiclass": {"tree_method": "dp_hist", "objective": "multi:softprob", "num_class": 3},
    "noisy histograms": {
        "tree_method": "dp_hist",
        "objective": "binary:logistic",
        "dp_split": "histogram",
        "max_depth": 3,
    },
    "random": {"tree_method": "dp_hist", "objective": "binary:logistic", "dp_split": "random"},
}
# Rows of each partition; more partitions than workers lie together.
LAYOUTS = [(N,), (1, N - 1), (0, N), (800, 800, 800), (500, 0, 700, 300, 900)]


def rows(kind: str) -> tuple[Any, Any]:
    rng = np.random.default_rng(4)
    X = rng.normal(size=(N, F)).astype(np.float32)
    X[rng.random(X.shape) < 0.1] = np.nan
    signal = np.nan_to_num(X[:, 0]) + np.nan_to_num(X[:, 1] * X[:, 2]) + 0.3 * rng.normal(size=N)
    if kind == "regression":
        return X, signal.astype(np.float32)
    if kind == "multiclass":
        return X, np.digitize(signal, [-0.5, 0.5]).astype(np.float32)
    return X, (signal > 0).astype(np.float32)


def alone(kind: str, d: xgb.DMatrix | None = None, **extra: Any) -> bytes:
    """The model of one machine that holds all rows in memory."""
    with fixed_noise(KEY):
        model = xgb.train(COMMON | KINDS[kind] | extra, d or xgb.DMatrix(*rows(kind), nthread=1), 4)
    return bytes(model.save_raw("ubj"))


@pytest.fixture()
def known_noise(client: Client) -> Iterator[None]:
    client.run(fix_noise_of_process, KEY)
    yield
    client.run(fix_noise_of_process, None)


@pytest.mark.parametrize("kind", KINDS)
def test_workers_and_partitions(kind, client, known_noise):
    expected = alone(kind)
    X, y = rows(kind)
    for layout in LAYOUTS if kind == "binary" else LAYOUTS[-1:]:
        d = dxgb.DaskDMatrix(
            client, da.from_array(X, chunks=(layout, F)), da.from_array(y, chunks=(layout,))
        )
        model = dxgb.train(client, COMMON | KINDS[kind], d, 4)["booster"]
        assert bytes(model.save_raw("ubj")) == expected, layout


def test_order_of_rows():
    X, y = rows("binary")
    order = np.random.default_rng(0).permutation(N)
    assert alone("binary", xgb.DMatrix(X[order], y[order])) == alone("binary")


@pytest.mark.parametrize("kind", KINDS)
def test_threads(kind):
    assert alone(kind, nthread=1) == alone(kind, nthread=2)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("sizes", [(N,), (900, 100, 1400)], ids=str)
def test_external_memory(kind, sizes, tmp_path):
    X, y = (np.split(v, np.cumsum(sizes)[:-1]) for v in rows(kind))
    d = xgb.DMatrix(Batches(list(zip(X, y, strict=True)), tmp_path))
    assert d.num_row() == N
    assert alone(kind, d) == alone(kind)
