"""Counts behind candidates: a person of 1 to 1,000 rows moves them by no more than one row."""

from collections import Counter
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import xgboost as xgb

from tests.models import trees
from tests.reference.candidates import FLT_MAX, key_of
from tests.reference.comparison import LOGISTIC, make_plan
from tests.sensitivity.strategies import NUMBERS, text_of
from tests.stated import describe_plan
from xgb_dp.accounting import sensitivity
from xgb_dp.engine import native
from xgb_dp.testing import train_with_plan

SIZES = (1, 2, 3, 7, 40, 1000)

Rows = npt.NDArray[Any]


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
