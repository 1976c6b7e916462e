"""The formulas of lemmas on real numbers are those of the code, on random plans."""

from __future__ import annotations

import math

import mpmath
from hypothesis import given, settings
from hypothesis import strategies as st

from xgb_dp.accounting.sensitivity import UTILITY_SLACK, RowBound, range_int

EXAMPLES = settings(max_examples=300, deadline=None, derandomize=True)
BITS = st.integers(4, 18)


def magnitudes(least: int, most: int) -> st.SearchStrategy[float]:
    return st.builds(lambda k, x: x * 10.0**k, st.integers(least, most), st.floats(1.0, 9.99))


@EXAMPLES
@given(BITS, magnitudes(-6, 5), magnitudes(-12, 5), st.booleans())
def test_newton_ranges_are_those_of_the_lemmas(bits, tau, r, on_edge):
    """`newton_of_a_ball` in units of tau: the root of its factor at s0, or 4 where that is more."""
    if on_edge:  # near the point where the inner maximum vanishes
        r = tau * tau / 8.0 * (1.0 - 1e-9)
    got = range_int("newton", RowBound("prediction", 0.5, r), bits, tau)
    with mpmath.workdps(60):
        weight = mpmath.mpf(r) / mpmath.mpf(tau) ** 2
        width = mpmath.mpf(4)
        if 8 * weight < 1:
            s0 = (1 - mpmath.sqrt(1 - 8 * weight)) / 2
            width = max(width, (1 + s0) ** 2 / mpmath.sqrt(s0**2 + weight))
        exact = width * mpmath.mpf(tau) * (1 << bits)
    assert exact + UTILITY_SLACK <= got <= exact * (1 + 1e-11) + UTILITY_SLACK + 1


@EXAMPLES
@given(BITS, magnitudes(-6, 5), magnitudes(-6, 5), magnitudes(-3, 3))
def test_newton_ranges_of_clips_are_those_of_the_lemma(bits, tau, r, h_max):
    """`newton_of_a_box` in units of tau: e is tau Hmax / (sqrt(r) B)."""
    bound = RowBound("clip", 0.5, r, h_max)
    got = range_int("newton", bound, bits, tau)
    with mpmath.workdps(60):
        e = mpmath.mpf(tau) * bound.max_hessian(bits) / (mpmath.sqrt(mpmath.mpf(r)) * (1 << bits))
        exact = (4 if e <= 1 else (1 + e) ** 2 / e) * mpmath.mpf(tau) * (1 << bits)
    assert exact + UTILITY_SLACK <= got <= exact * (1 + 1e-11) + UTILITY_SLACK + 1


@EXAMPLES
@given(BITS, st.integers(2, 40), magnitudes(-2, 1), magnitudes(-3, 1), magnitudes(-2, 1))
def test_classes_of_a_round_have_the_formula_of_the_lemma(bits, n_class, w, r, c):
    """`class_before_the_clip` and `classes_on_the_grid`, with what floats add to probabilities."""
    bound = RowBound("row_weight", c, r, max_weight=w)
    got, b = bound.round_sens2(bits, n_class), 1 << bits
    with mpmath.workdps(60):
        root = mpmath.sqrt(1 + 4 * mpmath.mpf(r))
        a = ((1 + mpmath.mpf("1e-5")) * w * root + n_class * 1e-15 * math.sqrt(r)) / c
        exact = b * b + n_class + a * (b * b + mpmath.mpf(1.5) * b)
    # The code has 3/2 for the root of 2 and K for (K - 1) / 2, which is more than its roundings.
    tight = exact - n_class / 2 - a * b * (1.5 - math.sqrt(2.0))
    assert min(n_class * b * b, tight) <= got <= min(n_class * b * b, exact * (1 + 1e-12) + 1)
