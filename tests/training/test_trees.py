"""Several trees a round, random splits, features by turns: the parts of forests and batches."""

from typing import Any

import pytest
import xgboost as xgb
from sklearn.metrics import roc_auc_score

import xgb_dp
from tests.callbacks import After
from tests.reference.comparison import trees_of
from xgb_dp.accounting import event_from_json
from xgb_dp.accounting.events import release_counts

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


def test_stopped_and_continued_trainings_count_parallel_trees(params, matrix):
    config = params(num_parallel_tree=3)
    stopped = xgb.train(config, matrix(), 5, callbacks=[After(lambda _: True, 1)])
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


def test_features_in_turn(params, matrix):
    config = params(dp_features_per_tree=1, dp_feature_order="cyclic", max_depth=3)
    for t, tree in enumerate(trees_of(xgb.train(config, matrix(), 9))):
        assert features_of(tree) == {t % 4}


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
