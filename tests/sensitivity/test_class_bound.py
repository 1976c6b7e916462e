"""The factor of a row of several classes does not depend on its label."""

import numpy as np
import numpy.typing as npt
import pytest
import xgboost as xgb
from hypothesis import given
from hypothesis import strategies as st

from tests.reference.comparison import ARGMAX, SOFTMAX, make_plan, trees_of
from xgb_dp.testing import train_with_plan

from .cpp import NO_CLIP
from .strategies import EXAMPLES, Rows, pairs_of

FEATURES = [{"kind": "cuts", "cuts": []}]


def expected(
    mode: str, p: npt.NDArray[np.float64], weight: float, c: str
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
    """The mean of the integer gradients over labels that follow the prediction, and all of them."""
    plan = make_plan(SOFTMAX, True, FEATURES, num_class=len(p))
    plan["row_bound"] |= {"mode": mode, "gradient_bound": c, "hessian_weight": "0.25"}
    k = len(p)
    ones = np.ones(k, np.float32)
    margin = np.tile(np.log(p), (k, 1)).astype(np.float32)
    labels = np.arange(k, dtype=np.float32)
    data = Rows(ones[:, None], labels, weight * ones, margin, np.zeros(k, np.int64))
    pairs = np.stack(pairs_of(plan, data), axis=1)  # label, class, (gradient, Hessian, 1)
    return p @ pairs[:, :, 0], pairs


@EXAMPLES
@given(
    mass=st.lists(st.floats(1e-3, 1.0), min_size=2, max_size=12),
    weight=st.sampled_from((0.25, 1.0, 1.7)),
    c=st.sampled_from(("0.05", "0.5", "1.0", "3.0")),
)
def test_the_prediction_is_the_fixed_point(mass, weight, c):
    """Where labels follow the prediction the gradients sum to nothing, as without any bound."""
    p = np.array(mass) / sum(mass)
    mean, pairs = expected("prediction", p, weight, c)
    unit = 1 << 18
    assert np.abs(mean).max() <= 1.5 + 1e-5 * unit * weight / float(c)  # 32-bit probabilities
    hessians = pairs[:, :, 1]
    assert np.abs(hessians - hessians[0]).max() <= 2 + 1e-5 * unit * weight / float(c)


def test_a_bound_by_the_row_itself_pulls_predictions():
    """The check above has teeth: rows with large residuals count less where it is their own."""
    mean, _ = expected("row_weight", np.array([0.7, 0.2, 0.1]), 1.0, "0.5")
    assert np.abs(mean).max() > 0.05 * (1 << 18)


@pytest.mark.parametrize("objective", [SOFTMAX, ARGMAX])
@pytest.mark.parametrize("p", [(0.7, 0.2, 0.1), (0.98, 0.015, 0.005)])
def test_trees_of_the_cpp_leave_true_predictions_alone(objective, p):
    """Rows of all labels, as often as they are predicted."""
    labels = np.repeat(np.arange(3), [round(200 * v) for v in p]).astype(np.float32)
    d = xgb.DMatrix(np.zeros((len(labels), 1)), labels)
    largest = {}
    for mode in ("prediction", "row_weight"):
        plan = make_plan(objective, True, FEATURES, leaf=NO_CLIP, rounds=1, depth=1)
        plan["row_bound"] |= {"mode": mode, "gradient_bound": "0.5", "hessian_weight": "0.25"}
        booster = train_with_plan(plan, d, 1, [float(np.log(v)) for v in p], nthread=1)
        leaves = [
            v
            for tree in trees_of(booster)
            for v, left in zip(tree["leaf"], tree["left"], strict=True)
            if left == -1
        ]
        largest[mode] = max(map(abs, leaves))
    assert largest["prediction"] < 1e-3
    assert largest["row_weight"] > 0.03
