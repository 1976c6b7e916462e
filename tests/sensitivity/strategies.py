"""Data sets full of awkward values, plans, and the figures that Python and C++ state for a plan."""

import math
from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from tests.reference import objective as objectives
from tests.reference.candidates import FLT_MAX, KeyCells
from tests.reference.comparison import BINARY, MULTICLASS, SQUARED, make_plan
from tests.reference.trainer import RowBound as Bound
from tests.stated import describe_plan, range_of_plan, ranged
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
number = st.sampled_from(NUMBERS)
cell = st.one_of(number, st.just(math.nan), number)
bounds = st.one_of(  # of a column with private candidates
    st.just([]),
    st.lists(st.sampled_from([*CUTS, NUMBERS[7]]), min_size=2, max_size=2, unique=True).map(sorted),
)


def label(objective: str) -> st.SearchStrategy[float]:
    """A valid label; for regression also beyond the declared bounds -4, 4."""
    if objective == SQUARED:
        return st.sampled_from(LABELS)
    return st.integers(0, 1 if objective in BINARY else CLASSES - 1).map(float)


def column(kind: str) -> st.SearchStrategy[float]:
    """A feature value: any finite float or missing, or one of the three declared categories."""
    return st.sampled_from((0.0, 1.0, 2.0, math.nan)) if kind == "categorical" else cell


@dataclass
class Rows:
    """A data set whose last row is the one that its neighbour lacks."""

    X: npt.NDArray[np.float32]
    y: npt.NDArray[np.float32]
    weight: npt.NDArray[np.float32]
    margin: npt.NDArray[np.float32]
    nodes: npt.NDArray[np.int64]


@st.composite
def rows(
    draw: st.DrawFn, objective: str, kinds: list[str], weights: tuple[float, ...] = WEIGHTS
) -> Rows:
    """0 to 12 rows and one more; the margins and nodes stand for any trees grown before."""
    k = CLASSES if objective in MULTICLASS else 1
    n = draw(st.integers(1, 13))
    row = st.tuples(
        st.tuples(*map(column, kinds)),
        label(objective),
        st.sampled_from(weights),
        st.tuples(*[st.sampled_from(MARGINS)] * k),
        st.integers(0, 2),
    )
    drawn = draw(st.lists(row, min_size=n, max_size=n))
    if n > 2 and draw(st.booleans()):
        drawn[1:-1] = [drawn[0]] * (n - 2)  # equal values: masses at one point
    X, y, w, m, nodes = (list(v) for v in zip(*drawn, strict=True))
    return Rows(
        np.array(X, np.float32).reshape(n, len(kinds)),
        np.array(y, np.float32),
        np.array(w, np.float32),
        np.array(m, np.float32).reshape(n, k),
        np.array(nodes),
    )


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
def plans(draw: st.DrawFn, objective: str, score: str = "l1", **changes: Any) -> dict[str, Any]:
    """A plan without noise whose row bound, grid and score are drawn too."""
    other = "clip" if objective == SQUARED else "prediction"
    mode = other if draw(st.booleans()) else "row_weight"
    if score == "gain":
        mode = "clip"
    bound = {
        "mode": mode,
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
    features = [{"kind": "cuts", "cuts": []}]
    plan = make_plan(objective, True, features, **drawn)
    for name, value in changes.items():
        plan[name] = plan[name] | value if isinstance(value, dict) else value
    while (score == "newton" and range_of_plan(plan) >= 1 << 23) or too_fine(plan):
        plan["grid_bits"] -= 1  # wider ranges and larger Hessians are refused
    return plan


# ------------------------------------------------------------------------------- stated figures
def text_of(plan: dict[str, Any]) -> str:
    """A hand-made plan as the C++ reads it."""
    return dump({"id": "hand-made", **ranged(plan)})


def round_sens2(plan: dict[str, Any]) -> int:
    """Squared sensitivity of the leaves of a round, of a plan that the library takes."""
    return int(describe_plan(text_of(plan))["leaf_sensitivity2"])


def pairs_of(plan: dict[str, Any], data: Rows) -> list[npt.NDArray[np.int64]]:
    """Per class, the integer (gradient, Hessian, 1) of every row."""
    bound = Bound.of(plan)
    with np.errstate(all="ignore"):
        g, h = objectives.gradients(plan["objective"], data.margin, data.y, data.weight)
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
