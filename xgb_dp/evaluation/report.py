"""Evaluation reports: figures with confidence intervals, their privacy cost, calibrated models.

Platt scaling maps a margin to offset + slope * margin, which is again a sum of trees: every leaf
is multiplied by the slope and the intercept is shifted, so stock XGBoost gives the same
predictions.

Everything here is post-processing of one released table.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit

from ..accounting import GaussianEvent, Unit, make_accountant
from ..engine.saved_model import ChangedModel
from ..errors import LedgerError, PrivacyParameterError, PrivacyRefusal
from ..noisy_sums import Floats
from ..parameters.parse import mapped, parse_number
from ..record import ledger
from ..record.content import check_bound, needs_margins, store_bound
from ..record.formatting import round_up, visible
from ..record.ledger import tree_names
from ..record.pipelines import steps_of
from ..record.privacy_report import as_booster
from .counts import CELLS, Posterior
from .figures import Figure, as_json

# A group is shown if its row count exceeds this many standard deviations of the noise. The
# threshold is high because counts are constrained to be nonnegative, which biases small ones up.
_SEEN = 5.0
_DISCOVERED = (
    " The exception is the column discovery before the training: it read all rows, and its cost "
    "adds to either."
)

_LOG_LOSS = (
    " The log loss of each row is capped at 8, so the interval of `log_loss` does not account for "
    "larger losses (rows for which the model gives the true class a probability below 0.0003)."
)

_AT = (
    " `precision`, `recall`, `f1` and `selection_rate` are at {}, which selects "
    "about as many rows as are positive. `accuracy` is at 0.5."
)


@dataclass(frozen=True)
class Cost:
    """Privacy cost of an evaluation, with its privacy unit."""

    events: tuple[GaussianEvent, ...]
    epsilon: float
    delta: float
    unit: Unit
    # True if no part of the model is known to have been trained on these rows, so that the costs of
    # training and evaluation compose in parallel instead of adding up.
    parallel: bool
    model_private: bool  # the model has the ledger of a private training
    entry: str | None = None  # id of the budget entry; None if no budget was charged
    for_persons: bool = False  # a model was trained with persons as the privacy unit
    max_rows: int | None = None  # largest number of rows as which a person counts, if per row
    discovered: bool = False  # column discovery on all rows preceded the training

    def statement(self) -> str:
        """Return the privacy guarantee as prose."""
        spent = make_accountant("exact", self.events).get_epsilon(self.delta, self.unit.group_size)
        text = (
            f"Taken together, the figures are ({round_up(spent)}, {self.delta:g})-differentially "
            f"private for adding or removing {self.unit.neighbours()} of the evaluated data. "
            "Everything in this report is computed from one table of noisy counts. "
        )
        if not self.model_private:
            return text + (
                "The model itself carries no ledger of a private training, so there is no "
                "guarantee for the rows that it was trained on."
            )
        if self.parallel:
            return text + (
                "The evaluated rows were held out at random and no part of the model was trained "
                "on them, so only the larger of the costs of training and evaluation counts: each "
                f"{self.unit.name} contributes to only one of them."
                f"{_DISCOVERED if self.discovered else ''}"
            )
        return text + (
            "The model may have been trained on the evaluated rows (they are not known to be the "
            "test part of an xgb_dp.split whose other part trained the model), so the costs of "
            "training and evaluation add up."
        )

    @property
    def counted(self) -> str:
        """Name of what the figures count."""
        return "rows" if self.max_rows is not None else self.unit.plural

    def population(self) -> str:
        """Say whether figures are per row or per person, and how to get the other; may be empty."""
        if self.max_rows is not None:
            return (
                f" Figures are per row; all rows of a person count as at most {self.max_rows}. The "
                "intervals are wide enough for persons whose rows are all equal."
            )
        if self.unit.of_persons:
            return (
                " Figures are per person: every person has weight 1, shared among their rows. "
                "Figures per row cannot be computed from this release. To get them, evaluate again "
                "with `max_rows_per_person=k`, where k is the usual largest number of rows of one "
                "person; this costs another epsilon."
            )
        if self.for_persons:
            return (
                " Figures are per row, so people with many rows count more than they did in "
                "training. Pass `privacy_id` for figures per person. The intervals assume "
                "independent rows and are too narrow if rows of the same person are correlated."
            )
        return ""


@dataclass(frozen=True, eq=False)
class EvaluationReport:
    """Quality of a model, computed from one noisy table of counts.

    Each figure is an attribute with a value, an interval (`low`, `high`) and the standard deviation
    of the release's noise; the class of `overall` lists them. Reading figures is free.

    Attributes:
        kind: "binary", "multiclass", "regression", or "comparison" of two binary classifiers.
        overall: Figures for all rows.
        groups: Figures for each declared group, by name.
        cost: Privacy cost of the release.
        level: Confidence level of each interval.
        trees: Names of the model's trees; None if they have no names.

    Examples:
        >>> sorted(evaluation.figures())[:3]
        ['accuracy', 'auc', 'average_precision']
    """

    kind: str
    overall: Any
    groups: Mapping[str, Any]
    cost: Cost
    level: float
    trees: tuple[str, ...] | None = None

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name == "overall":
            raise AttributeError(name)
        return getattr(self.overall, name)

    def figures(self, group: str | None = None) -> dict[str, Figure]:
        """Return the figures that need no argument, by name.

        Args:
            group: Name of a group. Default: all rows.
        """
        if group is not None and group not in self.groups:
            raise PrivacyParameterError(
                f"There is no group {group!r}. The groups declared with `by` are "
                f"{list(self.groups)}."
            )
        view = self.overall if group is None else self.groups[group]
        return dict(view.figures())

    def to_frame(self) -> Any:
        """Return a ``pandas.DataFrame`` of figures by group: value, low, high and noise."""
        import pandas as pd

        rows = [
            {"group": group, "figure": name, **vars(figure)}
            for group, figures in self._by_group("all", "")
            for name, figure in figures.items()
        ]
        return pd.DataFrame(rows).set_index(["group", "figure"])

    def _by_group(self, every: str, before: str) -> list[tuple[str, dict[str, Figure]]]:
        """Return (title, figures) pairs for all rows and for each group."""
        groups = ((f"{before}{name}", self.figures(name)) for name in self.groups)
        return [(every, self.figures()), *groups]

    def statement(self) -> str:
        """Describe the privacy cost and the meaning of the intervals as prose."""
        text = (
            f"{self.cost.statement()}\n\nEach interval accounts for privacy noise and for sampling "
            f"error: with probability {self.level:g} it covers the true figure of the population "
            f"from which the {self.cost.unit.plural} were drawn. The intervals are not "
            "simultaneous: the probability that several intervals all cover is lower."
            f"{self.cost.population()}"
        )
        if self.kind in ("binary", "comparison"):
            one_model = self.kind == "binary"
            text += _AT.format(
                f"the threshold {self.at:.4g}" if one_model else "a threshold (`first.at`)"
            )
        if self.kind != "regression":
            return text + _LOG_LOSS
        clipped = self.overall.beyond.statement(self.cost.counted)
        return f"{text}\n\n{clipped}" if clipped else text

    def summary(self) -> str:
        """Return the figures as a text table, followed by the statement."""
        wide = max(20, *(len(name) + 2 for name in self.figures()))
        head = f"  {'figure':<{wide}}{'value':>12}{'low':>12}{'high':>12}"
        parts: list[str] = []
        units = self.cost.counted
        for title, figures in self._by_group(f"All {units}", "Group "):
            count = figures.get("rows")
            if parts and count is not None and count.value <= _SEEN * count.noise:
                parts.append(f"{visible(title)}\n  too few {units} to distinguish from noise")
                continue
            lines = [
                f"  {units if label == 'rows' else label:<{wide}}"
                f"{_format_value(f.value):>12}{_format_value(f.low):>12}{_format_value(f.high):>12}"
                for label, f in figures.items()
            ]
            parts.append("\n".join(map(visible, [title, head, *lines])))
        return "\n\n".join([*parts, self.statement()])

    def to_json(self) -> str:
        """Return the figures and the statement as a JSON string; infinite values become null."""
        views = {group: as_json(figures) for group, figures in self._by_group("all", "")}
        return json.dumps(
            {
                "kind": self.kind,
                "level": self.level,
                "epsilon": self.cost.epsilon,
                "delta": self.cost.delta,
                "unit": self.cost.unit.name,
                "group_size": self.cost.unit.group_size,
                "parallel": self.cost.parallel,
                "statement": self.statement(),
                "figures": views,
            },
            indent=2,
            allow_nan=False,
        )

    def threshold(
        self,
        cost: Mapping[str, float] | tuple[float, float] | None = None,
        *,
        selection_rate: float | None = None,
    ) -> float:
        """Return the threshold with the lowest estimated cost, or with this selection rate.

        It is for probabilities of the evaluated model. For a :meth:`calibrated` model, use
        fp / (fp + fn).

        Privacy: free post-processing.

        Args:
            cost: Costs of a false positive and a false negative, as ``{"fp": 1, "fn": 5}`` or as a
                pair (fp, fn).
            selection_rate: Share of rows to select, in (0, 1]. Pass either this or `cost`.
        """
        if self.kind != "binary":
            raise PrivacyParameterError(
                "`threshold` requires the report of a binary classifier (two classes). Use the "
                "predictions of this model unchanged."
            )
        if selection_rate is not None and cost is None:
            return float(self.overall.threshold_at(selection_rate))
        fp, fn = read_cost(cost if selection_rate is None else None)
        return float(self.overall.best_threshold(fp, fn)[0])

    def calibrated(self, model: Any) -> Any:
        """Return a calibrated copy of the model.

        For two classes, each margin is mapped to offset + slope * margin (Platt scaling). For
        regression of means, an offset removes the difference between mean prediction and mean
        label, if it exceeds the noise; counts and amounts are multiplied by a factor. The
        result is again a tree model and gives the same predictions in stock XGBoost.

        Privacy: free post-processing. The events of the evaluation are added to the ledger of the
        copy, because its predictions depend on the evaluated rows.

        Args:
            model: The model that was evaluated.

        Returns:
            An estimator or pipeline of the same type; for other models, an xgboost.Booster.

        Raises:
            PrivacyParameterError: `model` is not the evaluated model, or predicts neither two
                classes nor means.
            PrivacyRefusal: The model and the evaluation have different privacy units.
        """
        booster = as_booster(model)
        if self.trees is None or tuple(tree_names(booster)) != self.trees:
            raise PrivacyParameterError(
                "`model` is not the model that this report was computed for. Pass the model that "
                "was evaluated."
            )
        return with_booster(model, calibrate_booster(booster, self.overall, self.cost))

    def __str__(self) -> str:
        return self.summary()

    __repr__ = __str__


def read_cost(cost: Any) -> tuple[float, float]:
    """Parse the costs of a false positive and a false negative."""
    named = mapped(cost)
    if named is not None and set(named) == {"fp", "fn"}:
        cost = (named["fp"], named["fn"])
    if not isinstance(cost, (tuple, list)) or len(cost) != 2:
        raise PrivacyParameterError(
            "`cost` must be {'fp': cost of a false positive, 'fn': cost of a false negative}, or "
            "the pair (fp, fn). Pass either `cost` or `selection_rate`."
        )
    fp, fn = (parse_number("cost", v, low=0.0) for v in cost)
    if not fp + fn > 0.0:
        raise PrivacyParameterError(
            "`cost` is 0 for both false positives and false negatives. Set at least one above 0."
        )
    return fp, fn


def _format_value(value: float) -> str:
    return f"{value:.0f}" if abs(value) >= 1000.0 else f"{value:.4f}"


CALIBRATED = {
    "binary:logistic": "logit", "binary:logitraw": "logit", "reg:squarederror": "identity",
    "reg:pseudohubererror": "identity", "count:poisson": "log", "reg:gamma": "log",
    "reg:tweedie": "log",
}  # fmt: skip
"""How margins and predictions are related, of models that can be calibrated."""
_SLOPES = (0.1, 10.0)
_STEPS = 50
_LEAST = 1e-6


def _counts(posterior: Posterior) -> tuple[Floats, Floats, Floats]:
    """Return the logit, row count and positive count of each cell."""
    logits = posterior.grid.centres
    positives = (posterior.density * expit(logits + posterior.curve)).mean(axis=0)
    return logits, posterior.density.mean(axis=0), positives


def fit_platt(posterior: Posterior) -> tuple[float, float]:
    """Fit the offset and slope of Platt scaling to the counts by Newton's method."""
    logits, rows, positives = _counts(posterior)
    design = np.stack([np.ones(CELLS), logits])
    place = np.array([0.0, 1.0])
    for _ in range(_STEPS):
        p = expit(place @ design)
        slope = design @ (positives - rows * p)
        # The small ridge keeps the system regular if all rows have the same score.
        bend = (design * (rows * p * (1.0 - p))) @ design.T + 1e-3 * np.eye(2)
        step = np.linalg.solve(bend, slope - 1e-3 * (place - np.array([0.0, 1.0])))
        place = place + np.clip(step, -1.0, 1.0)
        place[1] = min(max(place[1], _SLOPES[0]), _SLOPES[1])
    return float(place[0]), float(place[1])


def calibrate_booster(booster: Any, view: Any, cost: Cost) -> Any:
    """Return a calibrated copy of a booster, with the cost of the evaluation in its ledger."""
    from xgboost import Booster

    content = ChangedModel.from_booster(booster)
    if content.booster != "gbtree" or not content.trees or content.objective not in CALIBRATED:
        raise PrivacyParameterError(
            "Only tree models with two classes or of means can be calibrated: "
            f"{', '.join(CALIBRATED)}. For other models, use the predictions unchanged."
        )
    before = None
    with suppress(LedgerError):
        before = ledger.read_ledger(booster)
    if before is not None and before.is_complete:
        check_bound(booster, before)
    if before is not None and {e.unit for e in before.events} - {e.unit for e in cost.events}:
        raise PrivacyRefusal(
            "The model and the evaluation have different privacy units, so their costs cannot be "
            "added up in one ledger. Evaluate with `privacy_id` if and only if the model was "
            "trained with it."
        )
    link = CALIBRATED[content.objective]
    if link == "logit" and needs_margins(booster):
        raise PrivacyParameterError(
            "A classifier with base margins cannot be calibrated: the slope would apply to its "
            "trees, but not to the margins. Use its predictions unchanged."
        )
    if link == "logit":
        offset, slope = fit_platt(view.posterior)
        content.scale_margins(offset, slope)
    else:
        offset, slope = view.mean_offset(log=link == "log"), 1.0
        content.add_to_margins(offset)
    method = "platt" if link == "logit" else "mean"
    shown = {"method": method, "parallel": cost.parallel, "offset": offset, "slope": slope}
    model = Booster(model_file=content.to_bytes())
    if before is not None:
        whole = ledger.with_evaluation(booster, model, before, cost.events, shown, cost.entry)
        store_bound(model, whole)
    return model


def with_booster(model: Any, booster: Any) -> Any:
    """Return a copy of an estimator, or of a pipeline ending in one, with another booster."""
    whole = copy(model)
    if steps := steps_of(model):
        name, last = steps[-1]
        whole.steps = [*steps[:-1], (name, with_booster(last, booster))]
        return whole
    if not hasattr(model, "_Booster"):
        return booster
    whole._Booster = booster
    return whole
