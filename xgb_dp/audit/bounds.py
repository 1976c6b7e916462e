"""Statistics of audits: confidence lower bounds on epsilon from counts of hits.

This module draws no noise and reads no data. The caller supplies the counts, and must have fixed
the rejection set before seeing the counted draws.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
from scipy.special import betaincinv
from scipy.stats import binom

from ..accounting.curve import doubled, narrow

Floats = npt.NDArray[np.float64]

DELTAS = (1e-6, 1e-5, 1e-4, 1e-3, 3e-3, 1e-2, 3e-2, 0.1, 0.2, 0.4)
"""Points of the claimed curve to test; a violation at any of these deltas refutes the claim."""


class Claim(Protocol):
    """The claim of a trainer: its (epsilon, delta) curve for one added or removed row.

    :class:`xgb_dp.accounting.ExactAccountant` and :class:`xgb_dp.PrivacyReport` are claims.
    """

    def get_epsilon(self, delta: float) -> float:
        """Claimed epsilon in nats at `delta`; infinite without a claim at this delta."""


@dataclass(frozen=True)
class ApproximateClaim:
    """A claim of (epsilon, delta)-differential privacy; delta = 0 means pure privacy.

    Attributes:
        epsilon: In nats, >= 0.
        delta: In [0, 1).
    """

    epsilon: float
    delta: float = 0.0

    def get_epsilon(self, delta: float) -> float:
        """The claimed epsilon at the claimed delta and above; otherwise infinite."""
        return self.epsilon if delta >= self.delta else math.inf


@dataclass(frozen=True)
class AuditResult:
    """Outcome of one audit.

    Attributes:
        name: Name of the audit.
        statistic: Statistic that the attacker uses.
        draws: Number of independent outputs; for a one-run audit, number of canaries.
        delta: Delta of the claimed curve at which the bound is stated.
        claimed_epsilon: Claimed epsilon at `delta`, in nats.
        lower_bound: Lower bound of the true epsilon at `delta` with this `confidence`, in nats.
            Negative or -inf if the draws show no privacy loss.
        confidence: A true claim is rejected with probability at most 1 - confidence.

    Examples:
        >>> from xgb_dp.audit import audit_scores
        >>> claim = xgb_dp.privacy_report(model)
        >>> result = audit_scores(np.zeros(2000), np.ones(2000), claim)  # one row determines all
        >>> result.verdict
        'VIOLATED'
    """

    name: str
    statistic: str
    draws: int
    delta: float
    claimed_epsilon: float
    lower_bound: float
    confidence: float

    @property
    def violated(self) -> bool:
        """Whether the claim is refuted."""
        return self.lower_bound > self.claimed_epsilon

    @property
    def verdict(self) -> str:
        """The result in words."""
        return "VIOLATED" if self.violated else "no violation"


def clopper_pearson(hits: npt.ArrayLike, n: int, alpha: float) -> tuple[Floats, Floats]:
    """Exact confidence limits of a binomial probability (Clopper and Pearson 1934)."""
    k = np.asarray(hits, dtype=np.float64)
    if n < 1 or np.any(k < 0) or np.any(k > n):
        raise ValueError("`hits` must lie between 0 and `n`, and `n` must be at least 1.")
    inside = np.clip(k, 1, n)
    low = np.where(k == 0, 0.0, betaincinv(inside, n - inside + 1, alpha))
    inside = np.clip(k, 0, n - 1)
    high = np.where(k == n, 1.0, betaincinv(inside + 1, n - inside, 1.0 - alpha))
    return low, high


def epsilon_lower_bound(
    hits_p: npt.ArrayLike,
    n_p: int,
    hits_q: npt.ArrayLike,
    n_q: int,
    delta: float,
    confidence: float = 0.95,
) -> Floats:
    """Lower bound on the epsilon of (epsilon, delta)-differential privacy from one rejection set S.

    P(S) <= e^epsilon Q(S) + delta. With Clopper-Pearson limits,
    epsilon >= ln((P_low - delta) / Q_high). The order of the neighbours must have been fixed in
    advance.

    Args:
        hits_p: Number of draws in S under the first neighbour.
        n_p: Number of draws under the first neighbour.
        hits_q: Number of draws in S under the second neighbour.
        n_q: Number of draws under the second neighbour.
        delta: In [0, 1).
        confidence: The bound is too large with probability at most 1 - confidence, simultaneously
            for all deltas.

    Returns:
        The bound in nats; negative if S shows no excess, -inf if the counts imply no bound.

    Examples:
        >>> from xgb_dp.audit import epsilon_lower_bound
        >>> round(float(epsilon_lower_bound(900, 1000, 200, 1000, delta=1e-6)), 2)
        1.36
    """
    alpha = (1.0 - confidence) / 2.0
    low, high = clopper_pearson(hits_p, n_p, alpha)[0], clopper_pearson(hits_q, n_q, alpha)[1]
    with np.errstate(divide="ignore"):
        gap: Floats = np.log(np.maximum(low - delta, 0.0))
    return gap - np.log(np.maximum(high, 1e-300))


def one_run_p_value(m: int, guesses: int, correct: int, epsilon: float, delta: float) -> float:
    """Upper bound of the p-value of `correct` guesses under a claim of (epsilon, delta).

    Theorem 5.2 of Steinke, Nasr and Jagielski, "Privacy Auditing with One (1) Training Run" (2023),
    in the form of its appendix: with W ~ Binomial(guesses, e^eps / (1 + e^eps)),
    P[correct >= v] <= P[W >= v] + 2 m delta max_{1<=i<=v} P[v - i <= W < v] / i.

    Args:
        m: Number of canaries, each included independently with probability 1/2.
        guesses: Number of guesses. The auditor abstains on the other canaries, which may be chosen
            by their scores.
        correct: Number v of correct guesses.
        epsilon: Claimed epsilon in nats, >= 0.
        delta: Claimed delta, in [0, 1].

    Raises:
        ValueError: 0 <= correct <= guesses <= m does not hold, or the claim is out of range.

    Examples:
        >>> from xgb_dp.audit import one_run_p_value
        >>> one_run_p_value(1000, guesses=200, correct=190, epsilon=1.0, delta=1e-6) < 1e-3
        True
    """
    if not 0 <= correct <= guesses <= m:
        raise ValueError("`correct`, `guesses` and `m` must satisfy 0 <= correct <= guesses <= m.")
    if not (epsilon >= 0.0 and 0.0 <= delta <= 1.0):
        raise ValueError("`epsilon` must be at least 0, and `delta` must lie in [0, 1].")
    accuracy = 1.0 / (1.0 + math.exp(-epsilon))
    beta = float(binom.sf(correct - 1, guesses, accuracy))
    alpha = 0.0
    if delta > 0.0 and correct > 0:
        i = np.arange(1, correct + 1)
        below = np.cumsum(binom.pmf(correct - i, guesses, accuracy))
        alpha = float(np.max(below / i))
    return min(1.0, beta + 2.0 * m * delta * alpha)


def one_run_lower_bound(
    m: int, guesses: int, correct: int, delta: float, confidence: float = 0.95
) -> float:
    """Lower bound on the trainer's epsilon at `delta`: the largest epsilon that one run refutes.

    Args:
        m: Number of canaries; see :func:`one_run_p_value`.
        guesses: Number of guesses.
        correct: Number of correct guesses.
        delta: Claimed delta, in [0, 1].
        confidence: The bound is too large with probability at most 1 - confidence.

    Returns:
        The bound in nats; 0 if the run refutes no epsilon.

    Examples:
        >>> from xgb_dp.audit import one_run_lower_bound
        >>> round(one_run_lower_bound(1000, guesses=200, correct=190, delta=1e-6), 2)
        2.4
    """
    level = 1.0 - confidence

    def rejected(epsilon: float) -> bool:
        return not one_run_p_value(m, guesses, correct, epsilon, delta) >= level

    if not rejected(0.0):
        return 0.0
    low, high = doubled(rejected, 700.0)
    return low if high > 700.0 else narrow(rejected, low, high, 50)[0]
