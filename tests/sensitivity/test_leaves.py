"""Sums of leaves, of the oracle and of the C++, move within their sensitivity.

By one row, or by one person with 1 to 1,000 rows.
"""

import numpy as np
import numpy.typing as npt
import pytest
import xgboost as xgb
from hypothesis import given
from hypothesis import strategies as st

from tests.reference.candidates import FLT_MAX
from tests.reference.comparison import BINARY, LOGISTIC, MULTICLASS, SOFTMAX, SQUARED, make_plan
from tests.reference.leaves import row_variance
from tests.reference.persons import bound_persons, spread_persons
from tests.reference.trainer import RowBound as Bound
from tests.stated import describe_plan
from xgb_dp.accounting.sensitivity import RowBound

from .cpp import GRID, NO_CLIP, PAST, cpp_leaf_sums
from .strategies import (
    CUTS,
    EXAMPLES,
    HEAVY,
    MORE,
    SIZES,
    WEIGHTS,
    Rows,
    bounded,
    pairs_of,
    plans,
    round_sens2,
    rows,
    squared_distance,
    text_of,
)


@pytest.mark.parametrize("unit", ["row", "person"])
@pytest.mark.parametrize("objective", [*BINARY, SQUARED, *MULTICLASS])
@MORE
@given(data=st.data())
def test_leaf_sums(objective, unit, data):
    """Sums of all leaves of all trees of a round, L2 and L1; each tree has leaves of its own."""
    drawn = data.draw(rows(objective, ["cuts"], unit=unit))
    plan = data.draw(plans(objective, unit=unit))
    squares = absolute = 0
    for k, pairs in enumerate(bounded(plan, drawn)):
        sums = np.zeros((3, 2), dtype=np.int64)
        np.add.at(sums, ((drawn.nodes + k) % 3)[drawn.last], pairs[drawn.last, :2])
        squares += squared_distance(sums, 0 * sums)
        absolute += int(np.abs(sums).sum())
    assert squares <= round_sens2(plan)
    assert absolute <= RowBound.from_plan(plan).round_sens1(plan["grid_bits"], plan["num_class"])


@pytest.mark.parametrize("objective", [LOGISTIC, SQUARED])
@EXAMPLES
@given(data=st.data())
def test_spread_leaf_sums(objective, data):
    """Leaves over which persons spread: the norm of what a person adds to them has a bound."""
    drawn = data.draw(rows(objective, ["cuts"], unit="person"))
    plan = data.draw(plans(objective, unit="person", split="random"))
    plan["leaf"] |= {"spread": True}
    bound, last = Bound.of(plan), drawn.last
    bounded_rows = bounded(plan, drawn)
    where, who = drawn.nodes[last], np.zeros(int(last.sum()), dtype=np.int64)
    both = [[pairs[last] for pairs in of] for of in (pairs_of(plan, drawn), bounded_rows)]
    gained = spread_persons(bound, row_variance(plan), *both, who, where, 3)
    sums = np.zeros((3, 2), dtype=np.int64)
    np.add.at(sums, where, both[1][0][:, :2])
    sums += gained[0, :, :2]
    root = bounded_rows[0][:, :2].sum(axis=0) // 3
    less = bounded_rows[0][~last, :2].sum(axis=0) // 3
    limit = bound.most**2 + bound.most_leaf_hessian**2
    assert squared_distance(sums, 0 * sums) <= max(round_sens2(plan), limit)
    moved = squared_distance(sums, 0 * sums) + squared_distance(root, less)
    stated_squares = describe_plan(text_of(plan))["leaves"]["sensitivity2"]
    assert moved <= stated_squares == RowBound.from_plan(plan).spread_sens2(plan["grid_bits"])


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("mode", ["prediction", "row_weight", "clip"])
def test_persons_use_their_bound(mode, size):
    """A person of any number of rows on one side adds nearly all that it may, and no more."""
    bound = Bound(mode, 0.5, 0.25, 0.25, 1.0, (0.0, 0.0), 1 << 12, persons=True)
    n = np.full(size, 1.0)
    pairs = [bound.quantise(0.9 * n, 0.09 * n, 0.0 * n, False)]
    norms = bound.norms(0.9 * n[:, None], 0.09 * n[:, None], 0.0 * n, n)
    bound_persons(bound, pairs, np.zeros(size, dtype=np.int64), norms)
    g, h = (int(v) for v in pairs[0].sum(axis=0)[:2])
    largest = bound.hessian_max if mode == "clip" else bound.B
    reached = max(g / bound.B, h / largest) if mode == "clip" else np.hypot(g, h) / bound.B
    assert 0.995 < reached <= 1.0


@st.composite
def probabilities(draw: st.DrawFn) -> npt.NDArray[np.float64]:
    """Margins of 2 to 60 classes of which some share the mass and others have none."""
    k = draw(st.integers(2, 60))
    even = draw(st.integers(1, k))
    last = draw(st.sampled_from((-95.0, -3.0, 0.0, 1.0)))
    return np.array([0.0] * even + [last] * (k - even)) + draw(st.sampled_from((0.0, -50, 1e3)))


@MORE
@given(margin=probabilities(), data=st.data())
def test_softmax_rounds_of_many_classes(margin, data):
    k = len(margin)
    plan = data.draw(plans(SOFTMAX, num_class=k))
    row = Rows(
        np.zeros((1, 1), np.float32),
        np.array([data.draw(st.integers(0, k - 1))], np.float32),
        np.array([data.draw(st.sampled_from(WEIGHTS))], np.float32),
        margin.astype(np.float32)[None],
        np.zeros(1, np.int64),
    )
    moved = sum(squared_distance(p[:, :2], 0 * p[:, :2]) for p in pairs_of(plan, row))
    assert moved <= round_sens2(plan)


# --------------------------------------------------------------------- in the C++
@pytest.mark.parametrize("unit", ["row", "person"])
@pytest.mark.parametrize("objective", [*BINARY, SQUARED, *MULTICLASS])
@EXAMPLES
@given(data=st.data())
def test_leaf_sums_in_the_cpp(objective, unit, data):
    """The C++'s own sums, with weights beyond the bound and extreme margins.

    The leaves are those of a tree that is the same for both data sets.
    """
    drawn = data.draw(rows(objective, ["cuts"], HEAVY, unit))
    deep = {"split": "random", "depth": 3, "rounds": 1, "grid_bits": 10}
    plan = data.draw(plans(objective, unit=unit, **(deep if unit == "person" else GRID),
                           leaf=NO_CLIP))  # fmt: skip
    if unit == "person":
        plan["features"] = [{"kind": "cuts", "cuts": CUTS}]
    if plan["row_bound"]["mode"] == "clip" and plan["row_bound"]["hessian_weight"] == "4.0":
        plan["row_bound"]["hessian_weight"] = "1.0"  # integers that 32-bit statistics can hold
    start = PAST[objective, data.draw(st.sampled_from(((0.0, 0.0), (30.0, -100.0), (1e30, -1e30))))]
    sums = [cpp_leaf_sums(plan, d, start) for d in drawn.matrices()]
    assert len(sums[0]) == 2 * 2 ** plan["depth"] * plan["num_class"]
    assert squared_distance(*sums) <= round_sens2(plan)


@pytest.mark.parametrize("mode", ["row_weight", "clip"])
@pytest.mark.parametrize("weight", [1.0, FLT_MAX])
def test_gradients_that_overflow_count_as_nothing(mode, weight):
    """A heavy row of an extreme margin has an infinite gradient in 32 bits."""
    features = [{"kind": "cuts", "cuts": []}]
    plan = make_plan(SQUARED, True, features, leaf=NO_CLIP, row_bound={"mode": mode}, **GRID)
    d = xgb.DMatrix(np.zeros((1, 1)), np.zeros(1), weight=np.array([weight], np.float32))
    sums = cpp_leaf_sums(plan, d, PAST[SQUARED, (1e30, -1e30)])
    assert sums.any() == (weight == 1.0)


@pytest.mark.parametrize("objective", [SQUARED, *MULTICLASS])
def test_heavy_rows_count_as_the_heaviest_allowed(objective):
    """Where the clip does not reach: the sensitivity of a round rests on the bound of weights."""
    features = [{"kind": "cuts", "cuts": []}]
    bound = {"gradient_bound": "20.0", "hessian_weight": "0.25", "max_weight": "2.0"}
    plan = make_plan(objective, True, features, leaf=NO_CLIP, row_bound=bound, **GRID)

    def sums(weight: float) -> npt.NDArray[np.int64]:
        d = xgb.DMatrix(np.zeros((1, 1)), np.ones(1), weight=np.array([weight], np.float32))
        return cpp_leaf_sums(plan, d, PAST[objective, (0.0, 0.0)])

    allowed = sums(2.0)
    assert np.abs(allowed - sums(1.0)).max() > 10
    for weight in (2.5, 3.0, 1e6):
        assert np.abs(allowed - sums(weight)).max() <= 1  # 32-bit gradients of other weights
