"""Utilities of candidates move within the range of their score."""

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
from .strategies import CUTS, EXAMPLES, WEIGHTS, pairs_of, plans, rows

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
    nodes: npt.NDArray[np.int64],
    score: Score,
) -> list[npt.NDArray[np.int64]]:
    """Per node, the change of each utility, "no split" last, when the last row is added."""
    out = []
    for node in range(3):
        inside = np.flatnonzero(nodes == node)
        before = inside[inside < len(pairs) - 1]
        u = [
            np.append(
                utilities(plan, features, list(range(len(features))), pairs, at, score),
                score.phi(pairs[at].sum(axis=0)),
            )
            for at in (inside, before)
        ]
        out.append(u[0] - u[1])
    return out


@pytest.mark.parametrize(
    ("objective", "score"),
    [(o, s) for o in (LOGISTIC, SQUARED, SOFTMAX) for s in ("l1", "newton")]
    + [(SQUARED, "gain"), (SOFTMAX, "norm")],
)
@EXAMPLES
@given(data=st.data())
def test_score_range(objective, score, data):
    """Largest minus smallest change of a utility, over all candidates and "no split".

    "norm" is one choice for the trees of all classes, whose range is that of one class. A floor of
    the norm with an error, a row of which every class has a bound of its own, or a range that is
    one unit smaller would each fail here.
    """
    kinds = ["cuts", "categorical", "cuts", "cuts"][: data.draw(st.integers(1, 4))]
    drawn = data.draw(rows(objective, kinds, (1.0,) if score == "gain" else WEIGHTS))
    plan = data.draw(plans(objective, "l1" if score == "norm" else score))
    if score == "gain":  # margins that are not numbers would count as no row, with a gradient of 0
        plan["row_bound"] |= {"hessian_bound": "1.0", "max_weight": "1.0"}
    if score == "norm":
        plan |= {"class_trees": "joint"}
        plan["row_bound"] |= {"mode": "prediction"}
    limit, bound = range_of_plan(plan), Bound.of(plan)
    assert score != "norm" or limit == 2 * bound.B
    features = bin_features({"features": SPECS[: len(kinds)]}, drawn.X, FREE)
    plan["monotone"] = [
        0 if kind == "categorical" else data.draw(st.sampled_from((-1, 0, 1))) for kind in kinds
    ]
    phi = Score(score, bound, float(plan["score_clip"]), float(plan["leaf"]["lambda"]))
    by_class = pairs_of(plan, drawn)
    for pairs in [np.hstack(by_class)] if score == "norm" else by_class:
        if score == "gain":
            pairs[:, 2] = pairs[:, 1] > 0  # the C++ counts rows by their Hessians
        moved = changes(plan, features, pairs, drawn.nodes, phi)
        for node, change in enumerate(moved):  # one selection per node
            if node == drawn.nodes[-1]:
                assert int(change.max()) - int(change.min()) <= limit
                assert score != "norm" or int(np.abs(change).max()) <= bound.B
            else:
                assert not change.any()
        level = sum(moved)  # one selection for the level
        assert int(level.max()) - int(level.min()) <= limit
