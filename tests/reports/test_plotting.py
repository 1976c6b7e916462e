"""Shape functions add up to the model, budgets and curves are the report's, rows are guarded."""

import json
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest
import xgboost as xgb

import xgb_dp
from xgb_dp import plotting
from xgb_dp.errors import LedgerError, PrivacyParameterError, PrivacyRefusal
from xgb_dp.plotting.explanations import _leaf_noise
from xgb_dp.testing import fixed_noise

BOUNDS = {0: (-4.0, 4.0), 1: (-4.0, 4.0)}
PARAMS: dict[str, Any] = {
    "tree_method": "dp_hist", "objective": "binary:logistic", "dp_epsilon": 4.0, "dp_delta": 1e-6,
    "dp_feature_bounds": BOUNDS, "dp_categories": {2: 4},
}  # fmt: skip


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
    return xgb.train(PARAMS | {"dp_preset": preset} | changes, d, 30), d


@pytest.mark.parametrize("preset", ["dp_ebm", "dp_ebm_newton", "dp_xgb_cyc", "dp_tr_cyc"])
def test_shapes_add_up_to_the_margin(preset):
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


def test_the_deviation_is_that_of_repeated_trainings():
    """One random stump on one cut, many times over: its leaf values spread as stated."""
    X, y = data()
    d = xgb.DMatrix(np.nan_to_num(X[:, :1]), y)  # so that the missing direction changes nothing
    params = {
        "dp_preset": "dp_ebm_newton", "tree_method": "dp_hist", "objective": "binary:logistic",
        "dp_epsilon": 2.0, "dp_delta": 1e-6, "dp_feature_cuts": {0: [0.25]}, "max_depth": 1,
        "dp_budget_shares": None,
    }  # fmt: skip
    drawn, stated = [], []
    for key in range(200):
        with fixed_noise(key):
            shapes = plotting.shape_functions(xgb.train(params, d, 1))
        if shapes and len(shapes[0].edges):
            drawn.append(shapes[0].values)
            stated.append(shapes[0].std)
    assert len(drawn) > 80
    ratio = np.std(drawn, axis=0) / np.median(stated, axis=0)
    assert ((ratio > 0.75) & (ratio < 1.25)).all()


def test_the_deviation_follows_learning_rates_that_rise():
    """The oracle: each tree stores its leaves with and without the learning rate of its round."""
    booster, d = model(dp_eta_warmup=0.2)
    [text] = [
        u["dp_train_param"]["dp_plan"]
        for u in json.loads(booster.save_config())["learner"]["gradient_booster"]["updater"]
    ]
    plan = json.loads(text)
    eta, scale = float(plan["leaf"]["eta"]), float(plan["row_bound"]["scale"])
    trees = json.loads(booster.save_raw("json"))["learner"]["gradient_booster"]["model"]["trees"]
    noise = _leaf_noise(booster, len(trees))
    assert len(noise) == 30
    assert noise[0].factor == pytest.approx(0.2 * eta * scale)
    for tree, of_tree in zip(trees, noise, strict=True):
        for at, left in enumerate(tree["left_children"]):
            if left == -1:
                leaf = tree["split_conditions"][at]
                expected = tree["base_weights"][at] * of_tree.factor / scale
                assert leaf == pytest.approx(expected, rel=1e-5, abs=1e-7)
    # Of a continued training the first trees of its own have the smallest step.
    more = xgb.train(
        {**PARAMS, "dp_eta_warmup": 0.2, "dp_features_per_tree": 1}, d, 3, xgb_model=booster
    )
    steps = [n.factor / noise[-1].factor for n in _leaf_noise(more, 33)]
    assert steps[30:] == pytest.approx([0.2 * steps[-1], 0.6 * steps[-1], steps[-1]])


def test_models_that_are_no_sum_are_refused():
    booster, _ = model("dp_tr")
    with pytest.raises(PrivacyParameterError, match="dp_features_per_tree=1"):
        plotting.shape_functions(booster)


@pytest.mark.parametrize("targets", [1, 2])
def test_models_of_several_outputs_are_refused(targets):
    """Shapes of several quantiles or targets would be added up."""
    X, y = data()
    params = {
        "tree_method": "dp_hist", "dp_epsilon": 2.0, "dp_delta": 1e-6, "dp_features_per_tree": 1,
        "dp_target_bounds": (-1, 2), "objective": "reg:squarederror",
    }  # fmt: skip
    if targets == 1:
        params |= {"objective": "reg:quantileerror", "quantile_alpha": [0.1, 0.9]}
    booster = xgb.train(params, xgb.DMatrix(X, np.stack([y] * targets, axis=1)), 2)
    with pytest.raises(PrivacyParameterError, match="model with one output"):
        plotting.shape_functions(booster)


def test_plots(small, tmp_path):
    booster, _ = small
    axes = plotting.plot_shapes(booster)
    assert len(axes) == 3
    axes[0].figure.savefig(tmp_path / "shapes.png")
    assert (tmp_path / "shapes.png").stat().st_size > 5000
    (only,) = plotting.plot_shapes(booster, features=["f1"])
    assert only.get_xlabel() == "f1"
    with pytest.raises(PrivacyParameterError, match="f9"):
        plotting.plot_shapes(booster, features=["f9"])


def test_categories_are_named_and_an_empty_other_is_left_out():
    """No row has the last category, so its noise exceeds all effects."""
    rng, names = np.random.default_rng(3), ["Rome", "Oslo", "Bern", "other"]
    town = rng.choice(names[:3], 8000)
    y = (rng.random(8000) < np.where(town == "Oslo", 0.8, 0.3)).astype(int)
    rows = pd.DataFrame({"town": town, "more": rng.normal(size=8000)})
    model = xgb_dp.DPXGBClassifier(
        epsilon=2.0, delta=1e-6, classes=[0, 1], categories={"town": names}, n_estimators=10,
        dp_features_per_tree=1,
    ).fit(rows, y)  # fmt: skip
    [shape] = [s for s in plotting.shape_functions(model) if s.feature == "town"]
    assert shape.names == tuple(names) and len(shape.values) == shape.categories == 4
    assert shape.values[1] - shape.values[0] > 0.5 > shape.std[:3].max()
    [ax] = plotting.plot_shapes(model, ["town"])
    assert [tick.get_text() for tick in ax.get_xticklabels()] == names[:3]
    assert [bar.get_height() for bar in ax.patches] == pytest.approx(shape.values[:3])


@pytest.fixture(scope="module")
def small() -> tuple[xgb.Booster, xgb.DMatrix]:
    return model()


@pytest.fixture(autouse=True)
def figures() -> Any:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    yield
    import matplotlib.pyplot as plt

    plt.close("all")


def test_importance_is_read_from_the_model(small):
    booster, _ = small
    weights = plotting.importance(booster, "weight")
    assert sorted(weights) == ["f0", "f1", "f2"]
    assert list(weights.values()) == sorted(weights.values(), reverse=True)
    splits = [s for tree in booster.get_dump() for s in tree.split("\n") if "yes=" in s]
    assert sum(weights.values()) == len(splits)
    ax = plotting.plot_importance(booster, max_features=2)
    assert [t.get_text() for t in ax.get_yticklabels()] == list(plotting.importance(booster))[:2]
    with pytest.raises(PrivacyParameterError, match="kind"):
        plotting.importance(booster, "magic")


def test_statistics_of_models_without_privacy_are_refused():
    X, y = data()
    d = xgb.DMatrix(X, y)
    stock = xgb.train({"tree_method": "hist", "objective": "binary:logistic"}, d, 1)
    params = {"tree_method": "dp_hist", "objective": "binary:logistic", "dp_delta": 1e-6}
    with pytest.warns(UserWarning, match="NOT private"):
        costly = xgb.train(params | {"dp_epsilon": np.inf}, d, 1)
    for draw in (plotting.importance, plotting.plot_budget, plotting.plot_epsilon):
        with pytest.raises(LedgerError):
            draw(stock)
        with pytest.raises(PrivacyRefusal):
            draw(costly)


def test_budget_and_curve_are_those_of_the_report(small):
    report = xgb_dp.privacy_report(small[0])
    bars = plotting.plot_budget(small[0])
    assert [b.get_width() for b in bars.patches] == [100 * s.share for s in report.spending()]
    curve = plotting.plot_epsilon(report, deltas=[1e-4, 1e-6, 1e-8], group_size=2).lines[0]
    assert list(curve.get_ydata()) == [report.get_epsilon(d, 2) for d in (1e-4, 1e-6, 1e-8)]
