"""Lemmas of docs/proofs/secret-splits.md."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import z3

from tests.lemmas import Query, lemma

LITTLE = Fraction(1, 1000)


def positive(v: z3.ArithRef) -> z3.ArithRef:
    return z3.If(v >= 0, v, 0)


@lemma
def removed_unit() -> Iterator[Query]:
    """One outcome of A = q A1 + (1 - q) A2 against B, with a = E (1 - w) / q, b = E w / (1 - q).

    E is e^x. The stick is the sum of this over outcomes.
    """
    q, w, E, p1, p2, p = z3.Reals("q w E p1 p2 p")
    given = [q > 0, q < 1, w > 0, w < 1, E >= 0, p1 >= 0, p2 >= 0, p >= 0]
    left = positive(q * p1 + (1 - q) * p2 - E * p)
    right = positive(q * p1 - E * (1 - w) * p) + positive((1 - q) * p2 - E * w * p)
    at = [q == Fraction(1, 2), w == Fraction(1, 2), E == 1, p == 1, p1 == 2, p2 == 2]
    yield Query(given, left <= right, left <= right * (1 - LITTLE), at)


@lemma
def added_unit() -> Iterator[Query]:
    """The same of B against A, with the parts u and 1 - u of B."""
    q, u, E, p1, p2, p = z3.Reals("q u E p1 p2 p")
    given = [q > 0, q < 1, u > 0, u < 1, E >= 0, p1 >= 0, p2 >= 0, p >= 0]
    left = positive(p - E * (q * p1 + (1 - q) * p2))
    right = positive(u * p - E * q * p1) + positive((1 - u) * p - E * (1 - q) * p2)
    at = [q == Fraction(1, 2), u == Fraction(1, 2), E == 1, p == 2, p1 == 1, p2 == 1]
    yield Query(given, left <= right, left <= right * (1 - LITTLE), at)


@lemma
def plain_rooms() -> Iterator[Query]:
    """The factors a and b of the plain rooms: the mean is above the harmonic mean."""
    q, a, b = z3.Reals("q a b")
    given = [q > 0, q < 1, a > 0, b > 0]
    product = (q * a + (1 - q) * b) * (q * b + (1 - q) * a)  # the second sum times a b
    at = [q == Fraction(1, 2), a == 1, b == 1]
    yield Query(given, product >= a * b, product >= a * b * (1 + LITTLE), at)
