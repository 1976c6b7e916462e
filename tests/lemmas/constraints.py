"""Lemmas of docs/proofs/constraints.md."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import z3

from tests.lemmas import Query, lemma, within


@lemma
def ordered_l1() -> Iterator[Query]:
    """max(|Ga + Gb|, Ga - Gb) moves by at most the gradient of the row, on either side."""
    a, b, q = z3.Ints("a b q")

    def size(v: z3.ArithRef) -> z3.ArithRef:
        return z3.If(v >= 0, v, -v)

    def ordered(a: z3.ArithRef, b: z3.ArithRef) -> z3.ArithRef:
        return z3.If(size(a + b) >= a - b, size(a + b), a - b)

    for after in (ordered(a + q, b), ordered(a, b - q)):
        change = after - ordered(a, b)
        claim = z3.And(*within(size(q), change))
        yield Query([], claim, change <= size(q) - 1, [a == 5, b == -5, q == 3])


@lemma
def weights_of_a_gain() -> Iterator[Query]:
    """At weights w = -S / d of at most 1 a row lowers the gain by at most 3, and raises it by 1."""
    w, g = z3.Reals("w g")
    change = -(2 * w * g + w * w)
    claim = z3.And(change <= g * g, change >= -3)
    given = [*within(1, w), *within(1, g)]
    at = [w == 1, g == 1]
    yield Query(given, claim, change >= -3 + Fraction(1, 1000), at)
    yield Query([*within(1, g)], change <= 1, change <= 1 - Fraction(1, 1000), [w == -1, g == 1])
