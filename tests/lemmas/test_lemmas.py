"""Each lemma of a proof page holds, and is false with a bound that is one unit less."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest
import z3

from tests.lemmas import LEMMAS, Query

HERE = Path(__file__).parent
PROOFS = HERE.parents[1] / "docs" / "proofs"
for module in sorted(HERE.glob("*.py")):
    if not module.stem.startswith(("_", "test_")):
        importlib.import_module(f"tests.lemmas.{module.stem}")
NAMED = r"Lemmas?\s+(`\w+`(?:,?\s+(?:and\s+)?`\w+`)*)\s+\(tests/lemmas/(\w+)\.py\)"


def answer(*constraints: z3.BoolRef) -> z3.CheckSatResult:
    solver = z3.Solver()
    solver.set("timeout", 60_000)
    solver.add(*constraints)
    return solver.check()


@pytest.mark.parametrize("page, name", sorted(LEMMAS))
def test_lemma_holds_and_is_sharp(page, name):
    queries: list[Query] = list(LEMMAS[page, name]())
    assert queries
    for query in queries:
        assert answer(*query.given, z3.Not(query.claim)) == z3.unsat
        loose = query.given if query.relaxed is None else query.relaxed
        assert answer(*loose, *query.at, z3.Not(query.too_much)) == z3.sat


def test_pages_name_all_lemmas_and_no_others():
    named = {
        (file, name)
        for page in PROOFS.glob("*.md")
        for names, file in re.findall(NAMED, page.read_text(encoding="utf-8"))
        for name in re.findall(r"`(\w+)`", names)
        if file == page.stem.replace("-", "_")
    }
    assert named == set(LEMMAS)
