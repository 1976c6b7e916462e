"""The components of the published systems in C++ and in the oracle, on a fixed noise tape."""

import numpy as np
import pytest

from tests.reference.comparison import (
    LOGISTIC,
    MULTICLASS,
    OBJECTIVES,
    SOFTMAX,
    SQUARED,
    check,
    make_data,
    make_plan,
)
from tests.reference.plans import Plan, merge

EDGES = [-3.0, -1.0, -0.5, 0.0, 0.5, 1.0, 3.0]
ON_GRID = [
    {"kind": "private", "grid": EDGES},
    {"kind": "cuts", "cuts": [-1.5, -0.25, 0.0, 0.125, 1.0]},
    {"kind": "private", "grid": [-20.0, -10.0, -5.0, -2.0, 0.0, 2.0, 5.0, 10.0, 20.0]},
    {"kind": "categorical", "size": 5},
]
COUNTS: Plan = {"row_bound": {"mode": "filter", "unit_hessian": True, "max_weight": "0"}}
OUTPUT: Plan = merge(COUNTS, {"leaf": {"noise": "output", "sigma2": 0, "scale": 1 << 19}})
LAPLACE: Plan = {"leaf": {"noise": "laplace", "sigma2": 0, "scale": 1 << 18}}
PREDICTION: Plan = {"mode": "prediction"}
JOINT: Plan = {"class_trees": "joint", "row_bound": PREDICTION}


def histogram(**options: object) -> Plan:
    """Candidates from noisy histograms."""
    return {"candidates": {"kind": "histogram", "max_bin": 4, "sigma2": 1 << 22} | options}


CASES: dict[str, tuple[Plan, tuple[str, ...]]] = {
    "gradient_leaves": ({"row_bound": {"mode": "clip", "unit_hessian": True}}, OBJECTIVES[:2]),
    "gradient_leaves_scaled": ({"row_bound": {"unit_hessian": True}}, OBJECTIVES),
    "filter": ({"row_bound": {"mode": "filter", "gradient_bound": "0.45"}}, (LOGISTIC, SQUARED)),
    "gain": (merge(COUNTS, {"score": "gain"}), (LOGISTIC, SQUARED)),
    "laplace_leaves": (LAPLACE, OBJECTIVES),
    "output": (OUTPUT, (LOGISTIC, SQUARED)),
    "output_floor": (
        merge(OUTPUT, {"leaf": {"min_child_weight": "12.0", "lambda": "0.1", "alpha": "3.0"}}),
        (LOGISTIC, SQUARED),
    ),
    "output_geometric": (
        merge(OUTPUT, {"rounds": 5, "leaf": {"geometric_clip": True}}),
        (LOGISTIC, SQUARED),
    ),
    "output_ensembles": (
        merge(OUTPUT, {"rounds": 5, "ensemble": 2, "leaf": {"geometric_clip": True}}),
        (SQUARED,),
    ),
    "ensemble": ({"rounds": 5, "ensemble": 3}, OBJECTIVES),
    "partial": (
        {"split": "partial", "leaf": {"sigma2": 0}, "histogram": {"sigma2": 1 << 36}},
        OBJECTIVES,
    ),
    "partial_oblivious": (
        {"split": "partial", "shape": "oblivious", "leaf": {"sigma2": 0},
         "histogram": {"sigma2": 1 << 34}, "features_per_tree": 3},
        (LOGISTIC,),
    ),
    "histogram": (histogram(), OBJECTIVES),
    "histogram_laplace": (histogram(laplace=True, sigma2=0, scale=1 << 11), (LOGISTIC,)),
    "histogram_per_tree": (histogram(rounds=3, hessian=True, shift=0, sigma2=1 << 40), (LOGISTIC,)),
    "histogram_sampled": (
        histogram(rounds=3, hessian=True, shift=0, sigma2=1 << 40) | {"sampling_num": 3 << 30},
        (LOGISTIC, SQUARED),
    ),
    "histogram_parts": (
        histogram(rounds=4, hessian=True, shift=0, laplace=True, sigma2=0, scale=1 << 19)
        | {"rounds": 4, "ensemble": 2},
        (LOGISTIC,),
    ),
    "adaptive": (
        {"rounds": 4, "candidates": {"kind": "adaptive", "rounds": 2, "hessian": True, "shift": 0,
                                     "sigma2": 1 << 38, "max_bin": 9}},
        (LOGISTIC, SQUARED),
    ),
    "adaptive_counts": (
        {"rounds": 4, "candidates": {"kind": "adaptive", "rounds": 3, "max_bin": 12}},
        OBJECTIVES,
    ),
    "tree_per_tree": (
        {"candidates": {"rounds": 3, "hessian": True, "shift": 0, "sigma2": 1 << 38}},
        (LOGISTIC, SQUARED),
    ),
    "partitions": ({"split_levels": 2, "depth": 4}, OBJECTIVES),
    "partitions_odd": ({"split_levels": 2, "depth": 5, "rounds": 2}, (LOGISTIC, SQUARED)),
    "partitions_of_eight": (
        {"split_levels": 3, "depth": 3, "split_candidates": 3, "shape": "per_node"}, OBJECTIVES
    ),
    "partitions_oblivious": (
        {"split_levels": 2, "depth": 4, "shape": "oblivious"}
        | {"score": "newton", "score_clip": "1.5"},
        (LOGISTIC, SQUARED),
    ),
    "strata_of_gradient_leaves": (
        {"leaf": {"strata": True}, "row_bound": {"mode": "clip", "unit_hessian": True}},
        (LOGISTIC,),
    ),
    "strata": ({"leaf": {"strata": True}, "rounds": 5}, OBJECTIVES),
    "strata_of_partitions": (
        {"leaf": {"strata": True}, "rounds": 4, "split_levels": 2, "depth": 4,
         "monotone": [1, 0, 0, 0]},
        (LOGISTIC, SQUARED),
    ),
    "strata_incomplete": (
        {"leaf": {"strata": True}, "no_split": True, "shape": "per_node"}, (LOGISTIC,)
    ),
    "strata_of_histograms": (
        {"split": "histogram", "leaf": {"sigma2": 0, "strata": True}, "depth": 2,
         "histogram": {"sigma2": 1 << 34}},
        (LOGISTIC,),
    ),
    "history": ({"split_prior": "0.5", "rounds": 6, "depth": 2}, OBJECTIVES),
    "history_of_partitions": (
        {"split_prior": "0.7", "rounds": 6, "split_levels": 2, "selection": {"eps_num": 1 << 36},
         "leaf": {"strata": True}},
        OBJECTIVES,
    ),
    "partitions_constrained": (
        {"split_levels": 2, "depth": 4, "features_per_tree": 3, "monotone": [1, 0, -1, 0],
         "interactions": [[0, 1], [1, 3]], "sampling_num": 3 << 30},
        (LOGISTIC,),
    ),
    "prediction": ({"row_bound": PREDICTION}, MULTICLASS),
    "prediction_coarse": ({"row_bound": PREDICTION, "grid_bits": 9}, (SOFTMAX,)),
    "prediction_loose": ({"row_bound": PREDICTION | {"gradient_bound": "3.0"}}, (SOFTMAX,)),
    "joint": (JOINT | {"rounds": 4}, MULTICLASS),
    "joint_per_node": (JOINT | {"shape": "per_node", "interactions": [[0, 1], [1, 3]]}, (SOFTMAX,)),
    "joint_no_split": (JOINT | {"no_split": True, "gamma": "3.0"}, (SOFTMAX,)),
    "joint_monotone": (JOINT | {"monotone": [1, -1, 1, 0], "depth": 4}, (SOFTMAX,)),
    "joint_partitions": (
        JOINT | {"split_levels": 2, "depth": 5, "rounds": 2, "shape": "oblivious"}, (SOFTMAX,)
    ),
    "joint_history": (
        JOINT | {"split_prior": "0.7", "rounds": 6, "split_levels": 2, "depth": 4,
                 "selection": {"eps_num": 1 << 36}, "leaf": {"strata": True}},
        (SOFTMAX,),
    ),
    "joint_forest": (
        JOINT | {"parallel_trees": 3, "features_per_tree": 2, "split_prior": "0.5",
                 "sampling_num": 3 << 30},
        (SOFTMAX,),
    ),
    "joint_laplace": (JOINT | LAPLACE, (SOFTMAX,)),
    "tree_counts_again": ({"candidates": {"rounds": 2}}, (SOFTMAX,)),
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "objective"), [(name, o) for name, case in CASES.items() for o in case[1]]
)
def test_components(name, objective):
    X, y = make_data(objective, 150)
    changes = merge({"leaf": {"shrinkage": name != "output"}}, CASES[name][0])
    # The fit of effects is a linear system, which NumPy solves in another order.
    exact = "strata" not in str(changes)
    check(make_plan(objective, False, ON_GRID, **changes), X, y, exact=exact)


@pytest.mark.parametrize(
    "name", ["output", "adaptive", "histogram", "filter", "gain", "gradient_leaves", "strata"]
)
def test_without_noise(name):
    X, y = make_data(LOGISTIC, 150)
    quiet = {
        "leaf": {"sigma2": 0, "scale": 0},
        "histogram": {"sigma2": 0},
        "candidates": {"sigma2": 0, "scale": 0},
    }
    plan = make_plan(LOGISTIC, True, ON_GRID, **merge(CASES[name][0], quiet))
    check(plan, X, y, exact=name != "strata")


def test_edges_follow_the_mass():
    """A refined grid has narrower bins where the rows are."""
    X, y = make_data(SQUARED, 240)
    X[:, 2] = np.abs(X[:, 2]) % 1.0  # nine tenths of a wide grid are empty
    options = {"kind": "adaptive", "rounds": 3, "shift": 10, "sigma2": 0, "max_bin": 8}
    plan = make_plan(SQUARED, True, ON_GRID, candidates=options)
    model = check(plan, X, y)
    cuts = model.cuts[2]
    assert cuts is not None
    assert np.count_nonzero((cuts > 0) & (cuts < 1)) >= 4


@pytest.mark.parametrize("name", ["partial", "strata_of_histograms"])
def test_noisy_sums_where_little_is_stored(name):
    """Bins of rows that are kept by their entries, for splits that are read from noisy sums."""
    X, y = make_data(LOGISTIC, 150)
    X[np.random.default_rng(4).random(X.shape) < 0.6] = np.nan
    plan = make_plan(LOGISTIC, False, ON_GRID, **CASES[name][0])
    check(plan, X, y, exact=name == "partial")
