"""Several workers: one noise, drawn by one of them, and one model."""

from typing import Any

import numpy as np
import pytest
import xgboost as xgb

from tests.children import run_workers
from tests.conftest import private
from tests.models import trees
from tests.peers.recover import structure
from xgb_dp.testing import fixed_noise

PARAMS = private(objective="binary:logistic", dp_epsilon=4.0, max_depth=3, nthread=1, verbosity=0)
CHILD = r"""
import contextlib, json, sys, time
import xgboost as xgb
from tests.peers.test_workers import PARAMS, part
from xgb_dp.testing import fixed_noise

task = json.loads(sys.stdin.read())
with xgb.collective.CommunicatorContext(**task["worker"]):
    rank = xgb.collective.get_rank()
    time.sleep(1.01 * (rank == 1))  # no second in common with rank 0
    with fixed_noise(task["key"]) if task["key"] else contextlib.nullcontext():
        model = xgb.train(PARAMS, part(rank, task["workers"], task["columns"]), 4)
    print(model.save_raw("json").decode(), flush=True)
"""


def arrays(columns: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(2)
    X = rng.normal(size=(1500, columns)).astype(np.float32)
    return X, (X[:, 0] + 0.5 * rng.normal(size=1500) > 0).astype(np.float32)


def part(rank: int, workers: int, columns: int) -> xgb.DMatrix:
    """As many rows as others have, and one share more of the last worker."""
    n = 1500 // (workers + 1)
    rows = slice(n * rank, n * (rank + 1) if rank + 1 < workers else None)
    return xgb.DMatrix(*(v[rows] for v in arrays(columns)), nthread=1)


def cluster(key: int | None, workers: int, columns: int) -> list[xgb.Booster]:
    """The models of workers that train together."""
    models = []
    job = {"key": key, "workers": workers, "columns": columns}
    for done in run_workers(CHILD, [job] * workers):
        assert done.returncode == 0, done.stderr
        model = done.stdout.splitlines()[-1]  # XGBoost tells the rank first
        models.append(xgb.Booster(model_file=bytearray(model.encode())))
    return models


@pytest.mark.parametrize(
    ("key", "workers", "columns"),
    [(None, 2, 3), (3, 2, 3), (3, 5, 3), (3, 3, 400)],
    ids=["own noise", "known noise", "five workers", "sums of many columns, by the ring"],
)
def test_workers_share_one_noise(key, workers, columns):
    """All workers hold the same model; with a known key it is that of one machine with all rows.

    So the noise is added once to the sums of all workers, neither twice nor in parts, and no worker
    decides by noise of its own.
    """
    one, *others = cluster(key, workers, columns)
    assert {bytes(other.save_raw("json")) for other in others} == {bytes(one.save_raw("json"))}
    if key is None:
        return
    with fixed_noise(key):
        alone = xgb.train(PARAMS, xgb.DMatrix(*arrays(columns)), 4)
    assert structure(one) == structure(alone)
    for a, b in zip(trees(one), trees(alone), strict=True):
        for name in ("base_weights", "sum_hessian", "loss_changes", "split_conditions"):
            assert a[name] == b[name]
