"""The configuration of one training: resolved parameters, and public values derived from them.

It depends only on the public schema of the data: the number, names and types of the columns.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ..accounting.sensitivity import BALLS
from ..accounting.units import PERSON, ROW, Unit
from ..engine.workers import this_worker

_UNIT = 10.0 / 3.0  # standard deviations of the labels in their unit: residuals are clipped at one


@dataclass(frozen=True)
class ReleasedRange:
    """A released range of labels, in their unit."""

    low: float  # lower end; nearly all labels are in the range
    high: float  # upper end
    spread: float  # approximate standard deviation, above 0


@dataclass(frozen=True, eq=False)
class Config:
    """Configuration of one training; every value is public. ``config["eta"]`` is `eta`.

    :func:`xgb_dp.request.params.resolve` computes the parameters in a fixed order. Reading one
    before its turn is a KeyError.
    """

    given: Mapping[str, Any]  # parameters from the user and the preset, by name
    schema: Any  # public schema of the training data
    rounds: int  # boosting rounds
    continues: bool  # whether the training continues an earlier model and keeps its intercept
    values: Mapping[str, Any]  # resolved parameters by name; read-only once resolved
    one_label: Any = None  # properties of the objective for rows with one label
    features: tuple[Any, ...] = ()  # split candidates of every column
    row_bound: Any = None  # bound of one row, or of all rows of a person
    masking: Any = None  # division of the noise among workers that mask their sums
    released_range: ReleasedRange | None = None  # None before its release
    weight_unit: float = 1.0  # divisor of weights, if it was released

    def __getitem__(self, name: str) -> Any:
        return self.values[name]

    @property
    def epsilon(self) -> float:
        """Target epsilon, in nats; infinite for a training without noise."""
        return float(self["dp_epsilon"])

    @property
    def delta(self) -> float:
        """Target delta, a probability."""
        return float(self["dp_delta"])

    @property
    def may_draw_gaussian(self) -> bool:
        """Whether sums over all rows may have Gaussian noise; dp_leaf_noise decides for leaves."""
        return bool(self["dp_accountant"] != "pure")

    @property
    def privacy_unit(self) -> Unit:
        """The privacy unit of the target, including the group size."""
        column = self["dp_privacy_id"]
        return Unit(
            self.unit, int(self["dp_group_size"]), column if isinstance(column, str) else None
        )

    @property
    def unit_epsilon(self) -> float:
        """Approximate epsilon of one row or person, used by the defaults."""
        return self.epsilon / int(self["dp_group_size"])

    @property
    def noise_free(self) -> bool:
        """Whether the training draws no noise (epsilon is infinite)."""
        return math.isinf(self.epsilon)

    @property
    def unit(self) -> str:
        """The privacy unit by which neighbouring data sets differ: "row" or "person"."""
        return PERSON if self["dp_privacy_id"] else ROW

    @property
    def kind(self) -> str:
        """Kind of the labels: "binary", "regression" or "multiclass"."""
        return str(self.objective.kind)

    @property
    def objective(self) -> Any:
        """Properties of the objective; several labels may have others than one label."""
        one = self.one_label
        return one if one.several is None or self.labels == 1 else one.several

    @property
    def loss(self) -> Any:
        """The plugin's own loss; None for XGBoost's gradients."""
        return self.objective.loss

    @property
    def squared(self) -> bool:
        """Whether the loss is the squared error, so that every row has the same Hessian."""
        return self.kind == "regression" and self.loss is None

    @property
    def classes(self) -> int:
        """Number of classes K; 2 for binary, 0 for regression."""
        if self.kind == "multiclass":
            return int(self["num_class"] or self["dp_classes"] or 0)
        return 2 if self.kind == "binary" else 0

    @property
    def trees_per_round(self) -> int:
        """Trees of one round: K for several classes, quantiles or targets, else 1."""
        if self.loss is not None:
            return int(self.loss.outputs(self))
        return self.classes if self.kind == "multiclass" else 1

    @property
    def labels(self) -> int:
        """Labels per row: one for each range of a list, or for each label column."""
        bounds = self.values.get("dp_target_bounds")  # before its default, there is one range
        if bounds is None or not isinstance(bounds[0], tuple):
            return int(self.schema.labels)
        return len(bounds)

    @property
    def target(self) -> tuple[float, float] | None:
        """Range of the target; None for classes and for several targets."""
        bounds: tuple[float, float] | None = self["dp_target_bounds"]
        return bounds if self.labels == 1 else None

    @property
    def targets(self) -> tuple[tuple[float, float], ...]:
        """Ranges of all targets; empty for classes."""
        bounds = self["dp_target_bounds"]
        if bounds is None or isinstance(bounds[0], tuple):
            return bounds or ()
        return (bounds,) * self.labels

    @property
    def scale(self) -> float:
        """The unit of gradients and leaf weights: the unit of labels for squared error, else 1."""
        return self.half_width if self.squared else 1.0

    @property
    def alpha(self) -> float:
        """L1 penalty on leaf weights, in the unit of gradients."""
        return float(self["alpha"]) / self.scale

    @property
    def label_bounds(self) -> tuple[float, float]:
        """The range for label sums: the declared range of the target, or the released one."""
        if self.released_range is not None:
            return self.released_range.low, self.released_range.high
        assert self.target is not None
        return self.target

    @property
    def half_width(self) -> float:
        """Unit of labels: half the declared range, or less after a release; 1 for classes."""
        if self.target is None:
            return 1.0
        half = (self.target[1] - self.target[0]) / 2
        return (
            half if self.released_range is None else min(_UNIT * self.released_range.spread, half)
        )

    @property
    def intercept(self) -> str:
        """The source of the intercept: "public", "released", "model" or "base_margin"."""
        if self.continues:
            return "model"
        if self["base_score"] is not None:
            return "public"
        return "base_margin" if self["dp_base_margin"] else "released"

    @property
    def needs_label_mean(self) -> bool:
        """Whether the loss needs released label means before the first tree."""
        return self.objective.intercept == "capped mean" and self["base_score"] is None

    @property
    def exposures(self) -> tuple[float, float] | None:
        """Range of the exposures released with the label means; None if rows have no margins."""
        if not (self.needs_label_mean and self["dp_base_margin"] and not self.continues):
            return None
        bounds: tuple[float, float] | None = self["dp_exposure_bounds"]
        return bounds

    @property
    def intercept_kind(self) -> str:
        """The kind of release: the kind of labels, "targets" for several, "cells" for quantiles."""
        kinds = {"quantiles": "cells", "means": "targets"}
        return kinds.get(self.objective.intercept, self.kind)

    @property
    def neutral_base_score(self) -> float | list[float]:
        """An intercept without information: even odds, the middle of the range, equal margins."""
        if self.kind == "multiclass":
            return [0.0] * self.classes
        if self.kind == "regression" and self.targets:
            middles = [(low + high) / 2 for low, high in self.targets]
            if len(middles) == 1:
                middles *= self.trees_per_round
            return middles if len(middles) > 1 else middles[0]
        even = 0.5 if self["objective"] == "binary:logistic" else 0.0
        return even if self.labels == 1 else [even] * self.labels

    @property
    def private_features(self) -> int:
        """Number of features with privately released candidates.

        With a start from columns, this is at most the number of features that trees may use. The
        other features have one public candidate, which no tree uses.
        """
        private = sum(f.kind == "private" for f in self.features)
        return min(private, self["dp_features_per_tree"]) if self.starts_from_columns else private

    @property
    def spread_leaves(self) -> bool:
        """Whether a person may contribute more with rows in several leaves than in one leaf."""
        return bool(
            self.unit == "person"
            and self["dp_leaf_noise"] == "gaussian"
            and self["dp_split"] in ("exponential", "random")
            and (self.trees_per_round == 1 or self["dp_class_trees"] == "joint")
        )

    @property
    def noisy_sums(self) -> bool:
        """Whether splits and leaves use the same noisy sums."""
        return self["dp_split"] in ("histogram", "partial")

    @property
    def starts_from_columns(self) -> bool:
        """Whether the first trees are computed from released sums of cells by column."""
        return bool(self["dp_start"] == "columns")

    @property
    def sampling_num(self) -> int:
        """A round reads each row with probability ``sampling_num / 2**32``."""
        return int(self["subsample"] * 2**32)

    @property
    def counts_weights(self) -> bool:
        """Whether the unit of weights is released."""
        return bool(self["dp_weight_unit"] == "released")

    @property
    def max_weight(self) -> float:
        """The largest weight of a row in the unit of weights; 1 by default."""
        return 1.0 if self.counts_weights else float(self["dp_max_weight"] or 1.0)

    @property
    def rows_count_alike(self) -> bool:
        """Whether every row has the same Hessian, so that Hessian sums count rows."""
        equal_hessians = self.squared or self["dp_leaf"] == "gradient"
        return (
            equal_hessians and self.trees_per_round == 1 and self["dp_gradient_clip"] not in BALLS
        )

    @property
    def unit_weights(self) -> str:
        """The setting whose proof requires unit weights, or an empty string."""
        if self["dp_score"] == "gain":
            return "dp_score='gain'"
        return "dp_leaf_noise='output'" if self["dp_leaf_noise"] == "output" else ""

    @property
    def prior_max(self) -> float:
        """Largest prior variance of a leaf weight."""
        several = self.kind == "regression" and self.objective.intercept == "means"
        return 0.25 if self.squared or several else 1.0

    @cached_property
    def workers(self) -> int:
        """Number of workers in this training; 1 on one machine."""
        return this_worker()[1]
