"""Data sets full of awkward values, plans, and the figures that Python and C++ state for a plan."""

import math
from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
import xgboost as xgb
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from tests.persons.conftest import people
from tests.reference import objective as objectives
from tests.reference.candidates import FLT_MAX, KeyCells
from tests.reference.comparison import BINARY, MULTICLASS, SQUARED, make_plan
from tests.reference.persons import bound_persons
from tests.reference.trainer import RowBound as Bound
from tests.stated import describe_plan, range_of_plan, ranged
from xgb_dp.engine import native
from xgb_dp.planning import dump

# Derandomised: the same examples on every run, so that the result says something about the code.
EXAMPLES = settings(
    derandomize=True,
    deadline=None,
    database=None,
    max_examples=60,
    suppress_health_check=list(HealthCheck),
)
MORE = settings(EXAMPLES, max_examples=150)
FEWER = settings(EXAMPLES, max_examples=30)

FLT_MIN = float(np.finfo(np.float32).tiny)
NUMBERS = (0.0, -0.0, 1e-45, -1e-45, FLT_MIN, -FLT_MIN, 1.0, float(np.nextafter(np.float32(1), 2)),
           -1.0, 3.25, 1e-20, -2.5e7, 1e30, FLT_MAX, -FLT_MAX)  # fmt: skip
CUTS = [-FLT_MAX, -2.5e7, -1.0, -FLT_MIN, 0.0, FLT_MIN, 1.0, 3.25, 1e30]
MARGINS = (0.0, -0.0, 0.3, -2.0, 20.0, -20.0, 95.0, -95.0, 1e4, -1e4, 1e30, -1e30, FLT_MAX,
           -FLT_MAX, math.inf, -math.inf, math.nan)  # fmt: skip
WEIGHTS = (0.0, 1e-45, 1e-3, 0.5, 1.0, 1.7, 2.0)
HEAVY = (*WEIGHTS, 2.5, 1e6, FLT_MAX)
POSITIVE = ("1.0", "0.25", "8.0")  # weights of positive rows
LABELS = (-4.0, 4.0, 0.0, -0.0, 1e-45, 3.9999998, 4.5, -1e30, FLT_MAX, -FLT_MAX)
CLASSES = 3
MODES: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(BINARY, ("prediction", "row_weight", "clip")), SQUARED: ("clip", "row_weight"),
    **dict.fromkeys(MULTICLASS, ("prediction", "row_weight")),
}  # fmt: skip
"""Clips that have a bound for an objective."""
number = st.sampled_from(NUMBERS)
cell = st.one_of(number, st.just(math.nan), number)
bounds = st.one_of(  # of a column with private candidates
    st.just([]),
    st.lists(st.sampled_from([*CUTS, NUMBERS[7]]), min_size=2, max_size=2, unique=True).map(sorted),
)


@dataclass
class Rows:
    """A data set whose last unit the neighbour lacks; `who` are the codes of persons."""

    X: npt.NDArray[np.float32]
    y: npt.NDArray[np.float32]
    weight: npt.NDArray[np.float32]
    margin: npt.NDArray[np.float32]
    nodes: npt.NDArray[np.int64]
    who: npt.NDArray[np.int64] | None = None

    @property
    def last(self) -> npt.NDArray[np.bool_]:
        """Rows that the neighbour lacks."""
        who = np.arange(len(self.y)) if self.who is None else self.who
        return np.asarray(who == who.max())

    def matrices(self) -> tuple[xgb.DMatrix, xgb.DMatrix]:
        """Of these rows, and of the neighbour's."""
        return self._matrix(np.full(len(self.y), True)), self._matrix(~self.last)

    def _matrix(self, at: npt.NDArray[np.bool_]) -> xgb.DMatrix:
        d = xgb.DMatrix(sparse(self.X[at]), self.y[at], weight=self.weight[at])
        if self.who is not None:
            native.set_persons(d, self.who[at])
        return d


def sparse(X: npt.NDArray[np.float32]) -> sp.csr_matrix:
    """Missing values are not stored."""
    here = ~np.isnan(X)
    ends = np.append(0, here.sum(axis=1).cumsum())
    return sp.csr_matrix((X[here], np.nonzero(here)[1], ends), X.shape)


SIZES = (1, 2, 3, 30, 1000)
"""Numbers of rows of the person that the neighbour lacks."""
OTHERS = people(20, 5)


@st.composite
def rows(
    draw: st.DrawFn,
    objective: str,
    kinds: list[str],
    weights: tuple[float, ...] = WEIGHTS,
    unit: str = "row",
) -> Rows:
    """0 to 12 rows and one more, or 20 rows of persons and one more person.

    Margins and nodes stand for any trees grown before. The rows of the last person may be alike.
    """
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n, k = draw(st.integers(1, 13)), CLASSES if objective in MULTICLASS else 1
    who = None
    if unit == "person":
        who = np.append(OTHERS, np.full(draw(st.sampled_from(SIZES)), 1 + OTHERS.max()))
        n = len(who)
    numbers = (0.0, 1.0, 2.0, math.nan), (*NUMBERS, math.nan, *NUMBERS)
    columns = [rng.choice(numbers[kind != "categorical"], n) for kind in kinds]
    labels = LABELS if objective == SQUARED else range(2 if objective in BINARY else CLASSES)
    margins = MARGINS if unit == "row" or draw(st.booleans()) else (0.0, 0.3, -2.0)
    drawn = Rows(
        np.array(columns, np.float32).T.reshape(n, len(kinds)),
        rng.choice(np.array(labels, np.float32), n),
        rng.choice(np.array(weights, np.float32), n),
        rng.choice(np.array(margins, np.float32), (n, k)),
        rng.integers(0, 3, n),
        who,
    )
    each = (drawn.X, drawn.y, drawn.weight, drawn.margin, drawn.nodes)
    if draw(st.booleans()):  # equal values: masses at one point, or a person whose rows are alike
        at = slice(1, -1) if unit == "row" else slice(len(OTHERS), None)
        for column in each if unit == "row" else each[1:4]:
            column[at] = column[0 if unit == "row" else -1]
    return drawn


def squared_distance(a: Any, b: Any) -> int:
    """Squared L2 distance of two integer arrays, in Python integers."""
    return sum((int(x) - int(y)) ** 2 for x, y in zip(np.ravel(a), np.ravel(b), strict=True))


def too_fine(plan: dict[str, Any]) -> bool:
    """Whether the largest Hessian of a row has 2^24 steps of the grid or more."""
    bound = plan["row_bound"]
    h, r, c = (float(bound[k]) for k in ("hessian_bound", "hessian_weight", "gradient_bound"))
    steps = math.ceil(math.sqrt(r) * h / c * 2 ** plan["grid_bits"])
    return bool(bound["mode"] in ("clip", "filter") and steps >= 1 << 24)


@st.composite
def plans(
    draw: st.DrawFn, objective: str, score: str = "l1", unit: str = "row", **changes: Any
) -> dict[str, Any]:
    """A plan without noise whose row bound, grid and score are drawn too."""
    modes = ("clip",) if score == "gain" else MODES[objective]
    bound = {
        "mode": draw(st.sampled_from(modes)),
        "positive_weight": draw(st.sampled_from(POSITIVE)) if objective in BINARY else "1.0",
        "gradient_bound": draw(st.sampled_from(("0.05", "0.3", "0.5", "1.0", "2.5"))),
        "hessian_weight": draw(st.sampled_from(("0.001", "0.0225", "0.25", "1.0", "4.0"))),
        "hessian_bound": "2.0",
        "max_weight": "2.0",
    }
    drawn = {
        "row_bound": bound,
        "grid_bits": draw(st.sampled_from((4, 9, 18))),
        "score": score,
        "score_clip": draw(st.sampled_from(("0.05", "0.5", "2.0", "9.0"))),
        "leaf": {"lambda": draw(st.sampled_from(("0.0", "1.0", "30.0")))},
    }
    if unit == "person":
        count = draw(st.sampled_from(("1.0", "1.0", "2.7", "40.0")))
        drawn |= {"unit": unit, "row_bound": bound | {"max_rows_per_person": count}}
    plan = make_plan(objective, True, [{"kind": "cuts", "cuts": []}], **drawn)
    for name, value in changes.items():
        plan[name] = plan[name] | value if isinstance(value, dict) else value
    while refused(plan) or (score == "newton" and range_of_plan(plan) >= 1 << 23):
        plan["grid_bits"] -= 1  # wider ranges and larger Hessians are refused
    return plan


def refused(plan: dict[str, Any]) -> bool:
    """Whether the grid of a plan is too fine for the library."""
    try:
        describe_plan(text_of(plan))
    except xgb.core.XGBoostError:
        return bool(plan["grid_bits"] > 1)
    return too_fine(plan)


# ------------------------------------------------------------------------------- stated figures
def text_of(plan: dict[str, Any]) -> str:
    """A hand-made plan as the C++ reads it."""
    return dump({"id": "hand-made", **ranged(plan)})


def round_sens2(plan: dict[str, Any]) -> int:
    """Squared sensitivity of the leaves of a round, of a plan that the library takes."""
    return int(describe_plan(text_of(plan))["leaf_sensitivity2"])


def gradients_of(plan: dict[str, Any], data: Rows) -> tuple[Any, Any]:
    """Gradients and Hessians in 32 bits, or in 64 where the row bound computes logistic loss."""
    by_margin = plan["row_bound"]["mode"] == "prediction" and plan["num_class"] == 1
    margin = data.margin.astype(float) if by_margin else data.margin
    return objectives.gradients(plan["objective"], margin, data.y, data.weight)


def pairs_of(plan: dict[str, Any], data: Rows) -> list[npt.NDArray[np.int64]]:
    """Per class, the integer (gradient, Hessian, 1) of every row."""
    bound = Bound.of(plan)
    with np.errstate(all="ignore"):
        g, h = gradients_of(plan, data)
        if bound.mode == "prediction" and g.shape[1] > 1:
            wide = [v.astype(float) for v in (g, h, data.y, data.weight)]
            return bound.quantise_classes(*wide)
        return [
            bound.quantise(
                g[:, k].astype(float),
                h[:, k].astype(float),
                data.y.astype(float),
                plan["objective"] == SQUARED,
            )
            for k in range(g.shape[1])
        ]


def bounded(plan: dict[str, Any], data: Rows) -> list[npt.NDArray[np.int64]]:
    """Per class, the integers of every row within the bounds of rows and persons."""
    by_class, bound = pairs_of(plan, data), Bound.of(plan)
    if data.who is None:
        return by_class
    wide = data.y.astype(float), data.weight.astype(float)
    norms = np.minimum(wide[1], bound.heaviest) if bound.heaviest > 0 else wide[1]
    with np.errstate(all="ignore"):
        if bound.mode == "prediction":
            g, h = gradients_of(plan, data)
            norms = bound.norms(g.astype(float), h.astype(float), wide[0], norms)
    bound_persons(bound, by_class, data.who, norms)
    return by_class


def counts(
    values: dict[tuple[int, int], float], levels: int, ends: npt.ArrayLike = ()
) -> Counter[tuple[int, int, int]]:
    """Rows in every node (feature, level, cell) of the key trees: all that the walk may ask for."""
    out: Counter[tuple[int, int, int]] = Counter()
    cells = KeyCells(levels, ends)
    for (_, j), value in values.items():
        if not math.isnan(value):
            finest = int(cells.of(np.array([value], np.float32))[0])
            assert 0 <= finest < 1 << (levels - 1)
            out.update((j, level, finest >> (levels - 1 - level)) for level in range(levels))
    return out
