"""Audits of complete trainings: many small trainings on two neighbours, or one with canaries.

A trainer is any function of the data. :class:`PreparedTraining` is the trainer of this library,
calibrated once for thousands of trainings; calibration reads no data.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from .. import planning
from ..accounting import make_accountant
from ..errors import PrivacyParameterError
from ..request.params import DEFAULT_ROUNDS
from ..request.schema import read_schema
from ..training.hook import prepare
from .bounds import DELTAS, AuditResult, Claim, epsilon_lower_bound, one_run_lower_bound

Floats = npt.NDArray[np.float64]
Data = TypeVar("Data")
Model = TypeVar("Model")


class PreparedTraining:
    """``xgboost.train`` with ``tree_method="dp_hist"``, calibrated once for many trainings.

    The trainings are the usual ones, with fresh noise from the operating system.

    Args:
        params: Parameters of ``xgboost.train``.
        like: A matrix with the schema of the data; its rows are not read.
        rounds: Number of boosting rounds; None to let the number of rows determine the plan.

    Raises:
        PrivacyParameterError: A parameter is missing, unknown or out of range, or disables noise.
        PrivacyRefusal: The training would not be private.
        BudgetError: No noise meets the target.

    Attributes:
        settings: Checked settings.
        noise: Calibrated noise.
        claim: Certified privacy curve of one training.

    Examples:
        >>> from xgb_dp.audit import PreparedTraining
        >>> prepared = PreparedTraining(params, data, rounds=1)
        >>> 0.99 < prepared.claim.get_epsilon(1e-6) <= 1.0
        True
        >>> prepared(data).num_boosted_rounds()
        1
    """

    def __init__(self, params: Mapping[str, Any], like: Any, rounds: int | None = 1) -> None:
        self.params = {k: v for k, v in params.items() if v is not None}
        prepared = prepare(self.params, read_schema(like), rounds)
        self.settings, self.noise = prepared.settings, prepared.noise
        self._draft = prepared.draft
        if self.settings.noise_free:
            raise PrivacyParameterError(
                "`dp_epsilon` is infinite, so the training makes no claim to audit. Pass a finite "
                "value."
            )
        self.claim: Claim = make_accountant("exact", prepared.events)
        self._rounds = rounds
        self._follows_rows = prepared.family is not None

    def plan(self, test_key: str) -> dict[str, Any]:
        """The calibrated plan with a fixed key, for ``xgb_dp.testing.train_with_plan``.

        Args:
            test_key: 64 hexadecimal digits. The plan is marked non-private.

        Raises:
            PrivacyParameterError: The number of rounds is None, so there are several plans.
        """
        if self._follows_rows:
            raise PrivacyParameterError(
                "`rounds` is missing. Without it the number of rows determines the plan, so there "
                "is no single plan. Pass `rounds`."
            )
        return planning.with_noise(self._draft, self.noise, test_key)

    def __call__(self, dtrain: Any) -> Any:
        """Train once.

        Args:
            dtrain: ``xgboost.DMatrix`` with the schema of `like`.

        Returns:
            xgboost.Booster: The model, with its ledger.
        """
        import xgboost

        rounds = DEFAULT_ROUNDS if self._rounds is None else self._rounds
        return xgboost.train(self.params, dtrain, rounds)


def audit_neighbours(
    train: Callable[[Data], float],
    d: Data,
    d2: Data,
    claim: Claim,
    *,
    trainings: int = 2000,
    name: str = "training",
    statistic: str = "score",
    confidence: float = 0.95,
    deltas: Sequence[float] = DELTAS,
) -> AuditResult:
    """Train many times on each of two neighbouring data sets, and test the claim on a score.

    Args:
        train: Function that trains on its argument and returns one finite number, computed from
            the model in any way. It must draw fresh noise in every call.
        d: Training data.
        d2: The training data with one row added or removed.
        claim: Claimed privacy curve of the trainer, e.g. its ``privacy_report``.
        trainings: Number of trainings on each data set, at least 30. About 60 suffice to detect
            an infinite epsilon against a claim of 1; a factor of 1.4 in the noise needs thousands.
        name: Name for the report.
        statistic: Name of the number for the report.
        confidence: A true claim is rejected with probability at most 1 - confidence.
        deltas: Deltas at which to test the claimed curve.

    Returns:
        AuditResult: See :func:`xgb_dp.audit.audit_scores`.

    Examples:
        >>> from xgb_dp.audit import PreparedTraining, audit_neighbours
        >>> prepared = PreparedTraining(params, data, rounds=1)
        >>> def score(rows):
        ...     return float(prepared(rows).predict(data)[0])
        >>> fewer = data.slice(np.arange(1, data.num_row()))
        >>> result = audit_neighbours(score, data, fewer, prepared.claim, trainings=30)
        >>> result.draws
        60
    """
    scores = np.array([(train(d), train(d2)) for _ in range(trainings)], dtype=np.float64)
    return audit_scores(
        scores[:, 0],
        scores[:, 1],
        claim,
        name=name,
        statistic=statistic,
        confidence=confidence,
        deltas=deltas,
    )


def audit_one_run(
    train: Callable[[npt.NDArray[np.bool_]], Model],
    score: Callable[[Model], npt.ArrayLike],
    canaries: int,
    claim: Claim,
    *,
    delta: float,
    guesses: int | None = None,
    seed: int | None = None,
    name: str = "one training",
    statistic: str = "loss of canaries",
    confidence: float = 0.95,
) -> AuditResult:
    """Audit one full training with many canaries (Steinke, Nasr and Jagielski 2023).

    Each canary is included independently with probability 1/2. The auditor guesses that the
    canaries with the highest scores are included and those with the lowest scores are not, and
    abstains on the others.

    Args:
        train: Function that trains on the canaries marked True in its argument, and on other data.
        score: Function of the model that returns one finite number per canary, higher if the
            canary seems included, e.g. its negative loss or its margin towards its label.
        canaries: Number m of canaries, each one row of data.
        claim: Claimed privacy curve of the trainer.
        delta: Delta at which to test the curve. The theorem adds up to 2 m delta to the p-value,
            so delta should be far below 1 / (20 m).
        guesses: Number of guesses, half of them for each end of the scores; by default a quarter of
            the canaries. It must be fixed before the scores are seen.
        seed: Seed of the random inclusion, which the trainer must not know; by default random.
        name: Name for the report.
        statistic: Name of the scores for the report.
        confidence: A true claim is rejected with probability at most 1 - confidence.

    Returns:
        AuditResult: ``draws`` is the number of canaries.

    Examples:
        >>> from xgb_dp.audit import audit_one_run
        >>> def train(included):
        ...     kept = np.concatenate([np.flatnonzero(included), np.arange(200, 2000)])
        ...     return xgb.train(params, data.slice(kept), 5)
        >>> def score(trained):
        ...     margin = trained.predict(data, output_margin=True)[:200]
        ...     return np.where(label[:200] == 1, margin, -margin)
        >>> claim = xgb_dp.privacy_report(model)
        >>> result = audit_one_run(train, score, canaries=200, claim=claim, delta=1e-6)
        >>> result.draws
        200
    """
    guesses = canaries // 4 if guesses is None else guesses
    if not 2 <= guesses <= canaries:
        raise ValueError("`guesses` must lie between 2 and `canaries`.")
    included = np.random.default_rng(seed).random(canaries) < 0.5
    scores = np.asarray(score(train(included)), dtype=np.float64)
    if scores.shape != (canaries,) or not np.isfinite(scores).all():
        raise ValueError("`score` must return one finite number per canary.")
    correct = _count_correct(scores, included, guesses)
    bound = one_run_lower_bound(canaries, guesses, correct, delta, confidence)
    shown = f"{statistic}, {correct} of {guesses} guesses right"
    return AuditResult(name, shown, canaries, delta, claim.get_epsilon(delta), bound, confidence)


def _count_correct(scores: Floats, included: npt.NDArray[np.bool_], guesses: int) -> int:
    """Number of excluded canaries among the lowest scores plus included ones among the highest."""
    order = np.argsort(scores, kind="stable")
    low, high = order[: guesses // 2], order[len(order) - (guesses - guesses // 2) :]
    return int(np.count_nonzero(~included[low]) + np.count_nonzero(included[high]))


Ints = npt.NDArray[np.int64]

_SELECTION = 1.0 / 3.0  # share of the draws that is used to choose the rejection set
_THRESHOLDS = 400
# Among thousands of rejection sets, some look good by chance. The choice therefore uses bounds at
# this higher confidence, or an excess of at least _CLEAR standard deviations.
_CAUTION = 0.99
_CLEAR = 5.0


def _hits(scores: Floats, thresholds: Floats) -> Ints:
    """Number of scores that are at least each threshold."""
    return len(scores) - np.searchsorted(np.sort(scores), thresholds, side="left")


def _deviations(a: Ints, n_a: int, b: Ints, n_b: int, epsilon: float, delta: float) -> Floats:
    """Estimate by how many standard deviations each rejection set violates the claim."""
    p, q = a / n_a, (b + 1.0) / (n_b + 2.0)
    p1 = (a + 1.0) / (n_a + 2.0)
    factor = math.exp(min(epsilon, 300.0))
    variance = p1 * (1.0 - p1) / n_a + factor**2 * q * (1.0 - q) / n_b
    return np.asarray((p - factor * q - delta) / np.sqrt(variance), dtype=np.float64)


def _thresholds(d: Floats, d2: Floats) -> Floats:
    """Quantiles of both samples, densest in the tails."""
    tails = np.geomspace(1e-6, 0.5, _THRESHOLDS // 2)
    levels = np.concatenate([tails, 1.0 - tails])
    return np.unique(np.concatenate([np.quantile(s, levels, method="nearest") for s in (d, d2)]))


def _hits_each_way(x: Floats, y: Floats, thresholds: Floats) -> list[tuple[Ints, int, Ints, int]]:
    """Hits and draws of both samples, above and below the thresholds, in both orders."""
    above_x, above_y = _hits(x, thresholds), _hits(y, thresholds)
    above = (above_x, len(x), above_y, len(y))
    below = (len(x) - above_x, len(x), len(y) - above_y, len(y))
    return [above, (*above[2:], *above[:2]), below, (*below[2:], *below[:2])]


def _rejection_set(x: Floats, y: Floats, claimed: Mapping[float, float]) -> tuple[int, float]:
    """Direction and end of the half line that exceeds the claim by the most standard deviations.

    If no half line exceeds it clearly, use the half line with the best bound.
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
    """The smallest clearly violated delta, or else the one where the bound is nearest the claim."""
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
        d: Scores under the first data set: one finite number per output.
        d2: Scores under the second data set. The order of outputs must not depend on the scores.
        claim: Claimed privacy curve.
        name: Name for the report.
        statistic: Name of the scores for the report.
        confidence: A true claim is rejected with probability at most 1 - confidence.
        deltas: Deltas at which to test the curve.

    Returns:
        AuditResult: The result at the smallest clearly violated delta; without a violation, at the
            delta with the closest bound.

    Raises:
        ValueError: Fewer than 30 scores, or scores that are not finite.

    Examples:
        >>> from xgb_dp.audit import audit_scores
        >>> claim = xgb_dp.privacy_report(model)
        >>> scores = rng.normal(size=4000)
        >>> audit_scores(scores, scores, claim).violated  # the row changes no output
        False
    """
    x, y = np.asarray(d, dtype=np.float64), np.asarray(d2, dtype=np.float64)
    if min(x.size, y.size) < 30 or not (np.isfinite(x).all() and np.isfinite(y).all()):
        raise ValueError("`d` and `d2` must each contain at least 30 finite scores.")
    claimed = {delta: claim.get_epsilon(delta) for delta in deltas}
    informative = {d: e for d, e in claimed.items() if np.isfinite(e) and e > 0} or claimed
    cut_x, cut_y = int(len(x) * _SELECTION), int(len(y) * _SELECTION)
    direction, threshold = _rejection_set(x[:cut_x], y[:cut_y], informative)
    hits = _hits_each_way(x[cut_x:], y[cut_y:], np.array([threshold]))[direction]
    bounds = {d: float(epsilon_lower_bound(*hits, d, confidence)[0]) for d in informative}
    at = _delta_to_report(bounds, informative)
    return AuditResult(name, statistic, x.size + y.size, at, claimed[at], bounds[at], confidence)
