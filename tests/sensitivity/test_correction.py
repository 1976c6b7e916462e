"""The correction of the mean: what a row or person adds to its sums, in oracle and trainer."""

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
from tests.reference.correction import correct_factor, correct_mean, factor_sums, residual_sums
from tests.reference.draws import Noise
from tests.reference.losses import loss_of
from tests.reference.plans import Plan, merge
from tests.reference.test_losses_against_cpp import plan_of
from tests.reference.trainer import RowBound as Bound
from tests.stated import describe_plan
from xgb_dp.accounting import sensitivity
from xgb_dp.engine import native
from xgb_dp.planning import dump
from xgb_dp.testing import claim_plan

from ..models import events, trees
from .strategies import EXAMPLES, text_of

NO_CUT: list[Any] = [{"kind": "cuts", "cuts": []}]
ON = {"correction": {"on": True, "sigma2": 0}}
ANCHORS = 7
BASE = 0.5
ANY = st.floats(allow_nan=True, allow_infinity=True, width=32)
SIZES = (1, 2, 3, 7, 40, 1000)
LABELS = (0.0, 0.5, 4.0, -4.0, 9.0, -0.3, 1.7, 1e-30, 1e30, -1e30, 3e38)
SHIFTS = (0.5, 4.0, -4.0, -0.3, 2.0, 5.0, -30.0, -1e3, 1e6)
WEIGHTS = (0.0, 1e-30, 0.3, 1.0, 2.0, 3.0, 1e30)
LARGEST = {"squared": 2.0, "poisson": 8.0, "tweedie": 8.0, "gamma": 8.0}
"""The most that one unit adds to the mean of the others, by loss: in half widths, or a factor."""


def sums_of_units(plan: Plan, margin: Any, y: Any, weight: Any, who: Any = None) -> tuple[int, int]:
    """Both sums of the oracle, after a tree that adds nothing."""
    bound, loss = Bound.of(plan), loss_of(plan)
    rows = [np.asarray(v, dtype=np.float64) for v in (margin, y, weight)]
    with np.errstate(all="ignore"):
        if loss is not None:
            return factor_sums(bound, loss, *rows, who)
        return residual_sums(bound, (rows[0] - rows[1]) * rows[2], rows[2], rows[1], 0 * rows[1],
                             who)  # fmt: skip


def plan_with(name: str, unit: str, **bound: str) -> tuple[Plan, Plan]:
    """One tree of all rows that adds nothing itself, and what XGBoost is told besides."""
    tree = {"rounds": 1, "depth": 1, "base_margin": True, "unit": unit, "row_bound": bound, **ON,
            "leaf": {"lambda": "1e12", "shrinkage": False, "max_delta_step": "0.0"}}  # fmt: skip
    if name == "squared":
        plan = make_plan(SQUARED, True, NO_CUT, **tree)
        return merge(plan, {"row_bound": {"max_weight": "1.0"} | bound}), {}
    plan, extra = plan_of(name, True, **tree)
    return plan | {
        "features": NO_CUT,
        "n_features": 1,
        "features_per_tree": 1,
        "monotone": [0],
    }, extra


def shifts(
    name: str, unit: str, y: Any, margin: Any, weight: Any, **bound: str
) -> tuple[float, float]:
    """What a unit moves the mean of seven others by, in the trainer and in the oracle.

    The labels of the others are what is predicted, and they have the largest weight.
    """
    plan, extra = plan_with(name, unit, **bound)
    if name == "squared":
        base: tuple[float, ...] = (BASE, BASE, 1.0)
    else:
        base = (1.0, 0.0, 2.0)
    labels, margins, weights = (
        np.append(np.full(ANCHORS, value), column).astype(np.float32)
        for value, column in zip(base, (y, margin, weight), strict=True)
    )
    who = np.append(np.arange(ANCHORS), np.full(np.size(y), ANCHORS))
    d = xgb.DMatrix(np.zeros((len(labels), 1)), labels, weight=weights, nthread=1)
    d.set_base_margin(margins)
    if unit == "person":
        native.set_persons(d, who)
    [grown] = trees(train(plan, d, **extra))
    node = 1 if grown["sum_hessian"][1] > grown["sum_hessian"][2] else 2
    tree: Any = {"left": [1, -1, -1], "base_weight": [0.0] * 3, "leaf": [0.0] * 3}
    rows = [v.astype(np.float64) for v in (labels, weights)]
    where = np.full(len(labels), node)
    codes = who if unit == "person" else None
    if name == "squared":
        g = ((margins - labels) * weights).astype(np.float64)
        correct_mean(plan, tree, where, g, rows[1], rows[0], Noise(plan), codes)
        scale = float(plan["row_bound"]["scale"])
        return float(grown["split_conditions"][node]) / scale, float(tree["leaf"][node]) / scale
    correct_factor(plan, loss_of(plan), tree, where, margins, *rows, Noise(plan), codes)
    return math.expm1(grown["split_conditions"][node]), math.expm1(tree["leaf"][node])


def train(plan: Plan, d: xgb.DMatrix, **extra: Any) -> xgb.Booster:
    params = {
        "tree_method": "dp_hist", "objective": plan["objective"],
        "dp_plan": (text := text_of(plan)), "nthread": 1, "base_score": 1.0,
        "disable_default_eval_metric": True, **extra,
    }  # fmt: skip
    booster = xgb.Booster(params, [d])
    claim_plan(booster, text, d)
    booster.update(d, 0)
    return booster


@given(y=ANY, g=ANY, h=ANY, step=ANY)
@example(4.0, 8.0, 1.0, 0.0)
@example(-4.0, -math.inf, 1.0, 0.0)
@settings(max_examples=500, deadline=None)
def test_a_row_keeps_the_bound_in_the_oracle(y, g, h, step):
    bound = Bound.of(plan_with("squared", "row")[0])
    with np.errstate(all="ignore"):
        residuals, ones = residual_sums(bound, *(np.array([v]) for v in (g, h, y, step)))
    assert residuals * residuals + ones * ones <= sensitivity.correction_sens2()


@given(y=ANY, margin=ANY, weight=st.floats(0, 3e38) | st.sampled_from(WEIGHTS))
@example(4.0, -3e38, 1.0)
@example(0.0, 3e38, 1.0)
@settings(max_examples=500, deadline=None)
def test_a_row_keeps_the_bound_of_the_factor_in_the_oracle(y, margin, weight):
    plan, _ = plan_with("poisson", "row")
    residuals, means = sums_of_units(plan, [margin], [y], [weight])
    assert residuals * residuals + means * means <= sensitivity.correction_sens2()


@pytest.mark.parametrize("unit", ["row", "person"])
@pytest.mark.parametrize("name", LARGEST)
@EXAMPLES
@given(data=st.data())
def test_a_unit_keeps_the_bound_in_the_trainer(name, unit, data):
    """Trainer and oracle agree, and no unit moves the mean of the others further than stated."""
    size = data.draw(st.sampled_from(SIZES)) if unit == "person" else 1
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    y, margin, weight = (rng.choice(v, size) for v in (LABELS, SHIFTS, WEIGHTS))
    if name != "squared":
        y, margin = np.maximum(np.abs(y), 1e-30), np.minimum(margin, 5.0)
    with np.errstate(all="ignore"):
        if not np.isfinite(np.float32(margin - y) * weight.astype(np.float32)).all():
            return
    shift, expected = shifts(name, unit, y, margin, weight)
    assert abs(shift) <= 2 * LARGEST[name] / ANCHORS
    assert shift == pytest.approx(expected, rel=1e-4, abs=1e-6)
    who = np.zeros(size, dtype=np.int64)
    sums = sums_of_units(plan_with(name, unit)[0], margin, y, weight, who)
    assert sums[0] ** 2 + sums[1] ** 2 <= sensitivity.correction_sens2()


UNITS = [("row", 1), *(("person", size) for size in SIZES)]


@pytest.mark.parametrize(("unit", "size"), UNITS)
def test_the_bound_is_attained(unit, size):
    """A prediction at one end and a label at the other: 2^18, and 2^16 at the end.

    Rows of a person that agree are one row, also within the range.
    """

    def shift(y: float, margin: float, unit: str = unit, size: int = size) -> float:
        return shifts("squared", unit, [y] * size, [margin] * size, [1.0] * size)[0]

    assert shift(4.0, -4.0) == pytest.approx(2.0 / (ANCHORS + 1), rel=1e-5)
    assert shift(4.0, -1e3) == pytest.approx(2.0 / ANCHORS, rel=1e-5)
    assert shift(1.7, -0.3) == pytest.approx(shift(1.7, -0.3, "row", 1), abs=1e-5)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", ["poisson", "tweedie", "gamma"])
def test_the_factor_counts_a_person_as_one_row(name, size):
    one, _ = shifts(name, "person", [4.0], [-1.0], [2.0])
    many, _ = shifts(name, "person", [4.0] * size, [-1.0] * size, [2.0] * size)
    assert one > 0.05
    assert many == pytest.approx(one, rel=1e-4)


@pytest.mark.parametrize("mode", ["clip", "row_weight"])
def test_weights_count_up_to_their_declared_bound(mode):
    """The row weighs as much as four of the others, or as the heaviest that is allowed."""
    for weight in (4.0, 8.0):
        shift, expected = shifts("squared", "row", 4.0, -4.0, weight, mode=mode, max_weight="4.0")
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
