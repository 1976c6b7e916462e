"""Two-neighbour audits: one number per output, drawn many times under D and under D'.

The rejection set is a half line of the score. Its end and its direction are chosen on one part of
the draws; the hits are counted on the other part, which keeps the confidence exact.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from .bounds import DELTAS, Claim, epsilon_lower_bound
from .result import AuditResult

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_SELECTION = 1.0 / 3.0  # part of the draws that chooses the rejection set
_THRESHOLDS = 400
# Of thousands of sets some look good by chance: a bound that decides asks for more confidence, and
# an excess for so many standard deviations.
_CAUTION = 0.99
_CLEAR = 5.0


def _hits(scores: Floats, thresholds: Floats) -> Ints:
    """How many scores are at least each threshold."""
    return len(scores) - np.searchsorted(np.sort(scores), thresholds, side="left")


def _deviations(a: Ints, n_a: int, b: Ints, n_b: int, epsilon: float, delta: float) -> Floats:
    """By how many standard deviations each set exceeds the claim; decides which one is used."""
    p, q = a / n_a, (b + 1.0) / (n_b + 2.0)
    p1 = (a + 1.0) / (n_a + 2.0)
    factor = math.exp(min(epsilon, 300.0))
    variance = p1 * (1.0 - p1) / n_a + factor**2 * q * (1.0 - q) / n_b
    return np.asarray((p - factor * q - delta) / np.sqrt(variance), dtype=np.float64)


def _thresholds(d: Floats, d2: Floats) -> Floats:
    """Quantiles of both samples, close together in the tails."""
    tails = np.geomspace(1e-6, 0.5, _THRESHOLDS // 2)
    levels = np.concatenate([tails, 1.0 - tails])
    return np.unique(np.concatenate([np.quantile(s, levels, method="nearest") for s in (d, d2)]))


def ratio_scores(d: npt.NDArray[np.generic], d2: npt.NDArray[np.generic]) -> tuple[Floats, Floats]:
    """Scores for outcomes without an order: log ratios of frequencies in the first part."""
    first, first2 = (x[: max(1, int(len(x) * _SELECTION))] for x in (d, d2))
    values = np.unique(np.concatenate([d, d2]))

    def frequencies(x: npt.NDArray[np.generic]) -> Floats:
        counts = np.bincount(np.searchsorted(values, x), minlength=len(values))
        return np.asarray((counts + 0.5) / (len(x) + 0.5 * len(values)), dtype=np.float64)

    score = np.log(frequencies(first2)) - np.log(frequencies(first))
    return score[np.searchsorted(values, d)], score[np.searchsorted(values, d2)]


def _hits_each_way(x: Floats, y: Floats, thresholds: Floats) -> list[tuple[Ints, int, Ints, int]]:
    """Hits and draws of both samples, above and below thresholds, for both orders of the two."""
    above_x, above_y = _hits(x, thresholds), _hits(y, thresholds)
    above = (above_x, len(x), above_y, len(y))
    below = (len(x) - above_x, len(x), len(y) - above_y, len(y))
    return [above, (*above[2:], *above[:2]), below, (*below[2:], *below[:2])]


def _rejection_set(x: Floats, y: Floats, claimed: Mapping[float, float]) -> tuple[int, float]:
    """Direction and end of the half line that exceeds the claim most surely.

    If none clearly does, that of the best bound.
    """
    thresholds = _thresholds(x, y)
    surest, best = (-np.inf, 0, thresholds[0]), (-np.inf, 0, thresholds[0])
    for direction, hits in enumerate(_hits_each_way(x, y, thresholds)):
        for delta, epsilon in claimed.items():
            z = _deviations(*hits, epsilon, delta)
            i = int(np.argmax(z))
            if z[i] > surest[0]:
                surest = (float(z[i]), direction, thresholds[i])
            excess = epsilon_lower_bound(*hits, delta, _CAUTION) - epsilon
            i = int(np.argmax(excess))
            if excess[i] > best[0]:
                best = (float(excess[i]), direction, thresholds[i])
    _, direction, threshold = surest if surest[0] > _CLEAR else best
    return direction, threshold


def _delta_to_report(bounds: Mapping[float, float], claimed: Mapping[float, float]) -> float:
    """The smallest delta that is clearly violated; without one, where the bound is closest."""
    violated = [delta for delta in claimed if bounds[delta] > claimed[delta]]
    if not violated:
        return max(claimed, key=lambda d: max(bounds[d], 0.0) / max(claimed[d], 1e-9))
    clear = [delta for delta in violated if bounds[delta] > 1.1 * claimed[delta]]
    return clear[0] if clear else max(violated, key=lambda d: bounds[d] - claimed[d])


def audit_scores(
    d: npt.ArrayLike,
    d2: npt.ArrayLike,
    claim: Claim,
    *,
    name: str = "trainer",
    statistic: str = "score",
    confidence: float = 0.95,
    deltas: Sequence[float] = DELTAS,
) -> AuditResult:
    """Test a claim on scores of independent outputs under two neighbouring data sets.

    Args:
        d: One finite number per output under D.
        d2: The same under D'. The order of outputs must not depend on the scores.
        claim: Claimed curve.
        name: For the report.
        statistic: For the report.
        confidence: A true claim is called violated with probability at most 1 - confidence.
        deltas: Points of the curve to look at.

    Returns:
        AuditResult: At the smallest clearly violated delta or, without one, where it is closest.

    Raises:
        ValueError: Fewer than 30 scores, or scores that are not finite.

    Examples:
        >>> from xgb_dp.audit import audit_scores
        >>> claim = xgb_dp.privacy_report(model)
        >>> scores = rng.normal(size=4000)
        >>> audit_scores(scores, scores, claim).violated  # outputs that a row does not change
        False
    """
    x, y = np.asarray(d, dtype=np.float64), np.asarray(d2, dtype=np.float64)
    if min(x.size, y.size) < 30 or not (np.isfinite(x).all() and np.isfinite(y).all()):
        raise ValueError("`d` and `d2` must hold at least 30 finite scores each.")
    claimed = {delta: claim.get_epsilon(delta) for delta in deltas}
    informative = {d: e for d, e in claimed.items() if np.isfinite(e) and e > 0} or claimed
    cut_x, cut_y = int(len(x) * _SELECTION), int(len(y) * _SELECTION)
    direction, threshold = _rejection_set(x[:cut_x], y[:cut_y], informative)
    hits = _hits_each_way(x[cut_x:], y[cut_y:], np.array([threshold]))[direction]
    bounds = {d: float(epsilon_lower_bound(*hits, d, confidence)[0]) for d in informative}
    at = _delta_to_report(bounds, informative)
    return AuditResult(name, statistic, x.size + y.size, at, claimed[at], bounds[at], confidence)
