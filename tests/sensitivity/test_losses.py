"""The plugin's own losses: no row or person moves the sums further than is stated."""

import math
from typing import Any

import hypothesis.strategies as st
import numpy as np
import numpy.typing as npt
import pytest
import xgboost as xgb
from hypothesis import given

from tests.persons.conftest import people
from tests.reference.losses import bounded_pairs, loss_of, unit_of
from tests.reference.splits import RowBound as Bound
from tests.reference.splits import Score
from tests.reference.test_losses_against_cpp import COLUMNS, LOSSES, outputs_of, plan_of
from tests.stated import describe_plan
from xgb_dp.engine import native
from xgb_dp.request.schema import read_schema
from xgb_dp.testing import train_with_plan
from xgb_dp.training.hook import prepare

from ..models import trees
from .cpp import GRID, NO_CLIP
from .strategies import FEWER, HEAVY, LABELS, MARGINS, squared_distance, text_of

CUTS = [{"kind": "cuts", "cuts": [0.0]}]
FINITE = [m for m in MARGINS if math.isfinite(m)]
MINE = [n for n, case in LOSSES.items() if case[2]["name"] not in ("power", "survival")]
MODES = ("prediction", "row_weight", "clip", "filter")
OF_OUTPUT = ({}, {"output_gradient": "0.2", "output_hessian": "0.3"})
"""Bounds of single outputs."""


def plan_for(name: str, **bound: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """One round of one split, from margins that rows bring, with leaves that show their sums."""
    plan, extra = plan_of(name, True, **GRID, leaf=NO_CLIP, base_margin=True, row_bound=bound)
    n = len(CUTS)
    return {**plan, "features": CUTS, "n_features": n, "features_per_tree": n,
            "monotone": [0] * n}, extra  # fmt: skip


def modes_of(name: str) -> tuple[str, ...]:
    """Clips that have a bound for a loss."""
    outputs = outputs_of(LOSSES[name][2])
    known = LOSSES[name][2]["name"] != "program"
    return MODES[:1] if outputs > 1 else MODES if known else MODES[1:]


SIZES = (1, 2, 3, 30, 1000)
"""Numbers of rows of the person that the neighbour lacks."""
BEFORE = people(12, 5)
"""Whose the rows are that both neighbours have."""
LOWEST = {"squared_log": 0.0, "labels": 0.0, "shares": 0.0, "poisson": 0.0, "tweedie": 0.0,
          "gamma": 1e-30}  # fmt: skip


class Rows:
    """Rows whose last ones the neighbour lacks; `who` are the codes of persons."""

    def __init__(self, drawn: list[Any], who: Any = None, ends: Any = None) -> None:
        x, y, w, m = zip(*drawn, strict=True)
        self.x = np.array(x, np.float32)[:, None]
        self.y, self.weight = np.array(y, np.float32), np.array(w, np.float32)
        self.margin = np.array(m, np.float32)
        self.who, self.ends = who, ends

    def matrix(self, n: int) -> xgb.DMatrix:
        """The first n rows."""
        d = xgb.DMatrix(self.x[:n], self.y[:n], weight=self.weight[:n], feature_types=["q"])
        d.set_base_margin(self.margin[:n])
        if self.ends is not None:
            d.set_float_info("label_lower_bound", np.abs(self.y[:n]))
            d.set_float_info("label_upper_bound", self.ends[:n])
        if self.who is not None:
            native.set_persons(d, self.who[:n])
        return d


def any_rows(name: str, rng: Any, before: int, last: int, *, alike: bool = False) -> Rows:
    """Any labels that the objective knows, any weights and margins; all last rows may be alike."""
    loss, n = LOSSES[name][2], before + last
    labels = [y for y in (*LABELS, 0.25, 1.0) if LOWEST.get(name, -math.inf) <= y]
    if name in ("shares", "labels"):
        labels = [y for y in labels if y <= 1.0]
    columns = (outputs_of(loss),) if name in COLUMNS else ()
    each = [
        rng.choice((-1.0, 1.0), n),
        rng.choice(np.array(labels, np.float32), (n, *columns)),
        rng.choice(np.array(HEAVY, np.float32), n),
        rng.choice(np.array(FINITE, np.float32), (n, outputs_of(loss))),
    ]
    for column in each if alike else []:
        column[before:] = column[-1]
    ends = None
    if loss["name"] == "survival":
        first = np.abs(each[1].astype(float))
        ends = np.choose(rng.integers(0, 3, n), [first, 2 * first + 1, np.inf * np.ones(n)])
    return Rows(list(zip(*each, strict=True)), ends=ends)


def crowd(name: str, rng: Any, size: int, *, alike: bool = False) -> Rows:
    """Rows of persons, the last of whom has `size` of them."""
    rows = any_rows(name, rng, len(BEFORE), size, alike=alike)
    rows.who = np.append(BEFORE, np.full(size, BEFORE.max() + 1))
    return rows


def sums_of(plan: dict[str, Any], extra: dict[str, Any], data: Rows, n: int) -> Any:
    """Exact integers (G, H) of all leaves of a round, read off the model.

    An output that repeats the first one's leaves has no sums of its own.
    """
    bound, lam = Bound.of(plan), float(plan["leaf"]["lambda"])
    booster = train_with_plan(
        plan, data.matrix(n), 1, [0.5] * plan["num_class"], nthread=1, **extra
    )
    out = []
    for k, tree in enumerate(trees(booster)):
        unit = unit_of(loss_of(plan), 0, k)
        for node in np.flatnonzero(np.array(tree["left_children"]) == -1):
            h, w = tree["sum_hessian"][node], tree["base_weights"][node] / unit
            out += [-w * (h + lam) / bound.g_unit, h / bound.h_unit]
    assert np.abs(out - np.rint(out)).max() < 0.25  # statistics are 32-bit floats
    sums = np.rint(out).astype(np.int64)
    if getattr(loss_of(plan), "shares_leaves", lambda t: False)(0):
        by_output = sums.reshape(plan["num_class"], -1)
        assert (by_output == by_output[0]).all()
        by_output[1:] = 0
    return sums


@pytest.mark.parametrize("unit", ["row", "person"])
@pytest.mark.parametrize("name", LOSSES)
@FEWER
@given(data=st.data())
def test_leaf_sums(name, unit, data):
    """A row or person moves the sums within their sensitivity, whatever leaves its rows are in.

    The C++ sums what the oracle does.
    """
    modes = [m for m in modes_of(name) if unit == "row" or m != "filter"]  # no bound for persons
    mode = data.draw(st.sampled_from(modes))
    more = data.draw(st.sampled_from(OF_OUTPUT)) if mode == "prediction" else {}
    if unit == "person":
        more = more | {"max_rows_per_person": data.draw(st.sampled_from(("1.0", "2.7", "40.0")))}
    plan, extra = plan_for(
        name, mode=mode, gradient_bound=data.draw(st.sampled_from(("0.05", "0.5", "2.5"))),
        # Only Newton steps have rounds whose outputs move together.
        unit_hessian=data.draw(st.booleans()) and name != "all_centred", **more,
    )  # fmt: skip
    plan |= {"unit": unit}
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    if unit == "row":
        before = data.draw(st.integers(0, 8))
        rows = any_rows(name, rng, before, 1)
    else:
        before, size = len(BEFORE), data.draw(st.sampled_from(SIZES))
        rows = crowd(name, rng, size, alike=data.draw(st.booleans()))
    one, other = (sums_of(plan, extra, rows, n) for n in (len(rows.y), before))
    described = describe_plan(text_of(plan))
    assert squared_distance(one, other) <= described["leaf_sensitivity2"]
    # In the tree of one output: the sums of a row, and the gradients of a person in all leaves.
    bound = Bound.of(plan)
    moved = np.abs(one - other).reshape(plan["num_class"], -1, 2).sum(axis=1)
    if mode == "prediction" and unit == "row":
        assert (moved <= bound.output_max).all()
    most = bound.most * bound.output_max[0] // bound.B
    assert (moved[:, 0] <= most).all()
    if plan["class_trees"] == "per_class":
        assert described["score_range"] == 2 * most
    if unit == "row" and rows.ends is None:
        heavy = np.minimum(rows.weight.astype(float), bound.heaviest or np.inf)
        by_output, _ = bounded_pairs(
            loss_of(plan), bound, rows.margin, rows.y.astype(float), heavy, 0
        )
        left = rows.x[:, 0] < 0
        expected = [p[at][:, :2].sum(axis=0) for p in by_output for at in (left, ~left)]
        assert np.abs(one - np.ravel(expected)).max() <= 1  # one row may round to a neighbour


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", ["poisson", "tweedie", "gamma"])
def test_persons_use_the_bound_of_leaves(name, size):
    """Rows that agree add nearly all that a person may, in one leaf: the test above can fail."""
    plan, extra = plan_for(name, mode="row_weight", gradient_bound="0.05")
    plan |= {"unit": "person"}
    rows, last = crowd(name, np.random.default_rng(1), size, alike=True), slice(len(BEFORE), None)
    rows.y[last], rows.margin[last], rows.weight[last] = 4.0, -2.0, 2.0
    one, other = (sums_of(plan, extra, rows, n) for n in (len(rows.y), len(BEFORE)))
    stated = describe_plan(text_of(plan))["leaf_sensitivity2"]
    assert 0.97 * stated < squared_distance(one, other) <= stated


def test_the_worst_row_of_targets():
    """Far off in all targets it attains the bound of all trees together; in one it does not.

    Its weight is the largest.
    """
    plan, extra = plan_for("targets", gradient_bound=repr(math.sqrt(3 * (0.09 + 0.3))))
    margin = (0.0, 0.25, -0.5)
    far, near = Rows([(1.0, (9.0, 9.0, -9.0), 2.0, margin)]), Rows([(1.0, margin, 2.0, margin)])
    one = Rows([(1.0, (9.0, 0.25, -0.5), 2.0, margin)])
    b2 = 1 << 2 * plan["grid_bits"]
    sums = [sums_of(plan, extra, rows_of, 1) for rows_of in (far, one, near)]
    squares = [int((v.astype(np.int64) ** 2).sum()) for v in sums]
    assert 0.99 * b2 < squares[0] <= b2
    assert squares[2] < squares[1] < 0.9 * b2
    # One target moves its own tree by no more than a third of the bound, in squares.
    gradients = [v.reshape(3, -1, 2)[..., 0] for v in sums]
    assert (np.abs(gradients[1]).sum(axis=1) > 0).tolist() == [True, False, False]
    assert (np.abs(gradients[0]).sum(axis=1) > 0).all()


def test_the_worst_row_of_one_target():
    """It moves the utility of one candidate up, and of another down, by the most of a target."""
    plan, _ = plan_for("targets", gradient_bound=repr(math.sqrt(3 * (0.09 + 0.3))))
    share = 0.3 / math.sqrt(3 * (0.09 + 0.3))
    plan["row_bound"] |= {"output_gradient": repr(share), "output_hessian": "0.6"}
    bound = Bound.of(plan)
    far, margin = np.array([[9.0, 9.0, -9.0]]), np.array([[0.0, 0.25, -0.5]], np.float32)
    by_output, _ = bounded_pairs(loss_of(plan), bound, margin, far, np.array([2.0]), 0)
    limit = describe_plan(text_of(plan))["score_range"]
    assert (
        limit
        == 2 * math.ceil(share * bound.B)
        < 1.01 / math.sqrt(1 + 0.3 / 0.09) * limit_of_all(plan)
    )
    for pairs in by_output:  # every target attains it at once
        row, sign = pairs[0], int(np.sign(pairs[0, 0]))
        sides = np.array([[sign * 10**7, 0, 1], [-sign * 10**7, 0, 1]])
        phi = Score("l1", bound, 0.5, 1.0).phi
        up, down = (int(phi(side + row)) - int(phi(side)) for side in sides)
        assert limit - 4 <= up - down <= limit


def limit_of_all(plan: dict[str, Any]) -> float:
    """The range without bounds of outputs, over the root of how many there are."""
    unbounded = {**plan["row_bound"], "output_gradient": "1.0", "output_hessian": "1.0"}
    without = describe_plan(text_of({**plan, "row_bound": unbounded}))["score_range"]
    return float(without) / math.sqrt(plan["num_class"])


def test_the_worst_row_of_labels():
    """Sure of the wrong class in all labels it attains the bound of all trees together."""
    plan, extra = plan_for("labels", gradient_bound=repr(0.5 * math.sqrt(3)))
    margin = (40.0, -40.0, 40.0)
    wrong, right = (Rows([(1.0, label, 2.0, margin)]) for label in ((0, 1, 0), (1, 0, 1)))
    b2 = 1 << 2 * plan["grid_bits"]
    squares = [int((sums_of(plan, extra, row, 1) ** 2).sum()) for row in (wrong, right)]
    assert 0.99 * b2 < squares[0] <= b2
    assert squares[1] == 0


@pytest.mark.parametrize("labels", [2, 3, 30])
@pytest.mark.parametrize("leaf", ["newton", "gradient"])
def test_the_bounds_of_one_label_shorten_no_row(labels, leaf):
    """They are attained where a row is sure of one label and of no other, or of none."""
    params = {"tree_method": "dp_hist", "objective": "binary:logistic", "dp_epsilon": 1.0,
              "dp_delta": 1e-6, "dp_leaf": leaf}  # fmt: skip
    matrix = xgb.DMatrix(np.zeros((1, 1)), np.zeros((1, labels)))
    bound = prepare(params, read_schema(matrix), 2).settings.row_bound
    largest: list[npt.NDArray[np.float64]] = []
    rng = np.random.default_rng(3)
    margins = [np.append(40.0, np.zeros(labels - 1)), np.zeros(labels)]
    for margin in (*margins, *rng.normal(scale=5, size=(2000, labels))):
        p = 1 / (1 + np.exp(-margin))
        g, h = np.maximum(p, 1 - p), np.ones(labels) if leaf == "gradient" else p * (1 - p)
        norm = math.sqrt((g * g + bound.hessian_weight * h * h).sum())
        factor = min(1.0, bound.gradient_bound / norm) / bound.gradient_bound
        largest.append(factor * np.array([g.max(), math.sqrt(bound.hessian_weight) * h.max()]))
    most = np.max(largest, axis=0)
    stated = np.array([bound.output_gradient, bound.output_hessian])
    # Up to the rounding of these floats: the trainer rounds the bounds up to its grid.
    assert (most <= stated * (1 + 1e-12)).all()
    assert (most >= [0.9 * stated[0], 0.7 * stated[1]]).all()


WORST = {
    "shares": (0.5, 1.0),
    "absolute": (0.5, 9.0),
    "pseudo_huber": (4 / math.hypot(1.5, 4), 9.0),
    "targets": (0.3 * math.sqrt(3), (9.0, 9.0, -9.0)),
}
"""Gradient norm and label of the row that is furthest off, whose margins are 0."""


@pytest.mark.parametrize("name", WORST)
def test_unit_hessians_count_once(name):
    """The row with the worst label attains the bound that its own norm is, and is not shortened."""
    gradient, label = WORST[name]
    outputs = outputs_of(LOSSES[name][2])
    largest = math.sqrt(gradient**2 + outputs * 0.3)
    plan, extra = plan_for(name, gradient_bound=repr(largest), unit_hessian=True)
    row = Rows([(1.0, label, 2.0, (0.0,) * outputs)])
    b2 = 1 << 2 * plan["grid_bits"]
    assert 0.99 * b2 < int((sums_of(plan, extra, row, 1) ** 2).sum()) <= b2


@pytest.mark.parametrize("alpha", [0.01, 0.1, 0.3, 0.5, 0.7, 0.95])
def test_hessians_of_quantiles_are_free(alpha):
    """With r = 2 m / 3 no row has a larger norm than one far away, m = max(alpha, 1 - alpha)."""
    u: npt.NDArray[np.float64] = np.linspace(-1.0, 1.0, 400_001)
    m = max(alpha, 1 - alpha)
    g, h = 0.5 + 0.75 * u - 0.25 * u**3 - alpha, 0.75 * (1 - u * u)
    assert (g * g + 2 * m / 3 * h * h).max() <= m * m * (1 + 1e-12)
    assert (g * g + 2.02 * m / 3 * h * h).max() > m * m  # no more is free


@pytest.mark.parametrize("name", [n for n in MINE if "prediction" in modes_of(n)])
def test_norms_do_not_depend_on_the_label(name):
    """They are those of the worst label in the range, as far as quantiles do not cross."""
    plan, _ = plan_for(name)
    loss, bound = loss_of(plan), Bound.of(plan)
    rng = np.random.default_rng(1)
    margin = np.sort(rng.uniform(*bound.target, (200, plan["num_class"])), axis=1)
    norms = loss.norms(margin, bound.r, 0)
    ranges = getattr(loss, "ranges", bound.target)
    for y in np.linspace(*ranges, 41):
        g, h = loss.pairs(margin, np.broadcast_to(y, (len(margin), *np.shape(y))), 0)
        norms_of_label = np.sqrt((g * g).sum(axis=1) + bound.r * (h * h).sum(axis=1))
        assert (norms_of_label <= norms * (1 + 1e-9)).all()


@pytest.mark.parametrize("name", ["poisson", "tweedie", "gamma", "normal", "logistic", "extreme"])
def test_the_factor_of_a_prediction_is_that_of_every_label(name):
    """No label is cut where the norm is the largest one: mean gradients are not biased."""
    times = LOSSES[name][2]["name"] == "survival"
    plan, extra = plan_for(name, mode="prediction", target_lower="0.5" if times else "0.0")
    b = 1 << plan["grid_bits"]
    for margin in (-1.0, 0.0, 1.0):
        moved = []
        for y, end in ((0.5, 0.5), (2.0, 2.0), (4.0, 4.0), (2.0, math.inf))[: 3 + times]:
            row = Rows([(1.0, y, 1.0, (margin,))], ends=np.array([end]) if times else None)
            moved.append(np.hypot(*sums_of(plan, extra, row, 1).reshape(-1, 2).sum(axis=0)))
        assert max(moved) <= b + 1
        assert sum(abs(v - b) < 1.5 for v in moved) <= 2  # both ends of the range at most
