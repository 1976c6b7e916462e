"""Lemmas of docs/proofs/exponential-mechanism.md."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import z3

from tests.lemmas import Query, lemma


def size(v: z3.ArithRef) -> z3.ArithRef:
    return z3.If(v >= 0, v, -v)


@lemma
def mean_of_factors() -> Iterator[Query]:
    """The mean of factors that lie within two ends lies within them: a step over candidates."""
    low, high, weight, total, p, factor = z3.Reals("low high weight total p factor")
    given = [low > 0, high >= low, weight > 0, p > 0, factor >= low, factor <= high]
    given += [total >= low * weight, total <= high * weight]
    after = total + p * factor
    claim = z3.And(after >= low * (weight + p), after <= high * (weight + p))
    at = [low == 1, high == 2, weight == 1, p == 1, total == 2, factor == 2]
    yield Query(given, claim, after <= (high - Fraction(1, 1000)) * (weight + p), at)


@lemma
def order_of_groups() -> Iterator[Query]:
    """Where the loop over groups ends, no utility is above `most`, so every coin is one."""
    most, largest, bound, of_group, u = z3.Ints("most largest bound of_group u")
    end = z3.If(bound >= largest, bound, largest)  # largest of what was computed; the next bound
    computed = [most == end, u <= of_group, u <= largest]
    left_out = [most == end, of_group <= bound, u <= of_group]
    for given in (computed, left_out):
        at = [bound == 5, largest == 5, of_group == 5, u == 5]
        least = z3.If(of_group <= most, of_group, most)
        yield Query(given, z3.And(u <= least, least <= most), u <= least - 1, at)


@lemma
def bound_of_a_feature() -> Iterator[Query]:
    """|G| of a union of bins is at most the sum over its bins: a step over bins."""
    union, parts, g = z3.Ints("union parts g")
    given = [size(union) <= parts]
    after = size(union + g)
    yield Query(given, after <= parts + size(g), after <= parts + size(g) - 1, [union == 3, g == 4])
