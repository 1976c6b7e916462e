"""Fixed noise repeats a training exactly and never calls itself private."""

from __future__ import annotations

import numpy as np
import pytest
import xgboost as xgb

import xgb_dp
from xgb_dp import native, testing
from xgb_dp.calibrate import MechanismSpec, calibrate
from xgb_dp.errors import BudgetError, PrivacyParameterError
from xgb_dp.features import read_schema
from xgb_dp.parse import flatten
from xgb_dp.settings import resolve

from .conftest import arrays


def _dump(model):
    return model.get_dump(with_stats=True)


def test_same_key_same_trees(params, matrix):
    def train(key):
        with testing.fixed_noise(key):
            return _dump(xgb.train(params(), matrix(), 3))

    assert train(5) == train(5)
    assert train(5) != train(6)
    assert train(5) == train((5).to_bytes(32, "little")) == train("05" + "00" * 31)


def test_seed_does_not_touch_the_noise(params, matrix):
    assert _dump(xgb.train(params(seed=1), matrix(), 3)) != _dump(
        xgb.train(params(seed=1), matrix(), 3)
    )


def test_the_key_ends_with_the_block():
    assert testing.noise_key() is None
    with testing.fixed_noise(1):
        assert testing.noise_key() == "01" + "00" * 31
        with testing.fixed_noise(2):
            assert testing.noise_key() == "02" + "00" * 31
        assert testing.noise_key() == "01" + "00" * 31
    assert testing.noise_key() is None


@pytest.mark.parametrize("key", [-1, b"short", "zz", "ab", None, 1 << 256])
def test_bad_keys(key):
    with pytest.raises(PrivacyParameterError, match="key"), testing.fixed_noise(key):
        pass


@pytest.mark.parametrize("kind", ["binary", "regression", "multiclass"])
def test_both_sides_derive_the_same_sensitivity(params, matrix, kind):
    with testing.fixed_noise(1):
        model = xgb.train(params(kind), matrix(kind), 2)
    spec = MechanismSpec.from_settings(
        resolve(flatten(params(kind)), read_schema(matrix(kind)), 2, continues=False)
    )
    planned = [e.to_json() for e in calibrate(spec, 1.0, 1e-6).events]
    drawn = xgb_dp.privacy_report(model).ledger["trainings"][0]["events"]
    for events in (planned, drawn):
        events.sort(key=lambda e: e["release"])
    assert planned == drawn


@pytest.mark.parametrize("field", ["leaf_sensitivity2", "score_range"])
def test_a_plan_with_too_little_noise_is_not_trained(params, matrix, monkeypatch, field):
    true = native.describe_plan
    monkeypatch.setattr(native, "describe_plan", lambda text: true(text) | {field: 1 << 60})
    monkeypatch.setattr(native, "release_intercept", lambda *a: pytest.fail("noise was drawn"))
    with pytest.raises(BudgetError, match="sensitivity"):
        xgb.train(params(), matrix(), 2)


def _plan(private=False):
    return {
        "version": 1,
        "private": private,
        "noise_free": True,
        "objective": "binary:logistic",
        "n_features": 4,
        "num_class": 1,
        "rounds": 2,
        "depth": 2,
        "parallel_trees": 1,
        "features_per_tree": 4,
        "cyclic_features": False,
        "split": "exponential",
        "shape": "per_node",
        "score": "l1",
        "tau": "0.5",
        "no_split": False,
        "gamma": "0",
        "grid_bits": 18,
        "sampling_num": 1 << 32,
        "base_margin": False,
        "monotone": [0] * 4,
        "interactions": [],
        "row_bound": {
            "mode": "row_weight",
            "gradient_bound": "0.5",
            "hessian_weight": "1",
            "hessian_bound": "1",
            "max_weight": "0",
            "scale": "1",
            "target_lower": "0",
            "target_upper": "0",
        },
        "histogram": {"sigma2": 0},
        "selection": {"eps_num": 0},
        "leaf": {
            "sigma2": 0,
            "eta": "0.5",
            "lambda": "1",
            "alpha": "0",
            "max_delta_step": "2",
            "min_child_weight": "0",
            "shrinkage": False,
            "prior_max": "1",
        },
        "features": [{"kind": "private"}] * 4,
        "candidates": {"levels": 17, "shift": 0, "sigma2": 0, "max_bin": 32},
        "intercept": {"kind": "public"},
    }


def test_train_with_plan(matrix):
    model = testing.train_with_plan(_plan(), matrix())
    assert model.num_boosted_rounds() == 2
    assert not xgb_dp.privacy_report(model).private
    X, y = arrays()
    assert np.mean((model.predict(xgb.DMatrix(X)) > 0.5) == y) > 0.8
    with pytest.raises(PrivacyParameterError, match="private"):
        testing.train_with_plan(_plan(private=True), matrix())
