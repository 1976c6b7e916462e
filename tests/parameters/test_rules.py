"""Every rule between parameters has a case that breaks it, and nothing else is wrong there."""

import re
from dataclasses import replace
from typing import Any

import pytest

from xgb_dp.accounting import GaussianEvent
from xgb_dp.errors import PrivacyParameterError
from xgb_dp.request.names import Request
from xgb_dp.request.objectives import OBJECTIVES
from xgb_dp.request.params import RULES
from xgb_dp.training.hook import checked

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
    "no classes for regression": REGRESSION | {"dp_classes": 2},
    "binary objectives have two classes": {"dp_classes": 3},
    "no num_class for two classes": {"num_class": 2},
    "number of classes is declared": SEVERAL | {"num_class": 0},
    "dp_classes equals num_class": SEVERAL | {"dp_classes": 4},
    "at least two classes": SEVERAL | {"num_class": 1},
    "no target bounds for classes": {"dp_target_bounds": (0, 1)},
    "scale_pos_weight needs two classes": REGRESSION | {"scale_pos_weight": 2},
    "no base_score with xgb_model": {"base_score": 0.5},
    "dp_public_model needs xgb_model": {"dp_public_model": True},
    "objectives with several targets": COUNTS,
    "scale_pos_weight needs one label": {"scale_pos_weight": 2},
    "aft_loss_distribution needs its objective": {"aft_loss_distribution": "normal"},
    "aft_loss_distribution_scale needs its objective": {"aft_loss_distribution_scale": 1.0},
    "huber_slope needs its objective": {"huber_slope": 0.5},
    "quantile_alpha needs its objective": {"quantile_alpha": 0.5},
    "tweedie_variance_power needs its objective": {"tweedie_variance_power": 1.5},
    "target bounds within the labels of the objective": COUNTS | {"dp_target_bounds": (-1, 5)},
    "base margins need exposure bounds": COUNTS | {"dp_base_margin": True},
    "exposure bounds need base margins": COUNTS | {"dp_exposure_bounds": (0.1, 1)},
    "smallest range of logarithms": {"objective": "reg:squaredlogerror",
        "dp_target_bounds": (5.0, 5.05)},
    "range of huber_slope": {"objective": "reg:pseudohubererror", "dp_target_bounds": (0, 1),
        "huber_slope": 1e-6},
    "custom objective predicts margins": {"dp_objective": _own, "dp_target_bounds": (0, 1)},
    "custom objective without prediction clip": REGRESSION | {"dp_objective": _own,
        "dp_gradient_clip": "prediction"},
    "dp_score needs the exponential mechanism": {"dp_split": "random", "dp_score": "l1"},
    "dp_score_clip needs the exponential mechanism": {"dp_split": "random", "dp_score_clip": 1},
    "dp_no_split needs the exponential mechanism": {"dp_split": "random", "dp_no_split": True},
    "score gain needs equal Hessians": {"dp_score": "gain"},
    "score clip needs score newton": {"dp_score_clip": 1},
    "several levels need complete selections": {"dp_no_split": True, "dp_split_levels": 2},
    "joint trees need several outputs": {"dp_class_trees": "joint"},
    "joint trees need the prediction clip": SEVERAL | {"dp_class_trees": "joint",
        "dp_gradient_clip": "row_weight"},
    "joint trees need l1 selections": SEVERAL | {"dp_class_trees": "joint",
        "dp_split": "random"},
    "gamma needs dp_no_split": {"gamma": 1},
    "colsample_bytree or dp_features_per_tree": {"colsample_bytree": 0.5,
        "dp_features_per_tree": 1},
    "feature_weights need sampled columns": {},
    "column start needs two classes": REGRESSION | {"dp_start": "columns"},
    "column start needs rows as units": {"dp_start": "columns", "dp_privacy_id": True},
    "column start needs a released intercept": {"dp_start": "columns", "base_score": 0.5},
    "column start needs numeric columns": {"dp_start": "columns"},
    "column start without constraints": NUMBERS | {"num_parallel_tree": 2},
    "no scale_pos_weight with gradient leaves": WEIGHTED | {"scale_pos_weight": 2},
    "no leaf noise with noisy histograms": {"dp_split": "partial", "dp_leaf_noise": "laplace"},
    "output leaves need equal Hessians": {"dp_leaf_noise": "output"},
    "score gain needs unit weights": REGRESSION | {"dp_score": "gain", "dp_max_weight": 1},
    "output leaves need unit weights": OUTPUT | {"dp_max_weight": 1},
    "largest denominator of output leaves": OUTPUT | {"lambda": 2.0**20, "min_child_weight": 1},
    "geometric clip needs output leaves": {"dp_geometric_clip": True},
    "no warmup with geometric clip": OUTPUT | {"dp_geometric_clip": True,
        "dp_eta_warmup": 0.5},
    "mean correction needs sums of all rows": {"dp_mean_correction": True},
    "target unit needs one target": {"dp_target_unit": "released"},
    "weight unit needs bounded weights": {"dp_weight_unit": "released"},
    "dp_ensemble or subsample": {"dp_ensemble": 2, "subsample": 0.5},
    "Hessian candidates need one output": SEVERAL | {"dp_candidate_weight": "hessian"},
    "quantile trees need Gaussian noise": {"dp_candidate_noise": "laplace"},
    "dp_approx releases candidates in every round": {"tree_method": "dp_approx",
        "dp_candidate_rounds": 1},
    "Hessian candidates in every sampled round": {"dp_candidate_weight": "hessian",
        "subsample": 0.5},
    "adaptive candidates have at most max_bin cells": GRID | {"dp_candidates": "adaptive",
        "dp_candidate_cells": 9, "max_bin": 8},
    "dp_candidate_cells needs histograms": {"dp_candidate_cells": 9},
    "unit of the column discovery": PERSONS | {"dp_discovered": DISCOVERY},
    "ids of the column discovery": {"dp_privacy_id": "patient",
        "dp_discovered": {"delta": 1e-6, "column": "household",
        "events": [GaussianEvent("ranges", 1, 400, 1, 1, unit="person").to_json()]}},
    "dp_max_rows_per_person needs ids": {"dp_max_rows_per_person": 2},
    "score gain needs rows as units": PERSONS | REGRESSION | {"dp_score": "gain"},
    "output leaves need rows as units": PERSONS | OUTPUT,
    "filter needs rows as units": PERSONS | REGRESSION | {"dp_gradient_clip": "filter"},
    "joint clip of several classes": SEVERAL | {"dp_gradient_clip": "clip"},
    "joint clip of several outputs": REGRESSION | {"objective": "reg:quantileerror",
        "quantile_alpha": [0.1, 0.9], "dp_gradient_clip": "clip"},
    "no joint clip for squared error": REGRESSION | {"dp_gradient_clip": "row_weight"},
    "range of the default dp_gradient_bound": COUNTS | {
        "objective": "reg:quantileerror", "dp_max_weight": 1e-6},
    "range of the clip of several targets": REGRESSION | {"dp_gradient_bound": 1e4},
    "largest alpha": REGRESSION | {"dp_target_bounds": (0, 1e-6), "alpha": 1e9},
    "smallest dp_hessian_weight": OUTPUT | {"dp_hessian_weight": 1e-9},
    "largest dp_hessian_weight": REGRESSION | {"dp_hessian_weight": 1e6},
    "dp_secure_colluders needs masked sums": {"dp_secure_colluders": 1},
    "key files need masked sums": {"dp_secure_parties": "parties"},
    "masked sums need several workers": {"dp_secure_aggregation": True},
    "masked sums need rows as units": MASKED | {"dp_privacy_id": True,
        "dp_epsilon": float("inf")},
    "masked sums without selections": {"dp_secure_aggregation": True},
    "masked sums need Gaussian leaves": MASKED | {"dp_leaf_noise": "laplace"},
    "masked sums need Gaussian candidates": MASKED | GRID | {"dp_candidates": "histogram",
        "dp_candidate_noise": "laplace"},
    "masked sums without subsample": MASKED | {"subsample": 0.5},
    "masked sums without column start": MASKED | NUMBERS,
    "masked sums need key files": MASKED | {"dp_secure_key": None},
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
    (1, "joint trees need l1 selections",
     SEVERAL | {"dp_class_trees": "joint", "dp_score": "newton"}),
    (2, "target unit needs one target",
     REGRESSION | UNIT | {"dp_target_bounds": [(0, 1), (0, 2)]}),
    (1, "target unit needs one target", REGRESSION | UNIT | {"dp_accountant": "pure"}),
    (1, "weight unit needs bounded weights", WEIGHTS | {"dp_max_weight": 1.0}),
    (1, "weight unit needs bounded weights",
     WEIGHTS | {"dp_max_weight": 9.0, "dp_accountant": "pure"}),
    (1, "feature_weights need sampled columns",
     {"colsample_bytree": 0.5, "dp_feature_order": "cyclic"}),
    *((1, "column start without constraints", NUMBERS | more) for more in (
        {"dp_feature_order": "cyclic", "dp_features_per_tree": 2},
        {"monotone_constraints": (1, 0, 0)}, {"interaction_constraints": [[0, 1]]})),
    (2, "column start needs two classes", NUMBERS),
    (1, "target bounds within the labels of the objective",
     {"objective": "reg:squaredlogerror", "dp_target_bounds": (-1, 3)}),
    (1, "target bounds within the labels of the objective", SHARES | {"dp_target_bounds": (0, 3)}),
    (1, "quantile_alpha needs its objective",
     REGRESSION | {"objective": "reg:absoluteerror", "quantile_alpha": 0.3}),
    (1, "huber_slope needs its objective", QUANTILES | {"huber_slope": 1.0}),
    (1, "custom objective predicts margins",
     REGRESSION | {"dp_objective": _own, "objective": "reg:absoluteerror"}),
    *((1, "scale_pos_weight needs two classes", REGRESSION | more | {"scale_pos_weight": 2.0})
      for more in ({"dp_objective": _own}, *({"objective": o, "dp_target_bounds": (0.01, 1)}
                   for o, known in OBJECTIVES.items() if known.kind == "regression"))),
    (1, "mean correction needs sums of all rows",
     REGRESSION | {"objective": "reg:absoluteerror", "dp_mean_correction": True}),
    (1, "output leaves need equal Hessians", QUANTILES | MEANS_OF_GRADIENTS),
    (1, "score gain needs equal Hessians",
     REGRESSION | {"objective": "reg:absoluteerror", "dp_score": "gain"}),
    *((3, "objectives with several targets", more) for more in (
        SHARES, SEVERAL, QUANTILES, HUBER, REGRESSION | {"dp_objective": _own})),
    (3, "no target bounds for classes", {"dp_target_bounds": [(0, 1)] * 3}),
    (3, "binary objectives have two classes", {"dp_classes": 3}),
    *((3, name, kind | more) for kind in ({}, REGRESSION) for name, more in (
        ("joint clip of several outputs", {"dp_gradient_clip": "clip"}),
        ("mean correction needs sums of all rows", {"dp_mean_correction": True}),
        ("output leaves need equal Hessians", MEANS_OF_GRADIENTS),
        ("Hessian candidates need one output", {"dp_candidate_weight": "hessian"}))),
    (3, "joint clip of several outputs", {"dp_gradient_clip": "row_weight"}),
    (3, "score gain needs equal Hessians", REGRESSION | {"dp_score": "gain"}),
    (3, "range of the clip of several targets",
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
        checked(Request.parse(USUAL | given, 3), SCHEMA, None)
    assert expected in str(refusal.value)
    assert str(refusal.value).startswith("`")


# Of rules that are about the columns.
SCHEMAS = {
    "column start without constraints": replace(SCHEMA, categorical=frozenset()),
    "masked sums without column start": replace(SCHEMA, categorical=frozenset()),
    "scores of few columns": replace(SCHEMA, names=[f"c{i}" for i in range(200)]),
    "feature_weights need sampled columns": replace(SCHEMA, weights=(1.0, 2.0, 1.0)),
    "objectives with several targets": replace(SCHEMA, labels=2),
    "scale_pos_weight needs one label": replace(SCHEMA, labels=2),
    "range of the clip of several targets": replace(SCHEMA, labels=2),
}


def test_every_rule_has_a_case():
    assert sorted(BROKEN) == sorted(rule.name for rule in RULES)


@pytest.mark.parametrize(
    ("labels", "name", "given"),
    [*((SCHEMAS.get(name, SCHEMA).labels, name, given) for name, given in BROKEN.items()), *ALSO],
)
def test_every_rule_is_checked(labels, name, given, monkeypatch):
    """With its own message, and nothing else is wrong: without the rule it would be read."""
    if name != "masked sums need several workers":
        monkeypatch.setattr("xgb_dp.parameters.config.this_worker", lambda: (0, 3))
    (rule,) = (rule for rule in RULES if rule.name == name)
    continues = name == "no base_score with xgb_model"
    schema = replace(SCHEMAS.get(name, SCHEMA), labels=labels)
    with pytest.raises(rule.error) as refusal:
        checked(Request.parse(USUAL | given, 3, continues=continues), schema, None)
    start = re.escape(rule.message.split("{")[0])
    assert re.match(start, str(refusal.value)), refusal.value
