"""Predictions of a model as probabilities, whatever its objective predicts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from .margin_curve import MarginCurve
from .saved_model import SavedModel


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
