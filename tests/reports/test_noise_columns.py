"""Columns without signal: what importances and contributions make of them, and the noise levels.

Visits to a doctor with three columns that are 1 in .05% of the rows, and a constant one.
"""

from typing import Any

import numpy as np
import pandas as pd
import pytest
import xgboost as xgb

from xgb_dp import plotting
from xgb_dp.errors import PrivacyRefusal
from xgb_dp.plotting.explanations import noise_levels
from xgb_dp.testing import fixed_noise

from ..conftest import arrays, private

SILENT = ["rare1", "rare2", "rare3", "constant"]
PARAMS = private(objective="binary:logistic")
KEYS = range(4)


def table(seed: int) -> tuple[pd.DataFrame, Any]:
    data = pytest.importorskip("statsmodels.datasets").randhie.load_pandas().data
    visited = data.pop("mdvis") > 0
    draws = np.random.default_rng(seed)
    for name in SILENT[:3]:
        data[name] = (draws.random(len(data)) < 5e-4).astype(float)
    data["constant"] = 1.0
    return data, visited


@pytest.fixture(scope="module")
def models() -> list[tuple[xgb.Booster, pd.DataFrame]]:
    out = []
    for key in KEYS:
        X, y = table(key)
        with fixed_noise(key):
            out.append((xgb.train(PARAMS, xgb.DMatrix(X, y)), X))
    return out


def shares(values: dict[str, float]) -> tuple[float, float]:
    """The part of the silent columns in a sum of importances, and that of the largest of them."""
    silent = [values.get(name, 0.0) for name in SILENT]
    return sum(silent) / sum(values.values()), max(silent) / sum(values.values())


def test_columns_without_signal_have_hardly_any_importance(models):
    """It is a tenth and more where the cover of an empty leaf is at least its noise."""
    for model, _ in models:
        together, largest = shares(model.get_score(importance_type="total_gain"))
        assert together < 0.03 and largest < 0.02


def test_columns_without_signal_contribute_hardly_anything(models):
    for model, X in models:
        d = xgb.DMatrix(X[::8])
        each = model.predict(d, pred_contribs=True)
        margin = model.predict(d, output_margin=True)
        np.testing.assert_allclose(each.sum(axis=1), margin, atol=1e-4)
        means = np.abs(each[:, :-1]).mean(axis=0).astype(float)
        together, largest = shares(dict(zip(X.columns, means, strict=True)))
        assert together < 0.02 and largest < 0.01


def test_noise_alone_explains_the_gain_of_columns_without_signal(models):
    """And not that of the number of diseases, which says most of all."""
    within = []
    for model, _ in models:
        levels = noise_levels(model, "total_gain")
        gains = model.get_score(importance_type="total_gain")
        within.append(all(gains.get(name, 0.0) <= levels.get(name, 0.0) for name in SILENT))
        assert gains["disea"] > levels["disea"]
        means, splits = noise_levels(model, "gain"), model.get_score(importance_type="weight")
        assert {name: means[name] * splits[name] for name in means} == pytest.approx(levels)
        assert noise_levels(model, "weight") == {}
    assert sum(within) >= len(within) - 1


def test_the_plot_marks_the_noise(tmp_path):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    X, y = arrays(n=1000)
    params = PARAMS | {"dp_feature_bounds": dict.fromkeys(range(4), (-4.0, 4.0))}
    model = xgb.train(params | {"nthread": 1}, xgb.DMatrix(X, y), 5)
    model.save_model(tmp_path / "model.json")
    levels = plotting.importance_noise(model)
    assert levels and min(levels.values()) >= 0.0
    loaded = xgb.Booster(model_file=tmp_path / "model.json")
    assert plotting.importance_noise(loaded) == {}  # a file holds no plan
    assert not plotting.plot_importance(loaded).get_lines()
    ax = plotting.plot_importance(model)
    (marks,) = ax.get_lines()
    shown = dict(zip(marks.get_ydata(), marks.get_xdata(), strict=True))
    names = [label.get_text() for label in ax.get_yticklabels()]
    assert {names[int(at)]: value for at, value in shown.items()} == pytest.approx(levels)
    assert not plotting.plot_importance(model, "weight").get_lines()
    with fixed_noise(1):
        known = xgb.train(params, xgb.DMatrix(X, y), 1)
    with pytest.raises(PrivacyRefusal):
        plotting.importance_noise(known)
