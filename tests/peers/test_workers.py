"""Several workers: one noise, drawn by one of them, and one model."""

from typing import Any

import numpy as np
import pytest
import xgboost as xgb

from tests.children import run_workers
from tests.models import trees
from tests.peers.recover import structure
from xgb_dp.testing import fixed_noise

PARAMS = {
    "tree_method": "dp_hist",
    "objective": "binary:logistic",
    "dp_epsilon": 4.0,
    "dp_delta": 1e-6,
    "max_depth": 3,
    "nthread": 1,
    "verbosity": 0,
}
CHILD = r"""
import contextlib, json, sys, time
import xgboost as xgb
from tests.peers.test_workers import PARAMS, part
from xgb_dp.testing import fixed_noise

task = json.loads(sys.stdin.read())
with xgb.collective.CommunicatorContext(**task["worker"]):
    rank = xgb.collective.get_rank()
    time.sleep(1.01 * rank)  # no second in common
    with fixed_noise(task["key"]) if task["key"] else contextlib.nullcontext():
        model = xgb.train(PARAMS, part(rank), 4)
    print(model.save_raw("json").decode(), flush=True)
"""


def arrays() -> tuple[Any, Any]:
    rng = np.random.default_rng(2)
    X = rng.normal(size=(1500, 3)).astype(np.float32)
    return X, (X[:, 0] + 0.5 * rng.normal(size=1500) > 0).astype(np.float32)


def part(rank: int) -> xgb.DMatrix:
    """A third of the rows, or the other two."""
    X, y = (v[:500] if rank == 0 else v[500:] for v in arrays())
    return xgb.DMatrix(X, y, nthread=1)


def cluster(key: int | None) -> list[xgb.Booster]:
    """The models of two workers that train together."""
    models = []
    for done in run_workers(CHILD, [{"key": key}] * 2):
        assert done.returncode == 0, done.stderr
        model = done.stdout.splitlines()[-1]  # XGBoost tells the rank first
        models.append(xgb.Booster(model_file=bytearray(model.encode())))
    return models


@pytest.mark.parametrize("key", [None, 3], ids=["own noise", "known noise"])
def test_workers_share_one_noise(key):
    """All workers hold the same model; with a known key it is that of one machine with all rows.

    So the noise is added once to the sums of all workers, neither twice nor in parts, and no worker
    decides by noise of its own.
    """
    one, other = cluster(key)
    assert bytes(one.save_raw("json")) == bytes(other.save_raw("json"))
    if key is None:
        return
    with fixed_noise(key):
        alone = xgb.train(PARAMS, xgb.DMatrix(*arrays()), 4)
    assert structure(one) == structure(alone)
    for a, b in zip(trees(one), trees(alone), strict=True):
        for name in ("base_weights", "sum_hessian", "loss_changes", "split_conditions"):
            assert a[name] == b[name]
