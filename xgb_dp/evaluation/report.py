"""The report of an evaluation: figures with intervals, their cost, and calibrated models.

Platt's map of the margin, offset + slope * margin, is again a sum of trees: every leaf is scaled
by the slope, and the intercept is moved, so stock XGBoost gives the same predictions. A rising
curve of the margin is not a sum of trees: the model carries it as an attribute.

Everything here is post-processing of one released table.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import isotonic_regression
from scipy.special import expit

from ..accounting import GaussianEvent, Unit, make_accountant
from ..engine.saved_model import CURVE, ChangedModel, MarginCurve, probabilities
from ..errors import LedgerError, PrivacyParameterError, PrivacyRefusal
from ..noisy_sums import Floats
from ..parameters.parse import mapped, parse_number
from ..record import ledger
from ..record.content import attach, check_bound, store_bound
from ..record.formatting import round_up, visible
from ..record.ledger import tree_names
from ..record.pipelines import steps_of
from ..record.privacy_report import as_booster
from .counts import CELLS, Posterior
from .figures import Figure, as_json

# Deviations of a number of rows that make a group visible: few rows are counted too high, since no
# cell counts less than none.
_SEEN = 5.0
_DISCOVERED = (
    " Only the look at the columns before the training has read all rows, and adds up with either."
)

_LOG_LOSS = (
    " The log loss of a row is at most 8 here: `log_loss` promises nothing of rows to whose class "
    "the model gives a probability below 0.0003."
)


@dataclass(frozen=True)
class Cost:
    """What an evaluation cost, and whom."""

    events: tuple[GaussianEvent, ...]
    epsilon: float
    delta: float
    unit: Unit
    # Whether the rows are known to have trained nothing of the model, so that its cost and that of
    # the evaluation do not add up.
    parallel: bool
    model_private: bool  # whether the model has the ledger of a private training
    entry: str | None = None  # in a budget; None where it was not booked
    for_persons: bool = False  # whether a model was trained for persons
    discovered: bool = False  # whether a look at the columns of all rows was before the training

    def statement(self) -> str:
        """The guarantee in prose."""
        spent = make_accountant("exact", self.events).get_epsilon(self.delta, self.unit.group)
        text = (
            f"The figures are together ({round_up(spent)}, {self.delta:g})-differentially private "
            f"for adding or removing {self.unit.neighbours()} of the data that was evaluated: all "
            "of them follow from one table of noisy counts, and so does everything else that this "
            "report gives. "
        )
        if not self.model_private:
            return text + (
                "The model itself carries no ledger of a private training: nothing is said about "
                "the rows that trained it."
            )
        if self.parallel:
            return text + (
                "The rows were held out at random, and no part of the model was trained on "
                f"them: a {self.unit.name} pays for the model or for the figures, never for both."
                f"{_DISCOVERED if self.discovered else ''}"
            )
        return text + (
            "The rows may have trained the model (they are not known to be the hold-out of an "
            "xgb_dp.split whose other part trained it), so the cost of the model and of the "
            "figures add up."
        )

    def population(self) -> str:
        """Whom the figures are of, and how to get those of the others; empty if they are one."""
        if self.unit.of_persons:
            return (
                " Every person counts one, which their rows share. Figures of rows, in which those "
                "with many rows count more, do not follow from this release: without `privacy_id` "
                "and with `group=k`, where nobody has above k rows, they cost another epsilon."
            )
        if self.for_persons:
            return (
                " Every row counts one, so people with many rows count more than in the training "
                "of the model. With `privacy_id` every person counts one. The intervals take rows "
                "as independent: they are too narrow where rows of one person are alike."
            )
        return ""


@dataclass(frozen=True, eq=False)
class EvaluationReport:
    """How good a model is, from one noisy table of counts.

    Figures are attributes, each with a value, an interval (`low`, `high`) and the noise of the
    release in it; see the classes of `overall`. Asking a report for figures costs nothing more.

    Attributes:
        kind: "binary", "multiclass" or "regression".
        overall: Figures of all rows.
        groups: Figures of each declared group, by name.
        cost: What the release cost.
        level: Probability with which each interval covers.
        trees: Names of the trees of the model; None where it has none.

    Examples:
        >>> sorted(judged.figures())[:3]
        ['accuracy', 'auc', 'base_rate']
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
        """All plain figures by name.

        Args:
            group: Name of a group; all rows by default.
        """
        if group is not None and group not in self.groups:
            raise PrivacyParameterError(
                f"There is no group {group!r}. Groups, those of `by`, are {list(self.groups)}."
            )
        view = self.overall if group is None else self.groups[group]
        return dict(view.figures())

    def to_frame(self) -> Any:
        """A ``pandas.DataFrame``: figures by group, with value, low, high and noise."""
        import pandas as pd

        rows = [
            {"group": group, "figure": name, **vars(figure)}
            for group, figures in self._by_group("all", "")
            for name, figure in figures.items()
        ]
        return pd.DataFrame(rows).set_index(["group", "figure"])

    def _by_group(self, every: str, before: str) -> list[tuple[str, dict[str, Figure]]]:
        """The figures of all rows and of each group, with a name for each."""
        groups = ((f"{before}{name}", self.figures(name)) for name in self.groups)
        return [(every, self.figures()), *groups]

    def statement(self) -> str:
        """What the figures cost, whom, and what the intervals mean, in prose."""
        text = (
            f"{self.cost.statement()}\n\nEach interval accounts for the noise of the release and "
            f"for that of sampling: with probability {self.level:g} it covers the figure of the "
            f"population from which the {self.cost.unit.plural} were drawn. That all of several "
            f"intervals cover theirs is less likely.{self.cost.population()}"
        )
        if self.kind != "regression":
            return text + _LOG_LOSS
        clipped = self.overall.beyond.statement(self.cost.unit.plural)
        return f"{text}\n\n{clipped}" if clipped else text

    def summary(self) -> str:
        """The figures as a table, and the statement."""
        wide = max(20, *(len(name) + 2 for name in self.figures()))
        head = f"  {'figure':<{wide}}{'value':>12}{'low':>12}{'high':>12}"
        parts: list[str] = []
        whom = "persons" if self.cost.unit.of_persons else "rows"
        for title, figures in self._by_group(f"All {whom}", "Group "):
            count = figures.get("rows")
            if parts and count is not None and count.value <= _SEEN * count.noise:
                parts.append(f"{visible(title)}\n  fewer {whom} than the noise lets anybody see")
                continue
            lines = [
                f"  {whom if label == 'rows' else label:<{wide}}"
                f"{_shown(f.value):>12}{_shown(f.low):>12}{_shown(f.high):>12}"
                for label, f in figures.items()
            ]
            parts.append("\n".join(map(visible, [title, head, *lines])))
        return "\n\n".join([*parts, self.statement()])

    def to_json(self) -> str:
        """The figures and the statement as JSON text; what is infinite is null."""
        views = {group: as_json(figures) for group, figures in self._by_group("all", "")}
        return json.dumps(
            {
                "kind": self.kind,
                "level": self.level,
                "epsilon": self.cost.epsilon,
                "delta": self.cost.delta,
                "unit": self.cost.unit.name,
                "group": self.cost.unit.group,
                "parallel": self.cost.parallel,
                "statement": self.statement(),
                "figures": views,
            },
            indent=2,
            allow_nan=False,
        )

    def threshold(self, cost: Mapping[str, float] | tuple[float, float]) -> float:
        """The probability from which on rows are best taken for positive; free.

        Args:
            cost: Cost of a false positive and of a false negative: ``{"fp": 1, "fn": 5}``, or the
                pair.
        """
        fp, fn = read_cost(cost)
        return float(self.overall.best_threshold(fp, fn)[0])

    def calibrated(self, model: Any, *, method: str = "platt") -> Any:
        """A copy of the model whose probabilities follow the released counts; free.

        With "platt" its margins are an offset plus a slope times those of the model, so that it is
        a model of trees again, with the same predictions in every XGBoost. With "isotonic" its
        probabilities are a rising curve of the margin, which no trees can hold: stock XGBoost
        predicts it without the curve. Its ledger has the events of the evaluation, whose cost adds
        up with that of the training.

        Args:
            model: The model that was evaluated.
            method: "platt", or "isotonic", which needs more rows and follows any shape.

        Returns:
            An estimator or pipeline of the same kind for one of this package; else
            xgboost.Booster with "platt", xgb_dp.CalibratedModel with "isotonic".

        Raises:
            PrivacyParameterError: Another model, one that is not of two classes, or an unknown
                method.
            PrivacyRefusal: The units of privacy of model and evaluation differ.
        """
        booster = as_booster(model)
        if self.kind != "binary":
            raise PrivacyParameterError(
                f"Only models of two classes can be calibrated; this one has {self.kind} labels. "
                "Use its predictions as they are."
            )
        if self.trees is None or tuple(tree_names(booster)) != self.trees:
            raise PrivacyParameterError(
                "`model` is not the model that this report is about. Give the model that was "
                "evaluated."
            )
        result = calibrated(booster, self.overall.posterior, method, self.cost)
        return with_booster(model, getattr(result, "booster", result)) or result

    def __str__(self) -> str:
        return self.summary()

    __repr__ = __str__


def read_cost(cost: Any) -> tuple[float, float]:
    """Costs of a false positive and of a false negative."""
    named = mapped(cost)
    if named is not None and set(named) == {"fp", "fn"}:
        cost = (named["fp"], named["fn"])
    if not isinstance(cost, (tuple, list)) or len(cost) != 2:
        raise PrivacyParameterError(
            "`cost` must be {'fp': cost of a false positive, 'fn': cost of a false negative}, or "
            "the pair of both."
        )
    fp, fn = (parse_number("cost", v, low=0.0) for v in cost)
    if not fp + fn > 0.0:
        raise PrivacyParameterError(
            "`cost` is 0 for both kinds of mistakes. At least one cost must be above 0."
        )
    return fp, fn


def _shown(value: float) -> str:
    return f"{value:.0f}" if abs(value) >= 1000.0 else f"{value:.4f}"


_SLOPES = (0.1, 10.0)
_STEPS = 50
_LEAST = 1e-6


def _counts(posterior: Posterior) -> tuple[Floats, Floats, Floats]:
    """The logit, the rows and the positive rows of each cell."""
    logits = posterior.grid.centres
    positives = (posterior.density * expit(logits + posterior.curve)).mean(axis=0)
    return logits, posterior.density.mean(axis=0), positives


def platt(posterior: Posterior) -> tuple[float, float]:
    """Offset and slope of the margins that fit the counts best."""
    logits, rows, positives = _counts(posterior)
    design = np.stack([np.ones(CELLS), logits])
    place = np.array([0.0, 1.0])
    for _ in range(_STEPS):
        p = expit(place @ design)
        slope = design @ (positives - rows * p)
        # A little of the identity keeps it solvable where there is one score only.
        bend = (design * (rows * p * (1.0 - p))) @ design.T + 1e-3 * np.eye(2)
        step = np.linalg.solve(bend, slope - 1e-3 * (place - np.array([0.0, 1.0])))
        place = place + np.clip(step, -1.0, 1.0)
        place[1] = min(max(place[1], _SLOPES[0]), _SLOPES[1])
    return float(place[0]), float(place[1])


def isotonic(posterior: Posterior, rounds: int) -> MarginCurve:
    """The rising curve from margins to probabilities that fits the counts best."""
    logits, rows, positives = _counts(posterior)
    rows = np.maximum(rows, _LEAST)
    fit = isotonic_regression(positives / rows, weights=rows)
    least = min(0.5 / max(float(rows.sum()), 1.0), 0.25)
    ends = zip(fit.blocks[:-1], fit.blocks[1:], strict=True)
    blocks = [slice(int(first), int(last)) for first, last in ends]
    middle = [float(np.average(logits[cells], weights=rows[cells])) for cells in blocks]
    levels = [min(max(float(fit.x[cells.start]), least), 1.0 - least) for cells in blocks]
    return MarginCurve(tuple(middle), tuple(levels), rounds)


def calibrated(booster: Any, posterior: Posterior, method: str, cost: Cost) -> Any:
    """A copy of a model with other probabilities, and with the cost in its ledger."""
    if method not in ("platt", "isotonic"):
        raise PrivacyParameterError("`method` must be 'platt' or 'isotonic'.")
    from xgboost import Booster

    content = _two_class_model(booster)
    before = None
    with suppress(LedgerError):
        before = ledger.read_ledger(booster)
    if before is not None and before.is_complete:
        check_bound(booster, before)
    if before is not None and {e.unit for e in before.events} - {e.unit for e in cost.events}:
        raise PrivacyRefusal(
            "The unit of privacy of the model is not that of the evaluation, so no ledger can add "
            "up what both cost. Evaluate with the ids of the persons, or without, as in training."
        )
    shown: dict[str, Any] = {"method": method, "parallel": cost.parallel}
    if method == "platt":
        offset, slope = platt(posterior)
        shown |= {"offset": offset, "slope": slope}
        content.scale_margins(offset, slope)
        model = Booster(model_file=content.to_bytes())
    else:
        model = booster.copy()
        curve = isotonic(posterior, booster.num_boosted_rounds())
        attach(model, **{CURVE: curve.to_json()})
    if before is not None:
        whole = ledger.with_evaluation(booster, model, before, cost.events, shown, cost.entry)
        store_bound(model, whole)
    return model if method == "platt" else CalibratedModel(model)


def with_booster(model: Any, booster: Any) -> Any:
    """A copy of an estimator, or of a pipeline that ends in one, with another booster.

    None where it is none of this package, whose probabilities do not follow a curve.
    """
    steps = steps_of(model)
    if steps:
        name, last = steps[-1]
        inner, whole = with_booster(last, booster), copy(model)
        whole.steps = [*steps[:-1], (name, inner)]
        return None if inner is None else whole
    if not hasattr(type(model), "_curve"):
        return None
    whole = copy(model)
    whole._Booster = booster
    return whole


def _two_class_model(booster: Any) -> ChangedModel:
    """The content of a model that can be calibrated."""
    content = ChangedModel.from_booster(booster)
    trees = content.booster == "gbtree"
    if content.objective not in ("binary:logistic", "binary:logitraw") or not trees:
        raise PrivacyParameterError(
            "Only a model of two classes (binary:logistic or binary:logitraw) made of trees can be "
            "calibrated; use the calibration curve of the report for others."
        )
    if booster.attr(CURVE) is not None:
        raise PrivacyParameterError(
            "This model is calibrated by a curve already. Evaluate and calibrate the model that "
            f"it was made of, or drop its curve first: booster.set_attr({CURVE}=None)."
        )
    return content


class CalibratedModel:
    """A model of two classes whose probabilities are read off a rising curve of its margin.

    No sum of trees has such a curve, so stock XGBoost predicts the model without it:
    ``booster.predict(data, output_margin=True)`` are the margins that the curve is for, and the
    attribute ``dp_calibration`` of the model file has the curve as JSON: ``np.interp(margin,
    margins, probabilities)``.

    Args:
        model: The path of a saved model, or a Booster, that carries a curve.

    Raises:
        PrivacyParameterError: The model carries none.
        LedgerError: The file or the curve is damaged.

    Examples:
        >>> calibrated = judged.calibrated(model)
        >>> calibrated.predict(data).shape
        (2000,)
    """

    def __init__(self, model: Any) -> None:
        self.booster: Any = as_booster(model)
        curve = MarginCurve.from_booster(self.booster)
        if curve is None:
            raise PrivacyParameterError(
                "The model carries no curve of probabilities: calibrate it by "
                "report.calibrated(model, method='isotonic')."
            )
        self.curve: MarginCurve = curve

    def predict(self, data: Any) -> Floats:
        """Calibrated probability of class 1 of each row.

        Args:
            data: An ``xgboost.DMatrix``.
        """
        return np.asarray(probabilities(self.booster, data), dtype=np.float64)

    def save_model(self, path: str | os.PathLike[str]) -> None:
        """Save the model with its curve, as .json or .ubj; ``CalibratedModel(path)`` reads it."""
        self.booster.save_model(path)
