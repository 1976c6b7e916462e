"""Models of two classes whose probabilities follow the released counts.

Platt's map of the margin, offset + slope * margin, is a sum of trees again: every leaf is scaled
by the slope, and the intercept is moved, so that stock XGBoost gives the same predictions. A rising
curve of the margin is no sum of trees: the model carries it as an attribute. All of it is
post-processing.
"""

from __future__ import annotations

import os
from contextlib import suppress
from copy import copy
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.optimize import isotonic_regression
from scipy.special import expit

from ..engine.model_writing import ChangedModel
from ..engine.predictions import CURVE, MarginCurve, probabilities
from ..errors import LedgerError, PrivacyParameterError, PrivacyRefusal
from ..noisy_sums import Floats
from ..record import ledger
from ..record.binding import attach, check_bound, store_bound
from ..record.pipelines import steps_of
from ..record.report import as_booster
from .grid import CELLS
from .posterior import Posterior

if TYPE_CHECKING:
    from .evaluation_report import Cost

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

    content = _of_two_classes(booster)
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
        whole = ledger.evaluated(booster, model, before, cost.events, shown, cost.entry)
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


def _of_two_classes(booster: Any) -> ChangedModel:
    """The content of a model that can be calibrated."""
    content = ChangedModel.of(booster)
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
        curve = MarginCurve.of(self.booster)
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
