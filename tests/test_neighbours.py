"""Adding one row moves no released quantity by more than its stated sensitivity or range.

Hypothesis draws small data sets full of awkward values and one more row. Everything is compared in
exact integers: on the functions of the oracle (`tests/reference`), which
`test_oracle_is_the_trainer` ties to the C++ on the same kind of data, and on the C++ itself where
integers can be read off it: label sums, and the sums of leaves of trainings without noise. The
splits are held fixed, because sensitivities are stated for a fixed transcript of everything
released before.

The last part shows that the stated figures are attained: the checks would fail if these were
smaller.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import scipy.sparse as sp
import xgboost as xgb
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.comparison import LOGISTIC, SOFTMAX, SQUARED, check, make_plan
from tests.reference import objective as objectives
from tests.reference.candidates import FLT_MAX, bin_features, key_of
from tests.reference.draws import Noise
from tests.reference.trainer import RowBound as Bound
from tests.reference.trainer import Score, utilities
from xgb_dp import native, sensitivity
from xgb_dp.plan import dump_plan

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
LABELS = (-4.0, 4.0, 0.0, -0.0, 1e-45, 3.9999998, 4.5, -1e30, FLT_MAX, -FLT_MAX)
CLASSES = 3
FREE = Noise({"noise_free": True})
IN_THE_CLEAR = {"plan_id": "", "masking": {"workers": 0, "colluders": 0}}
number = st.sampled_from(NUMBERS)
cell = st.one_of(number, st.just(math.nan), number)


def label(objective: str) -> st.SearchStrategy[float]:
    """A valid label; for regression also beyond the declared bounds -4, 4."""
    if objective == SQUARED:
        return st.sampled_from(LABELS)
    return st.integers(0, 1 if objective == LOGISTIC else CLASSES - 1).map(float)


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
    k = CLASSES if objective == SOFTMAX else 1
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


@st.composite
def plans(draw: st.DrawFn, objective: str, score: str = "l1", **changes: Any) -> dict[str, Any]:
    """A plan without noise whose row bound, grid and score are drawn too."""
    mode = "gradient" if objective == SQUARED and draw(st.booleans()) else "row_weight"
    if score == "gain":
        mode = "gradient"
    bound = {
        "mode": mode,
        "gradient_bound": draw(st.sampled_from(("0.05", "0.3", "0.5", "1.0", "2.5"))),
        "hessian_weight": draw(st.sampled_from(("0.001", "0.0225", "0.25", "1.0", "4.0"))),
        "hessian_bound": "2.0",
        "max_weight": "2.0",
    }
    drawn = {
        "row_bound": bound,
        "grid_bits": draw(st.sampled_from((4, 9, 18))),
        "score": score,
        "tau": draw(st.sampled_from(("0.05", "0.5", "2.0", "9.0"))),
        "leaf": {"lambda": draw(st.sampled_from(("0.0", "1.0", "30.0")))},
    }
    features = [{"kind": "cuts", "cuts": []}]
    plan = make_plan(objective, True, features, **drawn)
    for name, value in changes.items():
        plan[name] = plan[name] | value if isinstance(value, dict) else value
    while score == "newton" and python_range(plan) >= 1 << 23:  # wider ranges are refused
        plan["grid_bits"] -= 1
    return plan


def text_of(plan: dict[str, Any]) -> str:
    """A hand-made plan as the C++ reads it."""
    return dump_plan({"id": "hand-made", **plan})


def stated(plan: dict[str, Any]) -> sensitivity.RowBound:
    """The Python figures of a plan."""
    b = plan["row_bound"]
    numbers = ("gradient_bound", "hessian_weight", "hessian_bound", "max_weight")
    return sensitivity.RowBound(b["mode"], *(float(b[k]) for k in numbers))


def round_sens2(plan: dict[str, Any]) -> int:
    """Squared sensitivity of the leaves of a round; Python and C++ must say the same."""
    figure = stated(plan).round_sens2(plan["grid_bits"], plan["num_class"])
    assert native.describe_plan(text_of(plan))["leaf_sensitivity2"] == figure
    return figure


def pairs_of(plan: dict[str, Any], data: Rows) -> list[npt.NDArray[np.int64]]:
    """Per class, the integer (gradient, Hessian, 1) of every row."""
    bound = Bound.of(plan)
    with np.errstate(all="ignore"):
        g, h = objectives.gradients(plan["objective"], data.margin, data.y, data.weight)
        return [
            bound.quantise(
                g[:, k].astype(float),
                h[:, k].astype(float),
                data.y.astype(float),
                plan["objective"] == SQUARED,
            )
            for k in range(g.shape[1])
        ]


# ------------------------------------------------------------------------------- candidates
def last_entry_counts(entries: list[list[tuple[int, float]]]) -> dict[tuple[int, int], float]:
    """(row, column) -> value of a sparse matrix whose rows may store a column twice."""
    return {(i, j): v for i, row in enumerate(entries) for j, v in row}


def counts(values: dict[tuple[int, int], float], levels: int) -> Counter[tuple[int, int, int]]:
    """Rows in every node (feature, level, cell) of the key trees: all that the walk may ask for."""
    out: Counter[tuple[int, int, int]] = Counter()
    for (_, j), value in values.items():
        if not math.isnan(value):
            key = int(key_of(np.array([value], np.float32))[0])
            out.update((j, level, key >> (32 - level)) for level in range(levels))
    return out


@MORE
@given(data=st.data())
def test_candidate_counts(data: st.DataObject) -> None:
    """All counts of all features, on every level: at most L F counts change, each by one row."""
    F, levels = data.draw(st.integers(1, 4)), data.draw(st.sampled_from((2, 6, 17)))
    shift = data.draw(st.sampled_from((0, 5)))
    # 0 to 5 entries a row: columns in any order, some twice, with other values
    entry = st.tuples(st.integers(0, F - 1), cell)
    entries = data.draw(st.lists(st.lists(entry, max_size=5), min_size=1, max_size=13))
    with_row = counts(last_entry_counts(entries), levels)
    without = counts(last_entry_counts(entries[:-1]), levels)
    moved = {node: (with_row[node] - without[node]) << shift for node in with_row | without}
    assert sum(v * v for v in moved.values()) <= sensitivity.candidates_sens2(F, levels, shift)
    assert sum(v != 0 for v in moved.values()) <= F * levels


@FEWER
@given(data=st.data())
def test_oracle_is_the_trainer(data: st.DataObject) -> None:
    """On the awkward rows of this file the C++ grows the oracle's trees, sparse duplicates too."""
    kinds = data.draw(
        st.lists(st.sampled_from(("private", "cuts", "categorical")), min_size=1, max_size=4)
    )
    spec: dict[str, Any] = {
        "private": {"grid": []},
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
        row_bound={"mode": data.draw(st.sampled_from(("gradient", "row_weight")))},
    )
    X: Any = drawn.X
    dense = X.copy()
    if data.draw(st.booleans()):  # each row stores its first column twice; the last one counts
        n, F = X.shape
        dense[np.isnan(X[:, 0]), 0] = 2.0  # a missing value is no entry
        X = sp.csr_matrix(
            (
                np.c_[np.full(n, 2.0, np.float32), X].ravel(),
                np.tile([0, *range(F)], n),
                np.arange(n + 1) * (F + 1),
            ),
            shape=(n, F),
        )
    check(plan, X, drawn.y, drawn.weight, dense=dense)


# ------------------------------------------------------------------------------- scores
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


RANGES: dict[str, int] = {}


def python_range(plan: dict[str, Any]) -> int:
    """The range of a plan, by the Python side."""
    tau = float(plan["tau"])
    return sensitivity.range_int(plan["score"], stated(plan), plan["grid_bits"], tau)


def range_of(plan: dict[str, Any]) -> int:
    """The range of a plan; Python and C++ must say the same."""
    figure = python_range(plan)
    text = text_of(plan)
    if text not in RANGES:
        RANGES[text] = native.describe_plan(text)["score_range"]
    assert RANGES[text] == figure
    return figure


@pytest.mark.parametrize(
    ("objective", "score"),
    [(o, s) for o in (LOGISTIC, SQUARED, SOFTMAX) for s in ("l1", "newton")] + [(SQUARED, "gain")],
)
@EXAMPLES
@given(data=st.data())
def test_score_range(objective: str, score: str, data: st.DataObject) -> None:
    """Largest minus smallest change of a utility, over all candidates and "no split"."""
    kinds = ["cuts", "categorical", "cuts", "cuts"][: data.draw(st.integers(1, 4))]
    unit = (1.0,)
    drawn = data.draw(rows(objective, kinds, unit if score == "gain" else WEIGHTS))
    plan = data.draw(plans(objective, score))
    if score == "gain":  # margins that are not numbers would count as no row, with a gradient of 0
        plan["row_bound"] |= {"hessian_bound": "1.0", "max_weight": "1.0"}
    limit = range_of(plan)
    features = bin_features({"features": SPECS[: len(kinds)]}, drawn.X, FREE)
    plan["monotone"] = [
        0 if kind == "categorical" else data.draw(st.sampled_from((-1, 0, 1))) for kind in kinds
    ]
    phi = Score(score, Bound.of(plan), float(plan["tau"]), float(plan["leaf"]["lambda"]))
    for pairs in pairs_of(plan, drawn):
        if score == "gain":
            pairs[:, 2] = pairs[:, 1] > 0  # the C++ counts rows by their Hessians
        moved = changes(plan, features, pairs, drawn.nodes, phi)
        for node, change in enumerate(moved):  # one selection per node
            if node == drawn.nodes[-1]:
                assert int(change.max()) - int(change.min()) <= limit
            else:
                assert not change.any()
        level = sum(moved)  # one selection for the level
        assert int(level.max()) - int(level.min()) <= limit


# ------------------------------------------------------------------------------- leaves
@pytest.mark.parametrize("objective", [LOGISTIC, SQUARED, SOFTMAX])
@MORE
@given(data=st.data())
def test_leaf_sums(objective: str, data: st.DataObject) -> None:
    """Sums of all leaves of all trees of a round; each tree has leaves of its own."""
    drawn = data.draw(rows(objective, ["cuts"]))
    plan = data.draw(plans(objective))
    moved = 0
    for k, pairs in enumerate(pairs_of(plan, drawn)):
        leaf = (drawn.nodes + k * np.arange(len(pairs))) % 3
        sums = np.zeros((2, 3, 2), dtype=np.int64)
        np.add.at(sums[0], leaf, pairs[:, :2])
        np.add.at(sums[1], leaf[:-1], pairs[:-1, :2])
        moved += squared_distance(sums[0], sums[1])
    assert moved <= round_sens2(plan)


@st.composite
def probabilities(draw: st.DrawFn) -> npt.NDArray[np.float64]:
    """Margins of 2 to 60 classes of which some share the mass and others have none."""
    k = draw(st.integers(2, 60))
    even = draw(st.integers(1, k))
    last = draw(st.sampled_from((-95.0, -3.0, 0.0, 1.0)))
    return np.array([0.0] * even + [last] * (k - even)) + draw(st.sampled_from((0.0, -50, 1e3)))


@MORE
@given(margin=probabilities(), data=st.data())
def test_softmax_rounds_of_many_classes(margin: npt.NDArray[np.float64], data: Any) -> None:
    k = len(margin)
    plan = data.draw(plans(SOFTMAX, num_class=k))
    row = Rows(
        np.zeros((1, 1), np.float32),
        np.array([data.draw(st.integers(0, k - 1))], np.float32),
        np.array([data.draw(st.sampled_from(WEIGHTS))], np.float32),
        margin.astype(np.float32)[None],
        np.zeros(1, np.int64),
    )
    moved = sum(squared_distance(p[:, :2], 0 * p[:, :2]) for p in pairs_of(plan, row))
    assert moved <= round_sens2(plan)


# --------------------------------------------------------------------- leaves, in the C++
GRID = {"grid_bits": 10, "rounds": 1, "depth": 1}
NO_CLIP = {"sigma2": 0, "max_delta_step": "0.0", "lambda": "1.0", "shrinkage": False}


def past(objective: str, left: float, right: float) -> bytearray:
    """A saved model of one round whose leaves are given: it puts rows at extreme margins."""
    plan = make_plan(objective, True, [{"kind": "cuts", "cuts": []}], **GRID)
    d = xgb.DMatrix(np.zeros((1, 1)), np.zeros(1))
    model = json.loads(xgb_train(plan, d).save_raw("json"))
    for k, tree in enumerate(model["learner"]["gradient_booster"]["model"]["trees"]):
        # one class each way, so that softmax becomes extreme too
        tree["split_conditions"][1:] = [left, right] if k % 2 == 0 else [right, left]
    return bytearray(json.dumps(model).encode())


def xgb_train(plan: dict[str, Any], d: xgb.DMatrix, start: bytearray | None = None) -> xgb.Booster:
    """One round of a hand-made plan, on top of an earlier model."""
    classes = {"num_class": plan["num_class"]} if plan["num_class"] > 1 else {"base_score": 0.5}
    params = {
        "tree_method": "dp_hist",
        "objective": plan["objective"],
        "dp_plan": text_of(plan),
        "nthread": 1,
        **({} if start else classes),
    }
    if plan["num_class"] > 1 and not start:
        params["base_score"] = [0.0] * plan["num_class"]
    booster = xgb.Booster(params, [d], model_file=start)
    booster.update(d, 0)
    return booster


def cpp_leaf_sums(plan: dict[str, Any], d: xgb.DMatrix, start: bytearray) -> npt.NDArray[np.int64]:
    """Exact integers (G, H) of both leaves of the last round's trees, read off the statistics."""
    bound, lam = Bound.of(plan), float(plan["leaf"]["lambda"])
    model = json.loads(xgb_train(plan, d, start).save_raw("json"))["learner"]["gradient_booster"]
    out = []
    for tree in model["model"]["trees"][-plan["num_class"] :]:
        for node in (1, 2):
            h, w = tree["sum_hessian"][node], tree["base_weights"][node] / bound.scale
            out += [-w * (h + lam) / bound.g_unit, h / bound.h_unit]
    assert np.abs(out - np.rint(out)).max() < 0.25  # statistics are 32-bit floats
    return np.rint(out).astype(np.int64)


PAST = {
    (o, m): past(o, *m)
    for o in (LOGISTIC, SQUARED, SOFTMAX)
    for m in ((0.0, 0.0), (30.0, -100.0), (1e30, -1e30))
}


def sparse_rows(data: Rows, twice: bool) -> sp.csr_matrix:
    """One column; missing values are not stored, and the others may be stored twice."""
    indptr, values = [0], []
    for (x,) in data.X:
        values += [] if np.isnan(x) else [-7.0, x] if twice else [x]
        indptr.append(len(values))
    return sp.csr_matrix(
        (np.array(values, np.float32), np.zeros(len(values), int), indptr), (len(data.X), 1)
    )


@pytest.mark.parametrize("objective", [LOGISTIC, SQUARED, SOFTMAX])
@EXAMPLES
@given(data=st.data())
def test_leaf_sums_in_the_cpp(objective: str, data: st.DataObject) -> None:
    """The C++'s own sums, with weights beyond the bound, extreme margins and doubled entries."""
    drawn = data.draw(rows(objective, ["cuts"], HEAVY))
    plan = data.draw(plans(objective, **GRID, leaf=NO_CLIP))
    if plan["row_bound"]["mode"] == "gradient" and plan["row_bound"]["hessian_weight"] == "4.0":
        plan["row_bound"]["hessian_weight"] = "1.0"  # integers that 32-bit statistics can hold
    start = PAST[objective, data.draw(st.sampled_from(((0.0, 0.0), (30.0, -100.0), (1e30, -1e30))))]
    X = sparse_rows(drawn, data.draw(st.booleans()))
    one = xgb.DMatrix(X, drawn.y, weight=drawn.weight)
    other = xgb.DMatrix(X[:-1], drawn.y[:-1], weight=drawn.weight[:-1])
    moved = squared_distance(cpp_leaf_sums(plan, one, start), cpp_leaf_sums(plan, other, start))
    assert moved <= round_sens2(plan)


# ------------------------------------------------------------------------------- intercept
@pytest.mark.parametrize("n_public", [False, True])
@pytest.mark.parametrize("kind", ["binary", "regression", "multiclass"])
@EXAMPLES
@given(data=st.data())
def test_intercept_sums(kind: str, n_public: bool, data: st.DataObject) -> None:
    """The label sums of the C++, with labels on and beyond the bounds."""
    objective = {"binary": LOGISTIC, "regression": SQUARED, "multiclass": SOFTMAX}[kind]
    y = np.array(data.draw(st.lists(label(objective), min_size=1, max_size=13)), np.float32)
    low, high = data.draw(st.sampled_from(((-4.0, 4.0), (0.1, 0.3), (-1e300, 1e308))))
    request = {
        "kind": kind,
        "num_class": CLASSES,
        "sigma2": 0,
        "shift": data.draw(st.sampled_from((0, 7, 26))),
        "target_lower": repr(low),
        "target_upper": repr(high),
        "noise_free": True,
        **IN_THE_CLEAR,
    }
    if n_public and kind != "multiclass":
        request["n_public"] = len(y)
    one, other = (
        native.release_intercept(xgb.DMatrix(np.zeros((len(v), 1)), v), request)["sums"]
        for v in (y, y[:-1])
    )
    bound = sensitivity.intercept_sens2(kind, int(request["shift"]), n_public=n_public)
    assert squared_distance(one, other) <= bound
    touched = sensitivity.intercept_coordinates(kind, n_public=n_public)
    assert np.count_nonzero(np.subtract(one, other)) <= touched


# ------------------------------------------------------------------------------- errors
def public_params(objective: str, kinds: list[str], score: str, weighted: bool) -> dict[str, Any]:
    params: dict[str, Any] = {
        "tree_method": "dp_hist",
        "objective": objective,
        "dp_epsilon": 1.0,
        "dp_delta": 1e-6,
        "max_depth": 2,
        "nthread": 1,
        "verbosity": 0,
        "dp_score": score,
    }
    categorical = {j: 3 for j, kind in enumerate(kinds) if kind == "categorical"}
    if categorical:
        params["dp_categories"] = categorical
    if objective == SQUARED:
        params["dp_target_bounds"] = (-4.0, 4.0)
    if objective == SOFTMAX:
        params["num_class"] = CLASSES
    if weighted:
        params["dp_max_weight"] = 2.0
    return params


@pytest.mark.parametrize("objective", [LOGISTIC, SQUARED, SOFTMAX])
@FEWER
@given(data=st.data())
def test_no_neighbours_differ_in_whether_training_raises(
    objective: str, data: st.DataObject
) -> None:
    """Every data set of valid rows trains, so no two differ."""
    kinds = data.draw(st.lists(st.sampled_from(("private", "categorical")), min_size=1, max_size=4))
    drawn = data.draw(rows(objective, kinds, HEAVY))
    weighted = data.draw(st.booleans())
    params = public_params(objective, kinds, data.draw(st.sampled_from(("l1", "newton"))), weighted)
    types = ["c" if kind == "categorical" else "q" for kind in kinds]
    X: Any = drawn.X
    if data.draw(st.booleans()):
        X = sp.csr_matrix(np.nan_to_num(X, nan=0.0, posinf=0.0))  # zeros become missing
    for n in (len(drawn.y), len(drawn.y) - 1):
        d = xgb.DMatrix(
            X[:n],
            drawn.y[:n],
            weight=drawn.weight[:n] if weighted else None,
            feature_types=types,
            enable_categorical=True,
        )
        assert xgb.train(params, d, 2).num_boosted_rounds() == 2


def outcome(params: dict[str, Any], d: xgb.DMatrix) -> tuple[str, Any]:
    """What an observer of a training sees, up to noise: the error, or the public part."""
    try:
        ledger = json.loads(xgb.train(params, d, 1).attr("dp_ledger"))
    except ValueError as error:
        return "raised", str(error).split("Stack trace")[0][11:]
    return "trained", ledger["trainings"][0]["public"]


@pytest.mark.parametrize(
    "declared", [{"dp_max_weight": 2.0}, {}, {"dp_score": "gain"}], ids=str
)
def test_no_rows_with_weights_and_one_row_with_a_weight(declared: dict[str, Any]) -> None:
    params = public_params(SQUARED, ["private"], "l1", False) | declared
    matrices = [xgb.DMatrix(np.zeros((n, 1)), np.zeros(n), weight=np.ones(n)) for n in (0, 1)]
    assert outcome(params, matrices[0]) == outcome(params, matrices[1])


def test_query_groups_do_not_decide_whether_training_raises() -> None:
    """Weights of a grouped matrix belong to groups: both matrices must be refused."""
    params = public_params(LOGISTIC, ["private"], "l1", True)
    X, y = np.zeros((3, 1)), np.zeros(3)
    one = xgb.DMatrix(X, y, qid=[0, 1, 1], weight=[1.0, 1.0])
    other = xgb.DMatrix(X[:2], y[:2], qid=[0, 1], weight=[1.0, 1.0])
    assert outcome(params, one)[0] == outcome(params, other)[0]


# ------------------------------------------------------------------------------- attained
# (largest move found, stated bound): the move must come close to the bound from below, so that each
# check above fails if the bound is lowered.
def bound_of(mode: str = "row_weight", r: str = "1.0", c: str = "0.5", h: str = "1.0") -> Any:
    plan = make_plan(SQUARED, True, [{"kind": "cuts", "cuts": []}])
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
    plan |= {"score": score, "tau": str(tau), "grid_bits": 15}
    plan["leaf"]["lambda"] = str(lam)
    bound = Bound.of(plan)
    phi, B = Score(score, bound, tau, lam), bound.B
    limit = range_of(plan)
    if score == "l1":
        return width(phi, (B, 0, 1), (-B, 0, 1), (B, 0, 1)), limit
    if score == "gain":
        n = 10**6
        return width(phi, (n * B, 0, n), (-n * B, 0, n), (B, 0, 1)), limit
    widest = 0
    h_top = bound.hessian_max if mode == "gradient" else B
    for h in np.linspace(0, h_top, 400).astype(int):
        g = B if mode == "gradient" else math.isqrt(B * B - int(h) ** 2)
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
    pairs = Bound.of(plan).quantise(np.array([1e9]), np.array([1e9]) * (mode != "row_weight"), y,
                                    False)  # fmt: skip
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


def worst_counts() -> tuple[int, int]:
    row = {(0, j): v for j, v in enumerate((0.0, FLT_MAX, -1e-45))}
    moved = counts(row, 17)
    return sum((v << 3) ** 2 for v in moved.values()), sensitivity.candidates_sens2(3, 17, 3)


def worst_intercept(kind: str, n_public: bool) -> tuple[int, int]:
    request = {"kind": kind, "num_class": 3, "sigma2": 0, "shift": 9, "target_lower": "-4.0",
               "target_upper": "4.0", "noise_free": True, **IN_THE_CLEAR}  # fmt: skip
    if n_public:
        request["n_public"] = 1
    y = np.array([1e30 if kind == "regression" else 1.0])
    sums = native.release_intercept(xgb.DMatrix(np.zeros((1, 1)), y), request)["sums"]
    bound = sensitivity.intercept_sens2(kind, 9, n_public=n_public)
    return squared_distance(sums, [0] * len(sums)), bound


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
    "intercept binary": (lambda: worst_intercept("binary", False), 1.0),
    "intercept binary, public n": (lambda: worst_intercept("binary", True), 1.0),
    "intercept regression": (lambda: worst_intercept("regression", False), 1.0),
    "intercept regression, public n": (lambda: worst_intercept("regression", True), 1.0),
    "intercept multiclass": (lambda: worst_intercept("multiclass", False), 1.0),
    "l1": (lambda: worst_range("l1", "row_weight", "1.0", 0.5), 1.0),
    "gain": (lambda: worst_range("gain", "gradient", "0.25", 0.5), 0.999),
    "newton, weights, small tau": (lambda: worst_range("newton", "row_weight", "1.0", 0.5), 0.99),
    "newton, weights, large tau": (lambda: worst_range("newton", "row_weight", "0.25", 9.0), 0.99),
    "newton, gradient, small tau": (lambda: worst_range("newton", "gradient", "1.0", 0.25), 0.99),
    "newton, gradient, large tau": (lambda: worst_range("newton", "gradient", "1.0", 5.0), 0.99),
    "leaf, weights": (lambda: worst_leaf("row_weight"), 1.0),
    "leaf, gradient": (lambda: worst_leaf("gradient"), 1.0),
    "softmax, every class": (lambda: worst_softmax(50, 51, False), 0.999),
    "softmax, joint": (lambda: worst_softmax(50, 80, True), 0.98),
    "C++ logistic": (lambda: worst_in_the_cpp(LOGISTIC, "row_weight"), 0.999),
    "C++ squared, gradient": (lambda: worst_in_the_cpp(SQUARED, "gradient"), 0.999),
}


@pytest.mark.parametrize("case", ATTAINED)
def test_the_bound_is_attained(case: str) -> None:
    """A bound that is smaller by the given factor would be exceeded."""
    worst, factor = ATTAINED[case]
    moved, limit = worst()
    assert factor * limit <= moved <= limit


def test_duplicates_that_both_count_would_be_noticed() -> None:
    """A row that counts twice in one column exceeds the sensitivity: the check above has teeth."""
    twice = {(0, 0): 1.0, (1, 0): 1.0}
    moved = sum(v * v for v in counts(twice, 17).values())
    assert moved > sensitivity.candidates_sens2(1, 17, 0)
