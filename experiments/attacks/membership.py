"""Membership inference: was a row trained on?

The attacker knows candidates with their labels, of which half were trained on, and models that it
trained itself on other rows of the same population. It ranks candidates by how much better the
model predicts their label than those other models do (the offline attack of Carlini and others,
2022, with a common variance).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from sklearn.metrics import roc_curve

__all__ = ["Scores", "advantage", "allowed", "ratios"]

Floats = npt.NDArray[np.float64]
Scores = tuple[float, float]


def _correct(margin: Floats, label: Floats) -> Floats:
    """The margin towards the true label."""
    return np.where(label > 0, margin, -margin)


def advantage(
    margin: Floats, others: Sequence[Floats], label: Floats, member: npt.NDArray[np.bool_]
) -> Scores:
    """How well membership is told.

    Args:
        margin: Margins of the candidates from the model that is attacked.
        others: The same from models that have seen none of them.
        label: Their labels, 0 or 1.
        member: Which of them were trained on.

    Returns:
        Area under the ROC curve of the attack (0.5: it tells nothing), and the share of members
        found where 1% of the others are called members (0.01: it tells nothing).
    """
    usual = np.mean([_correct(other, label) for other in others], axis=0)
    return _found(_correct(margin, label) - usual, member)


def ratios(
    margin: Floats,
    others: Floats,
    seen: npt.NDArray[np.bool_],
    label: Floats,
    member: npt.NDArray[np.bool_],
) -> Scores:
    """How well likelihood ratios tell membership (the online attack of the same authors).

    Args:
        margin: Margins of the candidates from the model that is attacked.
        others: The same from the attacker's models, one a row.
        seen: Which candidates each of these models was trained on.
        label: Their labels, 0 or 1.
        member: Which of them the attacked model was trained on.

    Returns:
        As :func:`advantage`. The margins with and without a row are taken for normal, with means
        of its own and a variance that all rows have in common.
    """
    correct = _correct(others, label)
    means = [np.ma.array(correct, mask=m).mean(axis=0).filled(0.0) for m in (~seen, seen)]
    spread = max(float(np.var(correct - np.where(seen, *means))), 1e-12)
    observed = _correct(margin, label)
    score = ((observed - means[1]) ** 2 - (observed - means[0]) ** 2) / (2 * spread)
    return _found(score, member)


def allowed(epsilon: float, delta: float) -> Scores:
    """What epsilon allows any attack to reach on a row that is a member by a fair coin.

    Returns:
        As :func:`advantage`. An infinite epsilon allows everything.
    """
    wrong = np.linspace(0.0, 1.0, 100_001)
    low = np.exp(min(epsilon, 700.0)) * wrong + delta
    right = np.clip(np.minimum(low, 1 - np.exp(-epsilon) * (1 - wrong - delta)), 0.0, 1.0)
    return float(np.trapezoid(right, wrong)), float(np.interp(0.01, wrong, right))


def _found(score: Floats, member: npt.NDArray[np.bool_]) -> Scores:
    wrong, right, _ = roc_curve(member, score)
    return float(np.trapezoid(right, wrong)), float(np.interp(0.01, wrong, right))
