"""Columns far from 0 in a narrow range: visible between bounds, and reported without."""

import warnings

import numpy as np
import pytest
import xgboost as xgb
from sklearn.metrics import roc_auc_score

import xgb_dp
from xgb_dp.record.privacy_warnings import narrow_column_warnings
from xgb_dp.testing import fixed_noise

N, TRAIN = 20_000, 14_000
LOGISTIC = {"tree_method": "dp_hist", "objective": "binary:logistic", "dp_epsilon": 1.0,
            "dp_delta": 1e-5, "nthread": 1}  # fmt: skip
SQUARED = LOGISTIC | {"objective": "reg:squarederror", "dp_target_bounds": (0, 1)}
MULTICLASS = LOGISTIC | {"objective": "multi:softprob", "num_class": 2}


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


def narrow_columns(params, columns):
    """The names that a training warns of."""
    frame = np.column_stack(list(columns.values()))
    y = np.random.default_rng(0).integers(0, 2, len(frame)).astype(float)
    matrix = xgb.DMatrix(frame, y, feature_names=list(columns))
    with fixed_noise(3), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        xgb.train(params, matrix, 2)
    strings = [str(w.message) for w in caught if "narrow range" in str(w.message)]
    assert len(strings) <= 1
    assert all(w.category is xgb_dp.PrivacyWarning for w in caught)
    return [name for name in columns if strings and repr(name) in strings[0]]


def columns(n):
    """Columns that candidates miss, and others."""
    rng = np.random.default_rng(4)
    u = rng.random(n)
    missed = {"seconds": 1.7e9 + 86400 * u, "digits": 20_230_000 + 5000 * u,
              "both sides of 1000": 999.5 + u, "below": -999.6 - u / 10, "same": np.full(n, 0.3),
              "some missing": np.where(u < 0.2, np.nan, 5e8 + u)}  # fmt: skip
    seen = {"unit": u, "290 to 300": 290 + 10 * u, "flag": (u < 0.01), "rare 0": (u > 0.005),
            "zero": np.zeros(n), "seven": np.full(n, 7.0), "tail": np.exp(20 * u),
            "years": np.floor(1990 + 30 * u), "empty": np.full(n, np.nan)}  # fmt: skip
    return missed, seen


@pytest.mark.parametrize(
    "params",
    [LOGISTIC, SQUARED, MULTICLASS,
     SQUARED | {"tree_method": "dp_approx", "dp_epsilon": 50.0}],
    ids=["logistic", "squared", "multiclass", "approx"],
)  # fmt: skip
def test_narrow_columns_are_reported(params):
    missed, seen = columns(N)
    assert narrow_columns(params, missed | seen) == list(missed)


def test_counts_of_noise_and_columns_with_bounds_are_not_reported():
    missed, _ = columns(N)
    few = {name: column[:300] for name, column in missed.items()}
    assert not narrow_columns(LOGISTIC, few)
    bounds = {i: (np.nanmin(c) - 100, np.nanmax(c) + 100) for i, c in enumerate(missed.values())}
    bounds[list(missed).index("same")] = (0.3, float(np.nextafter(np.float32(0.3), np.float32(1))))
    assert not narrow_columns(LOGISTIC | {"dp_feature_bounds": bounds}, missed)


def test_a_warning_names_ten_columns():
    [text] = narrow_column_warnings({f"c{i}": (1e9, 1.01e9, 5e5) for i in range(14)})
    assert "'c9'" in text
    assert "'c10'" not in text
    assert "and 4 more" in text
    assert not narrow_column_warnings({})
