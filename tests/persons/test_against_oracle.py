"""The C++ trainer and the NumPy oracle bound persons alike, and grow the same trees."""

from typing import Any

import numpy as np
import pytest
import xgboost as xgb

from tests.reference.comparison import (
    LOGISTIC,
    MIXED,
    OBJECTIVES,
    SOFTMAX,
    SQUARED,
    check,
    make_data,
    make_plan,
    trees_of,
    types,
)
from tests.reference.plans import Plan, merge
from tests.reference.test_families_against_cpp import CASES, ON_GRID, PREDICTION
from xgb_dp.engine import native
from xgb_dp.testing import train_with_plan

from .conftest import people

PERSON: Plan = {"unit": "person"}
BOTH = (LOGISTIC, SOFTMAX)
KINDS: dict[str, tuple[Plan, tuple[str, ...]]] = {
    "default": ({}, OBJECTIVES),
    "prediction": ({"row_bound": PREDICTION}, BOTH),
    "prediction_coarse": ({"row_bound": PREDICTION, "grid_bits": 6}, BOTH),
    "clip": ({"row_bound": {"mode": "clip", "hessian_bound": "0.7"}}, (LOGISTIC, SQUARED)),
    "several": ({"row_bound": {"max_rows_per_person": "2.5"}}, OBJECTIVES),
    "newton": ({"score": "newton", "score_clip": "2.0"}, OBJECTIVES),
    "sampled": ({"sampling_num": 3 << 30}, OBJECTIVES),
    "corrected": ({"correction": {"on": True, "sigma2": 1 << 36}}, (SQUARED,)),
}
SPREAD: Plan = {"leaf": {"spread": True}}
KINDS |= {
    "spread": (SPREAD, (LOGISTIC, SQUARED)),
    "spread_prediction": (merge(SPREAD, {"row_bound": PREDICTION, "depth": 4}), (LOGISTIC,)),
    "spread_clip": (
        merge(SPREAD, {"row_bound": {"mode": "clip", "max_rows_per_person": "1.7"}}),
        (LOGISTIC, SQUARED),
    ),
    "spread_random": (merge(SPREAD, {"split": "random", "parallel_trees": 2}), (SQUARED,)),
    "spread_joint": (merge(SPREAD, CASES["joint_partitions"][0]), (SOFTMAX,)),
    "spread_sampled": (merge(SPREAD, {"sampling_num": 3 << 30, "no_split": True}), (SQUARED,)),
}
NAMES = (
    "gradient_leaves", "laplace_leaves", "ensemble", "partial", "histogram",
    "histogram_per_tree", "adaptive_counts", "partitions", "joint", "joint_partitions",
    "joint_laplace", "strata",
)  # fmt: skip
KINDS |= {name: CASES[name] for name in NAMES}


@pytest.mark.parametrize(
    ("name", "objective"), [(name, o) for name, case in KINDS.items() for o in case[1]]
)
def test_components(name, objective):
    X, y = make_data(objective, 150)
    changes = merge(merge({"leaf": {"shrinkage": True}}, KINDS[name][0]), PERSON)
    weight = np.random.default_rng(3).choice([0.0, 0.3, 1.0, 2.0], 150).astype(np.float32)
    plan = make_plan(objective, False, ON_GRID, **changes)
    check(plan, X, y, weight, exact=name != "strata", persons=people(150))


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_one_row_each_is_the_training_of_rows(objective):
    """The same trees bit by bit, in whatever order the codes of persons are."""
    X, y = make_data(objective, 150)
    mode = {} if objective == SQUARED else PREDICTION
    changes: dict[str, Any] = {"row_bound": mode, "leaf": {"strata": True}, "split_levels": 2}
    plan = make_plan(objective, False, MIXED, **changes)
    base: Any = [0.0] * 3 if objective == SOFTMAX else 0.5
    d = xgb.DMatrix(X, y, feature_types=types(MIXED), enable_categorical=True)
    of_rows = trees_of(train_with_plan(plan, d, 3, base, nthread=1))
    native.set_persons(d, np.random.default_rng(1).permutation(150))
    of_persons = trees_of(train_with_plan(plan | PERSON, d, 3, base, nthread=1))
    assert str(of_rows) == str(of_persons)
