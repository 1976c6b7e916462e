"""Lemmas of docs/proofs/discovery.md."""

from __future__ import annotations

from collections.abc import Iterator

import z3

from tests.lemmas import Query, lemma


@lemma
def numbers_and_missing_cells() -> Iterator[Query]:
    """L a^2 + b^2 <= L U^2 where the numbers of a unit weigh a, and its missing cells b."""
    a, b, U, levels = z3.Reals("a b U levels")
    given = [a >= 0, b >= 0, levels >= 1, a + b <= U]
    total, most = levels * a * a + b * b, levels * U * U
    yield Query(given, total <= most, total <= most - 1, [a == 16, U == 16, levels == 17])
