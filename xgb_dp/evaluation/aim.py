"""The second step of an evaluation of two classes: two sums that the first step has chosen.

AUC and mean log loss are, to first order, sums over the rows of what each row does to them. Once
the first step has told roughly where the rows lie, one sum for each of both says more about it
than many sums over all scales.

Proof: docs/proofs/evaluation.md
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from .figures import influence
from .grid import UNIT
from .posterior import Posterior

__all__ = ["AIMED", "AIMED_SHARE", "aimed_matrix"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_AUC, _LOSS = 0.25, 0.1  # of the squared norm of what a row adds in both steps
AIMED_SHARE = _AUC + _LOSS
"""Squared norm of what one row adds in the second step, of that of both steps."""
AIMED = 2
"""Sums of the second step."""

_FINEST, _TRIED = 50.0, 40
_WIDER = 3.0  # than what is best if the first step were exact


def aimed_matrix(found: Posterior, noise: float, share: float) -> Ints:
    """What a row in each cell adds in the second step: (sums, 2 * CELLS), negatives first."""
    neg, pos = found.by_class
    rows, logits = found.by_class.ravel(), found.grid.centres
    pulls = influence(neg, pos, float(neg.sum()), float(pos.sum())).ravel()
    loss = np.concatenate([np.logaddexp(0.0, logits), np.logaddexp(0.0, -logits)])
    loss -= float(loss @ rows / rows.sum())
    whole = np.stack(
        [
            math.sqrt(own) * _clipped(pull, rows, noise / math.sqrt(share * own))
            for pull, own in ((pulls, _AUC / AIMED_SHARE), (loss, _LOSS / AIMED_SHARE))
        ]
    )
    largest = math.sqrt(float((whole**2).sum(axis=0).max()))
    if largest > 0.0:
        whole *= UNIT * math.sqrt(share) / largest
    return np.trunc(whole).astype(np.int64)  # towards 0, so that no norm grows


def _clipped(pull: Floats, rows: Floats, noise: float) -> Floats:
    """What rows pull, in units of a limit beyond which they count as that: in [-1, 1].

    A low limit leaves little noise and says nothing of the rows beyond it. The best one is looked
    for as if the rows of a cell were Poisson around what is expected; what is really known of the
    rare ones is less, so a wider one is taken.
    """
    most = float(np.abs(pull).max())
    if most <= 0.0:
        return np.zeros_like(pull)

    def told(limit: float) -> float:
        own = np.clip(pull / limit, -1.0, 1.0)
        return float((pull * own) @ rows) ** 2 / (float(own**2 @ rows) + noise**2)

    limits = np.geomspace(most / _FINEST, most, _TRIED)
    best = max(limits.tolist(), key=told)
    return np.clip(pull / min(_WIDER * best, most), -1.0, 1.0)
