"""The supported objectives, and what each says of its labels, its intercept and its bound.

An objective without a loss of its own takes the gradients that XGBoost computes. Where one is
named, ``plugin_cpp/loss`` computes the pairs of every row from its margins and its label within
``dp_target_bounds``; the model keeps the name of XGBoost's objective, which says what it predicts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .means import MEANS, TIMES
from .quantiles import QUANTILES
from .targets import LABELS, TARGETS

if TYPE_CHECKING:
    from .settings import Settings

__all__ = ["OBJECTIVES", "OWN", "OWN_PARAMETERS", "REFUSED_OBJECTIVES", "Loss", "Objective"]


@dataclass(frozen=True)
class Loss:
    """A loss of ``plugin_cpp/loss``, with what its row bound is by default.

    Attributes:
        name: As the plan calls it.
        plan: Its parameters in the plan, from checked settings.
        gradient_bound: C: the largest norm of a row of weight one, which is then never shortened.
        hessian_weight: r of that norm.
        largest_hessian: That of a row of weight one.
        clip: Default of ``dp_gradient_clip``.
        outputs: Predictions of a row, each with a tree in a round.
        bound_ratio: The bound of a row over that of the loss for which its plans in ``sizes.py``
            were made: by so much less a row is worth.
        of_output: The largest |g| and sqrt(r) h of a row in one of several outputs, in units of C.
    """

    name: str
    plan: Callable[[Settings], Mapping[str, Any]]
    gradient_bound: Callable[[Settings], float]
    hessian_weight: Callable[[Settings], float]
    largest_hessian: float = 1.0
    clip: str = "prediction"
    outputs: Callable[[Settings], int] = lambda s: 1
    bound_ratio: Callable[[Settings], float] = lambda s: 1.0
    of_output: Callable[[Settings], tuple[float, float]] = lambda s: (1.0, 1.0)


@dataclass(frozen=True)
class Objective:
    """What is known of an objective of XGBoost.

    Attributes:
        kind: That of its labels: "binary", "multiclass", or "regression" for numbers within
            ``dp_target_bounds``.
        loss: Its own loss; None where the gradients are those of XGBoost.
        link: What a prediction is of a margin: "identity", "log" for its exponential, or
            "logit" for its share.
        intercept: What is released for it: "mean" of the labels; "means" of each of several
            labels; "capped mean", that of labels and that of labels cut at a cap; "log mean" of
            the first times of intervals; or "quantiles".
        lowest: Least label that the objective knows.
        above: Whether labels must be above that.
        highest: Largest label that the objective knows. With a finite range of labels
            ``dp_target_bounds`` is that by default.
        sizes: Its plans in ``sizes.py``; those of the kind if empty.
        intervals: Whether labels are intervals, ``label_lower_bound`` and ``label_upper_bound``.
        parameters: Parameters of XGBoost that belong to it and to few others.
        several: What it is where a row has several labels; None where it takes one.
    """

    kind: str
    loss: Loss | None = None
    link: str = "identity"
    intercept: str = "mean"
    lowest: float = -math.inf
    above: bool = False
    highest: float = math.inf
    sizes: str = ""
    intervals: bool = False
    parameters: tuple[str, ...] = ()
    several: Objective | None = None


_QUANTILE = Loss(
    "quantile",
    plan=QUANTILES.plan,
    gradient_bound=QUANTILES.gradient_bound,
    hessian_weight=QUANTILES.hessian_weight,
    outputs=lambda s: len(QUANTILES.levels(s)),
    bound_ratio=QUANTILES.bound_ratio,
)

_POWER = Loss(
    "power",
    plan=MEANS.plan,
    gradient_bound=lambda s: float(s["dp_max_weight"] or 1.0),
    hessian_weight=lambda s: 0.25,
)

_SURVIVAL = Loss(
    "survival",
    plan=TIMES.plan,
    gradient_bound=TIMES.gradient_bound,
    hessian_weight=lambda s: 0.25,
    clip="row_weight",
)

_TARGETS = Loss(
    "targets",
    plan=TARGETS.plan,
    gradient_bound=TARGETS.gradient_bound,
    hessian_weight=TARGETS.hessian_weight,
    outputs=lambda s: len(s.targets),
    bound_ratio=TARGETS.bound_ratio,
    of_output=TARGETS.of_output,
)

_LABELS = Loss(
    "labels",
    plan=LABELS.plan,
    gradient_bound=LABELS.gradient_bound,
    hessian_weight=lambda s: 0.25,
    largest_hessian=0.25,
    outputs=lambda s: s.labels,
    bound_ratio=LABELS.bound_ratio,
    of_output=LABELS.of_output,
)

_SHARES = Loss(
    "logistic",
    plan=lambda s: {},
    gradient_bound=lambda s: 0.5,
    hessian_weight=lambda s: 0.25,
    largest_hessian=0.25,
)


def _slopes(s: Settings) -> float:
    """Half the range in slopes of the pseudo-Huber loss."""
    return s.half_width / float(s["huber_slope"])


_PSEUDO_HUBER = Loss(
    "pseudo_huber",
    plan=lambda s: {"slope": s["huber_slope"]},
    gradient_bound=lambda s: _slopes(s) / math.hypot(1.0, _slopes(s)),
    hessian_weight=lambda s: _slopes(s) ** 2 / (1.0 + _slopes(s) ** 2),
)


def _log_clip(s: Settings) -> float:
    """Largest residual on the scale of the logarithm: 0.3 of half the range of labels there."""
    assert s.target is not None
    low, high = s.target
    return 0.15 * (math.log1p(high) - math.log1p(low))


def _log_slope(s: Settings) -> float:
    """Derivative of the logarithm by half a range, at its upper end."""
    assert s.target is not None
    return s.half_width / (1.0 + s.target[1])


_SQUARED_LOG = Loss(
    "squared_log",
    plan=lambda s: {"clip": _log_clip(s)},
    gradient_bound=lambda s: _log_slope(s) * _log_clip(s) * math.hypot(1.0, 0.25),
    hessian_weight=lambda s: (0.25 * _log_clip(s) / _log_slope(s)) ** 2,
)
OWN = Objective(
    "regression",
    Loss(
        "program",
        plan=lambda s: s["dp_objective"].plan(s),
        gradient_bound=lambda s: 1.0,
        hessian_weight=lambda s: 0.25,
        clip="row_weight",
    ),
)
"""An objective of the user's, whose model predicts margins as that of squared error does."""

_OF_LABELS = Objective("binary", _LABELS, intercept="means", lowest=0.0, highest=1.0)

OBJECTIVES: dict[str, Objective] = {
    "binary:logistic": Objective("binary", several=_OF_LABELS),
    "binary:logitraw": Objective("binary", several=_OF_LABELS),
    "reg:squarederror": Objective(
        "regression", several=Objective("regression", _TARGETS, intercept="means")
    ),
    "multi:softprob": Objective("multiclass"),
    "multi:softmax": Objective("multiclass"),
    "reg:logistic": Objective("regression", _SHARES, link="logit", lowest=0.0, highest=1.0),
    "reg:pseudohubererror": Objective(
        "regression", _PSEUDO_HUBER, intercept="quantiles", parameters=("huber_slope",)
    ),
    "reg:squaredlogerror": Objective(
        "regression", _SQUARED_LOG, intercept="quantiles", lowest=-1.0, above=True
    ),
    "reg:absoluteerror": Objective(
        "regression", _QUANTILE, intercept="quantiles", sizes="quantiles"
    ),
    "reg:quantileerror": Objective(
        "regression",
        _QUANTILE,
        intercept="quantiles",
        sizes="quantiles",
        parameters=("quantile_alpha",),
    ),
    "count:poisson": Objective(
        "regression", _POWER, link="log", intercept="capped mean", lowest=0.0, sizes="means"
    ),
    "reg:gamma": Objective(
        "regression",
        _POWER,
        link="log",
        intercept="capped mean",
        lowest=0.0,
        above=True,
        sizes="means",
    ),
    "reg:tweedie": Objective(
        "regression",
        _POWER,
        link="log",
        intercept="capped mean",
        lowest=0.0,
        sizes="means",
        parameters=("tweedie_variance_power",),
    ),
    "survival:aft": Objective(
        "regression",
        _SURVIVAL,
        link="log",
        intercept="log mean",
        lowest=0.0,
        sizes="means",
        intervals=True,
        parameters=("aft_loss_distribution", "aft_loss_distribution_scale"),
    ),
}
"""Supported objectives.

Objectives of one kind of classification have the same gradients: they differ in what is predicted
(binary:logitraw: margins; multi:softmax: the most probable class).
"""

OWN_PARAMETERS = sorted({name for known in OBJECTIVES.values() for name in known.parameters})
"""Parameters of single objectives, which others refuse."""

_COUPLES = "the gradient of a row depends on the other rows, so that one row changes all of them"
REFUSED_OBJECTIVES: dict[str, str] = {
    "survival:cox": _COUPLES,
    "rank:ndcg": _COUPLES,
    "rank:map": _COUPLES,
    "rank:pairwise": _COUPLES,
}
"""Objectives of XGBoost that no bound of a row can make private, with the reason."""
