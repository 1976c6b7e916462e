"""A forked process trains on one thread where stock XGBoost does, also on its parent's matrix."""

import os

import pytest

from ..children import child

# The parent trains on several threads, which a forked process does not have: whoever asks for them
# waits for ever. `alarm` ends a child that hangs.
FORKS = """
import os, signal, sys, warnings

warnings.simplefilter("ignore")
import numpy as np
import xgb_dp
from xgb_dp import xgboost as xgb

X = np.random.default_rng(0).normal(size=(400, 4))
rows = xgb.DMatrix(X, X[:, 0] > 0)
params = {"tree_method": "dp_hist", "objective": "binary:logistic", "dp_epsilon": 1.0,
          "dp_delta": 1e-6} | eval(sys.argv[1])
if params["tree_method"] == "hist":
    params = {"tree_method": "hist"}
xgb.train({**params, "nthread": 2}, rows, 3)
pid = os.fork()
if pid == 0:
    signal.alarm(120)
    model = xgb.train({**params, "n_jobs": 1}, rows, 3)
    os._exit(0 if model.num_boosted_rounds() == 3 else 1)
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks")
@pytest.mark.filterwarnings("ignore:.*fork")
@pytest.mark.parametrize(
    "params",
    [
        {"tree_method": "hist"},
        {},
        {"dp_privacy_id": [i // 2 for i in range(400)]},
        {"objective": "reg:squarederror", "dp_target_bounds": (0, 1)},
    ],
    ids=["stock", "default", "persons", "regression"],
)
def test_a_forked_child_trains(params):
    done = child(FORKS, params, OMP_NUM_THREADS="2")
    assert done.stdout.split() == ["0"], done.stderr[-2000:]
