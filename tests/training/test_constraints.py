"""Monotone and interaction constraints, alpha, subsample and base_margin as users meet them."""

import numpy as np
import pytest
import xgboost as xgb
from sklearn.metrics import roc_auc_score

import xgb_dp
from tests.reference.comparison import trees_of

from ..conftest import arrays
from ..models import events, starts, training

KINDS = ["binary", "regression", "multiclass"]


def big(n: int = 4000) -> tuple[np.ndarray, np.ndarray]:
    """Binary labels whose odds rise in column 0, fall in column 1 and wave in column 2."""
    rng = np.random.default_rng(11)
    X = rng.uniform(-2, 2, size=(n, 4)).astype(np.float32)
    margin = 1.5 * X[:, 0] - X[:, 1] + np.sin(3 * X[:, 2])
    return X, (rng.random(n) < 1 / (1 + np.exp(-margin))).astype(np.float32)


def sweep(booster: xgb.Booster, column: int, classes: int = 1) -> np.ndarray:
    """Margins along a column at random other values: (points, steps, classes)."""
    rng = np.random.default_rng(12)
    grid = np.linspace(-3, 3, 121)
    X = np.repeat(rng.uniform(-2, 2, size=(40, 4)), len(grid), axis=0)
    X[:, column] = np.tile(grid, 40)
    margin = booster.predict(xgb.DMatrix(X), output_margin=True)
    return np.asarray(margin).reshape(40, len(grid), classes)


@pytest.mark.parametrize("shape", ["alternate", "per_node", "oblivious"])
@pytest.mark.parametrize("kind", KINDS)
def test_predictions_are_monotone(kind, shape, params, matrix):
    changes = {"dp_epsilon": 0.5, "max_depth": 5, "dp_tree_shape": shape}
    config = params(kind, monotone_constraints=(1, -1, 1), **changes)
    booster = xgb.train(config, matrix(kind), 10)
    classes = 3 if kind == "multiclass" else 1
    for column, direction in ((0, 1), (1, -1), (2, 1)):
        assert (direction * np.diff(sweep(booster, column, classes), axis=1) >= -1e-6).all()
    assert xgb_dp.privacy_report(booster).epsilon <= 0.5


def test_without_the_constraint_noise_breaks_the_order(params, matrix):
    config = params(dp_epsilon=0.5, max_depth=5, dp_feature_bounds=dict.fromkeys(range(4), (-2, 2)))
    falls = [np.diff(sweep(xgb.train(config, matrix(), 10), 0), axis=1).min() for _ in range(4)]
    assert min(falls) < -1e-6


@pytest.mark.parametrize(
    "given", [(1, -1), "(1,-1,0,0)", {"a": 1, "b": -1}, [1, -1, 0, 0], np.array([1, -1])], ids=str
)
def test_forms_of_monotone_constraints(given, params):
    X, y = arrays()
    d = xgb.DMatrix(X, y, feature_names=list("abcd"))
    booster = xgb.train(params(monotone_constraints=given), d, 2)
    assert training(booster)["public"]["hyperparameters"]["monotone_constraints"] == [1, -1, 0, 0]


@pytest.mark.parametrize(
    "given", [[[0, 1], [2, 3]], "[[0, 1], [2, 3]]", [["a", "b"], ["c", "d"]]], ids=str
)
def test_paths_stay_within_the_sets(given, params):
    X, y = arrays()
    d = xgb.DMatrix(X, y, feature_names=list("abcd"))
    bounds = dict.fromkeys("abcd", (-1, 1))
    config = params(interaction_constraints=given, dp_feature_bounds=bounds, dp_epsilon=0.05)
    config["max_depth"] = 4
    booster = xgb.train(config, d, 200)
    used = set()
    for tree in trees_of(booster):
        features = {
            f for f, left in zip(tree["split_index"], tree["left"], strict=True) if left > 0
        }
        assert features <= {0, 1} or features <= {2, 3}
        used |= features
    assert used == {0, 1, 2, 3}


def test_base_margin_stands_in_for_the_intercept(params):
    X, y = big()
    margin = np.where(X[:, 0] > 0, 2.0, -2.0)
    d = xgb.DMatrix(X, y, base_margin=margin)
    booster = xgb.train(params(dp_epsilon=8.0, dp_base_margin=True), d, 20)
    assert "intercept" not in {event["release"] for event in events(booster)}
    assert starts(booster) == [0.5]
    # The trees learn what the margins do not say already.
    gain = booster.get_score(importance_type="total_gain")
    alone = xgb.train(params(dp_epsilon=8.0), xgb.DMatrix(X, y), 20)
    assert roc_auc_score(y, booster.predict(d)) > 0.75
    assert gain.get("f0", 0) < alone.get_score(importance_type="total_gain")["f0"]


@pytest.mark.parametrize("margins", [False, True])
def test_whether_rows_have_margins_is_declared(params, margins):
    """Read off the matrix it would tell no row from one, with certainty."""
    X, y = big()
    seen = []
    for n in (0, 1):
        margin = {"base_margin": np.zeros(n)} if margins else {}
        d = xgb.DMatrix(X[:n], y[:n], feature_names=list("abcd"), **margin)
        booster = xgb.train(params(dp_base_margin=margins), d, 2)
        record = training(booster)
        seen.append([record[name] for name in ("events", "public", "plans")])
    assert seen[0] == seen[1]


@pytest.mark.filterwarnings("ignore:Epsilon is above 10")
def test_subsample_takes_that_part_of_the_rows(params):
    """Cover of the root, with little noise: a quarter of the rows, not always the same."""
    X, y = big()
    d = xgb.DMatrix(X, y)
    config = params(subsample=0.25, dp_epsilon=1000.0, base_score=0.5, dp_hessian_weight=0.1)
    covers = [tree["sum_hess"][0] for tree in trees_of(xgb.train(config | {"eta": 1e-6}, d, 60))]
    # Hessians of 1/4, 4000 rows, a quarter of them: 250 +- 7 for a secret sample of each round.
    # The bounds are seven deviations and more of 60 rounds.
    assert 240 < np.mean(covers) < 260
    assert 3 < np.std(covers) < 14


@pytest.mark.filterwarnings("ignore:Epsilon is above 10")
def test_subsample_ignores_the_seed(params):
    X, y = big()
    config = params(subsample=0.25, dp_epsilon=1000.0, base_score=0.5, eta=1e-6, seed=3)
    covers = [trees_of(xgb.train(config, xgb.DMatrix(X, y), 1))[0]["sum_hess"][0] for _ in range(8)]
    # The noise alone has a deviation of 0.06, samples have one of 7: eight of them are within one
    # with a chance of 1e-8.
    assert np.ptp(covers) > 1
