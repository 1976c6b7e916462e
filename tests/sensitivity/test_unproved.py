"""The library refuses every plan that no proof covers, by itself: what Python writes is not asked.

Each plan differs in one respect from one that is taken.
"""

from typing import Any

import numpy as np
import pytest
import xgboost as xgb
from scipy import sparse
from xgboost.core import XGBoostError

from tests.reference.comparison import LOGISTIC, MIXED, SOFTMAX, SQUARED, make_plan
from tests.reference.plans import merge
from tests.reference.test_families_against_cpp import COUNTS, JOINT, ON_GRID, OUTPUT, PREDICTION
from tests.reference.test_losses_against_cpp import plan_of
from tests.sensitivity.test_intercept import request_of
from tests.stated import check_plan
from xgb_dp.accounting import sensitivity
from xgb_dp.engine import native
from xgb_dp.planning import dump
from xgb_dp.testing import train_with_plan

PERSON = {"unit": "person"}
GAIN = merge(COUNTS, {"score": "gain", "row_bound": {"mode": "clip"}})
VALUES = merge(OUTPUT, {"row_bound": {"mode": "clip"}, "leaf": {"scale": 0}})
HALF = {"sampling_num": 1 << 31}
CUTS = [{"kind": "cuts", "cuts": [0.0]}] * 2
HISTOGRAM = {"candidates": {"kind": "histogram"}}
HESSIANS = {"candidates": {"hessian": True, "shift": 0}}
MASKED = {"masking": {"workers": 2, "colluders": 0}}
NOISY = {"split": "histogram", "leaf": {"sigma2": 0}}


def refusal(plan: dict[str, Any]) -> str:
    """What the library says of a plan; nothing if it takes it."""
    text = dump({"id": "hand", **merge(plan, {"selection": {"range": 1 << 19}})})
    try:
        check_plan(text)
    except XGBoostError as error:
        return str(error)
    return ""


# Objective, features, what is taken, what makes it unproved, and what the library says.
RULES: list[tuple[str, list[Any], dict[str, Any], dict[str, Any], str]] = [
    (SQUARED, ON_GRID, GAIN, PERSON, "every row has weight 1"),
    (SQUARED, ON_GRID, VALUES, PERSON, "every row has weight 1"),
    (SQUARED, ON_GRID, COUNTS, PERSON, "drops single rows"),
    (LOGISTIC, MIXED, PERSON | {"row_bound": {"mode": "clip"}},
     {"row_bound": {"hessian_bound": "0.0"}}, "`hessian_bound` must be above 0"),
    (LOGISTIC, MIXED, {}, {"leaf": {"spread": True}}, "`spread` requires"),
    (SQUARED, ON_GRID, GAIN, {"row_bound": {"mode": "row_weight"}}, "unbounded if Hessians vary"),
    (SQUARED, ON_GRID, GAIN, {"row_bound": {"max_weight": "0.5"}}, "unbounded if Hessians vary"),
    (SQUARED, ON_GRID, VALUES, {"row_bound": {"mode": "prediction"}}, "logistic loss, softmax or"),
    (SQUARED, ON_GRID, VALUES, {"row_bound": {"mode": "row_weight"}}, "have the same Hessian"),
    (SQUARED, ON_GRID, VALUES, {"row_bound": {"hessian_weight": "1e-12"}, "grid_bits": 9},
     "rounds to 0 on the grid"),
    (SQUARED, ON_GRID, VALUES | {"rounds": 2},
     {"leaf": {"geometric_clip": True, "eta_warmup": "0.5"}}, "same learning rate"),
    (SQUARED, ON_GRID, VALUES, {"leaf": {"lambda": "2e6"}}, "too large for output perturbation"),
    (LOGISTIC, MIXED, {"split_levels": 2}, {"split": "random"}, "`split_levels` above 1"),
    (LOGISTIC, MIXED, {"split_levels": 2}, {"no_split": True}, "`split_levels` above 1"),
    (LOGISTIC, MIXED, {"score": "newton"}, {"score_clip": "0.0"}, "requires a `score_clip`"),
    (LOGISTIC, MIXED, NOISY, {"leaf": {"noise": "laplace"}}, "cannot have other noise"),
    (SOFTMAX, MIXED, JOINT, {"row_bound": {"mode": "row_weight"}}, "shared splits require"),
    (SOFTMAX, MIXED, JOINT, {"score": "newton"}, "shared splits require"),
    (SOFTMAX, MIXED, JOINT, {"split": "random"}, "shared splits require"),
    (LOGISTIC, MIXED, {"row_bound": PREDICTION}, {"class_trees": "joint"}, "shared splits require"),
    (SOFTMAX, MIXED, {}, {"row_bound": {"mode": "clip"}}, "softmax requires"),
    (SQUARED, MIXED, {}, {"row_bound": PREDICTION}, "logistic loss, softmax or"),
    (SQUARED, MIXED, {}, {"row_bound": PREDICTION | {"positive_weight": "2.0"}}, "logistic "
                                                                                 "loss, softmax "
                                                                                 "or"),
    (SOFTMAX, MIXED, {"row_bound": PREDICTION}, {"row_bound": {"positive_weight": "2.0"}},
     "binary objective with one label"),
    (LOGISTIC, MIXED, {"row_bound": PREDICTION}, {"row_bound": {"output_gradient": "0.5"}},
     "bounds per output"),
    (LOGISTIC, MIXED, {}, {"row_bound": {"weight_unit": "2.0", "max_weight": "0"}},
     "requires `max_weight`"),
    (LOGISTIC, MIXED, {}, {"num_class": 2}, "the number of outputs"),
    (LOGISTIC, MIXED, HALF, {"ensemble": 2}, "combined with row sampling"),
    (LOGISTIC, MIXED, {}, {"candidates": {"rounds": 4}}, "exceeds the number of rounds"),
    (LOGISTIC, MIXED, {}, {"candidates": {"laplace": True}}, "quantile trees require Gaussian"),
    (LOGISTIC, MIXED, HESSIANS, {"candidates": {"shift": 1}}, "Hessian candidates require"),
    (SOFTMAX, MIXED, {}, HESSIANS, "Hessian candidates require"),
    (LOGISTIC, MIXED, merge(HESSIANS, {"candidates": {"rounds": 2}}), HALF, "all rounds must "
                                                                            "release"),
    (LOGISTIC, ON_GRID, HISTOGRAM,
     {"features": [{"kind": "private", "grid": [0.0]}, *ON_GRID[1:]]}, "require a public grid"),
    (LOGISTIC, ON_GRID[:1], HISTOGRAM | {"split": "random"} | MASKED,
     {"candidates": {"laplace": True}}, "masked sums require"),
    (LOGISTIC, CUTS, {"split": "random"} | MASKED, PERSON, "masked sums require"),
    (LOGISTIC, CUTS, {"feature_weights": [1, 1]}, {"cyclic_features": True}, "cannot have weights"),
    (LOGISTIC, CUTS, {"feature_weights": [1, 1]}, {"feature_weights": [1]}, "`feature_weights`"),
    (LOGISTIC, CUTS, {"offered": [0, 1]}, {"offered": [1, 0]}, "distinct features in ascending"),
    (LOGISTIC, CUTS, {"offered": [0, 1]}, {"cyclic_features": True}, "combined with feature "
                                                                     "weights or"),
    (SQUARED, MIXED, {"correction": {"on": True}}, {"parallel_trees": 2}, "mean correction "
                                                                          "requires"),
    (SQUARED, MIXED, {"correction": {"on": True}}, HALF, "mean correction requires"),
    (SQUARED, MIXED, {"correction": {"on": True}}, {"ensemble": 2}, "mean correction requires"),
    (LOGISTIC, MIXED, {}, {"correction": {"on": True}}, "mean correction requires"),
]  # fmt: skip


@pytest.mark.parametrize(("objective", "features", "taken", "change", "says"), RULES)
def test_plans_that_no_proof_covers(objective, features, taken, change, says):
    plan = make_plan(objective, True, features, **taken)
    assert refusal(plan) == ""
    assert says in refusal(merge(plan, change))


@pytest.mark.parametrize(
    ("name", "change", "says"),
    [
        ("program", {"row_bound": PREDICTION}, "known norms"),
        ("quantiles", {"row_bound": {"mode": "row_weight"}}, "bounds them jointly"),
        ("quantiles", {"num_class": 2}, "the number of outputs"),
        ("pseudo_huber", {"row_bound": {"mode": "clip", "output_gradient": "0.5"}},
         "bounds per output"),
        ("all_centred", {"class_trees": "per_class"}, "with shared leaves"),
        ("pseudo_huber", {"correction": {"on": True}}, "mean correction requires"),
        ("pseudo_huber", {"objective": SQUARED}, "belong to the objective `reg:squarederror`"),
    ],
)  # fmt: skip
def test_losses_that_no_proof_covers(name, change, says):
    plan, _ = plan_of(name, True)
    assert refusal(plan) == ""
    assert says in refusal(merge(plan, change))


@pytest.mark.parametrize("plan", [GAIN, VALUES], ids=["gain", "output"])
def test_weights_that_no_proof_covers(plan):
    """Their bounds are proved only if every row has weight 1."""
    one = make_plan(SQUARED, True, ON_GRID, **plan)
    X, y = np.zeros((6, 4)), np.zeros(6)
    d = xgb.DMatrix(X, y, weight=np.ones(6), feature_types=["q", "q", "q", "c"])
    train_with_plan(one, d)
    d.set_weight(np.array([1, 1, 1, 1, 1, 0.5]))
    with pytest.raises(XGBoostError, match="unit weights only"):
        train_with_plan(one, d)


TWO = {"lower": ["0.0"] * 2, "upper": ["1.0"] * 2}


@pytest.mark.parametrize(
    ("kind", "change", "says"),
    [
        ("rows", {"public_num_rows": 5}, ""),
        ("rows", {"columns": 4}, ""),
        ("rows", {"unit": "person"}, "privacy units"),
        ("range", {"edges": ["0.0", "1.0"]}, ""),
        ("range", {"edges": ["1.0", "0.0", "2.0"]}, ""),
        ("range", {"edges": ["0.0", "1.0", "2.0"], "weight_edges": ["1.0"]}, ""),
        ("range", {"times": True}, ""),
        ("cells", {"target_lower": "2.0"}, ""),
        ("multiclass", {"columns": 4}, "columns"),
        ("binary", {"columns": 4, "public_num_rows": 5}, "columns"),
        ("regression", {"exposure_lower": "0.1", "exposure_upper": "1.0"}, ""),
        ("targets", TWO, "number of targets"),
        ("4 columns", {"columns": None}, ""),
        ("4 columns", {"public_num_rows": 5}, ""),
        ("4 columns", {"unit": "person"}, ""),
        ("other", {}, "unknown kind"),
    ],
    ids=str,
)  # fmt: skip
def test_requests_that_no_proof_covers(kind, change, says):
    """A row adds to one cell of each list at most, and to as many sums as were asked for."""
    cells = {"num_class": 4, "edges": ["0.0", "1.0", "2.0"]} if kind != "targets" else {}
    request = request_of(kind, **cells, target_lower="-4.0", target_upper="2.0")
    d = xgb.DMatrix(np.zeros((3, 4)), np.ones((3, 3) if kind == "targets" else 3))
    if kind != "other":
        native.release_before_trees(d, request)
    changed = {k: v for k, v in (request | change).items() if v is not None}
    with pytest.raises(XGBoostError, match=says or None):
        native.release_before_trees(d, changed)
    native.set_persons(d, np.zeros(3))
    with pytest.raises(XGBoostError, match="privacy units" if kind != "other" else says):
        native.release_before_trees(d, request)


def test_other_numbers_of_cells_than_those_of_the_lists_are_refused():
    request = request_of("range of labels and weights", num_class=sensitivity.LABEL_CELLS)
    with pytest.raises(ValueError, match="does not match the plan"):
        sensitivity.LabelSumSizes.from_request(request)


def test_a_row_that_stores_a_column_twice_is_refused():
    twice = sparse.csr_matrix(
        (np.ones(5, np.float32), np.array([1, 1, 1, 0, 3]), np.array([0, 5])), (1, 4)
    )
    with pytest.raises(XGBoostError, match="A row has two entries in one column"):
        native.release_before_trees(xgb.DMatrix(twice, np.ones(1)), request_of("4 columns"))
