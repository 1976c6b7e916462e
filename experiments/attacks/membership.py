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

__all__ = ["Scores", "advantage"]

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
    score = _correct(margin, label) - usual
    wrong, right, _ = roc_curve(member, score)
    return float(np.trapezoid(right, wrong)), float(np.interp(0.01, wrong, right))
