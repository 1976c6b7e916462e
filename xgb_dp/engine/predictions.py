"""Predictions of a model as probabilities, whatever its objective predicts.

A model may carry a rising curve from margins to probabilities, as an attribute. XGBoost keeps it
and predicts without it: whoever wants the calibrated probabilities reads the margins off the curve.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import LedgerError
from . import json_texts
from .saved_model import SavedModel

CURVE = "dp_calibration"
"""Attribute of the model that holds it."""
CLASSES = "dp_classes"
"""Attribute of the model with the names of its classes, in the order of their codes."""
_MOST = 4096


@dataclass(frozen=True)
class MarginCurve:
    """Probabilities at some margins; between them a straight line, beyond them the nearest."""

    margins: tuple[float, ...]  # ascending, finite
    probabilities: tuple[float, ...]  # as many, in (0, 1), not falling
    rounds: int  # of the model that it is for

    def __post_init__(self) -> None:
        sound = 1 <= len(self.margins) == len(self.probabilities) <= _MOST
        sound = sound and all(math.isfinite(m) for m in self.margins)
        sound = sound and all(a < b for a, b in pairwise(self.margins))
        sound = sound and all(0.0 < p < 1.0 for p in self.probabilities)
        sound = sound and all(a <= b for a, b in pairwise(self.probabilities))
        if not sound or type(self.rounds) is not int or self.rounds < 0:
            raise ValueError("a curve has ascending margins, and probabilities that do not fall")

    def __call__(self, margins: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """The probability at each margin."""
        return np.asarray(np.interp(np.asarray(margins), self.margins, self.probabilities))

    def to_json(self) -> str:
        """The text of the attribute."""
        return json.dumps({"form": 1, **vars(self)}, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> MarginCurve:
        """The inverse of :meth:`to_json`."""
        data = json_texts.loads(text)
        names = {"form", "margins", "probabilities", "rounds"}
        if not isinstance(data, Mapping) or set(data) != names or data["form"] != 1:
            raise ValueError("a curve of another form")
        try:
            margins, probabilities = map(float, data["margins"]), map(float, data["probabilities"])
            return cls(tuple(margins), tuple(probabilities), data["rounds"])
        except TypeError:
            raise ValueError("a curve is made of numbers") from None

    @classmethod
    def of(cls, booster: Any) -> MarginCurve | None:
        """The curve that a model carries; None without."""
        text = booster.attr(CURVE)
        if text is None:
            return None
        try:
            curve = cls.from_json(text)
        except ValueError:
            raise LedgerError(
                f"The attribute {CURVE!r} of the model is damaged. Calibrate the model again, or "
                f"drop the curve: booster.set_attr({CURVE}=None)."
            ) from None
        if curve.rounds != booster.num_boosted_rounds():
            raise LedgerError(
                f"The probabilities of this model were calibrated after {curve.rounds} rounds, "
                f"and the model has {booster.num_boosted_rounds()} now. Calibrate it again, or "
                f"drop the curve: booster.set_attr({CURVE}=None)."
            )
        return curve


def class_names(text: str, count: int) -> list[Any]:
    """The names of a number of classes, from the attribute of a model."""
    names = json.loads(text)
    kinds = {type(name) for name in names} if isinstance(names, list) else set()
    if not (kinds == {str} or (kinds and kinds <= {bool, int, float})):
        raise ValueError("names of classes are all texts or all numbers")
    if not count == len(names) == len(set(names)):
        raise ValueError("each class has a name of its own")
    return list(names)


def within(bounds: Sequence[Any], values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Predictions of a regression, moved into the declared range of the target.

    Privacy: free, the range is public.
    """
    if isinstance(bounds[0], (tuple, list)):
        return np.stack([within(b, v) for b, v in zip(bounds, values.T, strict=True)], axis=1)
    bounds = float(bounds[0]), float(bounds[1])
    low, high = (np.float32(b) for b in bounds)
    if float(low) < bounds[0]:
        low = np.nextafter(low, np.float32(np.inf))
    if float(high) > bounds[1]:
        high = np.nextafter(high, np.float32(-np.inf))
    return np.clip(values, low, max(low, high))


def objective_of(booster: Any) -> str:
    """XGBoost's name of the loss that a model was trained with."""
    return SavedModel.config_of(booster).objective


def levels_of_model(booster: Any) -> list[float] | None:
    """Levels of the quantiles that a model predicts, in their order; None for other models."""
    text = SavedModel.config_of(booster).objective_parameter("quantile_alpha")
    return None if text is None else [float(v) for v in np.atleast_1d(json.loads(text))]


def probabilities(booster: Any, matrix: Any) -> npt.NDArray[Any]:
    """Predicted probabilities, or values of a regression.

    Privacy: free post-processing of the model.

    A model that carries a :class:`MarginCurve` has the probabilities of that.
    """
    objective, curve = objective_of(booster), MarginCurve.of(booster)
    if curve is not None:
        return curve(booster.predict(matrix, output_margin=True))
    if objective not in ("binary:logitraw", "multi:softmax"):
        return np.asarray(booster.predict(matrix))
    margin = np.asarray(booster.predict(matrix, output_margin=True), dtype=np.float64)
    if objective == "binary:logitraw":
        # Without overflow: both exponents are at most 0.
        return np.asarray(np.exp(np.minimum(margin, 0.0)) / (1.0 + np.exp(-np.abs(margin))))
    odds = np.exp(margin - margin.max(axis=1, keepdims=True))
    return np.asarray(odds / odds.sum(axis=1, keepdims=True))
