"""What one row can do is bounded, and what a training takes is declared: clamped, clear or refused.

Also the structure of trees: no exact sum, count, minimum or maximum decides about it.
"""

import json
import warnings
from typing import Any

import numpy as np
import pytest
import xgboost as xgb
from xgboost.core import XGBoostError

from tests.models import event, trees
from tests.peers.recover import KINDS, leaves, make_rows, structure
from tests.training.plans import from_plan, plan_of
from xgb_dp.testing import fixed_noise

pytestmark = pytest.mark.filterwarnings("ignore:Epsilon is above 10")

BINARY, REGRESSION = KINDS["binary"], KINDS["regression"]
C = 0.3  # a gradient bound of regression, in half widths of the target's range


def without_noise(params: dict[str, Any], d: xgb.DMatrix, rounds: int) -> xgb.Booster:
    """A model whose leaves follow from their own sums alone: its last tree is not shifted."""
    exact = {"dp_epsilon": float("inf"), "dp_mean_correction": False}
    if params is REGRESSION:
        exact["dp_gradient_bound"] = C
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return xgb.train(params | exact, d, rounds)


# ------------------------------------------------------------------------------- labels
@pytest.mark.parametrize("label", [5.0, 1e6])
def test_every_row_is_clipped_and_none_is_dropped(label):
    """All labels far outside: each row counts in every sum, with the bound and no more."""
    X, _ = make_rows("regression", 4000)
    y = np.where(X[:, 0] > 0.1, label, -label).astype(np.float32)
    model = without_noise(REGRESSION, xgb.DMatrix(X, y), 1)
    unit = 2 ** plan_of(model)["grid_bits"]
    sums = leaves(model, X, y)
    at = model.predict(xgb.DMatrix(X), pred_leaf=True).astype(int).ravel()
    nodes = [node for node, left in enumerate(trees(model)[0]["left_children"]) if left == -1]
    for node, leaf in zip(nodes, sums, strict=True):
        # The gradient of a label clamped to 1 is -1, which the bound cuts to -C; the Hessian is 1.
        signs = -np.sign(y[at == node])
        assert leaf.released[0] == pytest.approx(unit * signs.sum(), rel=1e-5, abs=1)
        assert leaf.released[1] == pytest.approx(leaf.exact[1], rel=1e-5, abs=1)
    assert max(abs(leaf.released[0]) for leaf in sums) > 500 * unit
    # The sums of the root are those of its leaves: no rows are in the one and not in the others.
    (tree,) = trees(model)
    assert tree["sum_hessian"][0] == pytest.approx(4000, rel=1e-5)
    root = -tree["base_weights"][0] * (tree["sum_hessian"][0] + 1.0)
    assert root == pytest.approx(-C * np.sign(y).sum(), rel=1e-4)


def test_labels_at_the_bounds_train():
    """Labels -1 and 1 with intercept 0, the set-up in which a strict filter drops every row."""
    X, y = make_rows("binary", 3000)
    d = xgb.DMatrix(X, 2 * y - 1)
    with fixed_noise(3):
        model = xgb.train(REGRESSION, d, 20)
    assert trees(model)[0]["sum_hessian"][0] == pytest.approx(3000, rel=0.01)
    assert ((model.predict(d) > 0) == y).mean() > 0.7


@pytest.mark.parametrize("start", [1000.0, -1001.0, -0.5])
@pytest.mark.parametrize("declared", [True, False], ids=["public intercept", "released"])
def test_a_range_far_from_zero(start, declared):
    """Ranges are declared and labels counted from them: a shift of both only shifts predictions."""
    X, y = make_rows("regression", 1000)
    y = np.clip((y + 1) / 2, 0, 1)

    def predict(low: float) -> Any:
        params = REGRESSION | {"dp_target_bounds": (low, low + 1.0)}
        params["base_score"] = low + 0.5 if declared else None
        d = xgb.DMatrix(X, (y.astype(np.float64) + low).astype(np.float32))
        with fixed_noise(9):
            return xgb.train(params, d, 10).predict(d).astype(np.float64)

    shifted = predict(start) - start
    assert np.abs(shifted - predict(0.0)).max() < 0.01  # 32-bit floats at 1000
    assert np.sqrt(np.mean((shifted - y) ** 2)) < 0.8 * y.std()


@pytest.mark.parametrize("base", [0.0, 2000.0])
def test_residuals_beyond_the_range_are_clipped(base):
    """Boosting that starts a thousand widths away: no row moves a sum by more than its bound."""
    X, y = make_rows("regression", 1000)
    y = (1000.5 + y / 2).astype(np.float32)
    params = REGRESSION | {"dp_target_bounds": (1000.0, 1001.0), "base_score": base}
    model = without_noise(params, xgb.DMatrix(X, y), 3)
    unit = 2 ** plan_of(model)["grid_bits"]
    for leaf in leaves(model, X, y):
        assert abs(leaf.released[0]) <= leaf.rows * unit * (1 + 1e-5)


def test_residuals_that_noise_has_blown_up_are_clipped():
    """Predictions wander out of the range; noise recovered with clipped rows stays right."""
    X, y = make_rows("regression", 100)
    with fixed_noise(4):
        params = REGRESSION | {"dp_epsilon": 0.03, "eta": 1.0, "max_depth": 1}
        # Above every noisy Hessian, so that gradients are exact.
        params |= {"dp_hessian_weight": 4.0, "min_child_weight": 1e4}
        model = xgb.train(params, xgb.DMatrix(X, y), 200)
    assert np.abs(model.predict(xgb.DMatrix(X)) - y).max() > 2.5
    sigma = np.sqrt(event(model, "leaves")["sigma2"])
    noise = np.array([leaf.noise[0] for leaf in leaves(model, X, y)])
    assert abs(noise.std() / sigma - 1) < 0.2 and abs(noise.mean()) < 0.3 * sigma


# ------------------------------------------------------------------------------- features
@pytest.mark.parametrize("n", [64, 65, 95])
@pytest.mark.parametrize("kind", ["binary", "regression"])
def test_values_outside_of_the_bounds_train(kind, n):
    """They count as the nearest bound, whatever the number of rows is divisible by."""
    X, y = make_rows(kind, n)
    outside = X.copy()
    outside[n // 2] = (1e30, -1e30, 2.0001)
    outside[n - 1] = (-7.0, 3e38, -3e38)
    with fixed_noise(2):
        one = xgb.train(KINDS[kind], xgb.DMatrix(outside, y), 5)
        other = xgb.train(KINDS[kind], xgb.DMatrix(np.clip(outside, -2, 2), y), 5)
    assert one.get_dump(with_stats=True) == other.get_dump(with_stats=True)


def test_the_extremes_of_a_column_are_not_its_grid():
    """One row that is moved far away leaves private candidates where they are, up to noise."""
    X, y = make_rows("binary", 2000)
    moved = X.copy()
    moved[0] = 1e6, -1e6, 1e30
    params = {k: v for k, v in BINARY.items() if k != "dp_feature_bounds"} | {"dp_epsilon": 1.0}
    same = 0
    for key in range(10):
        with fixed_noise(key):
            models = [xgb.train(params, xgb.DMatrix(v, y), 4) for v in (X, moved)]
        same += structure(models[0]) == structure(models[1])
    assert same >= 7


# ------------------------------------------------------------------------------- structure
@pytest.mark.parametrize("n", [0, 1, 99, 100])
@pytest.mark.parametrize("epsilon", [0.001, 20.0])
def test_no_count_decides_whether_a_node_is_split(n, epsilon):
    """Trees are complete whatever `min_child_weight` is, and whether labels give any gain."""
    X, y = make_rows("binary", 100)
    for labels in (y, np.zeros(100)):
        params = BINARY | {"min_child_weight": 50.0, "dp_epsilon": epsilon}
        for tree in trees(xgb.train(params, xgb.DMatrix(X[:n], labels[:n]), 3)):
            assert sum(left == -1 for left in tree["left_children"]) == 4


@pytest.mark.parametrize("no_split", [False, True])
def test_neighbours_grow_the_same_trees_on_most_tapes(no_split):
    """100 rows and 99, epsilon 0.001: an exact threshold would part them on every tape."""
    X, y = make_rows("binary", 100)
    params = BINARY | {"min_child_weight": 50.0, "dp_epsilon": 1e-3, "dp_no_split": no_split}
    same, grown = 0, set()
    for key in range(40):
        with fixed_noise(key):
            one = structure(xgb.train(params, xgb.DMatrix(X, y), 1))
            other = structure(xgb.train(params, xgb.DMatrix(X[:99], y[:99]), 1))
        same += one == other
        grown.add(tuple(one))
    assert same >= 38
    assert len(grown) > 20  # teeth: the tapes do decide


def test_constant_labels_leave_nothing_exact():
    """One class, or one value: the intercept is noisy and no tree is an exact constant."""
    # Few enough that none of three noisy means is just 0.625, many enough that none is cut at 1.
    X, _ = make_rows("binary", 400)
    for kind, value in (("binary", 1.0), ("regression", 0.625)):
        params = KINDS[kind] | {"base_score": None, "dp_epsilon": 2.0}
        seen, values = set(), set()
        for _ in range(3):
            model = xgb.train(params, xgb.DMatrix(X, np.full(400, value)), 2)
            saved = json.loads(model.save_raw("json"))["learner"]["learner_model_param"]
            seen.add(float(json.loads(saved["base_score"])[0]))
            for tree in trees(model):
                assert len(tree["left_children"]) == 7
                values |= set(tree["base_weights"])
        assert len(seen) >= 2 or seen == {0.999}  # a released 0.999 is a noisy sum at its limit
        assert value not in seen
        assert len(values) > 30


# ------------------------------------------------------------------------------- refusals
def test_no_column_split():
    """Vertical federation, in which labels and features meet un-noised, is refused.

    The plugin refuses such a matrix where XGBoost can make one. 3.4 makes none any more.
    """
    X, y = make_rows("binary", 50)
    plan = plan_of(xgb.train(BINARY, xgb.DMatrix(X, y), 1))
    if not hasattr(xgb.core, "DataSplitMode"):
        with pytest.raises(ValueError, match="Column-wise data split has been removed"):
            xgb.DMatrix(X, y, data_split_mode=1)
        return
    d = xgb.DMatrix(X, y, data_split_mode=xgb.core.DataSplitMode.COL)
    with pytest.raises(XGBoostError, match="data are split by columns"):
        from_plan(plan, d).update(d, 0)


@pytest.mark.parametrize("trees_a_round", [1, 4])
def test_predictions_are_not_scaled_down(trees_a_round):
    """With much budget the probabilities are right, not only their order."""
    X, y = make_rows("binary", 5000)
    with fixed_noise(3):
        params = BINARY | {"max_depth": 3, "num_parallel_tree": trees_a_round}
        model = xgb.train(params, xgb.DMatrix(X, y), 40)
    p = model.predict(xgb.DMatrix(X))
    assert ((p > 0.5) == y).mean() > 0.8
    for low, high in ((0.0, 0.2), (0.2, 0.5), (0.5, 0.8), (0.8, 1.0)):
        inside = (p >= low) & (p < high)
        assert inside.sum() > 200
        assert abs(p[inside].mean() - y[inside].mean()) < 0.06
