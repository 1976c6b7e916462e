"""The correction of the mean: what a row adds to its sums, in the oracle and in the trainer."""

import math
import warnings
from typing import Any

import numpy as np
import pytest
import xgboost as xgb
from hypothesis import example, given, settings
from hypothesis import strategies as st

import xgb_dp
from tests.reference.comparison import SQUARED, make_plan
from tests.reference.correction import correct_mean, residual_sums
from tests.reference.draws import Noise
from tests.reference.trainer import RowBound as Bound
from tests.stated import describe_plan
from xgb_dp.accounting import sensitivity
from xgb_dp.planning import dump

from ..models import events, trees
from .cpp import xgb_train

NO_CUT: list[Any] = [{"kind": "cuts", "cuts": []}]
ON = {"correction": {"on": True, "sigma2": 0}}
ANCHORS = 7
BASE = 0.5
ANY = st.floats(allow_nan=True, allow_infinity=True, width=32)
FINITE = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False, width=32), st.floats(-8, 8, width=32)
)
WEIGHT = st.one_of(st.floats(0, 3, width=32), st.sampled_from([0.0, 1e-30, 1.0, 2.0, 1e30]))


@given(ANY, ANY, ANY, FINITE)
@example(4.0, 8.0, 1.0, 0.0)
@example(-4.0, -math.inf, 1.0, 0.0)
@settings(max_examples=500, deadline=None)
def test_a_row_keeps_the_bound_in_the_oracle(y, g, h, step):
    bound = Bound.of(make_plan(SQUARED, True, NO_CUT))
    with np.errstate(all="ignore"):
        row = (np.array([v], dtype=np.float64) for v in (g, h, y, step))
        residuals, ones = residual_sums(bound, *row)
    assert residuals * residuals + ones * ones <= sensitivity.correction_sens2()


def leaves_of(y: float, weight: float, margin: float, **bound: str) -> tuple[float, float]:
    """The leaf of all rows after both shifts, of the trainer and of the oracle, in half widths.

    All rows but one have the label that is predicted, the tree itself adds nothing. `bound` are
    fields of the row bound.
    """
    plan = make_plan(
        SQUARED, True, NO_CUT, rounds=1, depth=1, base_margin=True,
        leaf={"lambda": "1e12", "shrinkage": False}, row_bound={"max_weight": "1.0"} | bound, **ON,
    )  # fmt: skip
    labels = np.append(np.full(ANCHORS, BASE), y).astype(np.float32)
    weights = np.append(np.ones(ANCHORS), weight).astype(np.float32)
    margins = np.append(np.full(ANCHORS, BASE), margin).astype(np.float32)
    d = xgb.DMatrix(np.zeros((ANCHORS + 1, 1)), labels, nthread=1)
    d.set_weight(weights)
    d.set_base_margin(margins)
    [grown] = trees(xgb_train(plan, d))
    node = 1 if grown["sum_hessian"][1] > grown["sum_hessian"][2] else 2
    tree: Any = {"left": [1, -1, -1], "base_weight": [0.0] * 3, "leaf": [0.0] * 3}
    gradients = (margins - labels) * weights
    rows = (v.astype(np.float64) for v in (gradients, weights, labels))
    correct_mean(plan, tree, np.full(ANCHORS + 1, node), *rows, Noise(plan))
    scale = float(plan["row_bound"]["scale"])
    return float(grown["split_conditions"][node]) / scale, float(tree["leaf"][node]) / scale


@given(FINITE, WEIGHT, st.floats(-1e6, 1e6, width=32))
@example(4.0, 1.0, -4.0)
@example(1e38, 1e30, -100.0)
@settings(max_examples=150, deadline=None)
def test_a_row_keeps_the_bound_in_the_trainer(y, weight, margin):
    """It is the oracle's figure, and no row moves the mean of the others by more than 2 over them,
    each time."""
    with np.errstate(all="ignore"):
        if not np.isfinite((np.float32(margin) - np.float32(y)) * np.float32(weight)):
            return
    shift, expected = leaves_of(y, weight, margin)
    assert abs(shift) <= 2 * 2.0 / ANCHORS
    assert shift == pytest.approx(expected, rel=1e-5, abs=1e-6)


def test_the_bound_is_attained():
    """A prediction at one end and a label at the other: 2^18, and 2^16 at the end."""
    assert leaves_of(4.0, 1.0, -4.0)[0] == pytest.approx(2.0 / (ANCHORS + 1), rel=1e-5)
    assert leaves_of(4.0, 1.0, -1e3)[0] == pytest.approx(2.0 / ANCHORS, rel=1e-5)


@pytest.mark.parametrize("mode", ["clip", "row_weight"])
def test_weights_count_up_to_their_declared_bound(mode):
    """The row weighs as much as four of the others, or as the heaviest that is allowed."""
    for weight in (4.0, 8.0):
        shift, expected = leaves_of(4.0, weight, -4.0, mode=mode, max_weight="4.0")
        assert shift == pytest.approx(expected, rel=1e-5)
        assert shift == pytest.approx(2.0 / (ANCHORS / 4 + 1), rel=1e-5)


def test_trainer_and_calibration_agree_on_it():
    sigma2 = {"correction": {"on": True, "sigma2": 1 << 40}}
    plan = make_plan(SQUARED, False, NO_CUT, **sigma2)
    events = describe_plan(dump({"id": "hand", **plan}))["events"]
    [event] = [e for e in events if e["release"] == "correction"]
    assert event["sensitivity2"] == sensitivity.correction_sens2()
    assert (event["sigma2"], event["coordinates"], event["count"]) == (1 << 40, 2, 2)


def skewed(n: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(n, 4)).astype(np.float32)
    return X, np.minimum(np.exp(0.4 * X[:, 0] + 0.9 * rng.normal(size=n)), 10.0)


PARAMS: dict[str, Any] = {
    "tree_method": "dp_hist", "dp_target_bounds": (0.0, 10.0), "dp_delta": 1e-6, "nthread": 1,
}  # fmt: skip


@pytest.mark.parametrize("epsilon", [4.0, math.inf])
def test_the_mean_of_a_skewed_target(epsilon):
    """Clipped gradients fit less than the mean; the default puts it right.

    At epsilon 4 the ratio has a standard deviation of 0.0009, and of half the rows 0.0023.
    """
    X, y = skewed(40_000)
    d = xgb.DMatrix(X, y)
    ratios = {}
    for corrected in (False, True):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = xgb.train(
                PARAMS | {"dp_epsilon": epsilon, "dp_mean_correction": corrected}, d, 10
            )
        ratios[corrected] = np.clip(model.predict(d), 0, 10).mean() / y.mean()
    assert ratios[False] < 0.97
    assert abs(ratios[True] - 1) < 0.012
    if epsilon < math.inf:
        default = xgb.train(PARAMS | {"dp_epsilon": epsilon}, d, 10)
        assert "correction" in {e["release"] for e in events(default)}


def test_little_data_is_not_shifted_by_noise():
    """Of 60 rows at epsilon 1 nothing stands out: the shift is a small part of the noise."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 2)), rng.uniform(2, 4, 60)
    params = PARAMS | {"dp_epsilon": 1.0, "base_score": 3.0, "dp_target_bounds": (0.0, 6.0)}
    means = [
        xgb.train(params, xgb.DMatrix(X, y), 1).predict(xgb.DMatrix(X)).mean() for _ in range(20)
    ]
    assert np.median(np.abs(np.array(means) - 3.0)) < 0.5


@pytest.mark.parametrize("base", [-2.0, 3.0])
def test_predictions_of_the_estimator_are_in_the_range(base):
    X, y = skewed(400)
    model = xgb_dp.DPXGBRegressor(
        epsilon=1.0, delta=1e-6, target_bounds=(0.3, 0.9), n_estimators=1, base_score=base
    ).fit(X, y)
    raw, predicted = model.predict(X, output_margin=True), model.predict(X)
    assert (raw.max() < 0.3) if base < 0 else (raw.min() > 0.9)
    assert predicted.dtype == np.float32
    assert predicted.min().astype(np.float64) >= 0.3
    assert predicted.max().astype(np.float64) <= 0.9
    again = xgb_dp.DPXGBRegressor()
    again.load_model(model.get_booster().save_raw())
    np.testing.assert_array_equal(again.predict(X), predicted)
