"""Lemmas of docs/proofs/leaves.md."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import z3

from tests.lemmas import Query, lemma, within
from xgb_dp.accounting.sensitivity import OUTPUT_UNITS, RowBound, leaf_sens

LITTLE = Fraction(1, 1000)


@lemma
def sum_of_sizes() -> Iterator[Query]:
    """The square of a sum of n numbers is at most n times the sum of squares: a step over n."""
    n, total, squares, x = z3.Reals("n total squares x")
    given = [n >= 1, total >= 0, x >= 0, total * total <= n * squares]
    after = (total + x) * (total + x)
    at = [n == 3, total == 3, squares == 3, x == 1]
    most = (n + 1) * (squares + x * x)
    yield Query(given, after <= most, after <= most - 1, at)


@lemma
def noisy_sums_of_a_row() -> Iterator[Query]:
    """|q_g| + q_h of one tree is an integer below the L1 sensitivity, in each mode and grid."""
    g, h = z3.Ints("g h")
    for mode in ("prediction", "clip"):
        for bits in (4, 9):
            bound = RowBound(mode, 0.5, 0.25, 1.0)
            b, most = bound.unit(bits), bound.max_hessian(bits)
            row = [*within(b, g), h >= 0, h <= most]
            row += [g * g + h * h <= b * b] if bound.ball else []
            sens = leaf_sens("laplace", bound, bits)
            sizes = z3.If(g >= 0, g, -g) + h
            # The largest integers in the ball fall short of the bound by less than 2.
            short = 1 if bound.ball and bits != 4 else 0
            half = sens // 2
            at = [g == half, h == sens - short - half] if bound.ball else [g == b, h == most]
            yield Query(row, sizes <= sens, sizes <= sens - 1 - short, at)


def _value(below: z3.ArithRef, N: z3.ArithRef, lam: z3.ArithRef) -> list[z3.BoolRef]:
    return [below >= 0, N >= 1, lam >= 0]


@lemma
def value_above_the_floor() -> Iterator[Query]:
    """n >= N: (2n + lambda) / ((n + lambda)(n + 1 + lambda)) bounds the change, and falls in n."""
    n, N, lam, S, g = z3.Reals("n N lam S g")
    given = [*_value(n, N, lam), n >= N, *within(n, S), *within(1, g)]
    change = (S - g) * (n + lam) - S * (n + 1 + lam)  # times (n + lam)(n + 1 + lam)
    at = [n == 1, N == 1, lam == 0, S == 1, g == 1]
    claim = z3.And(*within(2 * n + lam, change))
    yield Query(given, claim, -change <= (2 * n + lam) * (1 - LITTLE), at)
    left = (2 * n + lam) * (N + lam) * (N + 1 + lam)
    right = (2 * N + lam) * (n + lam) * (n + 1 + lam)
    at = [n == N, N == 2, lam == 1]
    yield Query([*_value(n, N, lam), n >= N], left <= right, left <= right * (1 - LITTLE), at)


@lemma
def value_below_the_floor() -> Iterator[Query]:
    """n + 1 <= N: both denominators are N + lambda."""
    n, N, lam = z3.Reals("n N lam")
    given = [*_value(n, N, lam), n + 1 <= N]
    most = 2 * N + lam
    at = [n == 0, N == 1, lam == 0]
    yield Query(given, N + 1 + lam <= most, N + 1 + lam <= most * (1 - LITTLE), at)


@lemma
def value_across_the_floor() -> Iterator[Query]:
    """n < N < n + 1: the change that one row makes by a part of a row above the floor."""
    n, N, lam, S, g = z3.Reals("n N lam S g")
    given = [*_value(n, N, lam), n < N, n + 1 > N, *within(n, S), *within(1, g)]
    change = (S - g) * (N + lam) - S * (n + 1 + lam)
    bound = (2 * N + lam) * (n + 1 + lam)  # both times (N + lam)(n + 1 + lam)
    claim = z3.And(*[c * (N + 1 + lam) <= bound for c in (change, -change)])
    at = [n == 1, Fraction(10001, 10000) == N, lam == 0, S == 1, g == 1]
    too_much = -change * (N + 1 + lam) <= bound * (1 - LITTLE)
    yield Query(given, claim, too_much, at)


@lemma
def value_on_the_grid() -> Iterator[Query]:
    """Floors of numbers that differ by at most 2^20 + 2^-8, with two units for both roundings."""
    x, y = z3.Reals("x y")
    change = z3.ToInt(x) - z3.ToInt(y)
    given = [x - y <= OUTPUT_UNITS + Fraction(1, 2**8)]
    bound = RowBound("clip", 0.5, 0.25)
    most = leaf_sens("output", bound, 4)
    at = [x == OUTPUT_UNITS + 1, y == 1 - Fraction(1, 2**9)]
    yield Query(given, z3.And(change <= most - 1, change <= most), change <= most - 2, at)
