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
from tests.reference.test_families_against_cpp import PREDICTION
from xgb_dp.engine import native
from xgb_dp.testing import train_with_plan

from .people import people

ROWS = 400


@pytest.mark.parametrize("margins", [False, True])
@pytest.mark.parametrize(
    ("objective", "changes"),
    [
        (LOGISTIC, {"row_bound": PREDICTION, "sampling_num": 3 << 30}),
        (LOGISTIC, {"row_bound": {"mode": "row_weight", "rows_per_person": "2.5"}}),
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
