"""One row moves the leaves of all trees of an additive round, together, by what one tree may.

The integers are read off the C++: without noise and shrinkage a leaf's weight and cover tell its
sums. Beside them: a row that has few columns pays for these alone.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import xgboost as xgb

from tests.reference.comparison import LOGISTIC, SQUARED, make_plan
from tests.reference.splits import RowBound
from tests.reference.trainer import train
from tests.stated import describe_plan
from xgb_dp.training.plan import dump_plan

from ..models import trees
from .cpp import GRID, NO_CLIP, xgb_train

CUTS: list[dict[str, Any]] = [
    {"kind": "cuts", "cuts": [-1.0, 0.5, 1.0, 2.0]},
    {"kind": "cuts", "cuts": [0.5]},
    {"kind": "cuts", "cuts": [-2.0, -1.5]},  # 0 is above all of them
    {"kind": "categorical", "size": 4},
    {"kind": "cuts", "cuts": [0.5]},
]


def plan_of(objective: str, depth: int = 2, **changes: Any) -> dict[str, Any]:
    settings = GRID | {"split": "additive", "parallel_trees": len(CUTS), "depth": depth}
    return make_plan(objective, True, CUTS, leaf=NO_CLIP, **(settings | changes))


def table(rng: np.random.Generator, rows: int) -> npt.NDArray[np.float32]:
    X = rng.integers(-3, 4, (rows, len(CUTS))).astype(np.float32)
    X[:, 3] = rng.integers(0, 4, rows)
    X[rng.random(X.shape) < 0.3] = 0.0
    X[rng.random(X.shape) < 0.2] = np.nan
    return X


def sums_of(plan: dict[str, Any], X: Any, y: Any) -> dict[tuple[int, int], npt.NDArray[Any]]:
    """Integers (G, H) by tree and leaf, and of all rows; without those of absent leaves."""
    bound, lam = RowBound.of(plan), 1.0
    kinds = ["c" if f["kind"] == "categorical" else "q" for f in CUTS]
    d = xgb.DMatrix(X, y, feature_types=kinds, enable_categorical=True)
    out: dict[tuple[int, int], npt.NDArray[Any]] = {}
    intercept = 0.0
    for f, tree in enumerate(trees(xgb_train(plan, d))):
        leaves = [i for i, left in enumerate(tree["left_children"]) if left == -1]
        h = np.array([tree["sum_hessian"][i] for i in leaves])
        w = np.array([tree["base_weights"][i] for i in leaves]) / bound.scale
        if f == 0:  # weights are centred, and the first tree has the step of the intercept
            intercept = float(h @ w / h.sum())
            total = float(h.sum())
            out[-1, 0] = np.array([-intercept * (total + lam) / bound.g_unit, total / bound.h_unit])
        if kinds[f] == "c":
            continue  # no leaf is absent from which the centre could be told
        absent = absent_of(plan, f)
        for i in range(len(leaves)):
            if i != absent:
                g = -(w[i] - w[absent]) * (h[i] + lam) - h[i] * intercept
                out[f, i] = np.array([g / bound.g_unit, h[i] / bound.h_unit])
    return {k: np.rint(v).astype(np.int64) for k, v in out.items()}


def absent_of(plan: dict[str, Any], f: int) -> int:
    """The leaf of a row of zeros, from the trees of the oracle."""
    model = train(plan, np.zeros((1, len(CUTS)), np.float32), np.zeros(1, np.float32))
    tree = model.trees[f]
    node = 0
    while tree["left"][node] != -1:
        left = tree["split_condition"][node] > 0.0
        node = tree["left" if left else "right"][node]
    return [i for i, left in enumerate(tree["left"]) if left == -1].index(node)


@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("objective", [LOGISTIC, SQUARED])
def test_a_row_moves_all_leaves_by_one_tree(objective, depth):
    rng = np.random.default_rng(depth)
    plan = plan_of(objective, depth)
    if objective == SQUARED:
        plan["row_bound"]["mode"] = "clip"
    described = describe_plan(dump_plan({"id": "hand", **plan}))
    allowed = RowBound.of(plan).B ** 2
    if objective == SQUARED:
        allowed += RowBound.of(plan).hessian_max ** 2
    assert described["leaf_sensitivity2"] == allowed
    assert described["leaves"]["coordinates"] == 2 * (len(CUTS) + 1)
    largest = 0
    for _ in range(12):
        X = table(rng, 9)
        y = rng.integers(0, 2, 9).astype(np.float32)
        before, after = sums_of(plan, X[:-1], y[:-1]), sums_of(plan, X, y)
        moved = sum(int(((after[k] - before[k]) ** 2).sum()) for k in after)
        assert moved <= allowed
        largest = max(largest, moved)
    assert largest > 0.3 * allowed  # the categories, which are not read, have the rest


def test_absent_columns_are_free():
    """A row of zeros and missing values moves the sum of all rows, by all that it has."""
    plan = plan_of(LOGISTIC)
    X = np.ones((4, len(CUTS)), np.float32)
    X[-1] = [0.0, np.nan, 0.0, np.nan, 0.0]
    y = np.zeros(4, np.float32)
    before, after = sums_of(plan, X[:-1], y[:-1]), sums_of(plan, X, y)
    moved = {k: int(((after[k] - before[k]) ** 2).sum()) for k in after}
    assert {k for k, v in moved.items() if v} == {(-1, 0)}
    # A missing category is in a leaf of its tree: two cells, each with half of the square.
    assert moved[-1, 0] <= RowBound.of(plan).B ** 2 // 2
    assert moved[-1, 0] > 0.4 * RowBound.of(plan).B ** 2
