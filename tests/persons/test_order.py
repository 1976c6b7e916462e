"""A person's rows count as they are, wherever they lie among the others."""

from typing import Any

import numpy as np
import pytest
import xgboost as xgb

from tests.reference.comparison import (
    LOGISTIC,
    MIXED,
    SOFTMAX,
    SQUARED,
    make_data,
    make_plan,
    trees_of,
    types,
)
from tests.reference.persons import keys_of_rows
from tests.reference.test_families_against_cpp import PREDICTION
from xgb_dp.engine import native
from xgb_dp.testing import train_with_plan

from .conftest import people

ROWS = 400


@pytest.mark.parametrize("margins", [False, True])
@pytest.mark.parametrize(
    ("objective", "changes"),
    [
        (LOGISTIC, {"row_bound": PREDICTION, "sampling_num": 3 << 30}),
        (LOGISTIC, {"row_bound": {"mode": "row_weight", "max_rows_per_person": "2.5"}}),
        (SOFTMAX, {"row_bound": PREDICTION, "grid_bits": 6}),
        (SQUARED, {"row_bound": {"mode": "clip"}, "correction": {"on": True, "sigma2": 1 << 36}}),
        (LOGISTIC, {"candidates": {"hessian": True, "shift": 0, "rounds": 3, "sigma2": 1 << 38}}),
    ],
    ids=str,
)
def test_the_order_of_rows_changes_nothing(objective, changes, margins):
    """The same trees bit by bit: partitions of a cluster come in any order, which nobody accounts
    for. Some rows of a person are alike in all but the label, and some in everything."""
    rng = np.random.default_rng(0)
    X, y = make_data(objective, ROWS)
    who = people(ROWS)
    alike = np.flatnonzero(who == 0)[:30]
    X[alike] = X[alike[0]]
    weight = rng.choice([0.3, 1.0, 2.0], ROWS)
    classes = 3 if objective == SOFTMAX else 1
    margin = rng.normal(size=(ROWS, classes)) if margins else None
    plan = make_plan(objective, False, MIXED, unit="person", base_margin=margins, **changes)
    base: Any = [0.0] * 3 if objective == SOFTMAX else 0.5
    models = []
    for order in (np.arange(ROWS), rng.permutation(ROWS)):
        d = xgb.DMatrix(
            X[order], y[order], weight=weight[order], feature_types=types(MIXED),
            base_margin=None if margin is None else margin[order], enable_categorical=True,
        )  # fmt: skip
        native.set_persons(d, who[order])
        models.append(trees_of(train_with_plan(plan, d, None, base, nthread=1)))
    assert str(models[0]) == str(models[1])


# Rows of a person whose hashes are equal are still ordered by what they hold.
FEATURES = [{"kind": "cuts", "cuts": [-1e-3, 0.0, 1e-3]}, {"kind": "cuts", "cuts": [0.0]}]
PERSONS = 60


def two_rows_of_one_hash() -> np.ndarray:
    """Two rows of two features that differ in both, as anybody can make them.

    The hash takes one number after the other, and each step can be undone. Where two first
    features leave states less than 2^32 apart, a difference of second ones makes up for it.
    """
    rng = np.random.default_rng(0)
    first = rng.normal(size=1 << 19).astype(np.float32)
    state = keys_of_rows(first[:, None], np.zeros(len(first)))
    order = np.argsort(state)
    first, state = first[order], state[order]
    gaps = np.diff(state)
    for at in np.argsort(gaps):
        bits = np.uint32(0x3F800000)  # 1.0
        other = int(bits) - int(gaps[at])
        value = np.array([max(other, 0)], dtype=np.uint32).view(np.float32)[0]
        if other >= 0 and first[at] * first[at + 1] < 0 and np.isfinite(value):
            return np.array([[first[at], np.float32(1.0)], [first[at + 1], value]])
    raise AssertionError("no such rows")


def test_the_order_of_rows_with_one_hash_changes_nothing():
    """Of three rows two are alike, and all have one hash: rounding passes on from row to row."""
    two = two_rows_of_one_hash()
    keys = keys_of_rows(two, np.zeros(2))
    assert keys[0] == keys[1] and not np.array_equal(two[0], two[1])
    pair = two[[0, 0, 1]]
    plan = make_plan(LOGISTIC, False, FEATURES, unit="person", row_bound=PREDICTION, grid_bits=5)
    models = []
    for order in ([0, 1, 2], [2, 1, 0], [1, 2, 0]):
        X = np.tile(pair[order], (PERSONS, 1)).astype(np.float32)
        d = xgb.DMatrix(X, np.zeros(len(X)))
        native.set_persons(d, np.repeat(np.arange(PERSONS), len(order)))
        models.append(str(trees_of(train_with_plan(plan, d, None, 0.5, nthread=1))))
    assert models[0] == models[1] == models[2]
