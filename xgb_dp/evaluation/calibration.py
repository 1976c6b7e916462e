"""A model whose probabilities follow the released counts, which stock XGBoost predicts the same.

Platt's map of the margin, offset + slope * margin, is a sum of trees again: every leaf is scaled
by the slope, and the intercept is moved. All of it is post-processing.
"""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from ..accounting import Event
from ..engine.predictions import objective_of
from ..errors import LedgerError, PrivacyParameterError, PrivacyRefusal
from ..record import ledger
from .grid import CELLS
from .posterior import Posterior

__all__ = ["calibrated", "platt"]

Floats = npt.NDArray[np.float64]

_SLOPES = (0.1, 10.0)
_STEPS = 50


def platt(found: Posterior) -> tuple[float, float]:
    """Offset and slope of the margins that fit the counts best.

    Args:
        found: Counts of both classes by score.

    Returns:
        Those that maximise the likelihood of the expected counts; the slope lies in [0.1, 10].
    """
    logits = found.grid.centres
    share = expit(logits + found.curve)
    positives = (found.density * share).mean(axis=0)
    rows = found.density.mean(axis=0)
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


def calibrated(
    booster: Any, offset: float, slope: float, event: Event, shown: dict[str, Any]
) -> Any:
    """A copy of a model of two classes with other margins, and with the cost in its ledger.

    Args:
        booster: The xgboost.Booster.
        offset: Added to every margin.
        slope: By which every margin is multiplied before.
        event: The evaluation that both come from.
        shown: What the ledger says of it beside the event.

    Raises:
        PrivacyParameterError: Not a model of two classes made of trees.
        PrivacyRefusal: The units of privacy of the model and of the evaluation differ.
    """
    from xgboost import Booster

    objective = objective_of(booster)
    content = json.loads(booster.save_raw("json"))
    learner = content["learner"]
    if objective not in ("binary:logistic", "binary:logitraw") or (
        learner["gradient_booster"]["name"] != "gbtree"
    ):
        raise PrivacyParameterError(
            "Only a model of two classes (binary:logistic or binary:logitraw) made of trees can be "
            "calibrated in a form that XGBoost reads; use the calibration curve of the report for "
            "others."
        )
    try:
        before = ledger.read_ledger(booster)
    except LedgerError:
        before = None
    if before is not None and {e.unit for e in before.events} - {event.unit}:
        raise PrivacyRefusal(
            "The unit of privacy of the model is not that of the evaluation, so no ledger can add "
            "up what both cost. Evaluate with the ids of the persons, or without, as in training."
        )
    for tree in learner["gradient_booster"]["model"]["trees"]:
        tree["base_weights"] = _scaled(tree["base_weights"], slope)
        leaf = np.array(tree["left_children"]) == -1
        ends = np.array(tree["split_conditions"], dtype=np.float32)
        ends[leaf] = np.array(_scaled(ends[leaf], slope), dtype=np.float32)
        tree["split_conditions"] = ends.astype(np.float64).tolist()
    numbers = learner["learner_model_param"]
    score = json.loads(numbers["base_score"])
    start = float(score[0] if isinstance(score, list) else score)
    if objective == "binary:logistic":
        start = min(max(start, 1e-7), 1.0 - 1e-7)
        margin = offset + slope * (math.log(start) - math.log1p(-start))
        moved = 1.0 / (1.0 + math.exp(-margin))
    else:
        moved = offset + slope * start
    numbers["base_score"] = json.dumps([moved] if isinstance(score, list) else moved)
    made = Booster(model_file=bytearray(json.dumps(content).encode()))
    if before is not None:
        ledger.store(made, ledger.evaluated(booster, made, before, event, shown))
    return made


def _scaled(values: Any, slope: float) -> list[float]:
    return (slope * np.array(values, dtype=np.float64)).astype(np.float32).tolist()
