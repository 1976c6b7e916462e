"""Sums of leaves, of the oracle and of the C++, move within their sensitivity."""

import numpy as np
import numpy.typing as npt
import pytest
import scipy.sparse as sp
import xgboost as xgb
from hypothesis import given
from hypothesis import strategies as st

from tests.reference.candidates import FLT_MAX
from tests.reference.comparison import BINARY, MULTICLASS, SOFTMAX, SQUARED, make_plan

from .cpp import GRID, NO_CLIP, PAST, cpp_leaf_sums
from .strategies import (
    EXAMPLES,
    HEAVY,
    MORE,
    WEIGHTS,
    Rows,
    pairs_of,
    plans,
    round_sens2,
    rows,
    squared_distance,
)


@pytest.mark.parametrize("objective", [*BINARY, SQUARED, *MULTICLASS])
@MORE
@given(data=st.data())
def test_leaf_sums(objective, data):
    """Sums of all leaves of all trees of a round; each tree has leaves of its own."""
    drawn = data.draw(rows(objective, ["cuts"]))
    plan = data.draw(plans(objective))
    moved = 0
    for k, pairs in enumerate(pairs_of(plan, drawn)):
        leaf = (drawn.nodes + k * np.arange(len(pairs))) % 3
        sums = np.zeros((2, 3, 2), dtype=np.int64)
        np.add.at(sums[0], leaf, pairs[:, :2])
        np.add.at(sums[1], leaf[:-1], pairs[:-1, :2])
        moved += squared_distance(sums[0], sums[1])
    assert moved <= round_sens2(plan)


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
def sparse_rows(data: Rows) -> sp.csr_matrix:
    """One column; missing values are not stored."""
    indptr, values = [0], []
    for (x,) in data.X:
        values += [] if np.isnan(x) else [x]
        indptr.append(len(values))
    return sp.csr_matrix(
        (np.array(values, np.float32), np.zeros(len(values), int), indptr), (len(data.X), 1)
    )


@pytest.mark.parametrize("objective", [*BINARY, SQUARED, *MULTICLASS])
@EXAMPLES
@given(data=st.data())
def test_leaf_sums_in_the_cpp(objective, data):
    """The C++'s own sums, with weights beyond the bound and extreme margins."""
    drawn = data.draw(rows(objective, ["cuts"], HEAVY))
    plan = data.draw(plans(objective, **GRID, leaf=NO_CLIP))
    if plan["row_bound"]["mode"] == "clip" and plan["row_bound"]["hessian_weight"] == "4.0":
        plan["row_bound"]["hessian_weight"] = "1.0"  # integers that 32-bit statistics can hold
    start = PAST[objective, data.draw(st.sampled_from(((0.0, 0.0), (30.0, -100.0), (1e30, -1e30))))]
    X = sparse_rows(drawn)
    one = xgb.DMatrix(X, drawn.y, weight=drawn.weight)
    other = xgb.DMatrix(X[:-1], drawn.y[:-1], weight=drawn.weight[:-1])
    moved = squared_distance(cpp_leaf_sums(plan, one, start), cpp_leaf_sums(plan, other, start))
    assert moved <= round_sens2(plan)


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
