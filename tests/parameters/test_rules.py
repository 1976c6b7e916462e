"""Every rule between parameters has a case that breaks it, and nothing else is wrong there."""

import re
from dataclasses import replace
from typing import Any

import pytest

from xgb_dp.accounting import GaussianEvent
from xgb_dp.errors import PrivacyParameterError
from xgb_dp.request.objectives import OBJECTIVES
from xgb_dp.request.params import RULES
from xgb_dp.training.prepare import checked

from .test_params_read import SCHEMA, USUAL

WEIGHTED: dict[str, Any] = {"dp_leaf": "gradient", "dp_split": "random"}


def _own(prediction: Any, label: Any, weight: Any) -> tuple[Any, Any]:
    return prediction - label, 1.0


REGRESSION: dict[str, Any] = {"objective": "reg:squarederror", "dp_target_bounds": (0, 1)}
SEVERAL: dict[str, Any] = {"objective": "multi:softprob", "num_class": 3}
GRID: dict[str, Any] = {"dp_feature_bounds": {0: (0, 1), 1: (0, 1)}}
OUTPUT: dict[str, Any] = REGRESSION | {"dp_leaf_noise": "output"}
MASKED: dict[str, Any] = {
    "dp_secure_aggregation": True, "dp_split": "random", "dp_secure_key": "key",
    "dp_secure_parties": "parties",
}  # fmt: skip

NUMBERS: dict[str, Any] = {"dp_start": "columns", "dp_categories": None}
PERSONS: dict[str, Any] = {"dp_privacy_id": True}
DISCOVERY = {"delta": 1e-6, "events": [GaussianEvent("ranges", 1, 400, 1, 1).to_json()]}

COUNTS: dict[str, Any] = {"objective": "count:poisson", "dp_target_bounds": (0, 5)}
BROKEN: dict[str, dict[str, Any]] = {
    "no classes of a target": REGRESSION | {"dp_classes": 2},
    "two classes": {"dp_classes": 3},
    "num_class of two": {"num_class": 2},
    "classes are declared": SEVERAL | {"num_class": 0},
    "one number of classes": SEVERAL | {"dp_classes": 4},
    "several classes": SEVERAL | {"num_class": 1},
    "no range of classes": {"dp_target_bounds": (0, 1)},
    "scale_pos_weight of two classes": REGRESSION | {"scale_pos_weight": 2},
    "a continued model brings base_score": {"base_score": 0.5},
    "a public model is given": {"dp_public_model": True},
    "several targets of squared error": COUNTS,
    "several labels weigh alike": {"scale_pos_weight": 2},
    "aft_loss_distribution has its objectives": {"aft_loss_distribution": "normal"},
    "aft_loss_distribution_scale has its objectives": {"aft_loss_distribution_scale": 1.0},
    "huber_slope has its objectives": {"huber_slope": 0.5},
    "quantile_alpha has its objectives": {"quantile_alpha": 0.5},
    "tweedie_variance_power has its objectives": {"tweedie_variance_power": 1.5},
    "labels of the objective are in the range": COUNTS | {"dp_target_bounds": (-1, 5)},
    "exposures have a range": COUNTS | {"dp_base_margin": True},
    "exposures are of rows with margins": COUNTS | {"dp_exposure_bounds": (0.1, 1)},
    "logarithms differ in the range": {"objective": "reg:squaredlogerror",
        "dp_target_bounds": (5.0, 5.05)},
    "slope of the range": {"objective": "reg:pseudohubererror", "dp_target_bounds": (0, 1),
        "huber_slope": 1e-6},
    "an own objective predicts margins": {"dp_objective": _own, "dp_target_bounds": (0, 1)},
    "an own objective has no norm of predictions": REGRESSION | {"dp_objective": _own,
        "dp_gradient_clip": "prediction"},
    "dp_score needs selections": {"dp_split": "random", "dp_score": "l1"},
    "dp_score_clip needs selections": {"dp_split": "random", "dp_score_clip": 1},
    "dp_no_split needs selections": {"dp_split": "random", "dp_no_split": True},
    "score gain needs rows that count alike": {"dp_score": "gain"},
    "score clip needs score newton": {"dp_score_clip": 1},
    "several levels need complete selections": {"dp_no_split": True, "dp_split_levels": 2},
    "trees of one class": {"dp_class_trees": "joint"},
    "joint trees need rows bounded jointly": SEVERAL | {"dp_class_trees": "joint",
        "dp_gradient_clip": "row_weight"},
    "joint trees need selections by norms": SEVERAL | {"dp_class_trees": "joint",
        "dp_split": "random"},
    "gamma needs no_split": {"gamma": 1},
    "one number of features": {"colsample_bytree": 0.5, "dp_features_per_tree": 1},
    "weights of columns that are drawn": {},
    "columns of two classes": REGRESSION | {"dp_start": "columns"},
    "columns of rows": {"dp_start": "columns", "dp_privacy_id": True},
    "columns and labels are read together": {"dp_start": "columns", "base_score": 0.5},
    "columns are numbers": {"dp_start": "columns"},
    "trees after columns": NUMBERS | {"num_parallel_tree": 2},
    "gradient leaves weigh no class": WEIGHTED | {"scale_pos_weight": 2},
    "noisy sums bring Gaussian leaves": {"dp_split": "partial", "dp_leaf_noise": "laplace"},
    "leaf noise output needs rows that count alike": {"dp_leaf_noise": "output"},
    "score gain needs unit weights": REGRESSION | {"dp_score": "gain", "dp_max_weight": 1},
    "output leaves need unit weights": OUTPUT | {"dp_max_weight": 1},
    "denominators of output leaves": OUTPUT | {"lambda": 2.0**20, "min_child_weight": 1},
    "geometric clip needs output leaves": {"dp_geometric_clip": True},
    "one learning rate of a geometric clip": OUTPUT | {"dp_geometric_clip": True,
        "dp_eta_warmup": 0.5},
    "the mean of a regression is corrected": {"dp_mean_correction": True},
    "a unit is released of one target": {"dp_target_unit": "released"},
    "a unit is released of bounded weights": {"dp_weight_unit": "released"},
    "one choice of rows": {"dp_ensemble": 2, "subsample": 0.5},
    "one Hessian of a row": SEVERAL | {"dp_candidate_weight": "hessian"},
    "quantile trees are Gaussian": {"dp_candidate_noise": "laplace"},
    "dp_approx releases always": {"tree_method": "dp_approx", "dp_candidate_rounds": 1},
    "Hessians of the rows of a round": {"dp_candidate_weight": "hessian", "subsample": 0.5},
    "adaptive edges are those of bins": GRID | {"dp_candidates": "adaptive",
        "dp_candidate_cells": 9, "max_bin": 8},
    "cells need histograms": {"dp_candidate_cells": 9},
    "unit of the column discovery": PERSONS | {"dp_discovered": DISCOVERY},
    "ids of the column discovery": {"dp_privacy_id": "patient",
        "dp_discovered": {"delta": 1e-6, "column": "household",
        "events": [GaussianEvent("ranges", 1, 400, 1, 1, unit="person").to_json()]}},
    "rows of persons": {"dp_max_rows_per_person": 2},
    "score gain of rows": PERSONS | REGRESSION | {"dp_score": "gain"},
    "output leaves of rows": PERSONS | OUTPUT,
    "rows left out of rows": PERSONS | REGRESSION | {"dp_gradient_clip": "filter"},
    "joint bound of classes": SEVERAL | {"dp_gradient_clip": "clip"},
    "joint bound of outputs": REGRESSION | {"objective": "reg:quantileerror",
        "quantile_alpha": [0.1, 0.9], "dp_gradient_clip": "clip"},
    "row weights of classes": REGRESSION | {"dp_gradient_clip": "row_weight"},
    "a default bound that fits": COUNTS | {"objective": "reg:quantileerror", "dp_max_weight": 1e-6},
    "a clip of several targets that fits": REGRESSION | {"dp_gradient_bound": 1e4},
    "alpha in the unit of leaves": REGRESSION | {"dp_target_bounds": (0, 1e-6), "alpha": 1e9},
    "Hessians that count": OUTPUT | {"dp_hessian_weight": 1e-9},
    "Hessians that fit the grid": REGRESSION | {"dp_hessian_weight": 1e6},
    "colluders of masked sums": {"dp_secure_colluders": 1},
    "keys of masked sums": {"dp_secure_parties": "parties"},
    "masked sums of several workers": {"dp_secure_aggregation": True},
    "masked sums are no sums over persons": MASKED | {"dp_privacy_id": True,
        "dp_epsilon": float("inf")},
    "masked sums need no selections": {"dp_secure_aggregation": True},
    "masked sums have Gaussian leaves": MASKED | {"dp_leaf_noise": "laplace"},
    "masked sums have Gaussian candidates": MASKED | GRID | {"dp_candidates": "histogram",
        "dp_candidate_noise": "laplace"},
    "masked sums read all rows": MASKED | {"subsample": 0.5},
    "masked sums are no sums by column": MASKED | NUMBERS,
    "masked sums of known parties": MASKED | {"dp_secure_key": None},
}  # fmt: skip


TIMES: dict[str, Any] = {"objective": "survival:aft"}
QUANTILES: dict[str, Any] = REGRESSION | {
    "objective": "reg:quantileerror",
    "quantile_alpha": [0.2, 0.8],
}
HUBER: dict[str, Any] = REGRESSION | {"objective": "reg:pseudohubererror"}
SHARES: dict[str, Any] = {"objective": "reg:logistic"}
MEANS_OF_GRADIENTS: dict[str, Any] = {"dp_leaf": "gradient", "dp_leaf_noise": "output"}
UNIT: dict[str, Any] = {"dp_target_unit": "released"}
WEIGHTS: dict[str, Any] = {"dp_weight_unit": "released"}
# Other ways to break a rule, by the number of labels of a row.
ALSO: list[tuple[int, str, dict[str, Any]]] = [
    (1, "joint trees need selections by norms",
     SEVERAL | {"dp_class_trees": "joint", "dp_score": "newton"}),
    (2, "a unit is released of one target",
     REGRESSION | UNIT | {"dp_target_bounds": [(0, 1), (0, 2)]}),
    (1, "a unit is released of one target", REGRESSION | UNIT | {"dp_accountant": "pure"}),
    (1, "a unit is released of bounded weights", WEIGHTS | {"dp_max_weight": 1.0}),
    (1, "a unit is released of bounded weights",
     WEIGHTS | {"dp_max_weight": 9.0, "dp_accountant": "pure"}),
    (1, "weights of columns that are drawn",
     {"colsample_bytree": 0.5, "dp_feature_order": "cyclic"}),
    *((1, "trees after columns", NUMBERS | more) for more in (
        {"dp_feature_order": "cyclic", "dp_features_per_tree": 2},
        {"monotone_constraints": (1, 0, 0)}, {"interaction_constraints": [[0, 1]]})),
    (2, "columns of two classes", NUMBERS),
    (1, "labels of the objective are in the range",
     {"objective": "reg:squaredlogerror", "dp_target_bounds": (-1, 3)}),
    (1, "labels of the objective are in the range", SHARES | {"dp_target_bounds": (0, 3)}),
    (1, "quantile_alpha has its objectives",
     REGRESSION | {"objective": "reg:absoluteerror", "quantile_alpha": 0.3}),
    (1, "huber_slope has its objectives", QUANTILES | {"huber_slope": 1.0}),
    (1, "an own objective predicts margins",
     REGRESSION | {"dp_objective": _own, "objective": "reg:absoluteerror"}),
    *((1, "scale_pos_weight of two classes", REGRESSION | more | {"scale_pos_weight": 2.0})
      for more in ({"dp_objective": _own}, *({"objective": o, "dp_target_bounds": (0.01, 1)}
                   for o, known in OBJECTIVES.items() if known.kind == "regression"))),
    (1, "the mean of a regression is corrected",
     REGRESSION | {"objective": "reg:absoluteerror", "dp_mean_correction": True}),
    (1, "leaf noise output needs rows that count alike", QUANTILES | MEANS_OF_GRADIENTS),
    (1, "score gain needs rows that count alike",
     REGRESSION | {"objective": "reg:absoluteerror", "dp_score": "gain"}),
    *((3, "several targets of squared error", more) for more in (
        SHARES, SEVERAL, QUANTILES, HUBER, REGRESSION | {"dp_objective": _own})),
    (3, "no range of classes", {"dp_target_bounds": [(0, 1)] * 3}),
    (3, "two classes", {"dp_classes": 3}),
    *((3, name, kind | more) for kind in ({}, REGRESSION) for name, more in (
        ("joint bound of outputs", {"dp_gradient_clip": "clip"}),
        ("the mean of a regression is corrected", {"dp_mean_correction": True}),
        ("leaf noise output needs rows that count alike", MEANS_OF_GRADIENTS),
        ("one Hessian of a row", {"dp_candidate_weight": "hessian"}))),
    (3, "joint bound of outputs", {"dp_gradient_clip": "row_weight"}),
    (3, "score gain needs rows that count alike", REGRESSION | {"dp_score": "gain"}),
    (3, "a clip of several targets that fits",
     REGRESSION | {"dp_gradient_bound": 1e-6, "dp_max_weight": 1e6}),
]  # fmt: skip


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (REGRESSION | {"dp_target_bounds": (0, 1e31)}, "another unit"),
        (REGRESSION | {"dp_target_bounds": (0, 1e-16)}, "another unit"),
        (REGRESSION | {"dp_target_bounds": (1.7e9, 1.7e9 + 100)}, "subtract a public number"),
        (COUNTS | {"dp_target_bounds": (1e-40, 2e-40)}, "another unit"),
        (TIMES | {"dp_target_bounds": (1e-31, 1)}, "times above 1e-30"),
        (REGRESSION | {"base_score": 1e40}, "to 3.40282e+38"),
        (COUNTS | {"base_score": 1e40}, "to 3.40282e+38"),
        (COUNTS | {"base_score": 1e31}, "within 1e-30 and 1e30"),
        (COUNTS | {"base_score": 0}, "within 1e-30 and 1e30"),
        ({"objective": "reg:logistic", "base_score": 2}, "above 0 and below 1 for reg:logistic"),
        ({"objective": "reg:logistic", "base_score": 1e-46}, "32-bit"),
        ({"base_score": 1 - 1e-12}, "32-bit"),
        (
            COUNTS | {"dp_base_margin": True, "dp_exposure_bounds": (0.0, 1)},
            "within 1e-12 and 1e12",
        ),
        ({"objective": "reg:absoluteerror"}, "`dp_target_bounds` is missing"),
        (QUANTILES | {"quantile_alpha": [0.5, 0.2]}, "an increasing list"),
        (QUANTILES | {"quantile_alpha": 1.0}, "`quantile_alpha`"),
        (HUBER | {"huber_slope": 0.0}, "`huber_slope`"),
        (REGRESSION | {"dp_target_bounds": [(0, 1), (2, 1), (0, 1)]}, "dp_target_bounds[1]"),
        (REGRESSION | {"dp_target_bounds": [(0, 1)] * 1025}, "more than 1024 targets"),
        (REGRESSION | {"dp_target_bounds": []}, "`dp_target_bounds`"),
        (REGRESSION | {"base_score": [0.0, 1.0]}, "targets a list"),
        ({"base_score": [0.5, 0.1, 1.5]}, "`base_score` must be one number"),
        ({"dp_start": "rows"}, "`dp_start`"),
    ],
    ids=str,
)
def test_ranges_that_no_plan_holds(given, expected):
    """Said by the package, with the name of the parameter, not by the trainer's own checks."""
    with pytest.raises(PrivacyParameterError) as refusal:
        checked(USUAL | given, SCHEMA, 3)
    assert expected in str(refusal.value)
    assert str(refusal.value).startswith("`")


# Of rules that are about the columns.
SCHEMAS = {
    "trees after columns": replace(SCHEMA, categorical=frozenset()),
    "masked sums are no sums by column": replace(SCHEMA, categorical=frozenset()),
    "scores of few columns": replace(SCHEMA, names=[f"c{i}" for i in range(200)]),
    "weights of columns that are drawn": replace(SCHEMA, weights=(1.0, 2.0, 1.0)),
    "several targets of squared error": replace(SCHEMA, labels=2),
    "several labels weigh alike": replace(SCHEMA, labels=2),
    "a clip of several targets that fits": replace(SCHEMA, labels=2),
}


def test_every_rule_has_a_case():
    assert sorted(BROKEN) == sorted(rule.name for rule in RULES)


@pytest.mark.parametrize(
    ("labels", "name", "given"),
    [*((SCHEMAS.get(name, SCHEMA).labels, name, given) for name, given in BROKEN.items()), *ALSO],
)
def test_every_rule_is_checked(labels, name, given, monkeypatch):
    """With its own message, and nothing else is wrong: without the rule it would be read."""
    if name != "masked sums of several workers":
        monkeypatch.setattr("xgb_dp.request.settings.this_worker", lambda: (0, 3))
    (rule,) = (rule for rule in RULES if rule.name == name)
    continues = name.startswith("a continued model")
    schema = replace(SCHEMAS.get(name, SCHEMA), labels=labels)
    with pytest.raises(rule.error) as refusal:
        checked(USUAL | given, schema, 3, continues=continues)
    start = re.escape(rule.message.split("{")[0])
    assert re.match(start, str(refusal.value)), refusal.value
