"""Releases of the published systems move by no more than stated when one row is added.

Exact arithmetic on neighbours drawn by Hypothesis: leaf values and Laplace sums, the gain where
rows count one, histograms of candidates, and which rows the rounds of an ensemble read.
"""

import math
from fractions import Fraction
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
import xgboost as xgb
from hypothesis import given, settings

from tests.reference.candidates import Candidates, KeyCells
from tests.reference.comparison import KEY, LOGISTIC, SQUARED, make_plan
from tests.reference.draws import Noise
from tests.reference.leaves import leaf_value
from tests.reference.splits import RowBound, Score
from tests.reference.test_families_against_cpp import COUNTS, ON_GRID, OUTPUT
from tests.stated import describe_plan
from tests.training.plans import plan_of
from xgb_dp.accounting import sensitivity
from xgb_dp.planning import dump
from xgb_dp.testing import fixed_noise

from ..models import events, trees

BITS = (4, 9, 18)
MODES = ("prediction", "row_weight", "clip", "filter")


def gradients(b: int) -> st.SearchStrategy[list[int]]:
    """Integer gradients of the rows of a leaf: all at one end, or anything."""
    ends = st.integers(0, 200).flatmap(lambda n: st.sampled_from([[b] * n, [-b] * n]))
    return st.one_of(ends, st.lists(st.integers(-b, b), max_size=30))


@settings(max_examples=400, deadline=None)
@given(
    st.data(),
    st.sampled_from(["0", "1", "2.5", "7", "50", "500.25"]),
    st.sampled_from(["0.0", "0.1", "1.0", "40.0"]),
    st.integers(0, 60),
)
def test_leaf_values(data, floor, lam, age):
    geometric = data.draw(st.booleans())
    plan = make_plan(
        LOGISTIC, True, ON_GRID, **OUTPUT
        | {"leaf": OUTPUT["leaf"] | {"min_child_weight": floor, "lambda": lam,
                                     "geometric_clip": geometric, "scale": 0}},
    )  # fmt: skip
    b = RowBound.of(plan).B
    rows = data.draw(gradients(b))
    more = [*rows, data.draw(st.sampled_from([b, -b, 0, b // 3]))]
    sums = [np.array([sum(r), 0, len(r)]) for r in (rows, more)]
    (one, unit), (other, same) = (leaf_value(plan, s, age) for s in sums)
    assert unit == same
    assert abs(one - other) <= sensitivity.OUTPUT_UNITS + 1

    # The real values, as fractions.
    n_floor, lam_ = max(Fraction(floor), Fraction(1)), Fraction(lam)
    stated = (2 * n_floor + lam_) / ((n_floor + lam_) * (n_floor + lam_ + 1))
    values = [Fraction(-sum(r), b) / (max(len(r), n_floor) + lam_) for r in (rows, more)]
    assert abs(values[0] - values[1]) <= stated


@settings(max_examples=200, deadline=None)
@given(st.data(), st.sampled_from(MODES), st.sampled_from(BITS))
def test_laplace_sums(data, mode, bits):
    c, r, largest = (data.draw(st.sampled_from(v)) for v in ((0.1, 0.5, 2), (0.01, 1), (0.25, 1)))
    unit = data.draw(st.booleans())
    bound = RowBound(mode, c, r, largest, 1.0, (-math.inf, math.inf), 1 << bits, unit)
    number = st.floats(-1e6, 1e6) | st.sampled_from([c, -c, 0.0, math.inf, math.nan])
    g, h, w = (np.array([data.draw(number)]) for _ in range(3))
    (q_g, q_h, _) = bound.quantise(g, np.abs(h), g, False, np.abs(w))[0]
    stated = sensitivity.RowBound(mode, c, r, largest)
    assert abs(int(q_g)) + abs(int(q_h)) <= sensitivity.leaf_sens("laplace", stated, bits)
    assert int(q_g) ** 2 + int(q_h) ** 2 <= stated.tree_sens2(bits)
    if mode == "filter" and not abs(g[0]) <= c:
        assert (q_g, q_h) == (0, 0)


@pytest.mark.parametrize("objective", [LOGISTIC, SQUARED])
@settings(max_examples=200, deadline=None)
@given(data=st.data())
def test_gain_of_rows_that_count_one(objective, data):
    lam = data.draw(st.sampled_from(["0.0", "0.1", "1.0", "30.0"]))
    plan = make_plan(
        objective, True, ON_GRID, score="gain", leaf={"lambda": lam}, row_bound=COUNTS["row_bound"]
    )
    bound = RowBound.of(plan)
    score = Score("gain", bound, 0.5, float(lam))
    sides = [data.draw(gradients(bound.B)) for _ in range(2)]
    row = data.draw(st.integers(-bound.B, bound.B))

    def utility(left: list[int], right: list[int]) -> int:
        return sum(int(score.phi(np.array([sum(v), 0, len(v)]))) for v in (left, right))

    before = utility(*sides)
    changes = [utility([*sides[0], row], sides[1]), utility(sides[0], [*sides[1], row])]
    moved = [u - before for u in changes]
    # Every change lies in (-3, 1] gradient bounds, up to the slack, so the range of all is 4.
    assert min(moved) >= -3 * bound.B - 32
    assert max(moved) <= bound.B + 32
    described = describe_plan(dump({"id": "hand", **plan}))
    assert described["score_range"] == 4 * bound.B + 64


@settings(max_examples=100, deadline=None)
@given(st.data(), st.sampled_from(["quantile_tree", "histogram", "adaptive"]), st.booleans())
def test_candidate_masses(data, kind, hessian):
    """What is released, taken from the draws: noise is asked for once per released number."""
    values = st.floats(-30, 30, width=32) | st.sampled_from([math.nan, 0.0, -0.0, 1.0])
    rows = data.draw(st.lists(st.tuples(values, values), min_size=1, max_size=12))
    shift = 0 if hessian else 3
    options = {"kind": kind, "hessian": hessian, "shift": shift, "levels": 5, "max_bin": 4}
    features = [{"kind": "private", "grid": [-8.0, -1.0, 0.0, 0.5, 9.0]}] * 2
    plan = make_plan(LOGISTIC, True, features, candidates=options)
    largest = RowBound.of(plan).B  # of a Hessian, row-weight clip
    weights = np.array(data.draw(st.lists(st.integers(0, largest), min_size=len(rows),
                                          max_size=len(rows))))  # fmt: skip

    class Recorder(Noise):
        """Remembers what noise would be added to."""

        def gaussian(self, sigma2: int) -> int:
            del sigma2
            self.calls = getattr(self, "calls", 0) + 1
            return 0

    masses = []
    for n in (len(rows), len(rows) - 1):
        X = np.array(rows[:n], dtype=np.float32).reshape(n, 2)
        pairs = np.stack([weights[:n], weights[:n], np.ones(n, dtype=np.int64)], axis=1)
        cells = _masses(Candidates(plan, X, Recorder(plan)), pairs, kind, 5)
        masses.append(cells)
    unit = largest if hessian else 1
    touched = 2 * (5 if kind == "quantile_tree" else 1)
    difference = [abs(a - b) for a, b in zip(*masses, strict=True)]
    assert sum(difference) <= touched * unit
    assert sum(d * d for d in difference) <= touched * unit * unit


def _masses(source: Candidates, pairs: Any, kind: str, levels: int) -> list[int]:
    """All numbers that may be released: every node of every tree, or every cell."""
    out: list[int] = []
    weight = pairs[:, 1] if source.options["hessian"] else np.ones(len(pairs), dtype=np.int64)
    for f, edges in enumerate(source.edges):
        column = source.X[:, f]
        here = ~np.isnan(column)
        if kind == "quantile_tree":
            finest = KeyCells(levels, edges).of(column[here])
            for level in range(levels):
                at = finest >> (levels - 1 - level)
                out += [int(weight[here][at == cell].sum()) for cell in range(1 << level)]
        else:
            cells = np.searchsorted(edges[1:-1], column[here], side="right")
            out += [int(weight[here][cells == c].sum()) for c in range(len(edges) - 1)]
    return out


def test_a_row_is_in_one_round_of_an_ensemble():
    """Parts are drawn without data: the same for neighbours, and each row is in exactly one."""
    plan = {"noise_free": False, "test_key": KEY}
    parts = Noise(plan).parts(4, 4000)
    more = Noise(plan).parts(4, 4001)
    assert np.array_equal(parts, more[:-1])
    share = np.bincount(parts, minlength=4) / 4000
    assert np.abs(share - 0.25).max() < 0.035  # 5 standard deviations and more


def test_gradient_leaves_of_several_classes_move_by_what_the_ledger_says():
    """One row more on one noise tape: all classes' sums move, each by the whole clip."""
    classes, rows = 10, 400
    params: dict[str, Any] = {
        "tree_method": "dp_hist", "objective": "multi:softprob", "num_class": classes,
        "dp_epsilon": 1.0, "dp_delta": 1e-6, "dp_leaf": "gradient",
        "dp_gradient_clip": "row_weight", "base_score": [0.0] * classes, "dp_split": "random",
        "max_depth": 1, "dp_feature_cuts": {0: []}, "dp_shrinkage": False,
        "max_delta_step": 0.0, "nthread": 1,
        "lambda": 1e6,  # beside which the Hessian of a leaf, which covers only estimate, is nothing
    }  # fmt: skip

    def leaf_sums(n: int) -> tuple[xgb.Booster, Any, Any]:
        with fixed_noise(12345):
            booster = xgb.train(params, xgb.DMatrix(np.full((n, 1), 0.5), np.zeros(n)), 1)
        h = np.array([tree["sum_hessian"] for tree in trees(booster)])
        weight = np.array([tree["base_weights"] for tree in trees(booster)])
        return booster, -weight * (h + 1e6), h[:, 0]

    booster, g0, h0 = leaf_sums(rows)
    _, g1, h1 = leaf_sums(rows + 1)
    plan = plan_of(booster)
    c, r = (float(plan["row_bound"][k]) for k in ("gradient_bound", "hessian_weight"))
    node = 1 + int(np.argmax(np.abs(g1 - g0).sum(axis=0)[1:]))
    moved = float((((g1 - g0)[:, node] ** 2 + r * (h1 - h0) ** 2) / c**2).sum())
    (event,) = events(booster)
    assert moved == pytest.approx(classes, rel=1e-3)
    assert event["sensitivity2"] == classes << (2 * plan["grid_bits"])
