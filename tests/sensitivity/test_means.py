"""Counts, amounts and times: what one row adds to sums of leaves, intercepts and corrections."""

import math
from typing import Any

import numpy as np
import pytest
import xgboost as xgb
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.reference.comparison import make_plan
from tests.reference.correction import factor_sums
from tests.reference.losses import PowerLoss
from tests.reference.plans import merge
from tests.reference.trainer import RowBound as Bound
from tests.stated import describe_intercept
from xgb_dp.accounting import sensitivity
from xgb_dp.engine import native
from xgb_dp.testing import claim_plan

from ..models import trees
from .cpp import IN_THE_CLEAR
from .strategies import EXAMPLES, squared_distance, text_of

FINITE = st.floats(allow_nan=False, allow_infinity=False, width=32)
ANY = st.one_of(FINITE, st.floats(-20, 20, width=32), st.sampled_from([0.0, 1e-30, 3e38, -3e38]))
WEIGHT = st.one_of(st.floats(0, 3, width=32), st.sampled_from([0.0, 1e-30, 1e30]))
POWER = {"name": "power", "mean": "0.8", "cap": "2.5", "capped_mean": "0.7", "start": "0.0"}
LOSSES: dict[str, tuple[str, dict[str, str]]] = {
    "poisson": ("count:poisson", POWER | {"power": "1.0"}),
    "tweedie": ("reg:tweedie", POWER | {"power": "1.7"}),
    "gamma": ("reg:gamma", POWER | {"power": "2.0"}),
    "normal": ("survival:aft", {"name": "survival", "distribution": "normal", "scale": "0.5"}),
    "logistic": ("survival:aft", {"name": "survival", "distribution": "logistic", "scale": "1.0"}),
    "extreme": ("survival:aft", {"name": "survival", "distribution": "extreme", "scale": "2.0"}),
}
NO_CUT: list[Any] = [{"kind": "cuts", "cuts": []}]


def plan_of(name: str, mode: str, **changes: Any) -> dict[str, Any]:
    """One tree without a split: its leaves have the sums of all rows."""
    objective, loss = LOSSES[name]
    bound = {
        "mode": mode,
        "gradient_bound": "1.0",
        "hessian_weight": "0.25",
        "target_lower": "0.5" if loss["name"] == "survival" else "0.0",
        "target_upper": "4.0",
    }
    plan = make_plan(
        objective, True, NO_CUT, grid_bits=10, rounds=1, depth=1, base_margin=True, loss=loss,
        row_bound=bound, leaf={"shrinkage": False, "max_delta_step": "0.0"},
    )  # fmt: skip
    return merge(plan, changes)


def train(plan: dict[str, Any], d: xgb.DMatrix) -> list[dict[str, Any]]:
    """The trees of one round."""
    extra = {"reg:tweedie": {"tweedie_variance_power": 1.7}}.get(plan["objective"], {})
    if plan["objective"] == "survival:aft":
        loss = plan["loss"]
        extra = {
            "aft_loss_distribution": loss["distribution"],
            "aft_loss_distribution_scale": float(loss["scale"]),
        }
    params = {
        "tree_method": "dp_hist", "objective": plan["objective"],
        "dp_plan": (text := text_of(plan)),
        "nthread": 1, "base_score": 1.0, "disable_default_eval_metric": True, **extra,
    }  # fmt: skip
    booster = xgb.Booster(params, [d])
    claim_plan(booster, text, d)
    booster.update(d, 0)
    return trees(booster)


def matrix(name: str, y: Any, end: Any, margin: Any, weight: Any) -> xgb.DMatrix:
    """Rows with their own margins; labels are times and their ends, or numbers."""
    d = xgb.DMatrix(np.zeros((len(y), 1)), nthread=1)
    if LOSSES[name][0] == "survival:aft":
        d.set_float_info("label_lower_bound", np.abs(y))
        d.set_float_info("label_upper_bound", end)
    else:
        d.set_label(np.maximum(np.abs(y), 1e-30))
    d.set_base_margin(margin)
    d.set_weight(weight)
    return d


def sums(plan: dict[str, Any], d: xgb.DMatrix) -> np.ndarray:
    """Exact integers (G, H) of all rows, read off the statistics of the leaves."""
    [tree] = train(plan, d)
    bound, lam = Bound.of(plan), float(plan["leaf"]["lambda"])
    unit = float(plan["loss"].get("scale", 1.0))
    total = np.zeros(2)
    for node in np.flatnonzero(np.array(tree["left_children"]) == -1):
        h, w = tree["sum_hessian"][node], tree["base_weights"][node] / unit
        total += [-w * (h + lam) / bound.g_unit, h / bound.h_unit]
    assert np.abs(total - np.rint(total)).max() < 0.25
    return np.rint(total)


@pytest.mark.parametrize("mode", ["prediction", "row_weight"])
@pytest.mark.parametrize("name", LOSSES)
@settings(EXAMPLES, max_examples=25)
@given(
    y=ANY, end=st.one_of(ANY, st.just(math.inf)), margin=ANY, weight=WEIGHT,
)  # fmt: skip
def test_a_row_moves_the_sums_within_the_bound(name, mode, y, end, margin, weight):
    """Whatever its label, margin and weight are; also where no proof of the loss holds."""
    plan = plan_of(name, mode)
    if LOSSES[name][0] == "survival:aft":
        end = max(end, abs(y))
    labels, ends = np.array([1.0, 2.0, y]), np.array([1.0, math.inf, end])
    margins, weights = np.array([0.0, 1.0, margin]), np.array([1.0, 0.5, weight])
    both = [
        sums(plan, matrix(name, labels[:k], ends[:k], margins[:k], weights[:k])) for k in (3, 2)
    ]
    distance = float(((both[0] - both[1]) ** 2).sum())
    assert distance <= float(1 << 2 * int(plan["grid_bits"]))


@pytest.mark.parametrize("name", LOSSES)
def test_the_factor_of_a_prediction_is_that_of_every_label(name):
    """No label is cut where the norm is the largest one: mean gradients are not biased."""
    plan = plan_of(name, "prediction")
    one = np.ones(1)
    times = LOSSES[name][0] == "survival:aft"
    for margin in (-1.0, 0.0, 1.0):
        moved = []
        for y, end in ((0.5, 0.5), (2.0, 2.0), (4.0, 4.0), (2.0, math.inf)):
            if not times and math.isinf(end):
                continue
            d = matrix(name, np.array([y]), np.array([end]), np.array([margin]), one)
            moved.append(np.hypot(*sums(plan, d)))
        assert max(moved) <= (1 << int(plan["grid_bits"])) + 1
        clipped = [abs(v - (1 << int(plan["grid_bits"]))) < 1.5 for v in moved]
        assert sum(clipped) <= 2  # at most both ends of the range are as long as the bound


@settings(EXAMPLES)
@given(
    label=ANY, margin=ANY, shift=st.sampled_from((0, 7, 26)), public_num_rows=st.booleans(),
    bounds=st.sampled_from(((0.0, 4.0), (0.1, 0.3), (0.0, 1e30))),
)  # fmt: skip
@example(0.0, -3e38, 7, False, (0.0, 4.0))
@example(9.0, 3e38, 7, False, (0.0, 4.0))
def test_sums_with_exposures(label, margin, shift, public_num_rows, bounds):
    request = {
        "kind": "regression", "num_class": 1, "sigma2": 0, "shift": shift, "noise_free": True,
        "target_lower": repr(bounds[0]), "target_upper": repr(bounds[1]),
        "exposure_lower": "0.01", "exposure_upper": "1.0", **IN_THE_CLEAR,
    }  # fmt: skip
    if public_num_rows:
        request["public_num_rows"] = 3
    y, margins = np.array([0.2, 1.0, label]), np.array([0.0, -1.0, margin])
    one, other = (
        native.release_before_trees(
            xgb.DMatrix(np.zeros((k, 1)), y[:k], base_margin=margins[:k]), request
        )["sums"]
        for k in (3, 2)
    )
    assert len(one) == (2 if public_num_rows else 3)
    event = describe_intercept(request)
    assert squared_distance(one, other) <= event["sensitivity2"]
    assert np.count_nonzero(np.subtract(one, other)) <= event["coordinates"]
    if margin > 0:  # the largest exposure, whatever the margin is
        assert one[-1] - other[-1] == 1 << shift


@settings(EXAMPLES, max_examples=25)
@given(ANY)
@example(0.0)
def test_sums_of_times(time):
    low, high = math.log(0.5), math.log(40.0)
    request = {
        "kind": "regression", "num_class": 1, "sigma2": 0, "shift": 8, "noise_free": True,
        "times": True, "target_lower": repr(low), "target_upper": repr(high), **IN_THE_CLEAR,
    }  # fmt: skip
    lower = np.array([1.0, 3.0, abs(time)])
    one, other = (
        native.release_before_trees(
            xgb.DMatrix(np.zeros((k, 1)), label_lower_bound=lower[:k],
                        label_upper_bound=np.full(k, np.inf)), request)["sums"]
        for k in (3, 2)
    )  # fmt: skip
    assert squared_distance(one, other) <= describe_intercept(request)["sensitivity2"]
    with np.errstate(divide="ignore"):
        centred = (np.clip(np.log(np.float64(np.float32(abs(time)))), low, high) - low) / (
            high - low
        ) * 2 - 1
    assert one[0] - other[0] == pytest.approx(256 * centred, abs=0.51)  # 0 is at the lower end


@given(ANY, st.one_of(ANY, st.floats(allow_nan=True, width=32)), WEIGHT)
@example(4.0, -3e38, 1.0)
@example(0.0, 3e38, 1.0)
@settings(EXAMPLES)
def test_a_row_keeps_the_bound_of_the_factor_in_the_oracle(y, margin, weight):
    plan = plan_of("poisson", "prediction")
    row = (np.array([v], dtype=np.float64) for v in (margin, y, weight))
    with np.errstate(all="ignore"):
        residuals, means = factor_sums(Bound.of(plan), PowerLoss(plan["loss"]), *row)
    assert residuals * residuals + means * means <= sensitivity.correction_sens2()


@given(ANY, st.floats(-30, 5, width=32), WEIGHT)
@example(4.0, -30.0, 2.0)
@settings(EXAMPLES, max_examples=25)
def test_a_row_keeps_the_bound_of_the_factor_in_the_trainer(y, margin, weight):
    """Seven rows whose labels are as predicted, and one that has anything: it is as the oracle's.

    The others add 7 of the mean, and the row no more than a whole width.
    """
    plan = plan_of(
        "poisson", "prediction", correction={"on": True, "sigma2": 0}, leaf={"lambda": "1e12"}
    )
    labels = np.append(np.ones(7), y).astype(np.float32)
    margins = np.append(np.zeros(7), margin).astype(np.float32)
    weights = np.append(np.full(7, 2.0), weight).astype(np.float32)
    [tree] = train(plan, matrix("poisson", labels, labels, margins, weights))
    node = 1 if tree["sum_hessian"][1] > tree["sum_hessian"][2] else 2
    shift = math.expm1(tree["split_conditions"][node])
    assert abs(shift) <= 2 * 4.0 / 7.0 * 2.0
