"""Lemmas of docs/proofs/integer-grid.md."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import z3

from tests.lemmas import Query, lemma, within

MOST_BITS = 20
HALF_UNIT = Fraction(1, 2**53)


@lemma
def ball() -> Iterator[Query]:
    """The last line of `RowQuantiser` leaves a row in the ball, whatever came before."""
    b, g, h, root = z3.Reals("b g h root")
    cut = [b >= 0, *within(b, g), root >= 0, root * root <= b * b - g * g, h >= 0, h <= root]
    norm2 = g * g + h * h
    yield Query(cut, norm2 <= b * b, norm2 <= b * b - 1, [b == 16, g == 0, h == 16])


@lemma
def floor_of_the_root() -> Iterator[Query]:
    """The floor of a correctly rounded root of m = B^2 - q_g^2 is that of the root."""
    k, m, root, computed = z3.Reals("k m root computed")
    exact = [k >= 0, k * k <= m, m <= (k + 1) * (k + 1) - 1, m <= 4**MOST_BITS]
    # Rounding is monotone and leaves k alone; it moves a root by at most half a unit of 53 bits.
    rounded = [root >= 0, root * root == m, computed >= k, computed <= root * (1 + HALF_UNIT)]
    given = [*exact, *rounded]
    yield Query(given, computed < k + 1, computed < k + 1 - Fraction(1, 2**20), [m == 2**38 - 1])


@lemma
def halves_of_a_word() -> Iterator[Query]:
    """The word of a block, modulo 2^64, has H as its lower and G as its upper half."""
    g, h = z3.BitVecs("g h", 64)
    word = (g << 32) + h
    right = z3.And(z3.ZeroExt(32, z3.Extract(31, 0, word)) == h, word >> 32 == g)

    def sums(least: int) -> list[z3.BoolRef]:
        return [g >= -(2**31), g < 2**31, h >= least, h < 2**31]

    # A Hessian below 0 would take a unit from the upper half.
    yield Query(sums(0), right, right, relaxed=sums(-1))


@lemma
def block_of_rows() -> Iterator[Query]:
    """(2^31 - 1) div max(B, Hmax) rows have sums below 2^31."""
    most, rows, total = z3.Reals("most rows total")
    given = [most >= 1, rows >= 0, rows * most <= 2**31 - 1, *within(rows * most, total)]
    yield Query(given, total < 2**31, total < 2**31 - 1, [most == 1, total == 2**31 - 1])


@lemma
def utilities_fit() -> Iterator[Query]:
    """Two children of 2^10 nodes, "no split" and an offset are below 2^62 together."""
    children, no_split, offset = z3.Ints("children no_split offset")
    gamma = 10**12 * 2**MOST_BITS
    given = [*within(2 * 2**10 * 2**50, children), *within(gamma, no_split), *within(2**50, offset)]
    total = children + no_split + offset
    most = 2**61 + gamma + 2**50
    assert most < 2**62
    yield Query(given, z3.And(*within(most, total)), total <= most - 1)


@lemma
def denominator_fits() -> Iterator[Query]:
    """A range below 2^23 times 2^40 is below 2^63, and an exponent below 2^110."""
    span, better, eps = z3.Ints("span better eps")
    given = [span >= 1, span <= 2**23 - 1]
    yield Query(given, span * 2**40 <= 2**63 - 2**40, span * 2**40 <= 2**63 - 2**40 - 1)
    given = [better >= 0, better <= 2**63 - 1, eps >= 0, eps <= 2**47 - 1]
    most = (2**63 - 1) * (2**47 - 1)
    assert most < 2**110
    at = [better == 2**63 - 1, eps == 2**47 - 1]
    yield Query(given, better * eps <= most, better * eps <= most - 1, at)


@lemma
def cut_of_classes() -> Iterator[Query]:
    """The factor 0.999999999 is more than what roundings add, so integers end in the ball."""
    norm, b, computed, cut = z3.Reals("norm b computed cut")
    off = Fraction(1, 2**35)
    given = [b > 0, norm > 0, computed > 0]
    given += [cut * computed <= Fraction(999999999, 10**9) * b * norm, norm <= computed * (1 + off)]
    yield Query(given, cut < b, cut < b * Fraction(999999998, 10**9), [b == 1, computed == norm])
