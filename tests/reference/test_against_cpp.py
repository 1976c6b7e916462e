"""The C++ trainer and the NumPy oracle grow the same trees, without noise and on a fixed tape."""

from dataclasses import dataclass, field

import numpy as np
import pytest

from tests.reference.comparison import (
    ARGMAX,
    CLASSES,
    KEY,
    LOGISTIC,
    MIXED,
    MULTICLASS,
    OBJECTIVES,
    PRIVATE_FEATURE,
    RAW,
    SHAPES,
    SQUARED,
    check,
    make_data,
    make_plan,
)
from tests.reference.plans import Plan
from tests.reference.trainer import train


@pytest.mark.parametrize("noise_free", [True, False], ids=["noise_free", "tape"])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_objectives_and_shapes(objective, shape, noise_free):
    X, y = make_data(objective)
    model = check(make_plan(objective, noise_free, MIXED, shape=shape), X, y)
    assert all(len(tree["left"]) == 15 for tree in model.trees)  # complete to depth 3


@pytest.mark.parametrize("noise_free", [True, False], ids=["noise_free", "tape"])
def test_more_columns_than_are_counted_in_one_pass(noise_free):
    rng = np.random.default_rng(9)
    X = rng.normal(size=(120, 515)).astype(np.float32)
    y = (X[:, 513] > 0.3).astype(np.float32)
    check(make_plan(SQUARED, noise_free, [PRIVATE_FEATURE] * 515, rounds=2), X, y)


@pytest.mark.parametrize("noise_free", [True, False], ids=["noise_free", "tape"])
@pytest.mark.parametrize("levels", [6, 17])
def test_trees_between_bounds(levels, noise_free):
    """Narrow ranges far from 0, ranges around it, one key, and values beyond the ends."""
    ranges = [(1.7e9, 1.7e9 + 86400), (999.5, 1000.5), (-1.0, 3.0), (0.0, 1e-3), (-1e6, -10.0)]
    rng = np.random.default_rng(3)
    u = rng.random((150, len(ranges) + 1)) * 1.2 - 0.1
    ranges.append((7.0, float(np.nextafter(np.float32(7), np.float32(8)))))
    low, high = np.array(ranges).T
    X = (low + (high - low) * u).astype(np.float32)
    features = [{"kind": "private", "grid": list(map(float, np.float32(ends)))} for ends in ranges]
    y = (u @ rng.normal(size=len(ranges)) > 0).astype(np.float32)
    check(make_plan(SQUARED, noise_free, features, candidates={"levels": levels}), X, y)


# not (0.05, no noise): with every weight clipped the utility is linear, and rounding breaks ties
@pytest.mark.parametrize(
    ("tau", "noise_free"), [("0.5", True), ("3.0", True), ("0.05", False), ("3.0", False)]
)
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_newton(objective, tau, noise_free):
    X, y = make_data(objective, 150)
    check(make_plan(objective, noise_free, MIXED, score="newton", score_clip=tau), X, y)


@pytest.mark.parametrize("noise_free", [True, False], ids=["noise_free", "tape"])
@pytest.mark.parametrize("shape", SHAPES)
def test_published_gain(shape, noise_free):
    """Only where every row counts as one whole Hessian: its range is unbounded elsewhere."""
    X, y = make_data(SQUARED, 150)
    changes = {"shape": shape, "score": "gain", "row_bound": {"mode": "clip"}}
    check(make_plan(SQUARED, noise_free, MIXED, **changes), X, y)


@dataclass
class Case:
    """One departure from the plan above."""

    changes: Plan
    objectives: tuple[str, ...] = (LOGISTIC, SQUARED)
    noise: tuple[bool, ...] = (True, False)
    weighted: bool = False
    n: int = 150
    features: list[Plan] = field(default_factory=lambda: MIXED)


PRIVATE = [PRIVATE_FEATURE] * 4
HISTOGRAM: Plan = {"split": "histogram", "leaf": {"sigma2": 0}, "histogram": {"sigma2": 1 << 36}}
BY_PREDICTION: Plan = {"mode": "prediction"}
CASES = {
    "private_only": Case({}, features=PRIVATE),
    "clip": Case({"row_bound": {"mode": "clip"}}),
    "prediction_mode": Case({"row_bound": BY_PREDICTION}, objectives=(LOGISTIC, RAW)),
    "prediction_mode_tight": Case({"row_bound": BY_PREDICTION | {"gradient_bound": "0.05",
        "hessian_weight": "11.0"}}, objectives=(LOGISTIC,)),
    "prediction_mode_loose": Case({"row_bound": BY_PREDICTION | {"gradient_bound": "0.9"}},
        objectives=(LOGISTIC,)),
    "prediction_mode_weighted": Case({"row_bound": BY_PREDICTION}, objectives=(LOGISTIC, RAW),
        weighted=True),
    "prediction_mode_unit_of_weights": Case({"row_bound": BY_PREDICTION | {"weight_unit": "2.0"}},
        objectives=(LOGISTIC,), weighted=True),
    "unit_of_weights": Case({"row_bound": {"weight_unit": "2.0"}}, weighted=True),
    "small_unit_of_weights": Case({"row_bound": {"weight_unit": "0.25"}}, weighted=True),
    "prediction_mode_any_weight": Case({"row_bound": BY_PREDICTION | {"max_weight": "0"}},
        objectives=(LOGISTIC,), weighted=True),
    "prediction_mode_gradient_leaves": Case({"row_bound": BY_PREDICTION | {"unit_hessian": True}},
        objectives=(LOGISTIC,)),
    "prediction_mode_hessian_candidates": Case({"row_bound": BY_PREDICTION,
        "candidates": {"hessian": True, "shift": 0, "rounds": 3}}, objectives=(LOGISTIC,),
        noise=(True,)),
    "tight_bound": Case({"row_bound": {"gradient_bound": "0.05", "hessian_weight": "11.0"}}),
    "loose_bound": Case({"row_bound": {"gradient_bound": "3.0"}}),
    "row_weights": Case({}, objectives=OBJECTIVES, weighted=True),
    "weighted_clip": Case({"row_bound": {"mode": "clip"}}, weighted=True),
    "coarse_grid": Case({"grid_bits": 9}, noise=(True,)),
    "many_trees": Case({"rounds": 8, "depth": 2}, objectives=OBJECTIVES, noise=(True,)),
    "stumps": Case({"depth": 1}),
    "deep": Case({"depth": 5, "rounds": 2}, noise=(True,)),
    "no_shrinkage": Case({"leaf": {"shrinkage": False, "max_delta_step": "0.0"}}),
    "small_prior": Case({"leaf": {"prior_max": "0.001"}}, noise=(False,)),
    "tight_clip": Case({"leaf": {"max_delta_step": "0.05", "lambda": "0.0", "eta": "1.0"}}),
    "rising_steps": Case({"rounds": 4, "parallel_trees": 2,
        "leaf": {"eta_warmup": "0.3", "eta": "0.7"}}, objectives=OBJECTIVES),
    "small_steps": Case({"leaf": {"eta": "0.1", "noise_share": "0.04"}}, objectives=OBJECTIVES),
    "rising_steps_of_one_round": Case({"rounds": 1, "leaf": {"eta_warmup": "0.3"}}, noise=(True,)),
    "min_child_weight": Case({"leaf": {"min_child_weight": "30.0"}}),
    "few_levels": Case({"candidates": {"levels": 6, "max_bin": 8}}),
    "octave_cells": Case({"candidates": {"levels": 10, "max_bin": 64}}, noise=(True,)),
    "noisy_counts": Case({"candidates": {"sigma2": 1 << 26}}, noise=(False,), n=12),
    "two_levels": Case({"candidates": {"levels": 2, "max_bin": 4}}, objectives=(SQUARED,)),
    "no_split": Case({"no_split": True, "shape": "per_node"}, objectives=OBJECTIVES),
    "no_split_level": Case({"no_split": True, "shape": "oblivious"}),
    "no_split_gamma": Case({"no_split": True, "gamma": "7.6"}),
    "never_split": Case({"no_split": True, "gamma": "1e12"}, noise=(True,)),
    "one_row": Case({}, n=1),
    "other_predictions": Case({}, objectives=(RAW, ARGMAX), weighted=True),
    "parallel": Case({"parallel_trees": 3, "rounds": 2}, objectives=OBJECTIVES, noise=(False,)),
    "random_splits": Case({"split": "random"}, objectives=OBJECTIVES, noise=(False,)),
    "random_splits_oblivious": Case({"split": "random", "shape": "oblivious"}, noise=(False,)),
    "histogram": Case(HISTOGRAM, objectives=OBJECTIVES, noise=(False,)),
    "histogram_exact": Case({"split": "histogram", "leaf": {"shrinkage": False}},
        objectives=OBJECTIVES, noise=(True,)),
    "histogram_oblivious": Case(HISTOGRAM | {"shape": "oblivious", "depth": 4}, noise=(False,)),
    "histogram_few_features": Case(HISTOGRAM | {"features_per_tree": 2,
        "interactions": [[0, 1], [1, 3]]}, noise=(False,)),
    "cyclic_features": Case({"features_per_tree": 3, "cyclic_features": True, "rounds": 5}),
    "random_features": Case({"features_per_tree": 2, "rounds": 5}, noise=(False,)),
    "weighted_features": Case({"features_per_tree": 2, "feature_weights": [1, 7, 1 << 31, 1 << 30],
        "rounds": 5}, noise=(False,)),
    "forest": Case({"parallel_trees": 6, "rounds": 1, "split": "random", "features_per_tree": 1},
        noise=(False,)),
    "few_features_and_interactions": Case({"features_per_tree": 2, "interactions": [[0, 1], [2, 3]],
        "depth": 4}, noise=(False,)),
    "alpha": Case({"leaf": {"alpha": "4.0"}}, objectives=OBJECTIVES),
    "monotone": Case({"monotone": [1, -1, 1, 0], "depth": 4}, objectives=OBJECTIVES),
    "monotone_newton": Case({"monotone": [-1, -1, 1, 0], "score": "newton"}),
    "monotone_gain": Case({"monotone": [-1, 1, 1, 0], "score": "gain",
        "row_bound": {"mode": "clip"}}, objectives=(SQUARED,)),
    "interactions": Case({"interactions": [[0, 1], [1, 3]], "depth": 4}, objectives=OBJECTIVES),
    "interactions_per_node": Case({"interactions": [[2, 3], []], "shape": "per_node"}),
    "subsample": Case({"sampling_num": 1 << 31}, objectives=OBJECTIVES, noise=(False,), n=151),
    "correction": Case({"correction": {"on": True}}, objectives=(SQUARED,), noise=(True,)),
    "noisy_correction": Case({"correction": {"on": True, "sigma2": 1 << 40},
        "row_bound": {"mode": "clip"}}, objectives=(SQUARED,), noise=(False,), weighted=True),
    "correction_of_noise": Case({"correction": {"on": True, "sigma2": 1 << 50}},
        objectives=(SQUARED,), noise=(False,)),
    "correction_of_few_rows": Case({"correction": {"on": True, "sigma2": 1 << 40, "rows": "150.0"}},
        objectives=(SQUARED,), noise=(False,)),
    "no_cut": Case({}, features=[{"kind": "cuts", "cuts": []}] * 4),
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "objective", "noise_free"),
    [
        (name, o, free)
        for name, case in CASES.items()
        for o in case.objectives
        for free in case.noise
    ],
)
def test_cases(name, objective, noise_free):
    case = CASES[name]
    X, y = make_data(objective, case.n)
    weight = None
    if case.weighted:
        weight = np.random.default_rng(6).choice([0.0, 0.25, 1.0, 1.7], case.n).astype(np.float32)
    check(make_plan(objective, noise_free, case.features, **case.changes), X, y, weight)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_base_margin(objective):
    X, y = make_data(objective, 150)
    classes = CLASSES if objective in MULTICLASS else 1
    margin = np.random.default_rng(8).normal(size=(150, classes)).astype(np.float32)
    check(make_plan(objective, False, MIXED, base_margin=True), X, y, base_margin=margin)


@pytest.mark.parametrize("noise_free", [True, False], ids=["noise_free", "tape"])
def test_awkward_columns(noise_free):
    """Constant, all missing, huge, tiny, signed zeros, two copies, whole counts."""
    rng = np.random.default_rng(7)
    n = 200
    z = rng.normal(size=n)
    X = np.full((n, 8), np.nan, dtype=np.float32)
    X[:, 0] = 3.25
    X[:, 2] = z * 1e38
    X[:, 3] = z * 1e-38
    X[:, 4] = np.where(z < 0, -0.0, 0.0)
    X[:, 5] = X[:, 6] = np.round(1900 + 60 * np.abs(z))
    X[:, 7] = np.repeat(np.arange(1, 51), 4)
    X[100:140, 2] = np.finfo(np.float32).min
    X[:5, 2] = [np.finfo(np.float32).max, np.finfo(np.float32).min, 0.0, np.nan, 1e-45]
    y = (z + rng.normal(size=n)).astype(np.float32)
    features = [PRIVATE_FEATURE] * 8
    # 25 bins: the target count is whole, and cells can meet it exactly
    check(make_plan(SQUARED, noise_free, features, depth=4, candidates={"max_bin": 25}), X, y)


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("shape", ["oblivious", "per_node"])
def test_columns_of_which_a_node_has_one_bin_or_none(objective, shape):
    """As most columns of a sparse table are in small nodes: numbers, counts and categories."""
    rng = np.random.default_rng(9)
    n, width = 160, 12
    X = rng.integers(0, 5, (n, width)).astype(np.float32)
    X[rng.random((n, width)) < 0.96] = np.nan
    X[:, 0] = rng.normal(size=n)  # of which every node has many
    y = rng.integers(0, 2, n).astype(np.float32)
    cuts = {"kind": "cuts", "cuts": [0.5, 1.5, 2.5, 3.5]}
    features = [PRIVATE_FEATURE, *[cuts] * 9, *[{"kind": "categorical", "size": 5}] * 2]
    changes = {"depth": 4, "shape": shape, "split_levels": 2, "selection": {"eps_num": 1 << 30}}
    check(make_plan(objective, False, features, **changes), X, y)


def test_every_candidate():
    """Nearly uniform choices over many small trees visit the cuts, not only the best of them."""
    X, y = make_data(SQUARED, 120)
    changes = {"rounds": 15, "depth": 4, "shape": "per_node", "selection": {"eps_num": 1 << 20}}
    model = check(make_plan(SQUARED, False, MIXED, **changes), X, y)
    seen = {
        (f, c)
        for tree in model.trees
        for f, c, left in zip(
            tree["split_index"], tree["split_condition"], tree["left"], strict=True
        )
        if left != -1
    }
    assert len(seen) > 30


def test_another_key_grows_other_trees():
    """The tests on the tape are not vacuous: with another key the trees are others."""
    X, y = make_data(SQUARED, 120)
    plan = make_plan(SQUARED, False, MIXED)
    one, other = train(plan, X, y), train(plan | {"test_key": KEY[::-1]}, X, y)
    assert [t["leaf"] for t in one.trees] != [t["leaf"] for t in other.trees]
