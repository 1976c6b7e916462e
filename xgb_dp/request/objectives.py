"""The supported objectives: labels, intercepts, losses and the bound of a row.

Most objectives use XGBoost's gradients. For the others ``plugin_cpp/loss`` computes the gradient
and Hessian of every row from its margins and its label within ``dp_target_bounds``. The model keeps
the name of XGBoost's objective, which defines its predictions.

Proof: docs/proofs/sensitivity.md
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from typing import Any

from ..parameters.config import Config


class Loss:
    """A loss that the plugin computes. All its values are derived from checked settings."""

    name: str  # name in the plan
    clip = "prediction"  # default of ``dp_gradient_clip``
    largest_hessian = 1.0  # for a row of weight one

    def plan(self, s: Config) -> dict[str, Any]:
        """Parameters of the loss in the plan."""
        return {}

    def gradient_bound(self, s: Config) -> float:
        """C: the largest norm of a row of weight one, which clipping never changes."""
        raise NotImplementedError

    def hessian_weight(self, s: Config) -> float:
        """The weight r of the Hessian in that norm."""
        return 0.25

    def outputs(self, s: Config) -> int:
        """Predictions of a row, each with one tree per round."""
        return 1

    def bound_ratio(self, s: Config) -> float:
        """The bound of a row, relative to the loss for which ``default_plans.py`` has plans."""
        return 1.0

    def of_output(self, s: Config) -> tuple[float, float]:
        """The largest |g| and sqrt(r) h of a row in one of several outputs, in units of C."""
        return 1.0, 1.0


_MEDIAN = 0.5
# Width of the median's kernel, in standard deviations of the labels. It adds no bias if labels are
# symmetric around their median, and it covers enough rows for a stable Hessian.
_CENTRE_WIDTH = 0.25
# Widths for other levels in their first and last round.
_FIRST, _LAST = 0.5, 0.1
# Share of the rounds that fit the median, and the least number of rounds for the quantiles.
_CENTRE_SHARE, _LEAST_OWN = 0.6, 12


def _one_sided(alphas: tuple[float, ...]) -> float:
    """Norm of a row whose label is above all quantiles or below all, whichever is larger."""
    ends = alphas, [1 - a for a in alphas]
    return math.sqrt(max(math.fsum(a * a for a in end) for end in ends))


class _Quantiles(Loss):
    """The quantile loss, smoothed by a kernel."""

    name = "quantile"

    def levels(self, s: Config) -> tuple[float, ...]:
        """Levels of all outputs; the median by default."""
        alphas: tuple[float, ...] = s["quantile_alpha"] or (_MEDIAN,)
        return alphas

    def outputs(self, s: Config) -> int:
        return len(self.levels(s))

    def _has_centre(self, s: Config) -> bool:
        """Whether the first rounds may fit the median, as a common start with shared splits."""
        return (
            self.levels(s) != (_MEDIAN,)
            and s.intercept in ("public", "released")
            and not isinstance(s["base_score"], list)
            and s["dp_leaf"] == "newton"
            and (s.trees_per_round == 1 or s["dp_class_trees"] == "joint")
        )

    def _centre_rounds(self, s: Config) -> int:
        """Number of initial rounds in which every output fits the median, not its own level."""
        if not self._has_centre(s):
            return 0
        return max(0, min(round(_CENTRE_SHARE * s.rounds), s.rounds - _LEAST_OWN))

    def starts(self, s: Config) -> tuple[float, ...]:
        """The quantile level of each output's intercept."""
        alphas = self.levels(s)
        return (_MEDIAN,) * len(alphas) if self._centre_rounds(s) else alphas

    def gradient_bound(self, s: Config) -> float:
        """Norm of a row whose label is at the worse end, for predicted quantiles in order."""
        return _one_sided(self.levels(s)) * s.max_weight

    def hessian_weight(self, s: Config) -> float:
        """The largest r for which a row near its quantile has no larger norm than a distant row."""
        alphas = (*self.levels(s), *([_MEDIAN] if self._has_centre(s) else []))
        return 2.0 / 3.0 * min(max(a, 1.0 - a) for a in alphas)

    def bound_ratio(self, s: Config) -> float:
        return _one_sided(self.levels(s)) / _one_sided((_MEDIAN,))

    def plan(self, s: Config) -> dict[str, Any]:
        """Parameters in the plan; the widths assume labels that fill the declared range."""
        return {
            "levels": list(self.levels(s)),
            "centre_rounds": self._centre_rounds(s),
            # Scales a row at the median to the joint bound of all levels.
            "centre_scale": self.bound_ratio(s),
            **self.widths(s, s.half_width / 2),
        }

    def widths(self, s: Config, spread: float) -> dict[str, float]:
        """Smoothing widths in the unit of the labels, for labels of standard deviation `spread`."""
        others = max(s.rounds - self._centre_rounds(s) - 1, 1)
        median = self.levels(s) == (_MEDIAN,)
        first, last = (_CENTRE_WIDTH, _CENTRE_WIDTH) if median else (_FIRST, _LAST)
        return {
            "centre_width": _CENTRE_WIDTH * spread,
            "first_width": first * spread,
            "last_width": last * spread,
            "width_decay": (last / first) ** (1.0 / others),
        }


# Cap of labels, in multiples of the mean. Most of the learnable information about the sum of rare
# large amounts is in their number.
_CAP = 2.0
# Smallest cap of counts, in events.
_LEAST_COUNT = 1.0

POWERS = {"count:poisson": 1.0, "reg:gamma": 2.0}
"""The power of the mean in the variance; reg:tweedie has a parameter for it."""


@dataclass(frozen=True)
class Measured:
    """Label means for a loss of means: from the first releases, or public values."""

    mean: float  # mean of labels within the declared range, above 0
    cap: float  # cap of labels
    capped_mean: float  # mean of capped labels, above 0
    # logarithm of the prediction at margin 0, if rows have their own base margins
    start: float = 0.0

    def to_plan(self) -> dict[str, float]:
        """The entry in the plan."""
        return asdict(self)


class _MeanLoss(Loss):
    """Losses of means on the log scale.

    The mean of the labels is released first, and then the mean of labels capped at a multiple of
    it. The cap is the unit of gradients, so a row contributes at most 1 even if the declared range
    is very wide. Capped labels are divided by their own mean, so the loss preserves the overall
    mean.
    """

    name = "power"

    def gradient_bound(self, s: Config) -> float:
        return s.max_weight

    def cap(self, s: Config, mean: float) -> float:
        """Compute the cap on labels from a released or public mean."""
        assert s.target is not None
        least = _LEAST_COUNT if s["objective"] == "count:poisson" else 0.0
        low, high = s.label_bounds
        # Above the lower end of the range, to which a mean of pure noise is clipped.
        return min(max(_CAP * mean, least, low + 1e-3 * (high - low)), high)

    def plan(self, s: Config) -> dict[str, Any]:
        """Parameters before any release, which a public intercept keeps."""
        assert s.target is not None
        score = s["base_score"]
        mean = (s.target[0] + s.target[1]) / 2 if score is None else float(score)
        start = math.log(mean) if s["dp_base_margin"] and score is not None else 0.0
        power = POWERS.get(s["objective"]) or float(s["tweedie_variance_power"])
        return {"power": power, **Measured(mean, self.cap(s, mean), mean, start).to_plan()}


class _SurvivalLoss(Loss):
    """Accelerated failure times, on the log scale."""

    name = "survival"
    clip = "row_weight"

    def gradient_bound(self, s: Config) -> float:
        """The largest norm for logistic errors; 2 for errors with unbounded norms."""
        return (1.0 if s["aft_loss_distribution"] == "logistic" else 2.0) * s.max_weight

    def plan(self, s: Config) -> dict[str, Any]:
        distribution = s["aft_loss_distribution"]
        return {"distribution": distribution, "scale": float(s["aft_loss_distribution_scale"])}


CLIPS = (1e-9, 1e3)
"""Clips that the trainer accepts, in half widths of the range of a target."""

# Default clip of residuals, in half widths of the range, and the sum of steps that it is for.
_CLIP, _STEPS = 0.3, 25.0
# Hessian of a target in the norm of a row, in clipped residuals.
_HESSIAN = 0.25
# Smallest bound of a single target that the trainer accepts. It enforces a raised bound, too.
_LEAST = 1e-9


def residual_clip(s: Config) -> float:
    """Default clip of the residuals of a target: larger if few or small steps must reach them."""
    if s.continues:  # the residuals are those of the earlier model
        return _CLIP
    steps = s["eta"] * 0.5 * (1.0 + s["dp_eta_warmup"]) * int(s.rounds)
    return min(_CLIP * math.sqrt(max(1.0, _STEPS / max(steps, 1e-6))), 1.0)


class _Targets(Loss):
    """Squared error of several targets.

    The residuals of each target are measured in half widths of its own range and clipped to the
    same limit. The largest norm of a row therefore follows from the number of targets.
    """

    name = "targets"

    def outputs(self, s: Config) -> int:
        return len(s.targets)

    def gradient_bound(self, s: Config) -> float:
        """The norm of a row that is clipped in all targets."""
        return self._of_clip(s) * residual_clip(s)

    def hessian_weight(self, s: Config) -> float:
        """The Hessian of a target counts as a quarter of its clipping limit."""
        return min(max((_HESSIAN * self.residual(s)) ** 2, 1e-12), 1e6)

    def bound_ratio(self, s: Config) -> float:
        return math.sqrt(len(s.targets))

    def residual(self, s: Config) -> float:
        """Clipping limit of each target's residual, in half widths, that keeps the row's bound."""
        return float(s["dp_gradient_bound"]) / self._of_clip(s)

    def of_output(self, s: Config) -> tuple[float, float]:
        weight, largest = s.max_weight, s["dp_gradient_bound"]
        gradient, hessian = self.residual(s), math.sqrt(s["dp_hessian_weight"])
        return (
            min(weight * gradient / largest, 1.0),
            min(max(weight * hessian / largest, _LEAST), 1.0),
        )

    def plan(self, s: Config) -> dict[str, Any]:
        lower, upper = zip(*s.targets, strict=True)
        return {"clip": self.residual(s), "lower": list(lower), "upper": list(upper)}

    @staticmethod
    def _of_clip(s: Config) -> float:
        """The norm of a row that is clipped in all targets, in units of the clipping limit."""
        return math.sqrt(len(s.targets)) * math.hypot(1.0, _HESSIAN) * s.max_weight


class _Shares(Loss):
    """Logistic loss of shares in [0, 1]."""

    name = "logistic"
    largest_hessian = 0.25

    def gradient_bound(self, s: Config) -> float:
        return 0.5


class _LabelsLoss(_Shares):
    """Logistic loss of several 0/1 labels; rows are clipped by norms that ignore the labels."""

    name = "labels"

    def outputs(self, s: Config) -> int:
        return s.labels

    def gradient_bound(self, s: Config) -> float:
        return 0.5 * self.bound_ratio(s)

    def bound_ratio(self, s: Config) -> float:
        return math.sqrt(s.labels)

    def of_output(self, s: Config) -> tuple[float, float]:
        """The largest entries of one label in a row scaled to norm C.

        The gradient is largest if it is 1 and the gradients of all other labels have their minimum
        of 1/2. The Hessian is largest if it is 1/4 and all gradients are 1/2. With
        dp_leaf="gradient" all Hessians are 1.
        """
        k, r = s.labels, s["dp_hessian_weight"]
        most, units = (1.0, k * r) if s["dp_leaf"] == "gradient" else (0.25, 0.0)
        gradient = 1.0 / math.sqrt(1.0 + (k - 1) / 4.0 + units)
        return gradient, min(most * math.sqrt(r / (k / 4.0 + units)), 1.0)

    def plan(self, s: Config) -> dict[str, Any]:
        return {"count": s.labels}


class _PseudoHuber(Loss):
    """Pseudo-Huber loss."""

    name = "pseudo_huber"

    def plan(self, s: Config) -> dict[str, Any]:
        return {"slope": s["huber_slope"]}

    def gradient_bound(self, s: Config) -> float:
        return self._slopes(s) / math.hypot(1.0, self._slopes(s))

    def hessian_weight(self, s: Config) -> float:
        return self._slopes(s) ** 2 / (1.0 + self._slopes(s) ** 2)

    @staticmethod
    def _slopes(s: Config) -> float:
        """Half the range, in slopes."""
        return s.half_width / float(s["huber_slope"])


class _SquaredLog(Loss):
    """Squared error of logarithms."""

    name = "squared_log"

    def plan(self, s: Config) -> dict[str, Any]:
        return {"clip": self._clip(s)}

    def gradient_bound(self, s: Config) -> float:
        return self._slope(s) * self._clip(s) * math.hypot(1.0, 0.25)

    def hessian_weight(self, s: Config) -> float:
        return (0.25 * self._clip(s) / self._slope(s)) ** 2

    @staticmethod
    def _clip(s: Config) -> float:
        """Largest residual of a logarithm: 0.3 of half the range of labels on that scale."""
        assert s.target is not None
        low, high = s.target
        return 0.15 * (math.log1p(high) - math.log1p(low))

    @staticmethod
    def _slope(s: Config) -> float:
        """Derivative of the logarithm at the upper end of the range, per half range."""
        assert s.target is not None
        return s.half_width / (1.0 + s.target[1])


class _Own(Loss):
    """A user-defined loss; see ``program.py``."""

    name = "program"
    clip = "row_weight"

    def gradient_bound(self, s: Config) -> float:
        return 1.0

    def plan(self, s: Config) -> dict[str, Any]:
        return dict(s["dp_objective"].plan(s))


QUANTILES, MEANS, TIMES, TARGETS = _Quantiles(), _MeanLoss(), _SurvivalLoss(), _Targets()
SHARES, LABELS, PSEUDO_HUBER, SQUARED_LOG = _Shares(), _LabelsLoss(), _PseudoHuber(), _SquaredLog()
OWN_LOSS = _Own()


@dataclass(frozen=True)
class Objective:
    """Properties of an XGBoost objective."""

    # kind of labels: "binary", "multiclass", or "regression" for numbers within
    # ``dp_target_bounds``
    kind: str
    loss: Loss | None = None  # the plugin's loss; None for XGBoost's gradients
    # prediction from a margin: "identity", "log" for its exponential, or "logit" for its share
    link: str = "identity"
    # released values for the intercept: "mean" of the labels; "means" of each of several labels;
    # "capped mean", the mean of labels and the mean of capped labels; "log mean" of the first times
    # of intervals; or "quantiles"
    intercept: str = "mean"
    lowest: float = -math.inf  # smallest label of the objective
    above: bool = False  # whether labels must exceed `lowest`
    # largest label of the objective. A finite label range is the default of ``dp_target_bounds``
    highest: float = math.inf
    sizes: str = ""  # name of its plans in ``default_plans.py``; by default the kind
    # whether labels are intervals, ``label_lower_bound`` and ``label_upper_bound``
    intervals: bool = False
    parameters: tuple[str, ...] = ()  # XGBoost parameters that few other objectives have
    # the objective for rows with several labels; None if it takes only one
    several: Objective | None = None

    @property
    def has_unit(self) -> bool:
        """Whether gradients or label sums are measured in the unit of the labels."""
        return self.kind == "regression" and self.link != "logit" and self.loss is not OWN_LOSS


OWN = Objective("regression", OWN_LOSS)
"""An objective from the user; its model predicts margins, as for squared error."""

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

The binary objectives have the same gradients, and so do the multi-class objectives. They differ in
their predictions (binary:logitraw: margins; multi:softmax: the most probable class).
"""

OWN_PARAMETERS = sorted({name for one in OBJECTIVES.values() for name in one.parameters})
"""Parameters of single objectives; other objectives refuse them."""

_COUPLES = "the gradient of a row depends on other rows, so one row may change all gradients"
REFUSED_OBJECTIVES = dict.fromkeys(
    ("survival:cox", "rank:ndcg", "rank:map", "rank:pairwise"), _COUPLES
)
"""XGBoost objectives without a bound per row, with the reason."""
