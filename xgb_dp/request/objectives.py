"""The supported objectives: their labels, their intercept, their losses and the bound of a row.

Most objectives take the gradients that XGBoost computes. For the others ``plugin_cpp/loss``
computes the pair of every row from its margins and its label within ``dp_target_bounds``; the model
keeps the name of XGBoost's objective, which says what it predicts.

Proof: docs/proofs/sensitivity.md
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from typing import Any

from ..parameters.parameter import Config


def _weight(s: Config) -> float:
    return s.max_weight


class Loss:
    """A loss of the plugin's own; everything follows from checked settings."""

    name: str  # as the plan calls it
    clip = "prediction"  # default of ``dp_gradient_clip``
    largest_hessian = 1.0  # that of a row of weight one

    def plan(self, s: Config) -> dict[str, Any]:
        """Its parameters in the plan."""
        return {}

    def gradient_bound(self, s: Config) -> float:
        """C: the largest norm of a row of weight one, which is then never shortened."""
        raise NotImplementedError

    def hessian_weight(self, s: Config) -> float:
        """r of that norm."""
        return 0.25

    def outputs(self, s: Config) -> int:
        """Predictions of a row, each with a tree in a round."""
        return 1

    def bound_ratio(self, s: Config) -> float:
        """The bound of a row over that of the loss for which ``default_plans.py`` has plans."""
        return 1.0

    def of_output(self, s: Config) -> tuple[float, float]:
        """The largest |g| and sqrt(r) h of a row in one of several outputs, in units of C."""
        return 1.0, 1.0


_MEDIAN = 0.5
# Width of the kernel of a median, in deviations of the labels. It has no bias where labels lie
# evenly around their median, and many rows within it make a steady Hessian.
_CENTRE_WIDTH = 0.25
# Widths for other levels in the first and the last of their rounds.
_FIRST, _LAST = 0.5, 0.1
# Share of the rounds that fit the median, and how many the quantiles need at least to leave it.
_CENTRE_SHARE, _LEAST_OWN = 0.6, 12


def _one_sided(alphas: tuple[float, ...]) -> float:
    """The norm of a row on one side of all levels, the worse one."""
    ends = alphas, [1 - a for a in alphas]
    return math.sqrt(max(math.fsum(a * a for a in end) for end in ends))


class _Quantiles(Loss):
    """The quantile loss, smoothed by a kernel."""

    name = "quantile"

    def levels(self, s: Config) -> tuple[float, ...]:
        """Levels of all outputs; the median where none are given."""
        alphas: tuple[float, ...] = s["quantile_alpha"] or (_MEDIAN,)
        return alphas

    def outputs(self, s: Config) -> int:
        return len(self.levels(s))

    def _has_centre(self, s: Config) -> bool:
        """Whether the first rounds may fit the median: all outputs start there and share splits."""
        return (
            self.levels(s) != (_MEDIAN,)
            and s.intercept in ("public", "released")
            and not isinstance(s["base_score"], list)
            and s["dp_leaf"] == "newton"
            and (s.trees_per_round == 1 or s["dp_class_trees"] == "joint")
        )

    def _centre_rounds(self, s: Config) -> int:
        """How many rounds fit the median, whatever the levels are."""
        if not self._has_centre(s):
            return 0
        return max(0, min(round(_CENTRE_SHARE * s.rounds), s.rounds - _LEAST_OWN))

    def starts(self, s: Config) -> tuple[float, ...]:
        """The levels of the intercepts of all outputs."""
        alphas = self.levels(s)
        return (_MEDIAN,) * len(alphas) if self._centre_rounds(s) else alphas

    def gradient_bound(self, s: Config) -> float:
        """The norm of a row whose label lies at the worse end, all quantiles being in order."""
        return _one_sided(self.levels(s)) * _weight(s)

    def hessian_weight(self, s: Config) -> float:
        """The largest r with which a row near its quantile has no larger norm than one far away."""
        alphas = (*self.levels(s), *([_MEDIAN] if self._has_centre(s) else []))
        return 2.0 / 3.0 * min(max(a, 1.0 - a) for a in alphas)

    def bound_ratio(self, s: Config) -> float:
        return _one_sided(self.levels(s)) / _one_sided((_MEDIAN,))

    def plan(self, s: Config) -> dict[str, Any]:
        """The widths are those of labels that fill the declared range."""
        return {
            "levels": list(self.levels(s)),
            "centre_rounds": self._centre_rounds(s),
            # What brings a row at the median to the bound of all levels together.
            "centre_scale": self.bound_ratio(s),
            **self.widths(s, s.half_width / 2),
        }

    def widths(self, s: Config, spread: float) -> dict[str, float]:
        """Widths of the kernel for labels of some deviation, in the unit of the target."""
        others = max(s.rounds - self._centre_rounds(s) - 1, 1)
        median = self.levels(s) == (_MEDIAN,)
        first, last = (_CENTRE_WIDTH, _CENTRE_WIDTH) if median else (_FIRST, _LAST)
        return {
            "centre_width": _CENTRE_WIDTH * spread,
            "first_width": first * spread,
            "last_width": last * spread,
            "width_decay": (last / first) ** (1.0 / others),
        }


# Labels are cut at so many means: of few and large amounts, how many there are says most of what
# can be told of their sum.
_CAP = 2.0
# Of counts not below one event.
_LEAST_COUNT = 1.0

POWERS = {"count:poisson": 1.0, "reg:gamma": 2.0}
"""The power of the mean that is the variance; reg:tweedie has a parameter for it."""


@dataclass(frozen=True)
class Measured:
    """What a loss of means takes from the first releases; public numbers where there are none."""

    mean: float  # of labels within the declared range, above 0
    cap: float  # where labels are cut
    capped_mean: float  # of labels after the cut, above 0
    # logarithm of what a margin of 0 predicts, where rows bring their own margins
    start: float = 0.0

    def to_plan(self) -> dict[str, float]:
        """As the plan has it."""
        return asdict(self)


class _MeanLoss(Loss):
    """Means on the log scale.

    The mean of the labels is released first, and after it the mean of labels that are cut at a few
    means. Gradients are measured in that cap, so that a row counts at most one, however far the
    declared range reaches; the mean itself is kept, because labels after the cut are set beside
    their own mean.
    """

    name = "power"

    def gradient_bound(self, s: Config) -> float:
        return _weight(s)

    def cap(self, s: Config, mean: float) -> float:
        """Where labels are cut, of a mean that was released or is public."""
        assert s.target is not None
        least = _LEAST_COUNT if s["objective"] == "count:poisson" else 0.0
        low, high = s.label_bounds
        # Above the lower end of the range, which is the mean where it is all noise.
        return min(max(_CAP * mean, least, low + 1e-3 * (high - low)), high)

    def plan(self, s: Config) -> dict[str, Any]:
        """What holds before anything is released, and where the intercept is public."""
        assert s.target is not None
        score = s["base_score"]
        mean = (s.target[0] + s.target[1]) / 2 if score is None else float(score)
        start = math.log(mean) if s["dp_base_margin"] and score is not None else 0.0
        power = POWERS.get(s["objective"]) or float(s["tweedie_variance_power"])
        return {"power": power, **Measured(mean, self.cap(s, mean), mean, start).to_plan()}


class _SurvivalLoss(Loss):
    """Times on the log scale."""

    name = "survival"
    clip = "row_weight"

    def gradient_bound(self, s: Config) -> float:
        """The largest norm of a logistic error; of others, which have none, two scales."""
        return (1.0 if s["aft_loss_distribution"] == "logistic" else 2.0) * _weight(s)

    def plan(self, s: Config) -> dict[str, Any]:
        distribution = s["aft_loss_distribution"]
        return {"distribution": distribution, "scale": float(s["aft_loss_distribution_scale"])}


CLIPS = (1e-9, 1e3)
"""Clips that the trainer takes, in half widths of the range of a target."""

# Largest residual, in half widths of its range: that of a single target by default.
_CLIP = 0.3
# What the Hessian of a target counts in the norm of a row, in clipped residuals.
_HESSIAN = 0.25
# Smallest bound of a single target that the trainer takes. A larger one is enforced as well.
_LEAST = 1e-9


class _Targets(Loss):
    """Squared error of several targets.

    Every target has residuals in half widths of its own range, clipped at one number. So a row has
    a largest norm over all targets, which follows from how many there are.
    """

    name = "targets"

    def outputs(self, s: Config) -> int:
        return len(s.targets)

    def gradient_bound(self, s: Config) -> float:
        """The norm of a row that is clipped in all targets."""
        return self._of_clip(s) * _CLIP

    def hessian_weight(self, s: Config) -> float:
        """The Hessian of a target counts a quarter of its clip."""
        return min(max((_HESSIAN * self.residual(s)) ** 2, 1e-12), 1e6)

    def bound_ratio(self, s: Config) -> float:
        return math.sqrt(len(s.targets))

    def residual(self, s: Config) -> float:
        """Largest residual of a target, in half widths: what the bound of a row leaves to each."""
        return float(s["dp_gradient_bound"]) / self._of_clip(s)

    def of_output(self, s: Config) -> tuple[float, float]:
        weight, largest = _weight(s), s["dp_gradient_bound"]
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
        """The norm of a row over the clip of its targets."""
        return math.sqrt(len(s.targets)) * math.hypot(1.0, _HESSIAN) * _weight(s)


class _Shares(Loss):
    """Logistic loss of shares."""

    name = "logistic"
    largest_hessian = 0.25

    def gradient_bound(self, s: Config) -> float:
        return 0.5


class _LabelsLoss(_Shares):
    """Logistic loss of several labels of 0 and 1. Their norm follows from the predictions."""

    name = "labels"

    def outputs(self, s: Config) -> int:
        return s.labels

    def gradient_bound(self, s: Config) -> float:
        return 0.5 * self.bound_ratio(s)

    def bound_ratio(self, s: Config) -> float:
        return math.sqrt(s.labels)

    def of_output(self, s: Config) -> tuple[float, float]:
        """What a row scaled to C has in one label at most: sure of it, and unsure of all others.

        A gradient is at most 1 and those of the other labels at least 1/2; a Hessian is at most
        1/4, where all gradients are at least 1/2. With dp_leaf="gradient" all Hessians are 1.
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
        """Half the range in slopes."""
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
        """Derivative of the logarithm by half a range, at its upper end."""
        assert s.target is not None
        return s.half_width / (1.0 + s.target[1])


class _Own(Loss):
    """A loss of the user's; see ``program.py``."""

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
    sizes: str = ""  # its plans in ``default_plans.py``; those of the kind if empty
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
