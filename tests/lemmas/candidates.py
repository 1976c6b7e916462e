"""Lemmas of docs/proofs/candidates.md."""

from __future__ import annotations

from collections.abc import Iterator

import z3

from tests.lemmas import Query, lemma
from xgb_dp.accounting.sensitivity import candidates_sens2

SHIFT = 4


@lemma
def counts_of_a_row() -> Iterator[Query]:
    """A row moves at most one count of each feature and level: a step over features and levels."""
    moved, squares, v = z3.Reals("moved squares v")
    unit = 1 << SHIFT
    for features, levels in ((1, 1), (3, 17)):
        n = features * levels
        sens2 = candidates_sens2(features, levels, SHIFT)
        given = [moved >= 0, moved <= n - 1, squares <= moved * unit * unit]
        given.append(z3.Or(v == 0, v == unit, v == -unit))
        after = squares + v * v
        claim = z3.And(after <= (moved + 1) * unit * unit, after <= sens2)
        at = [moved == n - 1, squares == moved * unit * unit, v == unit]
        yield Query(given, claim, after <= sens2 - 1, at)


@lemma
def weight_of_a_persons_row() -> Iterator[Query]:
    """m rows of weight floor(U / m) sum to at most U, shown for U = 16: a division needs a size."""
    m = z3.Int("m")
    U = 1 << SHIFT
    given = [m >= 1, m <= 2 * U]
    yield Query(given, U / m * m <= U, U / m * m <= U - 1, [m == 4])


@lemma
def counts_of_a_person() -> Iterator[Query]:
    """Numbers of at least 0 whose sum is at most W have squares of at most W^2: a step."""
    part, squares, v, W = z3.Reals("part squares v W")
    given = [part >= 0, v >= 0, squares <= part * part, part + v <= W]
    after = squares + v * v
    claim = z3.And(after <= (part + v) * (part + v), after <= W * W)
    yield Query(given, claim, after <= W * W - 1, [part == 0, v == 16, W == 16])
