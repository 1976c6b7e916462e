"""Lemmas of docs/proofs/neighbours.md."""

from __future__ import annotations

from collections.abc import Iterator

import z3

from tests.lemmas import Query, lemma
from xgb_dp.accounting.sensitivity import replace_one


@lemma
def moves_of_a_group() -> Iterator[Query]:
    """k moves of norm S are no longer than k S: a step in the plane of both vectors."""
    k, S, length, x, y, total = z3.Reals("k S length x y total")
    given = [k >= 0, S >= 0, length >= 0, length <= k * S, x * x + y * y <= S * S, total >= 0]
    given += [total * total == (length + x) * (length + x) + y * y]
    at = [k == 2, S == 4, length == 8, x == 4, y == 0]
    yield Query(given, total <= (k + 1) * S, total <= (k + 1) * S - 1, at)


@lemma
def changes_of_a_group() -> Iterator[Query]:
    """k changes in intervals of length r lie in one of length k r: a step over rows."""
    k, r, low, high, d, at_least = z3.Reals("k r low high d at_least")
    given = [r >= 0, k >= 0, high - low <= k * r, d >= at_least, d <= at_least + r]
    span = high + d - (low + at_least)
    yield Query(given, span <= (k + 1) * r, span <= (k + 1) * r - 1, [k == 1, r == 2])


@lemma
def replaced_row() -> Iterator[Query]:
    """Within one leaf a replacement moves sums by 2 S, and across two by less."""
    a, b, c, d = z3.Reals("a b c d")
    S = 16
    rows = [a * a + b * b <= S * S, c * c + d * d <= S * S]
    moved = (a - c) * (a - c) + (b - d) * (b - d)
    most = replace_one(S * S)
    at = [a == S, c == -S, b == 0, d == 0]
    yield Query(rows, moved <= most, moved <= most - 1, at)
    apart = a * a + b * b + c * c + d * d
    yield Query(rows, z3.And(apart <= 2 * S * S, apart <= most), apart <= 2 * S * S - 1, at)
