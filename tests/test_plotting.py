"""Shape functions add up to the model, and their noise is that of the leaves."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import xgboost as xgb

from xgb_dp import plotting
from xgb_dp.errors import PrivacyParameterError
from xgb_dp.testing import fixed_noise

BOUNDS = {0: (-4.0, 4.0), 1: (-4.0, 4.0)}


def data() -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(2000, 3)).astype(np.float32)
    X[:, 2] = rng.integers(0, 4, 2000)
    y = (X[:, 0] + np.sin(2 * X[:, 1]) + (X[:, 2] == 2) > 0).astype(np.float32)
    X[rng.random(X.shape) < 0.1] = np.nan
    return X, y


def model(preset: str = "dp_ebm", **changes: Any) -> tuple[xgb.Booster, xgb.DMatrix]:
    X, y = data()
    d = xgb.DMatrix(X, y, feature_types=["q", "q", "c"], enable_categorical=True)
    params = {
        "dp_preset": preset, "tree_method": "dp_hist", "objective": "binary:logistic",
        "dp_epsilon": 4.0, "dp_delta": 1e-6, "dp_feature_bounds": BOUNDS, "dp_categories": {2: 4},
    }  # fmt: skip
    return xgb.train(params | changes, d, 30), d


@pytest.mark.parametrize("preset", ["dp_ebm", "dp_ebm_newton", "dp_xgb_cyc", "dp_tr_cyc"])
def test_shapes_add_up_to_the_margin(preset: str) -> None:
    booster, d = model(preset)
    X, _ = data()
    total = np.zeros(len(X))
    for j, shape in enumerate(plotting.shape_functions(booster)):
        column = X[:, j].astype(float)
        absent = np.isnan(column)
        bins = (
            np.nan_to_num(column).astype(int)
            if shape.categories
            else np.searchsorted(shape.edges, column, side="right")
        )
        at = np.where(absent, 0, np.minimum(bins, len(shape.values) - 1))
        total += np.where(absent, shape.missing, shape.values[at])
        assert (shape.std > 0).all()
    margin = booster.predict(d, output_margin=True)
    np.testing.assert_allclose(total, margin, atol=2e-5)  # base_score 0.5 is a margin of 0


def test_the_deviation_is_that_of_repeated_trainings() -> None:
    """One random stump on one cut, many times over: its leaf values spread as stated."""
    X, y = data()
    d = xgb.DMatrix(np.nan_to_num(X[:, :1]), y)  # so that the missing direction changes nothing
    params = {
        "dp_preset": "dp_ebm_newton", "tree_method": "dp_hist", "objective": "binary:logistic",
        "dp_epsilon": 2.0, "dp_delta": 1e-6, "dp_feature_cuts": {0: [0.25]}, "max_depth": 1,
        "dp_budget_shares": None,
    }  # fmt: skip
    found, stated = [], []
    for key in range(200):
        with fixed_noise(key):
            shapes = plotting.shape_functions(xgb.train(params, d, 1))
        if shapes and len(shapes[0].edges):
            found.append(shapes[0].values)
            stated.append(shapes[0].std)
    assert len(found) > 80
    ratio = np.std(found, axis=0) / np.median(stated, axis=0)
    assert ((ratio > 0.75) & (ratio < 1.25)).all()


def test_models_that_are_no_sum_are_refused() -> None:
    booster, _ = model("dp_tr")
    with pytest.raises(PrivacyParameterError, match="dp_features_per_tree=1"):
        plotting.shape_functions(booster)


def test_plots(tmp_path: Path) -> None:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    booster, _ = model()
    axes = plotting.plot_shapes(booster)
    assert len(axes) == 3
    axes[0].figure.savefig(tmp_path / "shapes.png")
    assert (tmp_path / "shapes.png").stat().st_size > 5000
    (only,) = plotting.plot_shapes(booster, features=["f1"])
    assert only.get_xlabel() == "f1"
    with pytest.raises(PrivacyParameterError, match="f9"):
        plotting.plot_shapes(booster, features=["f9"])
    assert json.loads(booster.save_config())
