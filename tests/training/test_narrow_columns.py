"""Columns far from 0 in a narrow range: visible between bounds."""

import numpy as np
import pytest
import xgboost as xgb
from sklearn.metrics import roc_auc_score

from xgb_dp.testing import fixed_noise

N, TRAIN = 20_000, 14_000
LOGISTIC = {"tree_method": "dp_hist", "objective": "binary:logistic", "dp_epsilon": 1.0,
            "dp_delta": 1e-5, "nthread": 1}  # fmt: skip
SQUARED = LOGISTIC | {"objective": "reg:squarederror", "dp_target_bounds": (0, 1)}


def rows(seed=1):
    """A uniform column that a label depends on in waves, three normal ones, and the label."""
    rng = np.random.default_rng(seed)
    u, x = rng.random(N), rng.normal(size=(N, 3))
    z = 1.5 * np.sin(2 * np.pi * u) + 0.7 * x[:, 0]
    return u, x, (rng.random(N) < 1 / (1 + np.exp(-z))).astype(float)


def score(column, x, y, bounds=None, params=LOGISTIC):
    """The AUC on test rows, mean of two trainings with known noise."""
    X = np.column_stack([column, x])
    train, test = xgb.DMatrix(X[:TRAIN], y[:TRAIN]), xgb.DMatrix(X[TRAIN:])
    if bounds is not None:
        params = params | {"dp_feature_bounds": {0: bounds}}
    out = []
    for key in (1, 2):
        with fixed_noise(key):
            out.append(roc_auc_score(y[TRAIN:], xgb.train(params, train, 20).predict(test)))
    return float(np.mean(out))


@pytest.mark.parametrize("params", [LOGISTIC, SQUARED], ids=["logistic", "squared"])
def test_bounds_make_a_narrow_column_visible(params):
    """Seconds of a day, numbers of eight digits, half a unit around a power; as if from 0 to 1."""
    u, x, y = rows()
    shifted = score(u, x, y, params=params)
    for low, width in ((1.7e9, 86400.0), (20_230_000.0, 5000.0), (999.5, 1.0)):
        column = low + width * u
        assert score(column, x, y, (low, low + width), params) > shifted - 0.005
    assert score(1.7e9 + 86400 * u, x, y, params=params) < shifted - 0.05  # or bounds prove nothing


@pytest.mark.parametrize("wide", [1.0, 1e3, 1e6])
def test_wide_bounds_cost_nothing(wide):
    """Around a uniform column, one at 0 and a heavy-tailed one of which the ends cut a part off."""
    u, x, y = rows(2)
    for column in (u, 3 * u - 1.5, np.expm1(12 * u)):
        ends = np.quantile(column, 0.99) * wide
        low = -wide if column.min() < 0 else 0.0
        assert score(column, x, y, (low, ends)) > score(column, x, y) - 0.005
