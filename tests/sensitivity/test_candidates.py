"""Counts behind the candidates; and the oracle is the trainer on the rows drawn here."""

from typing import Any

import numpy as np
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from tests.reference.comparison import SQUARED, check, make_plan
from xgb_dp.accounting import sensitivity

from .strategies import CUTS, FEWER, MORE, bounds, cell, counts, rows

Cells = dict[int, float]


def cells_of(rows: list[Cells]) -> dict[tuple[int, int], float]:
    """(row, column) -> value."""
    return {(i, j): v for i, row in enumerate(rows) for j, v in row.items()}


@MORE
@given(data=st.data())
def test_candidate_counts(data):
    """All counts of all features, on every level: at most L F counts change, each by one row."""
    F, levels = data.draw(st.integers(1, 4)), data.draw(st.sampled_from((2, 6, 17)))
    shift, ends = data.draw(st.sampled_from((0, 5))), data.draw(bounds)
    row = st.dictionaries(st.integers(0, F - 1), cell)
    drawn = data.draw(st.lists(row, min_size=1, max_size=13))
    with_row = counts(cells_of(drawn), levels, ends)
    without = counts(cells_of(drawn[:-1]), levels, ends)
    moved = {node: (with_row[node] - without[node]) << shift for node in with_row | without}
    assert sum(v * v for v in moved.values()) <= sensitivity.candidates_sens2(F, levels, shift)
    assert sum(v != 0 for v in moved.values()) <= F * levels


@FEWER
@given(data=st.data())
def test_oracle_is_the_trainer(data):
    """On these awkward rows the C++ grows the oracle's trees, from unsorted sparse ones too."""
    kinds = data.draw(
        st.lists(st.sampled_from(("private", "cuts", "categorical")), min_size=1, max_size=4)
    )
    spec: dict[str, Any] = {
        "private": {"grid": data.draw(bounds)},
        "cuts": {"cuts": CUTS[1:-1]},
        "categorical": {"size": 3},
    }
    drawn = data.draw(rows(SQUARED, kinds))
    plan = make_plan(
        SQUARED,
        data.draw(st.booleans()),
        [{"kind": kind, **spec.get(kind, {})} for kind in kinds],
        rounds=2,
        depth=2,
        shape=data.draw(st.sampled_from(("per_node", "oblivious"))),
        row_bound={"mode": data.draw(st.sampled_from(("clip", "row_weight")))},
    )
    X: Any = drawn.X
    if data.draw(st.booleans()):  # each row stores its columns from the last to the first
        n, F = X.shape
        X = sp.csr_matrix(
            (X[:, ::-1].ravel(), np.tile(np.arange(F)[::-1], n), np.arange(n + 1) * F), shape=(n, F)
        )
    check(plan, X, drawn.y, drawn.weight, dense=drawn.X)
