"""Parameters of the labels and of the loss."""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

from ..errors import PrivacyParameterError, PrivacyRefusal, alias, named
from ..parameters import parse
from ..parameters.config import Config
from ..parameters.parameter import PUBLIC, Parameter, Rule, Table
from ..parameters.parse import Integer, Number, OneOf
from .objectives import OBJECTIVES, OWN_PARAMETERS, REFUSED_OBJECTIVES
from .program import own_objective

_LARGEST_LABEL, _LEAST_WIDTH, _LEAST_SHARE = 1e30, 1e-15, 1e-6
_MOST_TARGETS, _MOST_LEVELS = 1024, 64
_LEAST_LOGARITHMS = 0.01
_SLOPES = 1e5
_LEAST_TIME = 1e-30


def _objective(name: str, value: Any, s: Config) -> str:
    """Read an objective that has a proved bound on its gradients."""
    if isinstance(value, str) and value in OBJECTIVES:
        return value
    reason = REFUSED_OBJECTIVES.get(value) if isinstance(value, str) else None
    near = difflib.get_close_matches(value if isinstance(value, str) else "", OBJECTIVES, 1, 0.9)
    if near and reason is None:
        reason = f"it is unknown. Did you mean {near[0]!r}?"
    else:
        reason = f"{reason or 'its gradients have no proved bound per row'}."
    raise PrivacyRefusal(
        f"`objective` {parse.show(value)} is refused: {reason} Private training supports "
        f"{', '.join(OBJECTIVES)}."
    )


def _default_objective(s: Config) -> str:
    """XGBoost's default, if the target range is declared or the loss is custom."""
    if "dp_target_bounds" in s.given or "dp_objective" in s.given:
        return "reg:squarederror"
    raise PrivacyParameterError(
        f"`objective` is missing. Private training supports {', '.join(OBJECTIVES)}."
    )


def _objective_default(name: str, value: Any) -> Callable[[Config], Any]:
    """Default of a parameter that some objectives have; None for other objectives."""

    def default(s: Config) -> Any:
        return value if name in s.objective.parameters else None

    return default


def _target_bounds(
    name: str, value: Any, s: Config | None
) -> tuple[float, float] | tuple[tuple[float, float], ...]:
    """Read one range, or one range per target; a list of one range is a single target."""
    pairs = parse.listed(list(value) if isinstance(value, np.ndarray) and value.ndim else value)
    if not pairs or any(parse.listed(v) is None for v in pairs):
        return _target_range(name, value)
    if len(pairs) > _MOST_TARGETS:
        raise PrivacyParameterError(
            f"`{name}` has more than {_MOST_TARGETS} targets. Train several models."
        )
    ranges = tuple(_target_range(f"{name}[{i}]", v) for i, v in enumerate(pairs))
    return ranges if len(ranges) > 1 else ranges[0]


def _target_range(name: str, value: Any) -> tuple[float, float]:
    """Read a range that 32-bit labels can resolve, with room for computations."""
    low, high = parse.parse_range(name, value)
    largest = max(-low, high)
    if largest > _LARGEST_LABEL or high - low < max(_LEAST_WIDTH, _LEAST_SHARE * largest):
        raise PrivacyParameterError(
            f"`{name}` must lie between -1e30 and 1e30, and its width must be at least 1e-15 and "
            "at least a millionth of its larger end, because labels are 32-bit numbers. Choose "
            "another unit for the target, or subtract a public number from it."
        )
    return low, high


def _default_target_bounds(s: Config) -> tuple[float, float] | None:
    """The label range of the objective if finite, None for classes, otherwise an error."""
    objective = s.objective
    if math.isfinite(objective.lowest) and math.isfinite(objective.highest):
        return objective.lowest, objective.highest
    if s.kind == "regression":
        raise PrivacyParameterError(
            f"{named.dp_target_bounds} is missing: regression needs a public range of the target, "
            f"e.g. {alias('dp_target_bounds')}=(0, 100). Choose it from knowledge of the domain, "
            "not from the training labels; labels outside it are clipped."
        )
    return None


def _classes(name: str, value: Any, s: Config | None) -> int:
    """Read the number of classes from an int K or the list 0..K-1."""
    labels = parse.listed(value)
    if labels is None:
        return parse.parse_int(name, value, 2, 1 << 16)
    try:
        codes = [parse.parse_number(name, v) for v in labels]
    except PrivacyParameterError:
        codes = []
    if len(codes) < 2 or codes != list(range(len(codes))):
        raise PrivacyParameterError(
            f"{named.dp_classes} must be the list 0, 1, ..., K-1 with K >= 2 (or the number K): "
            "XGBoost needs labels encoded as 0..K-1. Encode them with a mapping fixed in advance."
        )
    return len(codes)


def _levels(name: str, value: Any, s: Config) -> tuple[float, ...]:
    """Read one quantile level in (0, 1), or an increasing list of levels."""
    values = parse.listed(value)
    read = Number(0, 1, open_low=True, open_high=True)
    out = tuple(read(name, v) for v in ([value] if values is None else values))
    if not 1 <= len(out) <= _MOST_LEVELS or any(a >= b for a, b in pairwise(out)):
        raise PrivacyParameterError(
            f"`{name}` must be a level above 0 and below 1, or an increasing list of at most "
            f"{_MOST_LEVELS} levels, e.g. quantile_alpha=[0.1, 0.5, 0.9]."
        )
    return out


def _huber_slope(s: Config) -> float | None:
    """A tenth of the label range, instead of XGBoost's 1, which ignores the unit of the target."""
    return s.half_width / 5.0 if "huber_slope" in s.objective.parameters else None


# fmt: off
PARAMETERS = (
    Parameter("dp_target_bounds", "Range of the regression target, or one range per target. Labels "
                                  "outside are clipped. Labels more than a million widths away may "
                                  "be replaced by any value of the range.",
              _target_bounds, _default_target_bounds, PUBLIC, "parameters", unit="label",
              values="(low, high) with low < high, between -1e30 and 1e30. reg:squarederror with "
              "several label columns: one pair for all of them, or a list of pairs",
              shown="none; required for regression", recorded=False),
    Parameter("dp_classes", "Number of classes, or the list of class labels.", _classes, None,
              PUBLIC, "parameters", unit="classes", values="int K >= 2, or the list 0..K-1",
              shown="2 for binary objectives; required by XGBClassifier", recorded=False),
    Parameter("dp_objective", "Custom loss: a function of one row, called once with symbols and "
              "compiled.", own_objective, None, PUBLIC, "howto/objectives",
              Table.LOSSES, values="callable (prediction, label, weight) -> (gradient, Hessian) "
              "in NumPy arithmetic", shown="none", recorded=False),
    Parameter("objective", "Learning objective.", _objective, _default_objective, PUBLIC, "XGBoost",
              values=", ".join(OBJECTIVES), shown="reg:squarederror with dp_target_bounds or "
              "dp_objective; otherwise required", plan="objective", xgboost=True, recorded=False),
    Parameter("num_class", "Number of classes.", Integer(0, 1 << 16), None, PUBLIC, "XGBoost",
              unit="classes", values="int >= 2", shown="dp_classes", recorded=False),
    Parameter("scale_pos_weight", "Weight of the positive class. Do not compute it from private "
              "labels.", Number(0, 1e6, open_low=True), 1.0, PUBLIC, "XGBoost", unit="row weight",
              values="> 0"),
    Parameter("quantile_alpha", "Quantile levels to predict.", _levels,
              _objective_default("quantile_alpha", (0.5,)), PUBLIC, "XGBoost", Table.LOSSES,
              unit="probability", values="number in (0, 1), or an increasing list of at most 64; "
              "reg:quantileerror only", shown="0.5", xgboost=True, recorded=False),
    Parameter("tweedie_variance_power", "Exponent p of the variance mean^p.",
              Number(1, 2, open_low=True, open_high=True),
              _objective_default("tweedie_variance_power", 1.5), PUBLIC, "XGBoost", Table.LOSSES,
              values="number in (1, 2); reg:tweedie only", shown="1.5", xgboost=True,
              recorded=False),
    Parameter("aft_loss_distribution", "Error distribution of the log survival time.",
              OneOf(("normal", "logistic", "extreme")),
              _objective_default("aft_loss_distribution", "logistic"), PUBLIC, "XGBoost",
              Table.LOSSES,
              values="'normal', 'logistic' or 'extreme'; survival:aft only",
              shown="'logistic', which has bounded gradients", xgboost=True, recorded=False),
    Parameter("aft_loss_distribution_scale", "Scale of aft_loss_distribution.", Number(1e-3, 1e3),
              _objective_default("aft_loss_distribution_scale", 1.0), PUBLIC, "XGBoost",
              Table.LOSSES,
              unit="log time", values="number in [0.001, 1000]; survival:aft only",
              shown="1", xgboost=True, recorded=False),
    Parameter("huber_slope", "Residual at which the loss changes from quadratic to linear.",
              Number(0, open_low=True), _huber_slope, PUBLIC, "XGBoost", Table.LOSSES,
              unit="target", values="> 0; reg:pseudohubererror only",
              shown="a tenth of the width of dp_target_bounds", xgboost=True, recorded=False),
)
def _needs_objective(name: str) -> Rule:
    objectives = [key for key, one in OBJECTIVES.items() if name in one.parameters]
    return Rule(
        f"{name} needs its objective",
        lambda s: name in s.given and name not in s.objective.parameters,
        f"`{name}` applies to {', '.join(objectives)} only; the objective is "
        "{objective}. Remove it, or change the objective.",
    )


def _allows_labels(s: Config, low: float, high: float) -> bool:
    """Whether the objective allows all labels in a range; for positive means it may start at 0."""
    objective = s.objective
    above = objective.intervals or (objective.above and objective.link == "identity")
    least = max(objective.lowest, _LEAST_TIME) if objective.intervals else objective.lowest
    return (low > least if above else low >= least) and high <= objective.highest


RULES = (
    Rule("no classes for regression",
         lambda s: (s.kind == "regression" and (s["dp_classes"] is not None
                    or s["num_class"] not in (None, 0, 1))),
         "{`dp_classes`} and `num_class` are for classification only. Remove them."),
    Rule("binary objectives have two classes",
         lambda s: s.kind == "binary" and s["dp_classes"] not in (None, 2),
         "{`dp_classes`} declares more than two classes, but the objective is binary. Use "
         "objective='multi:softprob'."),
    Rule("no num_class for two classes",
         lambda s: s.kind == "binary" and s["num_class"] not in (None, 0, 1),
         "`num_class` cannot be used with a binary objective. Remove it, or use "
         "objective='multi:softprob'."),
    Rule("number of classes is declared",
         lambda s: s.kind == "multiclass" and not s.classes,
         "`num_class` (or {`dp_classes`}) is missing: the number of classes must be declared, "
         "because it is never read from the labels. Pass num_class=K; labels are 0..K-1."),
    Rule("dp_classes equals num_class",
         lambda s: (s.kind == "multiclass" and s["dp_classes"] is not None
                    and s["dp_classes"] != s.classes),
         "{`dp_classes`} and `num_class` declare different numbers of classes. Pass only one of "
         "them."),
    Rule("at least two classes",
         lambda s: s.kind == "multiclass" and s.classes < 2,
         "`num_class` must be at least 2 for a multi-class objective; got {num_class}."),
    Rule("no target bounds for classes",
         lambda s: s.kind != "regression" and "dp_target_bounds" in s.given,
         "{`dp_target_bounds`} is for regression only. Remove it."),
    Rule("scale_pos_weight needs two classes",
         lambda s: s["scale_pos_weight"] != 1.0 and s.kind != "binary",
         "`scale_pos_weight` is for binary objectives only. Remove it."),
    Rule("objectives with several targets",
         lambda s: s.labels > 1 and s.objective.intercept != "means",
         "Several targets are refused for this objective: a joint bound on all labels of a row is "
         "proved only for binary:logistic and for reg:squarederror without dp_objective. Train one "
         "model per target, and charge them to one xgb_dp.Budget.", PrivacyRefusal),
    Rule("scale_pos_weight needs one label",
         lambda s: s.kind == "binary" and s.labels > 1 and s["scale_pos_weight"] != 1.0,
         "`scale_pos_weight` requires a single label per row, but the matrix has several label "
         "columns. Remove it."),
    *map(_needs_objective, OWN_PARAMETERS),
    Rule("target bounds within the labels of the objective",
         lambda s: s.target is not None and not _allows_labels(s, *s.target),
         "{`dp_target_bounds`} must lie within the label range of {objective}: counts and amounts "
         "at least 0, times above 1e-30, shares from 0 to 1, and labels above -1 for "
         "reg:squaredlogerror."),
    Rule("smallest range of logarithms",
         lambda s: (s["objective"] == "reg:squaredlogerror" and s.target is not None
                    and math.log1p(s.target[1]) - math.log1p(s.target[0]) < _LEAST_LOGARITHMS),
         "{`dp_target_bounds`} is too narrow for reg:squaredlogerror: log(1 + label) varies by "
         "less than 0.01 and is practically linear. Use reg:squarederror, which fits the same "
         "model on this range."),
    Rule("range of huber_slope",
         lambda s: (s["huber_slope"] is not None and not
                    s.half_width / _SLOPES <= s["huber_slope"] <= s.half_width * _SLOPES),
         "`huber_slope` must be between 1e-5 and 1e5 times half the width of dp_target_bounds; got "
         "{huber_slope}. For smaller slopes use reg:absoluteerror, for larger ones "
         "reg:squarederror."),
    Rule("custom objective predicts margins",
         lambda s: s["dp_objective"] is not None and s["objective"] != "reg:squarederror",
         "`objective` is {objective}, but a model with `dp_objective` predicts margins. Remove "
         "`objective`, or set it to 'reg:squarederror'."),
    Rule("custom objective without prediction clip",
         lambda s: s["dp_objective"] is not None and s["dp_gradient_clip"] == "prediction",
         "`dp_gradient_clip`='prediction' is refused with `dp_objective`: the largest norm over "
         "all labels is unknown. Use 'row_weight' or 'clip'."),
)
# fmt: on
