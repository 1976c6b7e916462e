"""Sums that count rows: a person of 1 to 1,000 rows moves each of them by no more than one row."""

from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import xgboost as xgb
from hypothesis import given
from hypothesis import strategies as st

from tests.models import trees
from tests.reference.candidates import FLT_MAX, key_of
from tests.reference.comparison import LOGISTIC, SOFTMAX, SQUARED, make_plan
from tests.sensitivity.cpp import IN_THE_CLEAR, xgb_train
from tests.sensitivity.strategies import CLASSES, EXAMPLES, NUMBERS, label, text_of
from tests.stated import describe_intercept, describe_plan
from xgb_dp.accounting import sensitivity
from xgb_dp.engine import native
from xgb_dp.mechanisms.label_range import edges
from xgb_dp.testing import train_with_plan

SIZES = (1, 2, 3, 7, 40, 1000)
OBJECTIVES = {"regression": SQUARED, "cells": SQUARED, "range": SQUARED, "multiclass": SOFTMAX}
KINDS = ("binary", "regression", "multiclass", "cells", "range", "rows")
CELLS = sensitivity.LABEL_CELLS

Rows = npt.NDArray[Any]


def request_of(kind: str, shift: int, *, public_num_rows: bool = False) -> dict[str, Any]:
    """What is asked for; labels from -4 to 4."""
    out = {
        **IN_THE_CLEAR,
        "unit": "person",
        "kind": kind,
        "num_class": CELLS if kind in ("cells", "range") else CLASSES,
        "edges": [repr(v) for v in edges(-4.0, 4.0)],
        "sigma2": 0,
        "shift": shift,
        "target_lower": "-4.0",
        "target_upper": "4.0",
        "noise_free": True,
    }
    return out | ({"public_num_rows": 1} if public_num_rows else {})


def sums_of(request: dict[str, Any], y: Rows, codes: Rows) -> list[int]:
    """Exact sums of the C++."""
    d = xgb.DMatrix(np.zeros((len(y), 1)), y)
    native.set_persons(d, codes)
    sums: list[int] = native.release_before_trees(d, request)["sums"]
    return sums


def mean_of_rows(kind: str, y: Rows, shift: int, *, public_num_rows: bool) -> list[int]:
    """What one person adds, in exact fractions: the mean of its rows, rounded towards zero."""
    unit, each = 1 << shift, Fraction(1, len(y))
    if kind == "rows":
        return [unit]
    if kind == "multiclass":
        return [int(unit * each * int((y == k).sum())) for k in range(CLASSES)]
    if kind == "cells":
        cells = [min(max(int((Fraction(float(v)) + 4) * CELLS // 8), 0), CELLS - 1) for v in y]
        return [int(unit * each * cells.count(k)) for k in range(CELLS)]
    if kind == "range":
        cells = [sum(e <= v for e in edges(-4.0, 4.0)) for v in y]
        return [int(unit * each * cells.count(k)) for k in range(CELLS)]
    low, high = (-4.0, 4.0) if kind == "regression" else (0.0, 1.0)
    centred = [np.clip((float(v) - low) / (high - low) * 2 - 1, -1, 1) for v in y]
    total = int(each * sum(round(float(c) * unit) for c in centred))
    return [total] if public_num_rows else [total, unit]


@pytest.mark.parametrize("public_num_rows", [False, True])
@pytest.mark.parametrize("kind", KINDS)
@EXAMPLES
@given(data=st.data())
def test_label_sums(kind, public_num_rows, data):
    """With and without a person; codes in any order; and each person adds the mean of its rows."""
    public_num_rows = public_num_rows and kind in ("binary", "regression")
    sizes = [*data.draw(st.lists(st.integers(1, 4), max_size=3)), data.draw(st.sampled_from(SIZES))]
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    labels = data.draw(st.lists(label(OBJECTIVES.get(kind, LOGISTIC)), min_size=1, max_size=5))
    who = np.repeat(np.arange(len(sizes)), sizes)
    y = rng.choice(np.array(labels, np.float32), len(who))
    rng.shuffle(who)
    shift = data.draw(st.sampled_from((0, 7, 26)))
    request = request_of(kind, shift, public_num_rows=public_num_rows)
    names = rng.permutation(len(sizes))  # codes have no order
    one = sums_of(request, y, names[who])
    kept = who < len(sizes) - 1
    other = sums_of(request, y[kept], who[kept])
    moved = np.subtract(one, other)
    expected = mean_of_rows(kind, y[~kept], shift, public_num_rows=public_num_rows)
    assert moved.tolist() == expected
    event = describe_intercept(request)
    assert sum(int(v) ** 2 for v in moved) <= event["sensitivity2"]
    assert np.count_nonzero(moved) <= event["coordinates"]
    assert event["unit"] == "person"


@pytest.mark.parametrize("size", SIZES)
def test_the_bound_of_label_sums_is_attained(size):
    """Rows that agree add as much as one row."""
    y, codes = np.ones(size), np.zeros(size)
    for kind in KINDS:
        request = request_of(kind, 20)
        sums = sums_of(request, y if kind != "regression" else 9 * y, codes)
        assert sum(v * v for v in sums) == describe_intercept(request)["sensitivity2"]


def test_request_and_matrix_have_one_unit():
    d = xgb.DMatrix(np.zeros((3, 1)), np.zeros(3))
    with pytest.raises(xgb.core.XGBoostError, match="privacy units"):
        native.release_before_trees(d, request_of("rows", 0))
    native.set_persons(d, np.zeros(3))
    with pytest.raises(xgb.core.XGBoostError, match="privacy units"):
        native.release_before_trees(d, request_of("rows", 0) | {"unit": "row"})


# ---------------------------------------------------------------------------------- candidates
def tree_counts(X: Rows, sharing: Rows, levels: int, shift: int) -> Counter[tuple[int, int, int]]:
    """The count of every node (feature, level, cell) that the walk may ask for, on the grid."""
    out: Counter[tuple[int, int, int]] = Counter()
    for j, column in enumerate(X.T):
        here = ~np.isnan(column)
        weights = (1 << shift) // sharing[here]
        for key, weight in zip(key_of(column[here]), weights, strict=True):
            for level in range(levels):
                out[j, level, int(key) >> (32 - level)] += int(weight)
    return out


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("shift", [0, 5, 20])
def test_candidate_counts(shift, size):
    """All counts of all features on every level: in L2 and in L1 at most those of one row."""
    rng = np.random.default_rng(size)
    features, levels = 3, 17
    for values in (np.array(NUMBERS), np.array([1.0]), rng.normal(size=size)):
        X = rng.choice(values, (size, features)).astype(np.float32)
        moved = tree_counts(X, np.full(size, size), levels, shift)
        bound = sensitivity.candidates_sens2(features, levels, shift)
        assert sum(v * v for v in moved.values()) <= bound
        assert sum(moved.values()) <= features * levels << shift
        if len(values) == 1 and (1 << shift) % size == 0:
            assert sum(v * v for v in moved.values()) == bound
        assert np.count_nonzero(list(moved.values())) <= features * (2**levels - 1)


GRID = [float(v) for v in np.linspace(-4, 4, 9)]


@pytest.mark.parametrize(
    ("changes", "sums", "cells"),
    [
        ({"levels": 17}, 2 * 17, 2 * (2**17 - 1)),
        ({"levels": 5, "shift": 20}, 2 * 5, 2 * 31),
        ({"kind": "histogram", "max_bin": 4}, 2, 16),
        ({"kind": "adaptive", "rounds": 2, "max_bin": 20}, 2, 40),
    ],
    ids=str,
)
def test_coordinates_of_candidates(changes, sums, cells):
    """A row is in a cell of each level and feature, the rows of a person may be in any."""
    features = [{"kind": "private", "grid": GRID}, {"kind": "cuts", "cuts": [0.0]}] * 2
    noise = {"rounds": 1, "shift": 10, "sigma2": 1 << 40, **changes}
    for unit, touched in (("row", sums), ("person", cells)):
        plan = make_plan(LOGISTIC, False, features, unit=unit, candidates=noise)
        event = describe_plan(text_of(plan))["candidates"]
        assert event["sensitivity2"] == sums << (2 * noise["shift"])
        assert event["coordinates"] == touched
        assert event.get("unit", "row") == unit


@pytest.mark.parametrize("kind", ["quantile_tree", "histogram"])
def test_copies_of_rows_move_no_cut(kind):
    """Persons with four rows alike have the candidates of persons with one of them."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2)).astype(np.float32)
    y = (X[:, 0] > 0.3).astype(np.float32)
    candidates = {"kind": kind, "shift": 10, "max_bin": 4}
    features = [{"kind": "private", "grid": GRID}] * 2
    cuts = []
    for copies in (1, 4):
        plan = make_plan(
            LOGISTIC, True, features, unit="person", split="random", depth=4, rounds=30,
            candidates=candidates,
        )  # fmt: skip
        d = xgb.DMatrix(np.repeat(X, copies, axis=0), np.repeat(y, copies), nthread=1)
        native.set_persons(d, np.repeat(rng.permutation(200), copies))
        cuts.append(thresholds(train_with_plan(plan, d, nthread=1)))
    assert cuts[0] == cuts[1]
    assert len(cuts[0]) >= 4


def thresholds(booster: xgb.Booster) -> set[tuple[int, float]]:
    """Features and cuts of all splits."""
    return {
        (f, cut)
        for tree in trees(booster)
        for f, cut, left in zip(
            tree["split_indices"], tree["split_conditions"], tree["left_children"], strict=True
        )
        if left != -1 and cut < FLT_MAX
    }


# ---------------------------------------------------------------------------------- correction
ANCHORS = 7


def shift_of(label: float, margin: float, size: int) -> float:
    """What a person of so many rows alike moves the leaf of all rows by, in half widths."""
    plan = make_plan(
        SQUARED, True, [{"kind": "cuts", "cuts": []}], rounds=1, depth=1, base_margin=True,
        unit="person", leaf={"lambda": "1e12", "shrinkage": False}, row_bound={"max_weight": "1.0"},
        correction={"on": True, "sigma2": 0},
    )  # fmt: skip
    d = xgb.DMatrix(
        np.zeros((ANCHORS + size, 1)), np.append(np.full(ANCHORS, 0.5), [label] * size), nthread=1
    )
    d.set_base_margin(np.append(np.full(ANCHORS, 0.5), [margin] * size))
    native.set_persons(d, np.append(np.arange(ANCHORS), [ANCHORS] * size))
    [tree] = trees(xgb_train(plan, d))
    node = 1 if tree["sum_hessian"][1] > tree["sum_hessian"][2] else 2
    return float(tree["split_conditions"][node]) / float(plan["row_bound"]["scale"])


@pytest.mark.parametrize("size", SIZES)
def test_the_correction_counts_a_person_as_one_row(size):
    """At both ends of the range, and within it, where the mean of the rows is rounded."""
    assert shift_of(4.0, -4.0, size) == pytest.approx(2.0 / (ANCHORS + 1), rel=1e-5)
    assert shift_of(4.0, -1e3, size) == pytest.approx(2.0 / ANCHORS, rel=1e-5)
    assert shift_of(1.7, -0.3, size) == pytest.approx(shift_of(1.7, -0.3, 1), abs=1e-5)


@EXAMPLES
@given(data=st.data())
def test_no_person_moves_the_correction_further(data):
    number = st.floats(-1e6, 1e6, width=32)
    size = data.draw(st.sampled_from(SIZES))
    assert abs(shift_of(data.draw(number), data.draw(number), size)) <= 2 * 2.0 / ANCHORS
