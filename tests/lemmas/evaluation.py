"""Lemmas of docs/proofs/evaluation.md."""

from __future__ import annotations

from collections.abc import Iterator

import z3

from tests.lemmas import Query, lemma


@lemma
def table_fits() -> Iterator[Query]:
    """Entries times weights below 2^31 stay below 2^63 for fewer than 2^32 rows."""
    entry, rows = z3.Reals("entry rows")
    given = [entry >= 0, entry <= 2**31 - 1, rows >= 0, rows <= 2**32 - 1]
    most = (2**31 - 1) * (2**32 - 1)
    assert most < 2**63
    at = [entry == 2**31 - 1, rows == 2**32 - 1]
    yield Query(given, entry * rows <= most, entry * rows <= most - 1, at)


@lemma
def rows_of_a_person() -> Iterator[Query]:
    """Rows of weight floor(2^s / max(m, k)) move a sum by at most 2^s times a column's norm."""
    m, k, weight, norm, moved = z3.Reals("m k weight norm moved")
    unit = 1 << 16
    given = [m >= 1, k >= 1, weight >= 0, weight * z3.If(m >= k, m, k) <= unit]
    given += [norm >= 0, moved <= m * weight * norm]
    at = [m == 4, k == 4, weight == unit // 4, norm == 3, moved == unit * 3]
    yield Query(given, moved <= unit * norm, moved <= unit * norm - 1, at)


@lemma
def column_of_each_block() -> Iterator[Query]:
    """A row adds one column of each block: squares add up to the sum of the largest, a step."""
    squares, most, column, largest = z3.Reals("squares most column largest")
    given = [squares <= most, column * column <= largest]
    total = squares + column * column
    at = [squares == most, largest == 9, column == 3]
    yield Query(given, total <= most + largest, total <= most + largest - 1, at)


@lemma
def rows_beyond_bounds() -> Iterator[Query]:
    """An entry of w or -w for each of two bounds has the squared norm 2 w^2, whatever the row."""
    first, second, weight = z3.Reals("first second weight")
    given = [z3.Or(first == weight, first == -weight), z3.Or(second == weight, second == -weight)]
    norm, stated = first * first + second * second, 2 * weight * weight
    at = [weight == 3, first == 3, second == -3]
    yield Query(given, norm <= stated, norm <= stated - 1, at)
