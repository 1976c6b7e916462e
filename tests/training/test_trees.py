"""Several trees a round, random splits, features by turns: the parts of forests and batches."""

from typing import Any

import numpy as np
import pytest
import xgboost as xgb
from sklearn.metrics import roc_auc_score

import xgb_dp
from tests.reference.comparison import trees_of
from xgb_dp.accounting import event_from_json
from xgb_dp.accounting.events import release_counts
from xgb_dp.testing import fixed_noise

from ..conftest import arrays
from ..models import event, events
from .test_constraints import KINDS, big


def counts(booster: xgb.Booster) -> dict[str, int]:
    """Releases of the one training of a booster, by name."""
    return release_counts(map(event_from_json, events(booster)))


def features_of(tree: dict[str, Any]) -> set[int]:
    return {f for f, left in zip(tree["split_index"], tree["left"], strict=True) if left > 0}


@pytest.mark.parametrize("kind", KINDS)
def test_parallel_trees_are_all_accounted(kind, params, matrix):
    booster = xgb.train(params(kind, num_parallel_tree=3), matrix(kind), 4)
    classes = 3 if kind == "multiclass" else 1
    assert len(trees_of(booster)) == 12 * classes
    assert booster.num_boosted_rounds() == 4
    assert counts(booster)["leaves"] == 12
    # Both levels in one selection, which serves the trees of all classes.
    assert counts(booster)["splits"] == 12
    assert 0.99 < xgb_dp.privacy_report(booster).epsilon <= 1.0


def test_parallel_trees_share_the_learning_rate(params, matrix):
    """As in XGBoost: leaves are those of one tree, divided by the number of trees."""
    config = params(dp_epsilon=float("inf"), dp_tree_shape="per_node", dp_shrinkage=False)
    config |= {"dp_split_levels": 1}
    with pytest.warns(UserWarning, match="NOT private"):
        one = trees_of(xgb.train(config, matrix(), 1))
    with pytest.warns(UserWarning, match="NOT private"):
        three = trees_of(xgb.train(config | {"num_parallel_tree": 3}, matrix(), 1))
    assert len(three) == 3
    for tree in three:  # without noise all three are the same
        assert tree["split_index"] == one[0]["split_index"]
        leaves = [i for i, left in enumerate(tree["left"]) if left == -1]
        assert [tree["leaf"][i] for i in leaves] == pytest.approx(
            [one[0]["leaf"][i] / 3 for i in leaves], rel=1e-5
        )


def test_stopped_and_continued_trainings_count_parallel_trees(params, matrix):
    class Stop(xgb.callback.TrainingCallback):
        def after_iteration(self, model: Any, epoch: int, evals_log: Any) -> bool:
            return epoch == 1

    config = params(num_parallel_tree=3)
    stopped = xgb.train(config, matrix(), 5, callbacks=[Stop()])
    assert stopped.num_boosted_rounds() == 2
    assert counts(stopped)["leaves"] == 15  # the whole plan
    more = xgb.train(config, matrix(), 2, xgb_model=stopped)
    report = xgb_dp.privacy_report(more)
    assert [
        release_counts(map(event_from_json, t["events"]))["leaves"]
        for t in report.ledger["trainings"]
    ] == [15, 6]
    assert 1.0 < report.epsilon <= 2.0


def test_random_splits_cost_nothing(params):
    X, y = big()
    d = xgb.DMatrix(X, y)
    config = params(
        dp_split="random", max_depth=4, dp_feature_bounds=dict.fromkeys(range(4), (-2, 2))
    )
    booster = xgb.train(config, d, 30)
    assert "splits" not in counts(booster)
    noise = {}
    for split in ("random", "exponential"):
        model = xgb.train(config | {"dp_split": split}, d, 30)
        noise[split] = event(model, "leaves")["sigma2"]
    assert noise["random"] < 0.75 * noise["exponential"]
    assert roc_auc_score(y, booster.predict(d)) > 0.8


def test_a_random_forest(params):
    """One round of many random trees on the first gradients."""
    X, y = big()
    d = xgb.DMatrix(X, y)
    config = params(dp_split="random", num_parallel_tree=60, eta=1.0, max_depth=4, max_delta_step=0)
    booster = xgb.train(config, d, 1)
    assert counts(booster)["leaves"] == 60
    assert roc_auc_score(y, booster.predict(d)) > 0.75


def test_random_splits_do_not_look_at_the_labels(params):
    """With one noise tape the structure is the same whatever the labels are."""
    X, y = arrays()
    bounds = dict.fromkeys(range(4), (-2, 2))
    config = params(dp_split="random", dp_feature_bounds=bounds, base_score=0.5)
    grown = []
    for labels in (y, 1 - y):
        with fixed_noise("ab" * 32):
            grown.append(trees_of(xgb.train(config, xgb.DMatrix(X, labels), 5)))
    for a, b in zip(*grown, strict=True):
        assert a["split_index"] == b["split_index"]
        assert a["split_condition"][0] == b["split_condition"][0]
        assert a["leaf"] != b["leaf"]


def test_features_in_turn(params, matrix):
    config = params(dp_features_per_tree=1, dp_feature_order="cyclic", max_depth=3)
    for t, tree in enumerate(trees_of(xgb.train(config, matrix(), 9))):
        assert features_of(tree) == {t % 4}


def test_features_at_random(params, matrix):
    config = params(colsample_bytree=0.5, dp_epsilon=0.1, max_depth=6)  # three selections a tree
    seen = [features_of(tree) for tree in trees_of(xgb.train(config, matrix(), 60))]
    assert max(len(features) for features in seen) == 2
    # A tree splits by both of its columns with a chance of 3/4, and each of the six pairs is as
    # likely: no more than three of them occur with a chance of 1e-11.
    assert len({frozenset(f) for f in seen if len(f) == 2}) > 3


@pytest.mark.parametrize("kind", KINDS)
def test_noisy_histograms_are_all_that_is_released(kind, params, matrix):
    config = params(kind, dp_split="histogram", max_depth=3, dp_features_per_tree=2)
    booster = xgb.train(config, matrix(kind), 4)
    before = {"range", "intercept"} if kind == "regression" else {"intercept"}
    assert set(counts(booster)) == before | {"candidates", "histograms"}
    assert counts(booster)["histograms"] == 12
    report = xgb_dp.privacy_report(booster)
    assert 0.99 < report.epsilon <= 1.0
    assert "noisy sums of split candidates" in report.statement()
    classes = 3 if kind == "multiclass" else 1
    assert event(booster, "histograms")["coordinates"] == 2 * 2 * classes


def test_noisy_histograms_learn(params):
    X, y = big()
    d = xgb.DMatrix(X, y)
    config = params(dp_split="histogram", dp_epsilon=8.0, max_depth=3, max_bin=8)
    assert roc_auc_score(y, xgb.train(config, d, 10).predict(d)) > 0.8


def test_noisy_histograms_with_subsampling_and_parallel_trees(params, matrix):
    config = params(dp_split="histogram", subsample=0.5, num_parallel_tree=2)
    booster = xgb.train(config, matrix(), 3)
    assert counts(booster)["histograms"] == 12
    assert 0.95 < xgb_dp.privacy_report(booster).epsilon <= 1.0


@pytest.mark.filterwarnings("ignore:Epsilon is above 10")
def test_every_level_of_noisy_histograms_is_drawn_anew(params, matrix):
    """A leaf's cover is the sum of cells of its own level, not of exact counts."""
    config = params(dp_split="histogram", max_depth=1, dp_epsilon=50.0, base_score=0.5, eta=1e-6)
    covers = {tree["sum_hess"][0] for tree in trees_of(xgb.train(config, matrix(), 12))}
    # Two of the 66 pairs are equal by chance, as 32-bit floats, in less than 1e-9 of all runs.
    assert len(covers) >= 11


@pytest.mark.parametrize(("rounds", "first"), [(1, 1.0), (3, 0.25)])
def test_steps_rise_to_eta(rounds, first):
    """The first tree takes its share of the step, and a single one the whole step."""
    X, y = arrays()
    leaves = []
    for start in (1.0, 0.25):
        params = {"tree_method": "dp_hist", "dp_epsilon": 1.0, "dp_delta": 1e-6, "nthread": 1}
        params |= {"objective": "binary:logistic", "base_score": 0.5, "dp_eta_warmup": start}
        with fixed_noise(5):
            model = xgb.train(params, xgb.DMatrix(X, y), rounds)
        leaves.append(model.predict(xgb.DMatrix(X), output_margin=True, iteration_range=(0, 1)))
    np.testing.assert_allclose(leaves[1], first * leaves[0], rtol=1e-6)
    assert np.ptp(leaves[0]) > 0
