"""Adding all rows of one person moves no released sum by more than its stated sensitivity.

As in `tests/sensitivity`, with one person more instead of one row, who has 1 to 1,000 rows anywhere
in the trees.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import xgboost as xgb
from hypothesis import given
from hypothesis import strategies as st

from tests.reference import objective as objectives
from tests.reference.candidates import bin_features
from tests.reference.comparison import BINARY, LOGISTIC, MULTICLASS, SOFTMAX, SQUARED
from tests.reference.leaves import row_variance
from tests.reference.persons import bound_persons, spread_persons
from tests.reference.trainer import RowBound as Bound
from tests.reference.trainer import Score, utilities
from tests.sensitivity.cpp import NO_CLIP, PAST, cpp_leaf_sums
from tests.sensitivity.strategies import (
    CLASSES,
    CUTS,
    EXAMPLES,
    FEWER,
    HEAVY,
    LABELS,
    MARGINS,
    NUMBERS,
    WEIGHTS,
    Rows,
    pairs_of,
    plans,
    round_sens2,
    squared_distance,
    text_of,
)
from tests.sensitivity.test_scores import FREE, SPECS
from tests.stated import describe_plan, range_of_plan
from xgb_dp.accounting.sensitivity import RowBound
from xgb_dp.engine import native

from .conftest import people

SIZES = (1, 2, 3, 30, 1000)
MODES = {LOGISTIC: ("prediction", "row_weight", "clip"), SQUARED: ("clip", "row_weight"),
         SOFTMAX: ("prediction", "row_weight")}  # fmt: skip


@dataclass
class Crowd:
    """Rows, and the person of each of them; the last person is the one that the neighbour lacks."""

    rows: Rows
    who: npt.NDArray[np.int64]

    @property
    def others(self) -> npt.NDArray[np.int64]:
        """The rows of the neighbour."""
        return np.flatnonzero(self.who < self.who.max())


@st.composite
def crowds(
    draw: st.DrawFn, objective: str, kinds: list[str], weights: tuple[float, ...] = WEIGHTS
) -> Crowd:
    """Some persons, and one of whom all rows may be alike, or none."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    size, alike = draw(st.sampled_from(SIZES)), draw(st.booleans())
    who = np.append(people(20, 5), np.full(size, 1 + people(20, 5).max()))
    n, k = len(who), CLASSES if objective in MULTICLASS else 1
    columns = [rng.choice((0.0, 1.0, 2.0, np.nan) if kind == "categorical" else NUMBERS, n)
               for kind in kinds]  # fmt: skip
    labels = LABELS if objective == SQUARED else range(2 if objective in BINARY else CLASSES)
    margins = MARGINS if draw(st.booleans()) else (0.0, 0.3, -2.0)
    drawn = Rows(
        np.array(columns, np.float32).T,
        rng.choice(np.array(labels, np.float32), n),
        rng.choice(np.array(weights, np.float32), n),
        rng.choice(np.array(margins, np.float32), (n, k)),
        rng.integers(0, 3, n),
    )
    if alike:
        for of_rows in (drawn.y, drawn.weight, drawn.margin):
            of_rows[20:] = of_rows[-1]
    return Crowd(drawn, who)


def of_persons(data: st.DataObject, objective: str, *args: Any, **changes: Any) -> dict[str, Any]:
    """A plan of persons, each of whom counts one or more rows."""
    plan: dict[str, Any] = data.draw(plans(objective, *args, **changes)) | {"unit": "person"}
    count = {"max_rows_per_person": data.draw(st.sampled_from(("1.0", "1.0", "2.7", "40.0")))}
    plan["row_bound"] |= count | {"mode": data.draw(st.sampled_from(MODES[objective]))}
    while python_says_no(plan):
        plan["grid_bits"] -= 1
    return plan


def python_says_no(plan: dict[str, Any]) -> bool:
    try:
        describe_plan(text_of(plan))
    except xgb.core.XGBoostError:
        return True
    return False


def bounded(plan: dict[str, Any], crowd: Crowd) -> list[npt.NDArray[np.int64]]:
    """Per class, the integers of every row within the bounds of rows and persons."""
    by_class = pairs_of(plan, crowd.rows)
    bound_persons(Bound.of(plan), by_class, crowd.who, norms_of(plan, crowd))
    return by_class


def norms_of(plan: dict[str, Any], crowd: Crowd) -> npt.NDArray[np.float64]:
    """The largest norms of all rows, where the mode looks at them."""
    data, bound = crowd.rows, Bound.of(plan)
    heavy = data.weight.astype(float)
    if bound.heaviest > 0:
        heavy = np.minimum(heavy, bound.heaviest)
    with np.errstate(all="ignore"):
        g, h = objectives.gradients(plan["objective"], data.margin, data.y, data.weight)
        if bound.mode != "prediction":
            return heavy
        return bound.norms(g.astype(float), h.astype(float), data.y.astype(float), heavy)


@pytest.mark.parametrize("objective", [LOGISTIC, SQUARED, SOFTMAX])
@FEWER
@given(data=st.data())
def test_leaf_sums(objective, data):
    """Sums of all leaves of all trees of a round: L2 and L1, whatever leaves the rows are in."""
    crowd = data.draw(crowds(objective, ["cuts"]))
    plan = of_persons(data, objective)
    squares = absolute = 0
    for k, pairs in enumerate(bounded(plan, crowd)):
        sums = np.zeros((3, 2), dtype=np.int64)
        last = crowd.who == crowd.who.max()
        np.add.at(sums, (crowd.rows.nodes[last] + k) % 3, pairs[last, :2])
        squares += squared_distance(sums, 0 * sums)
        absolute += int(np.abs(sums).sum())
    assert squares <= round_sens2(plan)
    assert absolute <= RowBound.from_plan(plan).round_sens1(plan["grid_bits"], plan["num_class"])


@pytest.mark.parametrize("objective", [LOGISTIC, SQUARED, SOFTMAX])
@EXAMPLES
@given(data=st.data())
def test_leaf_sums_in_the_cpp(objective, data):
    """The C++'s own sums over the leaves of a tree that is the same for both data sets."""
    crowd = data.draw(crowds(objective, ["cuts"], HEAVY))
    changes = {"split": "random", "depth": 3, "rounds": 1, "grid_bits": 10}
    plan = of_persons(data, objective, leaf=NO_CLIP, **changes)
    plan["features"] = [{"kind": "cuts", "cuts": CUTS}]
    if plan["row_bound"]["mode"] == "clip" and plan["row_bound"]["hessian_weight"] == "4.0":
        plan["row_bound"]["hessian_weight"] = "1.0"  # integers that 32-bit statistics can hold
    start = PAST[objective, data.draw(st.sampled_from(((0.0, 0.0), (30.0, -100.0), (1e30, -1e30))))]
    sums = []
    for at in (np.arange(len(crowd.who)), crowd.others):
        rows = crowd.rows
        d = xgb.DMatrix(rows.X[at], rows.y[at], weight=rows.weight[at])
        native.set_persons(d, crowd.who[at])
        sums.append(cpp_leaf_sums(plan, d, start))
    assert len(sums[0]) == 2 * 2**3 * plan["num_class"]
    assert squared_distance(*sums) <= round_sens2(plan)


@pytest.mark.parametrize("objective", [LOGISTIC, SQUARED])
@EXAMPLES
@given(data=st.data())
def test_spread_leaf_sums(objective, data):
    """Leaves over which persons spread: the norm of what a person adds to them has a bound."""
    crowd = data.draw(crowds(objective, ["cuts"]))
    plan = of_persons(data, objective, split="random")
    plan["leaf"] |= {"spread": True}
    bound, last = Bound.of(plan), crowd.who == crowd.who.max()
    given = pairs_of(plan, crowd.rows)
    bounded_rows = bounded(plan, crowd)
    who = np.zeros(int(last.sum()), dtype=np.int64)
    where = crowd.rows.nodes[last]
    of_person = [pairs[last] for pairs in given], [pairs[last] for pairs in bounded_rows]
    gained = spread_persons(bound, row_variance(plan), *of_person, who, where, 3)
    sums = np.zeros((3, 2), dtype=np.int64)
    np.add.at(sums, where, of_person[1][0][:, :2])
    sums += gained[0, :, :2]
    root = bounded_rows[0][:, :2].sum(axis=0) // 3
    less = bounded_rows[0][~last, :2].sum(axis=0) // 3
    P, of_hessians = bound.most, bound.most_leaf_hessian
    assert squared_distance(sums, 0 * sums) <= max(round_sens2(plan), P**2 + of_hessians**2)
    moved = squared_distance(sums, 0 * sums) + squared_distance(root, less)
    stated_squares = describe_plan(text_of(plan))["leaves"]["sensitivity2"]
    assert moved <= stated_squares == RowBound.from_plan(plan).spread_sens2(plan["grid_bits"])


@pytest.mark.parametrize(
    ("objective", "score"),
    [(o, s) for o in (LOGISTIC, SQUARED, SOFTMAX) for s in ("l1", "newton")] + [(SOFTMAX, "norm")],
)
@EXAMPLES
@given(data=st.data())
def test_score_range(objective, score, data):
    """Of one selection for a level, and of one for each node: the ranges of all nodes add up."""
    kinds = ["cuts", "categorical", "cuts", "cuts"][: data.draw(st.integers(1, 4))]
    crowd = data.draw(crowds(objective, kinds))
    depth = {"depth": 3}  # three nodes of a level, and their children
    plan = of_persons(data, objective, "l1" if score == "norm" else score, **depth)
    if score == "norm":
        plan["row_bound"] |= {"mode": "prediction"}
        plan |= {"class_trees": "joint"}
    limit = range_of_plan(plan)
    features = bin_features({"features": SPECS[: len(kinds)]}, crowd.rows.X, FREE)
    plan["monotone"] = [
        0 if kind == "categorical" else data.draw(st.sampled_from((-1, 0, 1))) for kind in kinds
    ]
    reals = float(plan["score_clip"]), float(plan["leaf"]["lambda"])
    phi = Score(score, Bound.of(plan), *reals, 3)
    by_class = bounded(plan, crowd)
    for pairs in [np.hstack(by_class)] if score == "norm" else by_class:
        moved = []
        for node in range(3):
            inside = np.flatnonzero(crowd.rows.nodes == node)
            u = [
                np.append(
                    utilities(plan, features, list(range(len(features))), pairs, at, phi),
                    phi.phi(pairs[at].sum(axis=0)),
                )
                for at in (inside, np.intersect1d(inside, crowd.others))
            ]
            moved.append(u[0] - u[1])
        level = sum(moved)
        assert int(level.max()) - int(level.min()) <= limit
        assert sum(int(u.max()) - int(u.min()) for u in moved) <= limit


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("mode", ["prediction", "row_weight", "clip"])
def test_bounds_are_used(mode, size):
    """A person of any number of rows on one side adds nearly all that it may, and no more."""
    bound = Bound(mode, 0.5, 0.25, 0.25, 1.0, (0.0, 0.0), 1 << 12, persons=True)
    n = np.full(size, 1.0)
    pairs = [bound.quantise(0.9 * n, 0.09 * n, 0.0 * n, False)]
    norms = bound.norms(0.9 * n[:, None], 0.09 * n[:, None], 0.0 * n, n)
    bound_persons(bound, pairs, np.zeros(size, dtype=np.int64), norms)
    g, h = (int(v) for v in pairs[0].sum(axis=0)[:2])
    largest = bound.hessian_max if mode == "clip" else bound.B
    reached = max(g / bound.B, h / largest) if mode == "clip" else np.hypot(g, h) / bound.B
    assert 0.995 < reached <= 1.0
