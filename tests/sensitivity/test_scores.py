"""Utilities of candidates move within the range of their score."""

from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.reference.candidates import bin_features
from tests.reference.comparison import LOGISTIC, SOFTMAX, SQUARED
from tests.reference.draws import Noise
from tests.reference.trainer import RowBound as Bound
from tests.reference.trainer import Score, utilities

from ..stated import range_of_plan
from .strategies import CUTS, EXAMPLES, WEIGHTS, Rows, bounded, plans, rows

FREE = Noise({"noise_free": True})
SPECS = [
    {"kind": "cuts", "cuts": CUTS},
    {"kind": "categorical", "size": 3},
    {"kind": "cuts", "cuts": [0.0]},
    {"kind": "cuts", "cuts": []},
]


def changes(
    plan: dict[str, Any],
    features: list[Any],
    pairs: npt.NDArray[np.int64],
    data: Rows,
    score: Score,
) -> list[npt.NDArray[np.int64]]:
    """Per node, the change of each utility, "no split" last, when the last unit is added."""
    out = []
    for node in range(3):
        inside = data.nodes == node
        u = [
            np.append(
                utilities(plan, features, list(range(len(features))), pairs, at, score),
                score.phi(pairs[at].sum(axis=0)),
            )
            for at in (np.flatnonzero(inside), np.flatnonzero(inside & ~data.last))
        ]
        out.append(u[0] - u[1])
    return out


@pytest.mark.parametrize(
    ("objective", "score", "unit"),
    [(SQUARED, "gain", "row"),  # no proof covers it for persons
     *((SOFTMAX, "norm", unit) for unit in ("row", "person")),
     *product((LOGISTIC, SQUARED, SOFTMAX), ("l1", "newton"), ("row", "person"))],
)  # fmt: skip
@EXAMPLES
@given(data=st.data())
def test_score_range(objective, score, unit, data):
    """Largest minus smallest change of a utility, over all candidates and "no split".

    Of one selection for a level; and of one for each node, whose ranges add up for a person that
    has rows in several. "norm" is one choice for the trees of all classes, whose range is that of
    one class. A floor of the norm with an error, a row of which every class has a bound of its own,
    or a range that is one unit smaller would each fail here.
    """
    kinds = ["cuts", "categorical", "cuts", "cuts"][: data.draw(st.integers(1, 4))]
    drawn = data.draw(rows(objective, kinds, (1.0,) if score == "gain" else WEIGHTS, unit))
    deep = {"depth": 3} if unit == "person" else {}  # three nodes of a level, and their children
    plan = data.draw(plans(objective, "l1" if score == "norm" else score, unit, **deep))
    if score == "gain":  # margins that are not numbers would count as no row, with a gradient of 0
        plan["row_bound"] |= {"hessian_bound": "1.0", "max_weight": "1.0"}
    if score == "norm":
        plan |= {"class_trees": "joint"}
        plan["row_bound"] |= {"mode": "prediction"}
    limit, bound = range_of_plan(plan), Bound.of(plan)
    assert (score, unit) != ("norm", "row") or limit == 2 * bound.B
    features = bin_features({"features": SPECS[: len(kinds)]}, drawn.X, FREE)
    plan["monotone"] = [
        0 if kind == "categorical" else data.draw(st.sampled_from((-1, 0, 1))) for kind in kinds
    ]
    reals = float(plan["score_clip"]), float(plan["leaf"]["lambda"])
    phi = Score(score, bound, *reals, *([3] if unit == "person" else []))
    by_class = bounded(plan, drawn)
    for pairs in [np.hstack(by_class)] if score == "norm" else by_class:
        if score == "gain":
            pairs[:, 2] = pairs[:, 1] > 0  # the C++ counts rows by their Hessians
        moved = changes(plan, features, pairs, drawn, phi)
        for node, change in enumerate(moved):
            if node not in drawn.nodes[drawn.last]:
                assert not change.any()
            if (score, unit) == ("norm", "row"):
                assert int(np.abs(change).max()) <= bound.B
        assert sum(int(change.max()) - int(change.min()) for change in moved) <= limit
        level = sum(moved)
        assert int(level.max()) - int(level.min()) <= limit
