"""Claims of docs/proofs that other tests do not touch, in exact arithmetic."""

import itertools
import math
from fractions import Fraction

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.reference.candidates import key_of
from tests.reference.trainer import RowBound as Oracle
from tests.reference.trainer import Score
from xgb_dp.accounting.sensitivity import RowBound, candidates_sens2, range_int

EXAMPLES = settings(max_examples=200, deadline=None)
B = 1 << 9
BOUND = Oracle("row_weight", 0.5, 1.0, 1.0, 1.0, (-math.inf, math.inf), B)


def any_row(draw: st.DrawFn) -> tuple[int, int]:
    g, h = draw(st.floats(-9, 9)), draw(st.floats(0, 9))
    if draw(st.booleans()):  # the corners of the bound
        g, h = draw(st.sampled_from((-9.0, 0.0, 9.0))), draw(st.sampled_from((0.0, 9.0)))
    pair = BOUND.quantise(np.array([g]), np.array([h]), np.zeros(1), False)[0]
    return int(pair[0]), int(pair[1])


rows = st.composite(any_row)()


# ---------------------------------------------------------------------- constraints.md
@EXAMPLES
@given(st.integers(-9, 9), st.integers(-9, 9))
def test_ordered_l1_is_the_supremum_over_ordered_signs(below, above):
    score = Score("l1", BOUND, 0.5, 1.0)
    got = int(score.ordered(np.array([below, 0, 0]), np.array([above, 0, 0])))
    halves = (Fraction(-1, 2), Fraction(1, 2))
    pairs = [(a, b) for a, b in itertools.product(halves, repeat=2) if a <= b]
    assert got == max(-2 * a * below - 2 * b * above for a, b in pairs)


@EXAMPLES
@given(
    st.lists(rows, min_size=0, max_size=6),
    st.lists(rows, min_size=0, max_size=6),
    st.sampled_from((0.05, 0.5, 3.0)),
    st.sampled_from((0.0, 1.0, 20.0)),
)
def test_ordered_newton_is_the_supremum_over_ordered_weights(below, above, tau, lam):
    score = Score("newton", BOUND, tau, lam)
    sums = [np.array([*np.sum(side or [(0, 0)], axis=0), len(side)]) for side in (below, above)]
    got = int(score.ordered(*sums)) * BOUND.g_unit
    grid = np.linspace(-tau, tau, 201)
    a, b = np.meshgrid(grid, grid, indexing="ij")
    value = np.zeros_like(a)
    for w, s in ((a, sums[0]), (b, sums[1])):
        value -= 2 * w * s[0] * BOUND.g_unit + w * w * (s[1] * BOUND.h_unit + lam)
    best = float(value[a <= b].max())
    curvature = (sums[0][1] + sums[1][1]) * BOUND.h_unit + 2 * lam
    assert best - 2 * BOUND.g_unit <= got
    assert got <= best + curvature * (tau / 100) ** 2 + 2 * BOUND.g_unit


@EXAMPLES
@given(
    st.lists(st.fractions(-1, 1, max_denominator=8), max_size=7),
    st.lists(st.fractions(-1, 1, max_denominator=8), max_size=7),
    st.fractions(-1, 1, max_denominator=8),
    st.booleans(),
    st.sampled_from((Fraction(0), Fraction(1, 10), Fraction(3))),
)
def test_ordered_gain_moves_by_minus_three_to_one(below, above, g, first, lam):
    def part(S: Fraction, d: Fraction) -> Fraction:
        return S * S / d if d else Fraction(0)

    def gain(a: list[Fraction], b: list[Fraction]) -> Fraction:
        S_a, S_b, d_a, d_b = sum(a, Fraction(0)), sum(b, Fraction(0)), len(a) + lam, len(b) + lam
        if S_a * d_b >= S_b * d_a:
            return part(S_a, d_a) + part(S_b, d_b)
        return part(S_a + S_b, d_a + d_b)

    after = gain([*below, g], above) if first else gain(below, [*above, g])
    assert -3 <= after - gain(below, above) <= 1


# ---------------------------------------------------------------------- neighbours.md
@EXAMPLES
@given(st.lists(rows, min_size=1, max_size=4), st.lists(rows, max_size=6), st.data())
def test_groups_move_utilities_by_k_ranges(group, others, data):
    bound = RowBound("row_weight", 0.5, 1.0, 1.0, 0.0)
    n_cuts = 4
    at = data.draw(st.lists(st.integers(0, n_cuts), min_size=len(group) + len(others), max_size=50))
    for name, tau in (("l1", 0.5), ("newton", 0.5), ("newton", 5.0)):
        score = Score(name, BOUND, tau, 1.0)

        def utilities(count: int, score: Score = score) -> np.ndarray:
            held = np.array([(*row, 1) for row in (others + group)[:count]] or [(0, 0, 0)])
            where = np.array(at[:count] or [0])
            left = np.array([held[where <= cut].sum(axis=0) for cut in range(n_cuts)])
            return score.phi(left) + score.phi(held.sum(axis=0) - left)

        moved = utilities(len(others) + len(group)) - utilities(len(others))
        limit = len(group) * range_int(name, bound, 9, tau)
        assert int(moved.max()) - int(moved.min()) <= limit


@EXAMPLES
@given(rows, rows, st.booleans())
def test_replaced_rows_move_leaf_sums(old, new, same_leaf):
    if same_leaf:
        moved = sum((a - b) ** 2 for a, b in zip(old, new, strict=True))
        assert moved <= 4 * B * B
    else:
        moved = sum(a * a for a in old) + sum(b * b for b in new)
        assert moved <= 2 * B * B
    assert moved <= 4 * RowBound("row_weight", 0.5, 1.0, 1.0, 0.0).round_sens2(9, 1)


@EXAMPLES
@given(st.floats(width=32, allow_nan=False), st.floats(width=32, allow_nan=False))
def test_replaced_rows_move_candidate_counts(old, new):
    levels = 17
    moved = 0
    a, b = (int(key_of(np.array([v], dtype=np.float32))[0]) for v in (old, new))
    for level in range(levels):
        moved += 0 if a >> (32 - level) == b >> (32 - level) else 2
    assert moved <= 2 * (levels - 1)
    assert moved <= 4 * candidates_sens2(1, levels, 0)
