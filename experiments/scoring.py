"""Scores of predictions: ranks, probabilities, and how far their mean is from the truth."""

from __future__ import annotations

import numpy as np
from scipy.stats import rankdata
from sklearn.metrics import mean_squared_error, r2_score, roc_auc_score

BINS = 15
# Probabilities of 0 and 1 would make one wrong row an infinite loss.
LEAST = 1e-6


def scores(objective: str, y: np.ndarray, predicted: np.ndarray) -> dict[str, float]:
    """All metrics of a task, by the names of :data:`experiments.core.METRICS`.

    Args:
        objective: XGBoost objective of the task.
        y: Labels of the test rows.
        predicted: Numbers, probabilities of class 1, or one column of them for each class.

    Raises:
        ValueError: If a prediction is not finite.
    """
    if not np.isfinite(predicted).all():
        raise ValueError("a prediction is not finite")
    predicted = predicted.astype(np.float64)
    if objective == "reg:squarederror":
        return {
            "rmse": float(np.sqrt(mean_squared_error(y, predicted))),
            "r2": float(r2_score(y, predicted)),
            "mean_ratio": float(predicted.mean() / np.mean(y, dtype=np.float64)),
        }
    if predicted.ndim == 2:
        return _of_classes(y.astype(int), predicted)
    p = np.clip(predicted, LEAST, 1.0 - LEAST)
    return {
        "auc": float(roc_auc_score(y, predicted)),
        "error": 100.0 * float(np.mean((predicted > 0.5) != (y > 0.5))),
        "log_loss": -float(np.mean(np.where(y > 0.5, np.log(p), np.log1p(-p)))),
        "calibration": calibration_error(y > 0.5, p),
        "mean_ratio": float(p.mean() / np.mean(y, dtype=np.float64)),
    }


def weights_of_persons(who: np.ndarray) -> np.ndarray:
    """Weights of rows that sum to one for each person, shape (rows,)."""
    _, code, rows = np.unique(who, return_inverse=True, return_counts=True)
    weights: np.ndarray = 1.0 / rows[code]
    return weights


def scores_of_persons(y: np.ndarray, predicted: np.ndarray, who: np.ndarray) -> dict[str, float]:
    """Metrics of a binary task where the rows of each person count one together.

    Args:
        y: Labels of the test rows.
        predicted: Probabilities of class 1.
        who: Whom each row belongs to.
    """
    weight = weights_of_persons(who)
    return {
        "auc_persons": float(roc_auc_score(y, predicted, sample_weight=weight)),
        "ratio_persons": float(
            np.average(predicted, weights=weight) / np.average(y, weights=weight)
        ),
    }


def _of_classes(y: np.ndarray, predicted: np.ndarray) -> dict[str, float]:
    """Metrics of several classes; calibration is that of the most likely one."""
    p = np.clip(predicted, LEAST, 1.0)
    p = p / p.sum(axis=1, keepdims=True)
    first = p.argmax(axis=1)
    shares = np.bincount(y, minlength=p.shape[1]) / len(y)
    return {
        "error": 100.0 * float(np.mean(first != y)),
        "log_loss": -float(np.mean(np.log(p[np.arange(len(y)), y]))),
        "calibration": calibration_error(first == y, p[np.arange(len(y)), first]),
        "mean_gap": float(np.abs(p.mean(axis=0) - shares).sum()),
    }


def calibration_error(happened: np.ndarray, p: np.ndarray, bins: int = BINS) -> float:
    """Expected calibration error: mean distance of what was predicted from what happened.

    Rows are put into bins of equal mass by their prediction; equal predictions share a bin, so
    that the order of the rows does not matter. Small test sets have an error above 0 by chance.

    Args:
        happened: Whether what was predicted is true, of each row.
        p: Its predicted probability.
        bins: Number of bins.
    """
    place = np.minimum((rankdata(p) - 0.5) / len(p) * bins, bins - 1).astype(int)
    gaps = np.bincount(place, p, bins) - np.bincount(place, happened, bins)
    return float(np.abs(gaps).sum() / len(p))
