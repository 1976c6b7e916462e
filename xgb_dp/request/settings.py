"""The user's checked parameters, with all private defaults.

This module reads only the public schema of the data: the number, names and types of the columns.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from ..accounting.sensitivity import BALLS, RowBound
from ..accounting.units import PERSON, ROW, Unit
from ..engine.workers import this_worker
from ..errors import PrivacyParameterError
from ..presets import PRESETS
from .bound import row_bound
from .masking import Masking
from .objectives import OBJECTIVES, OWN, Loss, Objective
from .params import PARAMETERS, RULES
from .schema import Feature, Schema, resolve_features

_UNIT = 10.0 / 3.0  # standard deviations of the labels in their unit: residuals are clipped at one


@dataclass(frozen=True)
class ReleasedRange:
    """A released range of labels, in their unit."""

    low: float  # lower end; nearly all labels are in the range
    high: float  # upper end
    spread: float  # approximate standard deviation, above 0


@dataclass(frozen=True, eq=False)
class Settings:
    """Settings of one training; every value is public. ``settings["eta"]`` is the value of `eta`.

    A parameter is parsed on first access, because defaults may depend on other parameters.
    :func:`resolve` parses and checks all parameters.
    """

    given: Mapping[str, Any]  # parameters from the user and the preset, by name
    schema: Schema  # public schema of the training data
    rounds: int  # boosting rounds
    continues: bool  # whether the training continues an earlier model and keeps its intercept
    _values: dict[str, Any] = field(default_factory=dict, repr=False)
    released_range: ReleasedRange | None = None  # None before its release
    weight_unit: float = 1.0  # divisor of weights, if it was released

    def __getitem__(self, name: str) -> Any:
        if name not in self._values:
            self._values[name] = PARAMETERS[name].value(self)
        return self._values[name]

    def changed(self, changes: Mapping[str, Any], rounds: int | None = None) -> Settings:
        """A checked copy with other values of some parameters."""
        count = self.rounds if rounds is None else rounds
        return resolve({**self.given, **changes}, self.schema, count, self.continues)

    def with_released_range(self, released: ReleasedRange | None, weight_unit: float) -> Settings:
        """A copy with a released label range and weight unit. The privacy claim is unchanged."""
        open_ = {"huber_slope"} - set(self.given)
        values = {name: value for name, value in self._values.items() if name not in open_}
        return replace(self, _values=values, released_range=released, weight_unit=weight_unit)

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
        return self.objective.kind

    @property
    def objective(self) -> Objective:
        """Properties of the objective."""
        one = OBJECTIVES[self["objective"]] if self["dp_objective"] is None else OWN
        return one if one.several is None or self.labels == 1 else one.several

    @property
    def loss(self) -> Loss | None:
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
            return self.loss.outputs(self)
        return self.classes if self.kind == "multiclass" else 1

    @property
    def labels(self) -> int:
        """Labels per row: one for each range of a list, or for each label column."""
        bounds = self["dp_target_bounds"] if "dp_target_bounds" in self.given else None
        if bounds is None or not isinstance(bounds[0], tuple):
            return self.schema.labels
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
        assert self.target is not None
        return (
            self.target
            if self.released_range is None
            else (self.released_range.low, self.released_range.high)
        )

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

    @cached_property
    def features(self) -> tuple[Feature, ...]:
        """Candidates of every column."""
        return resolve_features(self)

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
    def row_bound(self) -> RowBound:
        """The bound of one row."""
        return row_bound(self)

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

    @property
    def masking(self) -> Masking:
        """Division of the noise among workers that mask their sums."""
        if not self["dp_secure_aggregation"]:
            return Masking()
        return Masking(self.workers, self["dp_secure_colluders"])


def resolve(given: Mapping[str, Any], schema: Schema, rounds: int, continues: bool) -> Settings:
    """Parse every parameter and check the rules between them."""
    settings = Settings(given, schema, rounds, continues)
    for name in ("tree_method", "dp_epsilon", "dp_delta", "objective"):
        settings[name]  # errors about required parameters come first
    if not schema.width:
        raise PrivacyParameterError("The training data has no columns. Give at least one feature.")
    for rule in RULES:
        rule.check(settings)
    for name in PARAMETERS:
        settings[name]
    _ = settings.features
    return settings


def with_preset(
    user: Mapping[str, Any], schema: Schema, rounds: int, continues: bool
) -> dict[str, Any]:
    """The user's parameters on top of the chosen preset."""
    preset = PRESETS[Settings(user, schema, rounds, continues)["dp_preset"]]
    draft = Settings({**preset.params, **user}, schema, rounds, continues)
    params = {
        **preset.params,
        **preset.computed(rounds, schema.width, draft["num_parallel_tree"]),
    }
    if preset.name != "default" and not continues and draft.trees_per_round == 1:
        params["base_score"] = draft.neutral_base_score
    if "tree_method" in params and draft["tree_method"] == "dp_hist":
        # dp_hist only selects private training; the preset chooses between the two methods.
        user = {name: value for name, value in user.items() if name != "tree_method"}
    if "dp_features_per_tree" in params and "colsample_bytree" in user:
        del params["dp_features_per_tree"]
    return {**params, **user}
