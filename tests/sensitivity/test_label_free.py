"""The clip by predictions: factors without the label, hence probabilities without bias."""

import math
from typing import Any

import numpy as np
import pytest
import xgboost as xgb

import xgb_dp
from tests.reference.comparison import LOGISTIC, make_plan
from xgb_dp.testing import fixed_noise

from .cpp import GRID, NO_CLIP, PAST, cpp_leaf_sums, past

MARGINS = (-9.0, -3.0, -0.7, 0.0, 0.4, 2.5, 6.0)
BITS = 14  # as many as statistics of leaves, 32-bit floats above 1e-6, can hold
B = 1 << BITS
LOST = math.sqrt(B)  # of a Hessian, where the gradient was rounded up to the bound


def sums_of(label: float, margin: float, weight: float = 1.0, **bound: str) -> Any:
    """Integers (G, H) of one row at a margin, from the C++."""
    features = [{"kind": "cuts", "cuts": []}]
    plan = make_plan(LOGISTIC, True, features, leaf=NO_CLIP, **(GRID | {"grid_bits": BITS}))
    plan["row_bound"] |= {"mode": "prediction", "hessian_weight": "0.25", "max_weight": "0"} | bound
    start = past(LOGISTIC, margin, margin) if margin else PAST[LOGISTIC, (0.0, 0.0)]
    d = xgb.DMatrix(np.zeros((1, 1)), np.full(1, label), weight=np.full(1, weight))
    sums = cpp_leaf_sums(plan, d, start).reshape(2, 2)
    return sums.sum(axis=0)


def probability(margin: float) -> float:
    return 1.0 / (1.0 + math.exp(-margin))


@pytest.mark.parametrize("positive", [1.0, 0.2, 12.0])
@pytest.mark.parametrize("bound", ["0.1", "0.5", "0.8"])
def test_both_labels_have_one_factor(bound, positive):
    """At the odds that the prediction says (of weighted rows) the expected gradient is zero."""
    for margin in MARGINS:
        p = probability(margin)
        values = {"gradient_bound": bound, "positive_weight": repr(positive)}
        (g0, h0), (g1, h1) = (sums_of(y, margin, **values) for y in (0.0, 1.0))
        # The factors: G over the gradients w p and w (p - 1), which are 32-bit floats.
        s0, s1 = g0 / p, -g1 / (positive * (1 - p))
        assert abs(s0 - s1) <= 1.0 / p + 1.0 / (positive * (1 - p)) + 1e-5 * s0
        assert abs(positive * h0 - h1) <= max(positive, 1.0) * (1.0 + LOST)
        # The label with the larger norm is at the bound, unless both labels are within it.
        h = 0.5 * p * (1 - p)  # times the root of r
        norms = [math.hypot(p, h), positive * math.hypot(1 - p, h)]
        norm = max(math.hypot(g0, h0), math.hypot(g1, h1))
        assert norm <= B
        assert norm >= min(B, max(norms) * B / float(bound)) - 2


def test_the_clip_by_the_norm_of_the_row_has_two():
    """What the mode is for: this one pulls the prediction of a rare class away from it."""
    p = probability(-3.0)
    (g0, _), (g1, _) = (sums_of(y, -3.0, mode="row_weight") for y in (0.0, 1.0))
    assert g0 / p > 1.5 * -g1 / (1 - p)


def test_weights_keep_their_ratios_up_to_their_bound():
    for margin in MARGINS:
        for label in (0.0, 1.0):
            unit = sums_of(label, margin)
            for weight in (0.25, 0.5):
                assert np.abs(sums_of(label, margin, weight) - weight * unit).max() <= LOST
            heaviest = sums_of(label, margin, 4.0, max_weight="4.0")
            for weight in (0.5, 1.0, 2.0):
                weighted = sums_of(label, margin, weight, max_weight="4.0")
                assert np.abs(weighted - weight / 4 * heaviest).max() <= LOST
            # Beyond the bound rows count as the heaviest, or without one as they fit into C.
            above = sums_of(label, margin, 400.0, max_weight="4.0")
            assert np.abs(above - heaviest).max() <= 1
            assert np.hypot(*sums_of(label, margin, 400.0)) <= B


@pytest.mark.parametrize("start", [(0.0, 0.0), (30.0, -100.0), (1e30, -1e30)])
@pytest.mark.parametrize("weight", [0.0, 1e-45, 1.0, 1e38])
@pytest.mark.parametrize("label", [0.0, 1.0])
def test_extreme_rows_are_numbers(start, weight, label):
    """Certain predictions, weights of nothing: probabilities are recovered as 0 or 1."""
    plan = make_plan(LOGISTIC, True, [{"kind": "cuts", "cuts": []}], leaf=NO_CLIP, **GRID)
    plan["row_bound"] |= {"mode": "prediction", "max_weight": "0", "positive_weight": "1e6"}
    d = xgb.DMatrix(np.zeros((1, 1)), np.full(1, label), weight=np.full(1, weight, np.float32))
    sums = cpp_leaf_sums(plan, d, PAST[LOGISTIC, start])
    assert sum(int(v) ** 2 for v in sums) <= (1 << GRID["grid_bits"]) ** 2
    if weight == 0.0:
        assert not sums.any()


@pytest.mark.parametrize("changes", [{}, {"subsample": 0.5}, {"dp_ensemble": 4}], ids=str)
def test_mean_prediction_is_the_base_rate(changes):
    """Of a rare class, also where the trees cannot tell rows apart; the other clip misses it."""
    rng = np.random.default_rng(3)
    x = rng.normal(size=(20_000, 2))
    y = rng.random(20_000) < probability_of(x[:, 0] - 3.0)
    train = xgb.DMatrix(x, y)
    params = {"tree_method": "dp_hist", "objective": LOGISTIC, "dp_epsilon": 20.0,
              "dp_delta": 1e-6, "dp_feature_bounds": {0: (-4, 4), 1: (-4, 4)}, "max_depth": 3,
              "nthread": 1, **changes}  # fmt: skip

    def ratio(clip: str) -> float:
        with fixed_noise(5):
            model = xgb.train(params | {"dp_gradient_clip": clip}, train, 40)
        assert xgb_dp.privacy_report(model).ledger
        return float(model.predict(train).mean() / y.mean())

    assert abs(ratio("prediction") - 1.0) < 0.03
    assert ratio("row_weight") < 0.9


def probability_of(margins: Any) -> Any:
    return 1.0 / (1.0 + np.exp(-margins))
