"""The stated figures are attained: each check of this package fails if its bound is lowered."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import xgboost as xgb

from tests.reference.candidates import FLT_MAX
from tests.reference.comparison import LOGISTIC, SOFTMAX, SQUARED, make_plan
from tests.reference.trainer import RowBound as Bound
from tests.reference.trainer import Score
from xgb_dp.accounting import sensitivity

from ..stated import range_of_plan
from .cpp import GRID, NO_CLIP, PAST, cpp_leaf_sums
from .strategies import Rows, counts, pairs_of, round_sens2, squared_distance


# (largest move found, stated bound): the move must come close to the bound from below, so that each
# check of this package fails if the bound is lowered.
def bound_of(mode: str = "row_weight", r: str = "1.0", c: str = "0.5", h: str = "1.0") -> Any:
    objective = LOGISTIC if mode == "prediction" else SQUARED
    plan = make_plan(objective, True, [{"kind": "cuts", "cuts": []}])
    plan["row_bound"] |= {
        "mode": mode, "hessian_weight": r, "gradient_bound": c, "hessian_bound": h, "scale": "1.0"
    }  # fmt: skip
    return plan


def width(score: Score, left: Any, right: Any, row: Any) -> int:
    """Change of a candidate that sends `row` left, minus that of one that sends it right.

    `left` and `right` are the sums (G, H, rows) of the sides; both candidates part the other rows
    alike, as two features or two missing directions may.
    """
    sums = np.array([left, right], dtype=np.int64)
    row = np.array(row, dtype=np.int64)
    up, down = (int(score.phi(s + row)) - int(score.phi(s)) for s in sums)
    return abs(up - down)


def worst_range(score: str, mode: str, r: str, tau: float, lam: float = 0.0) -> tuple[int, int]:
    """The widest change found for a score, and its range."""
    plan = bound_of(mode, r)
    plan |= {"score": score, "score_clip": str(tau), "grid_bits": 15}
    plan["leaf"]["lambda"] = str(lam)
    bound = Bound.of(plan)
    phi, B = Score(score, bound, tau, lam), bound.B
    limit = range_of_plan(plan)
    if score == "l1":
        return width(phi, (B, 0, 1), (-B, 0, 1), (B, 0, 1)), limit
    if score == "gain":
        n = 10**6
        return width(phi, (n * B, 0, n), (-n * B, 0, n), (B, 0, 1)), limit
    widest = 0
    h_top = bound.hessian_max if mode == "clip" else B
    for h in np.linspace(0, h_top, 400).astype(int):
        g = B if mode == "clip" else math.isqrt(B * B - int(h) ** 2)
        # Sides far heavier than a row, at rest at a weight w: the row then changes phi by psi(w).
        real = g * bound.g_unit, h * bound.h_unit
        best = tau if tau * real[1] <= real[0] else real[0] / real[1]
        heavy = 1 << 34
        toward, away = (
            (-round(w * heavy * bound.h_unit / bound.g_unit), heavy, 1) for w in (-best, tau)
        )
        widest = max(widest, width(phi, toward, away, (g, h, 1)))
    return widest, limit


def worst_leaf(mode: str) -> tuple[int, int]:
    """A row on the corner of its bound."""
    plan = bound_of(mode)
    y = np.zeros(1)
    h = np.array([1e9]) * (mode == "clip")
    pairs = Bound.of(plan).quantise(np.array([1e9]), h, y, False)
    return squared_distance(pairs[:, :2], 0 * pairs[:, :2]), round_sens2(plan)


def worst_softmax(even: int, classes: int, joint: bool) -> tuple[int, int]:
    """A row of probability 1/even in `even` classes and none in its own; C is just reached."""
    p = 1 / even
    c = p * math.sqrt(1 + 4 * (1 - p) ** 2)
    plan = make_plan(SOFTMAX, True, [{"kind": "cuts", "cuts": []}], num_class=classes)
    plan["row_bound"] |= {"gradient_bound": repr(c), "max_weight": "1.0"}
    margin = np.full((1, classes), -95.0, np.float32)
    margin[0, 1 : even + 1] = 0.0
    one = np.ones(1, np.float32)
    row = Rows(one[:, None], 0 * one, one, margin, np.zeros(1, np.int64))
    moved = sum(squared_distance(q[:, :2], 0 * q[:, :2]) for q in pairs_of(plan, row))
    figure = round_sens2(plan)
    unit = Fraction(figure, 1 << (2 * plan["grid_bits"]))
    assert (unit < classes) == joint
    assert Fraction(moved, 1 << (2 * plan["grid_bits"])) > 1 + 1 / c  # the tempting bound is false
    return moved, figure


def worst_prediction() -> tuple[int, int]:
    """A row that is sure of another class than its own; C is just reached for one class of 50."""
    plan = make_plan(SOFTMAX, True, [{"kind": "cuts", "cuts": []}], num_class=50)
    plan["row_bound"] |= {"mode": "prediction", "gradient_bound": "1.2", "max_weight": "1.0"}
    margin = np.full((1, 50), -95.0, np.float32)
    margin[0, 1] = 0.0
    one = np.ones(1, np.float32)
    row = Rows(one[:, None], 0 * one, one, margin, np.zeros(1, np.int64))
    moved = sum(squared_distance(q[:, :2], 0 * q[:, :2]) for q in pairs_of(plan, row))
    return moved, round_sens2(plan)


def worst_norm() -> tuple[int, int]:
    """Two candidates of which one puts a row to rows like it and the other to their opposites."""
    bound = Bound.of(bound_of("prediction"))
    phi = Score("norm", bound, 0.5, 1.0)
    g = [int(0.6 * bound.B), 0, 1, -int(0.8 * bound.B), 0, 1]
    same, opposite = np.array(g) * 1000, np.array(g) * -1000
    return width(phi, same, opposite, g), 2 * bound.B


def worst_counts() -> tuple[int, int]:
    row = {(0, j): v for j, v in enumerate((0.0, FLT_MAX, -1e-45))}
    moved = counts(row, 17)
    return sum((v << 3) ** 2 for v in moved.values()), sensitivity.candidates_sens2(3, 17, 3)


def worst_in_the_cpp(objective: str, mode: str) -> tuple[int, int]:
    """One row against no row, both in the C++."""
    plan = make_plan(objective, True, [{"kind": "cuts", "cuts": []}], **GRID, leaf=NO_CLIP)
    plan["row_bound"] |= {"mode": mode, "max_weight": "1.0"}
    weight = None if objective == SQUARED else np.full(1, 9.0)
    y = np.full(1, -4.0 if objective == SQUARED else 1.0)
    one = xgb.DMatrix(np.zeros((1, 1)), y, weight=weight)
    none = xgb.DMatrix(np.zeros((0, 1)), np.zeros(0))
    start = PAST[objective, (0.0, 0.0)]
    moved = squared_distance(cpp_leaf_sums(plan, one, start), cpp_leaf_sums(plan, none, start))
    return moved, round_sens2(plan)


ATTAINED = {
    "counts": (worst_counts, 1.0),
    "l1": (lambda: worst_range("l1", "row_weight", "1.0", 0.5), 1.0),
    "gain": (lambda: worst_range("gain", "clip", "0.25", 0.5), 0.999),
    "newton, prediction": (lambda: worst_range("newton", "prediction", "0.25", 9.0), 0.99),
    "newton, weights, small tau": (lambda: worst_range("newton", "row_weight", "1.0", 0.5), 0.99),
    "newton, weights, large tau": (lambda: worst_range("newton", "row_weight", "0.25", 9.0), 0.99),
    "newton, clip, small tau": (lambda: worst_range("newton", "clip", "1.0", 0.25), 0.99),
    "newton, clip, large tau": (lambda: worst_range("newton", "clip", "1.0", 5.0), 0.99),
    "leaf, prediction": (lambda: worst_leaf("prediction"), 1.0),
    "leaf, weights": (lambda: worst_leaf("row_weight"), 1.0),
    "leaf, clip": (lambda: worst_leaf("clip"), 1.0),
    "softmax, every class": (lambda: worst_softmax(50, 51, False), 0.999),
    "softmax, joint": (lambda: worst_softmax(50, 80, True), 0.98),
    "C++ logistic, prediction": (lambda: worst_in_the_cpp(LOGISTIC, "prediction"), 0.999),
    "softmax, prediction": (worst_prediction, 0.9999),
    "norm": (worst_norm, 0.9999),
    "C++ logistic": (lambda: worst_in_the_cpp(LOGISTIC, "row_weight"), 0.999),
    "C++ squared, clip": (lambda: worst_in_the_cpp(SQUARED, "clip"), 0.999),
}


@pytest.mark.parametrize("case", ATTAINED)
def test_the_bound_is_attained(case):
    """A bound that is smaller by the given factor would be exceeded."""
    worst, factor = ATTAINED[case]
    moved, limit = worst()
    assert factor * limit <= moved <= limit


def test_duplicates_that_both_count_would_be_noticed():
    """A row counted twice in a column exceeds the sensitivity: the check of counts has teeth."""
    twice = {(0, 0): 1.0, (1, 0): 1.0}
    moved = sum(v * v for v in counts(twice, 17).values())
    assert moved > sensitivity.candidates_sens2(1, 17, 0)
