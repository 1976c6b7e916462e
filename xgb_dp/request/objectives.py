"""The supported objectives, and what each says of its labels, its intercept and its bound.

An objective without a loss of its own takes the gradients that XGBoost computes. Where one is
named, ``plugin_cpp/loss`` computes the pairs of every row from its margins and its label within
``dp_target_bounds``; the model keeps the name of XGBoost's objective, which says what it predicts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from .losses import (
    LABELS,
    MEANS,
    OWN_LOSS,
    PSEUDO_HUBER,
    QUANTILES,
    SHARES,
    SQUARED_LOG,
    TARGETS,
    TIMES,
    Loss,
)


@dataclass(frozen=True)
class Objective:
    """What is known of an objective of XGBoost."""

    # that of its labels: "binary", "multiclass", or "regression" for numbers within
    # ``dp_target_bounds``
    kind: str
    loss: Loss | None = None  # its own loss; None where the gradients are those of XGBoost
    # what a prediction is of a margin: "identity", "log" for its exponential, or "logit" for its
    # share
    link: str = "identity"
    # what is released for it: "mean" of the labels; "means" of each of several labels; "capped
    # mean", that of labels and that of labels cut at a cap; "log mean" of the first times of
    # intervals; or "quantiles"
    intercept: str = "mean"
    lowest: float = -math.inf  # least label that the objective knows
    above: bool = False  # whether labels must be above that
    # largest label that the objective knows. With a finite range of labels ``dp_target_bounds`` is
    # that by default
    highest: float = math.inf
    sizes: str = ""  # its plans in ``sizes.py``; those of the kind if empty
    # whether labels are intervals, ``label_lower_bound`` and ``label_upper_bound``
    intervals: bool = False
    parameters: tuple[str, ...] = ()  # parameters of XGBoost that belong to it and to few others
    # what it is where a row has several labels; None where it takes one
    several: Objective | None = None

    @property
    def has_unit(self) -> bool:
        """Whether the library measures its gradients, or sums its labels, in the unit of labels."""
        return self.kind == "regression" and self.link != "logit" and self.loss is not OWN_LOSS


OWN = Objective("regression", OWN_LOSS)
"""An objective of the user's, whose model predicts margins as that of squared error does."""

_BINARY = Objective(
    "binary", several=Objective("binary", LABELS, intercept="means", lowest=0.0, highest=1.0)
)
_QUANTILE = Objective("regression", QUANTILES, intercept="quantiles", sizes="quantiles")
_MEAN = Objective(
    "regression", MEANS, link="log", intercept="capped mean", lowest=0.0, sizes="means"
)

OBJECTIVES: dict[str, Objective] = {
    "binary:logistic": _BINARY,
    "binary:logitraw": _BINARY,
    "reg:squarederror": Objective(
        "regression", several=Objective("regression", TARGETS, intercept="means")
    ),
    "multi:softprob": Objective("multiclass"),
    "multi:softmax": Objective("multiclass"),
    "reg:logistic": Objective("regression", SHARES, link="logit", lowest=0.0, highest=1.0),
    "reg:pseudohubererror": Objective(
        "regression", PSEUDO_HUBER, intercept="quantiles", parameters=("huber_slope",)
    ),
    "reg:squaredlogerror": Objective(
        "regression", SQUARED_LOG, intercept="quantiles", lowest=-1.0, above=True
    ),
    "reg:absoluteerror": _QUANTILE,
    "reg:quantileerror": replace(_QUANTILE, parameters=("quantile_alpha",)),
    "count:poisson": _MEAN,
    "reg:gamma": replace(_MEAN, above=True),
    "reg:tweedie": replace(_MEAN, parameters=("tweedie_variance_power",)),
    "survival:aft": replace(
        _MEAN,
        loss=TIMES,
        intercept="log mean",
        intervals=True,
        parameters=("aft_loss_distribution", "aft_loss_distribution_scale"),
    ),
}
"""Supported objectives.

Objectives of one kind of classification have the same gradients: they differ in what is predicted
(binary:logitraw: margins; multi:softmax: the most probable class).
"""

OWN_PARAMETERS = sorted({name for one in OBJECTIVES.values() for name in one.parameters})
"""Parameters of single objectives, which others refuse."""

_COUPLES = "the gradient of a row depends on the other rows, so that one row changes all of them"
REFUSED_OBJECTIVES = dict.fromkeys(
    ("survival:cox", "rank:ndcg", "rank:map", "rank:pairwise"), _COUPLES
)
"""Objectives of XGBoost that no bound of a row can make private, with the reason."""
