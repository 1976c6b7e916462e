"""Importance is the total gain for private models wherever XGBoost would choose a type itself."""

import inspect
import pickle
from typing import Any

import numpy as np
import pytest
import xgboost as xgb
from sklearn.base import clone

import xgb_dp
from xgb_dp import plotting

from ..conftest import arrays

TYPES = ("weight", "gain", "cover", "total_gain", "total_cover")


@pytest.fixture(scope="module")
def model() -> Any:
    """Every column says something, so that noise does not make two types of importance equal."""
    X, _ = arrays(n=3000)
    y = (np.nan_to_num(X) @ [1.0, -0.8, 0.6, 0.9] > 0).astype(np.float32)
    estimator = {"epsilon": 8.0, "delta": 1e-6, "classes": 2, "n_estimators": 20, "max_depth": 3}
    return xgb_dp.DPXGBClassifier(**estimator, n_jobs=1).fit(X, y)


def shares(booster: xgb.Booster, kind: str) -> np.ndarray:
    gains = booster.get_score(importance_type=kind)
    every = np.array([gains.get(f"f{i}", 0.0) for i in range(booster.num_features())])
    return every / every.sum()


def widths(booster: Any, **given: Any) -> list[float]:
    return sorted(bar.get_width() for bar in xgb.plot_importance(booster, **given).patches)


def test_default_is_total_gain(model, tmp_path):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    booster = model.get_booster()
    np.testing.assert_allclose(model.feature_importances_, shares(booster, "total_gain"), rtol=1e-6)
    total = booster.get_score(importance_type="total_gain")
    booster.save_model(tmp_path / "model.ubj")
    saved = xgb.Booster(model_file=tmp_path / "model.ubj")
    for each in (booster, saved, pickle.loads(pickle.dumps(booster))):
        assert each.get_score() == total
    assert plotting.importance(model) == {f"f{i}": total.get(f"f{i}", 0.0) for i in range(4)}
    # The plot writes its numbers as they are.
    assert widths(model) == widths(booster) == sorted(total.values())


def test_estimators_of_xgboost(model):
    X, y = arrays("regression")
    params = {"tree_method": "dp_hist", "dp_epsilon": 4.0, "dp_delta": 1e-6, "n_jobs": 1}
    estimator = xgb.XGBRegressor(**params, dp_target_bounds=(-3, 3), n_estimators=5).fit(X, y)
    expected = shares(estimator.get_booster(), "total_gain")
    np.testing.assert_allclose(estimator.feature_importances_, expected, rtol=1e-6)
    assert clone(estimator).importance_type is None


def test_a_type_that_is_given_is_kept(model):
    booster = model.get_booster()
    for kind in TYPES:
        named = booster.get_score(importance_type=kind)
        assert widths(booster, importance_type=kind) == sorted(named.values())
        given = clone(model).set_params(importance_type=kind)
        given._Booster = booster
        np.testing.assert_allclose(given.feature_importances_, shares(booster, kind), rtol=1e-6)
    assert booster.get_fscore() == booster.get_score(importance_type="weight")
    # The types differ on this model, so that the tests can fail.
    assert len({tuple(np.round(shares(booster, kind), 6)) for kind in TYPES}) == len(TYPES)
    for function in (xgb.Booster.get_score, xgb.plot_importance):  # as upstream writes it
        default = inspect.signature(function).parameters["importance_type"].default
        assert (default, repr(default)) == ("weight", "'weight'")
