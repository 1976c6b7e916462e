"""Parameters of the bound on one row, and the bound itself. The proofs determine the constants.

Proof: docs/proofs/sensitivity.md
"""

from __future__ import annotations

import math

from ..accounting.sensitivity import BALLS, RowBound
from ..errors import PrivacyRefusal
from ..parameters.config import Config
from ..parameters.parameter import PUBLIC, Parameter, Rule, Table
from ..parameters.parse import Number, OneOf
from .objectives import CLIPS, TARGETS, residual_clip

_COARSEST_GRID = 16  # in gradient bounds C
_LARGEST_HESSIAN = 60  # in C, within the norm of a row
_LEAST_BOUND = 1e-6  # smallest C; its inverse is the largest


def _largest_hessian(s: Config) -> float:
    """Largest Hessian of a row within the weight bound."""
    logistic = s.kind == "binary" and s["dp_leaf"] == "newton"  # p (1 - p)
    largest = 1.0 if s.loss is None else s.loss.largest_hessian
    return s.max_weight * (0.25 if logistic else largest)


def row_bound(s: Config) -> RowBound:
    """The bound of one row."""
    declared = "dp_max_weight" in s.given
    mode = s["dp_gradient_clip"]
    # A joint clip of gradient and Hessian bounds rows of any weight. The joint bound of several
    # classes is tighter with a bound on the weight.
    weighted = s.kind == ("multiclass" if mode in BALLS else "regression") or (
        s.loss is not None and s.kind == "regression"
    )
    gradient, hessian = (1.0, 1.0) if s.loss is None else s.loss.of_output(s)
    return RowBound(
        mode=mode,
        gradient_bound=s["dp_gradient_bound"],
        hessian_weight=s["dp_hessian_weight"],
        hessian_bound=1.0 if mode in BALLS else _largest_hessian(s),
        max_weight=s.max_weight if weighted or declared else 0.0,
        unit_hessian=s["dp_leaf"] == "gradient",
        of_person=s.unit == "person",
        max_rows_per_person=s["dp_max_rows_per_person"],
        output_gradient=gradient,
        output_hessian=hessian,
    )


def _gradient_clip(s: Config) -> str:
    """Default clip: "prediction" if a factor independent of the label scales both derivatives."""
    if s.loss is not None:
        return s.loss.clip
    clipped = s.kind == "regression" or s["dp_leaf"] == "gradient"
    return "clip" if clipped else "prediction"


def _gradient_bound(s: Config) -> float:
    if s.loss is not None:
        return s.loss.gradient_bound(s)
    if s["dp_gradient_clip"] == "prediction" and s.kind == "multiclass":
        return 1.0
    if s["dp_gradient_clip"] in BALLS:
        return 0.5
    if s.kind != "regression" or s["dp_gradient_clip"] != "clip":
        return 1.0
    return residual_clip(s)


def _hessian_weight(s: Config) -> float:
    """Default weight. Usually the largest Hessian counts as a quarter of the gradient bound."""
    if s["dp_gradient_clip"] in BALLS:
        if s.loss is not None:
            return s.loss.hessian_weight(s)
        return 1.0 if s.kind == "binary" and s["dp_gradient_clip"] == "row_weight" else 0.25
    if s.kind == "binary" and s["dp_leaf"] == "newton":
        return 1.0
    return min(max((0.25 * s["dp_gradient_bound"] / _largest_hessian(s)) ** 2, 1e-12), 1e6)


# fmt: off
PARAMETERS = (
    Parameter("dp_gradient_bound", "Bound C on the gradient of one row; dp_gradient_clip sets how "
              "it is enforced.", Number(1e-6, 1e6),
              _gradient_bound, PUBLIC, "sensitivity", Table.DEFAULT,
              unit="gradient of the objective; regression: in units of dp_target_unit",
              shown="by dp_gradient_clip: 'prediction' and 'row_weight' 0.5 (several classes with "
              "'prediction' 1); 'clip' 1 (reg:squarederror 0.3, and "
              "up to 1 if eta times rounds is below 25); 'filter' 1. Other regression "
              "objectives: derived from the loss"),
    Parameter("dp_gradient_clip", "How the contribution of a row is bounded. 'prediction' scales "
              "gradient and Hessian by a factor that does not depend on the label, so that "
              "probabilities stay unbiased; 'row_weight' scales both by the norm of the row; "
              "'clip' clips the gradient only; 'filter' leaves rows beyond the bound out of a "
              "round.",
              OneOf(("prediction", "row_weight", "clip", "filter")), _gradient_clip, PUBLIC,
              "sensitivity", Table.DEFAULT, shown="'prediction'; 'clip' for reg:squarederror with "
              "one target and for classification with dp_leaf='gradient'; 'row_weight' for "
              "survival:aft and dp_objective"),
    Parameter("dp_hessian_weight", "Weight r of the Hessian in the norm sqrt(g^2 + r h^2) of a "
              "row.", Number(1e-12, 1e6), _hessian_weight, PUBLIC, "sensitivity", Table.DEFAULT,
              shown="by dp_gradient_clip: 'prediction' 0.25; 'row_weight' 0.25 (two classes 1); "
              "'clip' and 'filter' (0.25 C / dp_max_weight)^2 (two classes with Newton leaves 1). "
              "Other regression objectives: derived from the loss"),
    Parameter("dp_max_weight", "Maximum row weight; larger weights are reduced to it. "
              "Weights up to it (up to 1 without dp_gradient_clip='prediction') keep their ratios.",
              Number(1e-6, 1e6), None, PUBLIC, "sensitivity", unit="row weight",
              shown="none for two classes; otherwise 1, and larger weights are refused",
              recorded=False),
)
RULES = (
    Rule("filter needs rows as units",
         lambda s: s.unit == "person" and s["dp_gradient_clip"] == "filter",
         "`dp_gradient_clip`='filter' is refused with {`dp_privacy_id`}: it drops single rows, not "
         "all rows of a person. Use 'clip', or 'prediction' for classification.", PrivacyRefusal),
    Rule("joint clip of several classes",
         lambda s: s.kind == "multiclass" and s["dp_gradient_clip"] not in BALLS,
         "`dp_gradient_clip`={dp_gradient_clip!r} is refused for several classes: their joint "
         "bound is proved for 'prediction' and 'row_weight' only. Use one of these.",
         PrivacyRefusal),
    Rule("joint clip of several outputs",
         lambda s: (s.loss is not None and s.trees_per_round > 1
                    and s["dp_gradient_clip"] != "prediction"),
         "`dp_gradient_clip`={dp_gradient_clip!r} is refused for several quantiles or targets: "
         "their joint bound is proved for 'prediction' only. Use 'prediction'.", PrivacyRefusal),
    Rule("no joint clip for squared error",
         lambda s: s.squared and s["dp_gradient_clip"] in BALLS,
         "`dp_gradient_clip`={dp_gradient_clip!r} is not available for squared error. Use 'clip' "
         "or 'filter'."),
    Rule("range of the default dp_gradient_bound",
         lambda s: not _LEAST_BOUND <= s["dp_gradient_bound"] <= 1 / _LEAST_BOUND,
         "The default `dp_gradient_bound` is {dp_gradient_bound}, derived from dp_max_weight and "
         "the parameters of {objective}, but it must lie between 1e-6 and 1e6. Choose a "
         "dp_max_weight closer to 1 and rescale the weights accordingly."),
    Rule("range of the clip of several targets",
         lambda s: (s.kind == "regression" and s.labels > 1
                    and not CLIPS[0] <= TARGETS.residual(s) <= CLIPS[1]),
         "`dp_gradient_bound`={dp_gradient_bound} is the joint bound of all targets of a row. It "
         "clips each residual below 1e-9 or above 1000 half widths of its range. Remove it to use "
         "the default."),
    Rule("smallest dp_hessian_weight",
         lambda s: ((s["dp_score"] == "gain" or s["dp_leaf_noise"] == "output") and _COARSEST_GRID
                    * math.sqrt(s["dp_hessian_weight"]) < s["dp_gradient_bound"]),
         "`dp_hessian_weight` is too small for dp_score='gain' and dp_leaf_noise='output', which "
         "count rows by their Hessians: sqrt(r) must be at least C / 16. Remove it to use the "
         "default."),
    Rule("largest dp_hessian_weight",
         lambda s: (s["dp_gradient_clip"] not in BALLS
                    and math.sqrt(s["dp_hessian_weight"]) * _largest_hessian(s)
                    > _LARGEST_HESSIAN * s["dp_gradient_bound"]),
         "`dp_hessian_weight` is too large for {`dp_max_weight`} and `dp_gradient_bound`: sqrt(r) "
         "* dp_max_weight must not exceed 60 C. Remove it to use the default."),
)
# fmt: on
