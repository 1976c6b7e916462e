"""Tests of claims on given rejection sets, and the claim of a Gaussian mechanism."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from xgb_dp.accounting.curve import doubled, root_above
from xgb_dp.accounting.gaussian import gaussian_delta
from xgb_dp.audit.bounds import DELTAS, Claim, epsilon_lower_bound

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class GaussianClaim:
    """A claim of mu-Gaussian differential privacy (Dong, Roth and Su 2022)."""

    mu: float

    def get_epsilon(self, delta: float) -> float:
        def excess(epsilon: float) -> float:
            return gaussian_delta(epsilon, self.mu) - delta

        def is_safe(epsilon: float) -> bool:
            return excess(epsilon) <= 0.0

        if is_safe(0.0):
            return 0.0
        _, high = doubled(lambda epsilon: not is_safe(epsilon))
        return root_above(excess, is_safe, 0.0, high, xtol=1e-10)


def bound_both_ways(
    hits_p: npt.ArrayLike,
    n_p: int,
    hits_q: npt.ArrayLike,
    n_q: int,
    delta: float,
    confidence: float = 0.95,
) -> Floats:
    """The best bound for a rejection set and its complement, with the neighbours in either order.

    The four bounds use four limits, so each limit holds with half of the error.
    """
    p, q = np.asarray(hits_p), np.asarray(hits_q)
    each = (
        (p, n_p, q, n_q),
        (q, n_q, p, n_p),
        (n_p - p, n_p, n_q - q, n_q),
        (n_q - q, n_q, n_p - p, n_p),
    )
    strict = 1.0 - (1.0 - confidence) / 2.0
    return np.max(
        [np.broadcast_arrays(epsilon_lower_bound(*hits, delta, strict))[0] for hits in each], axis=0
    )


def violates(
    claim: Claim, hits_p: int, n_p: int, hits_q: int, n_q: int, confidence: float = 0.95
) -> bool:
    """Whether counts refute a curve. The limits hold for all of its points at once."""
    counts = hits_p, n_p, hits_q, n_q
    return any(
        float(bound_both_ways(*counts, delta, confidence)) > claim.get_epsilon(delta)
        for delta in DELTAS
    )


def ratio_scores(d: npt.NDArray[np.generic], d2: npt.NDArray[np.generic]) -> tuple[Floats, Floats]:
    """Scores of unordered outcomes: log ratios of frequencies in the first third of the draws."""
    values = np.unique(np.concatenate([d, d2]))

    def frequencies(x: npt.NDArray[np.generic]) -> Floats:
        first = x[: len(x) // 3]
        counts = np.bincount(np.searchsorted(values, first), minlength=len(values))
        return np.asarray((counts + 0.5) / (len(first) + 0.5 * len(values)), dtype=np.float64)

    score = np.log(frequencies(d2)) - np.log(frequencies(d))
    return score[np.searchsorted(values, d)], score[np.searchsorted(values, d2)]
