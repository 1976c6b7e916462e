"""Private training from end to end, as a user calls it."""

import gc
import json
import weakref

import numpy as np
import pytest
import scipy.sparse as sp
import xgboost as xgb

import xgb_dp
from tests.conftest import arrays, private
from xgb_dp.testing import fixed_noise

from ..models import events, trees

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
    accuracy = ((booster.predict(xgb.DMatrix(x)) > 0.5) == y).mean()
    assert accuracy > 0.75


def test_updater_is_the_private_one():
    x, y = rows()
    booster = xgb.train(PARAMS, xgb.DMatrix(x, y), 2)
    config = json.loads(booster.save_config())["learner"]["gradient_booster"]
    assert [u["name"] for u in config["updater"]] == ["grow_dp_histmaker"]
    assert config["gbtree_train_param"]["tree_method"] == "dp_hist"


@pytest.mark.parametrize("params", [PARAMS, REGRESSION])
@pytest.mark.parametrize("shape", ["alternate", "per_node", "oblivious"])
def test_model_does_not_depend_on_threads(params, shape):
    x, y = rows(20_000)
    dtrain = xgb.DMatrix(x, y)
    models = {fixed({**params, "dp_tree_shape": shape, "nthread": t}, dtrain) for t in (1, 2, 3)}
    assert len(models) == 1


def test_seed_does_not_touch_the_noise():
    x, y = rows()
    dtrain = xgb.DMatrix(x, y)
    one, two = (
        bytes(xgb.train({**PARAMS, "seed": 3}, dtrain, 2).save_raw("json")) for _ in range(2)
    )
    assert one != two
    assert fixed({**PARAMS, "seed": 1}, dtrain) == fixed({**PARAMS, "seed": 2}, dtrain)


@pytest.mark.parametrize("levels", [1, 2])
def test_oblivious_trees_have_one_split_a_level(levels):
    """Or one feature, where a selection divides its values for several levels."""
    x, y = rows()
    params = {**PARAMS, "dp_tree_shape": "oblivious", "max_depth": 3, "dp_split_levels": levels}
    for tree in trees(xgb.train(params, xgb.DMatrix(x, y), 2)):
        splits = list(
            zip(tree["split_indices"], tree["split_conditions"], tree["default_left"], strict=True)
        )
        if levels == 1:
            assert splits[1] == splits[2]
        else:
            assert len({feature for feature, *_ in splits[:3]}) == 1
        assert len(set(splits[3:7])) == 1


def test_no_split_can_win():
    x, y = rows(200)
    params = {**PARAMS, "dp_no_split": True, "gamma": 1e6}
    for tree in trees(xgb.train(params, xgb.DMatrix(x, y), 2)):
        assert tree["left_children"] == [-1]


def test_sparse_and_dense_input_agree():
    x, y = rows()
    x[:, 3] = np.where(x[:, 3] > 0, x[:, 3], np.nan)
    present = ~np.isnan(x)
    csr = sp.csr_matrix(
        (x[present], np.nonzero(present)[1], np.r_[0, present.sum(1).cumsum()]), shape=x.shape
    )
    assert fixed(PARAMS, xgb.DMatrix(x, y)) == fixed(PARAMS, xgb.DMatrix(csr, y))


def test_missing_values_may_carry_the_signal():
    rng = np.random.default_rng(0)
    y = (rng.random(4000) < 0.5).astype(np.float32)
    x = rng.normal(size=(4000, 2)).astype(np.float32)
    x[y == 1, 0] = np.nan
    booster = xgb.train({**PARAMS, "dp_epsilon": 4.0}, xgb.DMatrix(x, y), 10)
    assert ((booster.predict(xgb.DMatrix(x)) > 0.5) == y).mean() > 0.95


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


@pytest.mark.filterwarnings("ignore:`dp_epsilon` is infinite")
def test_infinite_epsilon_trains_without_noise_and_says_so():
    x, y = rows(2000)
    params = {**PARAMS, "dp_epsilon": float("inf")}
    one, two = (xgb.train(params, xgb.DMatrix(x, y), 5) for _ in range(2))
    assert one.save_raw("json") == two.save_raw("json")
    assert not xgb_dp.privacy_report(one).private
    assert ((one.predict(xgb.DMatrix(x)) > 0.5) == y).mean() > 0.8


@pytest.mark.parametrize("score", ["l1", "newton", "gain"])
def test_scores_learn(score):
    x, y = rows(20_000)
    params = {**REGRESSION, "dp_score": score, "dp_epsilon": 4.0}
    booster = xgb.train(params, xgb.DMatrix(x, 2 * y - 1), 20)
    residual = booster.predict(xgb.DMatrix(x)) - (2 * y - 1)
    assert np.sqrt((residual**2).mean()) < 0.8


def test_multiclass():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(6000, 4)).astype(np.float32)
    y = (x[:, 0] > 0).astype(int) + (x[:, 1] > 0.5)
    params = {**PARAMS, "objective": "multi:softprob", "num_class": 3, "dp_epsilon": 4.0}
    booster = xgb.train(params, xgb.DMatrix(x, y), 10)
    assert (booster.predict(xgb.DMatrix(x)).argmax(axis=1) == y).mean() > 0.75
    report = xgb_dp.privacy_report(booster)
    assert 0.99 * 4 <= report.epsilon <= 4.0


def test_public_candidates_cost_nothing():
    x, y = rows(800)
    params = {**PARAMS, "dp_feature_bounds": dict.fromkeys(range(5), (-3.0, 3.0, "even"))}
    params["max_bin"] = 64
    booster = xgb.train(params, xgb.DMatrix(x, y), 3)
    assert {e["release"] for e in events(booster)} == {"intercept", "splits", "leaves"}
    grid = {np.float32(-3.0 + 6.0 * i / 64) for i in range(65)} | {np.finfo(np.float32).max}
    for tree in trees(booster):
        nodes = zip(tree["split_conditions"], tree["left_children"], strict=True)
        inner = [condition for condition, left in nodes if left != -1]
        assert all(min(abs(c - g) for g in grid) < 1e-5 * max(1, abs(c)) for c in inner)


def test_within_a_model_no_leaf_repeats():
    """Without any signal, all leaves of all trees are noise alone, and none repeats."""
    x = np.zeros((10, 2), np.float32)
    params = {**PARAMS, "base_score": 0.5, "dp_shrinkage": False}
    leaves = [
        value
        for tree in trees(xgb.train(params, xgb.DMatrix(x, np.arange(10) % 2), 10))
        for value, left in zip(tree["split_conditions"], tree["left_children"], strict=True)
        if left == -1 and abs(value) < 0.99
    ]
    # Two of 640 leaves coincide as 32-bit floats with a chance of 1%, four pairs with one of 1e-9.
    assert len(leaves) > 600
    assert len(set(leaves)) >= len(leaves) - 3


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
