"""Losses of the plugin's own: a person of 1 to 1,000 rows moves no sum further than is stated.

As in `tests/sensitivity`, with one person more instead of one row.
"""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import xgboost as xgb
from hypothesis import given
from hypothesis import strategies as st

from tests.models import trees
from tests.reference.correction import factor_sums
from tests.reference.losses import loss_of
from tests.reference.test_losses_against_cpp import COLUMNS, LOSSES, outputs_of
from tests.reference.trainer import RowBound as Bound
from tests.sensitivity.cpp import IN_THE_CLEAR
from tests.sensitivity.strategies import EXAMPLES, FEWER, HEAVY, LABELS, squared_distance, text_of
from tests.sensitivity.test_losses import FINITE, OF_OUTPUT, Rows, modes_of, plan_for, sums_of
from tests.stated import describe_intercept, describe_plan
from xgb_dp.accounting import sensitivity
from xgb_dp.engine import native
from xgb_dp.testing import claim_plan

from .conftest import people

SIZES = (1, 2, 3, 30, 1000)
BEFORE = people(12, 5)
"""Whose the rows are that both neighbours have."""
LOWEST = {
    "squared_log": 0.0,
    "labels": 0.0,
    "shares": 0.0,
    "poisson": 0.0,
    "tweedie": 0.0,
    "gamma": 1e-30,
}
MEANS = [n for n, case in LOSSES.items() if case[2]["name"] == "power"]
TIMES = [n for n, case in LOSSES.items() if case[2]["name"] == "survival"]


class Crowd(Rows):
    """Rows of persons, the last of whom the neighbour lacks."""

    def __init__(self, name: str, size: int, seed: int, *, alike: bool) -> None:
        rng = np.random.default_rng(seed)
        self.name = name
        self.who = np.append(BEFORE, np.full(size, BEFORE.max() + 1))
        n, outputs = len(self.who), outputs_of(LOSSES[name][2])
        labels = [y for y in (*LABELS, 0.25, 1.0) if LOWEST.get(name, -math.inf) <= y]
        if name in ("shares", "labels"):
            labels = [y for y in labels if y <= 1.0]
        self.x = rng.choice((-1.0, 1.0), n).astype(np.float32)[:, None]
        of_row = (outputs,) if name in COLUMNS else ()
        self.y = rng.choice(np.array(labels, np.float32), (n, *of_row))
        self.weight = rng.choice(np.array(HEAVY, np.float32), n)
        self.margin = rng.choice(np.array(FINITE, np.float32), (n, outputs))
        if alike:
            for of_rows in (self.x, self.y, self.weight, self.margin):
                of_rows[len(BEFORE) :] = of_rows[-1]
        wide: npt.NDArray[np.float64] = np.abs(self.y.astype(float).reshape(n, -1)[:, 0])
        self.ends = np.choose(rng.integers(0, 3, n), [wide, 2 * wide + 1, np.inf * np.ones(n)])

    def matrix(self, n: int) -> xgb.DMatrix:
        """The rows of the first persons, who have n rows together."""
        d = super().matrix(n)
        if self.name in TIMES:
            d.set_float_info("label_lower_bound", np.abs(self.y[:n]))
            d.set_float_info("label_upper_bound", self.ends[:n])
        native.set_persons(d, self.who[:n])
        return d


@st.composite
def crowds(draw: st.DrawFn, name: str) -> Crowd:
    """Some persons, and one more of whom all rows may be alike, or none."""
    seed = draw(st.integers(0, 2**32))
    return Crowd(name, draw(st.sampled_from(SIZES)), seed, alike=draw(st.booleans()))


@pytest.mark.parametrize("name", LOSSES)
@FEWER
@given(data=st.data())
def test_leaf_sums(name, data):
    """Sums of all leaves of a round, whatever leaves and margins the rows of the person have."""
    modes = [mode for mode in modes_of(name) if mode != "filter"]  # has no bound for persons
    mode = data.draw(st.sampled_from(modes))
    of_single = data.draw(st.sampled_from(OF_OUTPUT)) if mode == "prediction" else {}
    plan, extra = plan_for(
        name,
        mode=mode,
        gradient_bound=data.draw(st.sampled_from(("0.05", "0.5", "2.5"))),
        unit_hessian=data.draw(st.booleans()),
        max_rows_per_person=data.draw(st.sampled_from(("1.0", "1.0", "2.7", "40.0"))),
        **of_single,
    )
    plan |= {"unit": "person"}
    crowd = data.draw(crowds(name))
    with_person, without = (sums_of(plan, extra, crowd, n) for n in (len(crowd.y), len(BEFORE)))
    stated = describe_plan(text_of(plan))["leaf_sensitivity2"]
    assert squared_distance(with_person, without) <= stated
    # A selection of one output: its gradients of all leaves, and its range.
    moved = np.abs(with_person - without).reshape(plan["num_class"], -1, 2)[..., 0].sum(axis=1)
    of_output = Bound.of(plan)
    most = of_output.most * of_output.output_max[0] // of_output.B
    assert (moved <= most).all()
    if plan["class_trees"] == "per_class":
        assert describe_plan(text_of(plan))["score_range"] == 2 * most


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", MEANS)
def test_the_bound_of_leaves_is_used(name, size):
    """Rows that agree add nearly all that a person may, in one leaf: the test above can fail."""
    plan, extra = plan_for(name, mode="row_weight", gradient_bound="0.05")
    plan |= {"unit": "person"}
    crowd = Crowd(name, size, 1, alike=True)
    last = slice(len(BEFORE), None)
    crowd.y[last], crowd.margin[last], crowd.weight[last] = 4.0, -2.0, 2.0
    with_person, without = (sums_of(plan, extra, crowd, n) for n in (len(crowd.y), len(BEFORE)))
    stated = describe_plan(text_of(plan))["leaf_sensitivity2"]
    assert 0.97 * stated < squared_distance(with_person, without) <= stated


# ----------------------------------------------------------------------------------- intercepts
def request_of(shift: int, **more: Any) -> dict[str, Any]:
    """A request for sums of labels between 0 and 4."""
    return {
        **IN_THE_CLEAR, "unit": "person", "kind": "regression", "num_class": 1, "sigma2": 0,
        "shift": shift, "target_lower": "0.0", "target_upper": "4.0", "noise_free": True, **more,
    }  # fmt: skip


def moved_by(request: dict[str, Any], who: Any, **rows: npt.NDArray[Any]) -> Any:
    """What the last person moves the released sums by."""
    sums = []
    for n in (len(who), int((who < who.max()).sum())):
        given = {k: v[:n] for k, v in rows.items()}
        d = xgb.DMatrix(np.zeros((n, 1)), **given)
        native.set_persons(d, who[:n])
        sums.append(native.release_before_trees(d, request)["sums"])
    return np.subtract(*sums)


def mean_on_grid(values: Any, low: float, high: float, shift: int) -> int:
    """What a person adds: the mean of its rows on the grid, rounded towards zero."""
    with np.errstate(all="ignore"):
        centred = np.clip((values - low - (high - low) / 2) / ((high - low) / 2), -1, 1)
    grid = np.rint(np.where(np.isnan(centred), 0.0, centred) * 2.0**shift)
    return int(Fraction(int(grid.sum()), len(values)))


@pytest.mark.parametrize("public_num_rows", [False, True])
@EXAMPLES
@given(data=st.data())
def test_sums_with_exposures(public_num_rows, data):
    """Labels, persons and exposures: a person adds the mean of its rows to each."""
    crowd, shift = data.draw(crowds("poisson")), data.draw(st.sampled_from((0, 7, 26)))
    exposures = {"exposure_lower": "0.01", "exposure_upper": "1.0"}
    request = request_of(shift, **exposures, **({"public_num_rows": 1} if public_num_rows else {}))
    moved = moved_by(request, crowd.who, label=crowd.y, base_margin=crowd.margin[:, 0])
    event = describe_intercept(request)
    assert squared_distance(moved, 0 * moved) <= event["sensitivity2"]
    assert event["unit"] == "person"
    assert event["coordinates"] == len(moved)
    last = slice(len(BEFORE), None)
    with np.errstate(over="ignore"):
        exposure = np.exp(crowd.margin[last, 0].astype(np.float64))
    assert moved[-1] == mean_on_grid(exposure, 0.01, 1.0, shift)
    assert moved[0] == mean_on_grid(crowd.y[last].astype(np.float64), 0.0, 4.0, shift)


@pytest.mark.parametrize("public_num_rows", [False, True])
@EXAMPLES
@given(data=st.data())
def test_sums_of_several_targets(public_num_rows, data):
    """A person adds the mean of its rows to the sum of each target, and one to their number."""
    crowd, shift = data.draw(crowds("targets")), data.draw(st.sampled_from((0, 7, 26)))
    ranges = [(-4.0, 4.0), (0.1, 0.3), (-1.0, 2e30)]
    lower, upper = ([repr(end) for end in ends] for ends in zip(*ranges, strict=True))
    counted = {"public_num_rows": 1} if public_num_rows else {}
    request = request_of(shift, **counted) | {"kind": "targets", "lower": lower, "upper": upper}
    moved = moved_by(request, crowd.who, label=crowd.y)
    event = describe_intercept(request)
    assert squared_distance(moved, 0 * moved) <= event["sensitivity2"]
    assert event["coordinates"] == len(moved)
    labels = crowd.y[len(BEFORE) :].astype(np.float64)
    wanted = [mean_on_grid(labels[:, k], low, high, shift) for k, (low, high) in enumerate(ranges)]
    assert list(moved) == wanted + ([] if public_num_rows else [1 << shift])


@EXAMPLES
@given(data=st.data())
def test_sums_of_times(data):
    """Logarithms of first times; a time of 0 is at the lower end."""
    crowd, shift = data.draw(crowds("normal")), data.draw(st.sampled_from((0, 8, 26)))
    low, high = math.log(0.5), math.log(40.0)
    request = request_of(shift, times=True, target_lower=repr(low), target_upper=repr(high))
    first = np.abs(crowd.y)
    moved = moved_by(
        request, crowd.who, label_lower_bound=first, label_upper_bound=np.full(len(first), np.inf)
    )
    assert squared_distance(moved, 0 * moved) <= describe_intercept(request)["sensitivity2"]
    with np.errstate(divide="ignore"):
        logs = np.log(first[len(BEFORE) :].astype(np.float64))
    expected = mean_on_grid(logs, low, high, shift)
    assert abs(moved[0] - expected) <= 1 and moved[1] == 1 << shift  # logarithms differ in one bit


# ----------------------------------------------------------------------------------- correction
ANCHORS = 7


def factor_of(name: str, y: Any, margin: Any, weight: Any) -> float:
    """What a person with these rows moves the leaf of all rows by, less 1, beside seven others."""
    plan, extra = plan_for(name, mode="prediction")
    plan |= {"unit": "person"}
    plan["features"] = [{"kind": "cuts", "cuts": []}]
    plan["leaf"] |= {"lambda": "1e12"}
    plan["correction"] |= {"on": True, "sigma2": 0}
    crowd = Crowd(name, len(y), 1, alike=False)
    one, zero, full = np.ones(ANCHORS), np.zeros(ANCHORS), np.full(ANCHORS, 2.0)
    crowd.x = np.zeros((ANCHORS + len(y), 1), np.float32)
    crowd.y = np.append(one, y).astype(np.float32)
    crowd.margin = np.append(zero, margin).astype(np.float32)[:, None]
    crowd.weight = np.append(full, weight).astype(np.float32)
    crowd.who = np.append(np.arange(ANCHORS), np.full(len(y), ANCHORS))
    params = {
        "tree_method": "dp_hist", "objective": plan["objective"],
        "dp_plan": (text := text_of(plan)),
        "nthread": 1, "base_score": 1.0, "disable_default_eval_metric": True, **extra,
    }  # fmt: skip
    booster = xgb.Booster(params, [d := crowd.matrix(len(crowd.y))])
    claim_plan(booster, text, d)
    booster.update(d, 0)
    [tree] = trees(booster)
    node = 1 if tree["sum_hessian"][1] > tree["sum_hessian"][2] else 2
    return math.expm1(tree["split_conditions"][node])


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", MEANS)
def test_the_factor_counts_a_person_as_one_row(name, size):
    """Rows that agree are one row; the mean of rows that do not is rounded towards zero."""
    one = factor_of(name, [4.0], [-1.0], [2.0])
    many = factor_of(name, np.full(size, 4.0), np.full(size, -1.0), np.full(size, 2.0))
    assert one > 0.05
    assert many == pytest.approx(one, rel=1e-4)


@pytest.mark.parametrize("name", MEANS)
@FEWER
@given(data=st.data())
def test_no_person_moves_the_factor_further(name, data):
    """Each sum by at most its bound, in the oracle; and the leaf as one row could at most."""
    size = data.draw(st.sampled_from(SIZES[:4]))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    y = rng.choice((1e-30, 0.3, 4.0, 1e30), size)
    margin = rng.choice((-30.0, -1.0, 0.0, 2.0, 5.0), size)
    weight = rng.choice((0.0, 1e-30, 1.0, 2.0, 1e30), size)
    assert abs(factor_of(name, y, margin, weight)) <= 2 * 4.0 / ANCHORS * 2.0
    plan, _ = plan_for(name, mode="prediction")
    sums = factor_sums(
        Bound.of(plan), loss_of(plan), margin, y, weight, np.zeros(size, dtype=np.int64)
    )
    assert sums[0] ** 2 + sums[1] ** 2 <= sensitivity.correction_sens2()
