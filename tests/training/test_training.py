"""Private training from end to end, as a user calls it."""

import gc
import json
import weakref

import numpy as np
import pytest
import xgboost as xgb

import xgb_dp
from tests.conftest import arrays, private
from xgb_dp.testing import fixed_noise

from ..models import trees

PARAMS = private(objective="binary:logistic")
REGRESSION = {**PARAMS, "objective": "reg:squarederror", "dp_target_bounds": (-1.0, 1.0)}


def rows(n: int = 500, m: int = 5, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Features with a signal in the first two columns, and missing values in the third."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, m)).astype(np.float32)
    y = (x[:, 0] - x[:, 1] + 0.5 * rng.normal(size=n) > 0).astype(np.float32)
    x[rng.random(n) < 0.2, 2] = np.nan
    return x, y


def fixed(params: dict, dtrain: xgb.DMatrix, n_rounds: int = 3, key: int = 7) -> bytes:
    """The saved model of a training with a fixed noise tape."""
    with fixed_noise(key):
        return bytes(xgb.train(params, dtrain, n_rounds).save_raw("json"))


def test_train_returns_a_private_model():
    x, y = rows(5000)
    booster = xgb.train(PARAMS, xgb.DMatrix(x, y), 20)
    assert booster.num_boosted_rounds() == 20
    report = xgb_dp.privacy_report(booster)
    assert report.private and 0.99 <= report.epsilon <= 1.0
    config = json.loads(booster.save_config())["learner"]["gradient_booster"]
    assert [u["name"] for u in config["updater"]] == ["grow_dp_histmaker"]
    assert config["gbtree_train_param"]["tree_method"] == "dp_hist"
    accuracy = ((booster.predict(xgb.DMatrix(x)) > 0.5) == y).mean()
    assert accuracy > 0.75


@pytest.mark.parametrize("params", [PARAMS, REGRESSION])
@pytest.mark.parametrize("shape", ["alternate", "per_node", "oblivious"])
def test_model_does_not_depend_on_threads(params, shape):
    x, y = rows(20_000)
    dtrain = xgb.DMatrix(x, y)
    models = {fixed({**params, "dp_tree_shape": shape, "nthread": t}, dtrain) for t in (1, 2, 3)}
    assert len(models) == 1


def test_labels_beyond_the_bounds_are_clamped():
    x, _ = rows(400)
    y = np.where(np.arange(400) % 2, 5.0, -5.0).astype(np.float32)
    clamped = np.clip(y, -1.0, 1.0)
    both = [xgb.DMatrix(x, labels) for labels in (y, clamped)]
    one, other = (fixed(REGRESSION | {"dp_mean_correction": False}, d) for d in both)
    assert one == other
    # The correction reads predictions off the gradients, which are 32-bit differences to the label.
    one, other = (xgb.Booster(model_file=bytearray(fixed(REGRESSION, d))).predict(d) for d in both)
    np.testing.assert_allclose(one, other, atol=1e-5)


def test_cover_is_positive_and_additive_and_shap_sums_to_the_margin():
    x, y = rows(300)
    dtrain = xgb.DMatrix(x, y)
    booster = xgb.train({**PARAMS, "dp_epsilon": 0.05}, dtrain, 6)
    for tree in trees(booster):
        cover, left, right = (tree[k] for k in ("sum_hessian", "left_children", "right_children"))
        for i, (a, b) in enumerate(zip(left, right, strict=True)):
            assert cover[i] > 0
            if a != -1:
                assert np.float32(cover[i]) == np.float32(cover[a]) + np.float32(cover[b])
    shap = booster.predict(dtrain, pred_contribs=True)
    margin = booster.predict(dtrain, output_margin=True)
    assert np.isfinite(shap).all()
    np.testing.assert_allclose(shap.sum(axis=1), margin, rtol=1e-4, atol=1e-4)


@pytest.mark.filterwarnings("ignore:`dp_epsilon` is infinite")
@pytest.mark.parametrize("more", [{}, {"dp_tree_shape": "per_node", "max_depth": 3}])
@pytest.mark.parametrize(("bins", "categories"), [(64, 3), (256, 40), (1023, 40), (1100, 1200)])
def test_without_noise_covers_count_the_rows_that_reach_a_leaf(bins, categories, more):
    """Whatever the layout of bins is: codes of one byte or two, places that are known or not."""
    x, y = rows(6000, 75)
    x[:, -1] = np.random.default_rng(1).integers(0, categories, len(x))
    y = y + x[:, -1] % 2
    dtrain = xgb.DMatrix(x, y, feature_types=["q"] * 74 + ["c"], enable_categorical=True)
    cuts = {f"f{j}": np.quantile(x[:, j], np.arange(1, bins) / bins).tolist() for j in (0, 1)}
    config = {**REGRESSION, "dp_epsilon": float("inf"), "dp_target_bounds": (-1.0, 3.0)}
    config |= {"dp_categories": {"f74": list(range(categories))}, "dp_feature_cuts": cuts, **more}
    booster = xgb.train(config | {"max_bin": bins}, dtrain, 8)
    leaves = booster.predict(dtrain, pred_leaf=True).astype(int)
    for tree, reached in zip(trees(booster), leaves.T, strict=True):
        for leaf, n in zip(*np.unique(reached, return_counts=True), strict=True):
            assert tree["sum_hessian"][leaf] == pytest.approx(n, abs=0.01)


@pytest.mark.parametrize("rounds", [2, None])
def test_training_data_is_free_when_its_matrix_is_deleted(rounds):
    """No cycle holds it until a collection: frames, errors of the calibration or callbacks."""
    data = xgb.DMatrix(*arrays())
    kept = weakref.ref(data)
    gc.disable()
    try:
        xgb.train(private(objective="binary:logistic"), data, *([] if rounds is None else [rounds]))
        del data
        assert kept() is None
    finally:
        gc.enable()
