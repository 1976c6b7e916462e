"""Bounds a sampled round for several rows that were added, removed or exchanged.

Proof: docs/proofs/sampling.md, "Several rows"
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
from scipy.special import gammaln, logsumexp

Array = npt.NDArray[np.float64]
Curve = Callable[[Array], Array]

_HALVINGS = 40
_REACH = 60.0
_UP = 1.0 + 1e-10


def several_rows(rate: float, mu: float, curves: Sequence[Curve], *, replaced: bool) -> Curve:
    """Upper bound at losses >= 0 of the hockey stick of a sampled round, in both orders."""
    rows = len(curves)
    if rate >= 1.0:
        return curves[-1]
    removed = [rows // 2] if replaced else list(range(rows + 1))

    def bound(x: Array) -> Array:
        values = [_bound(rate, mu, curves, first, rows - first, x) for first in removed]
        return np.asarray(np.max(values, axis=0))

    return bound


def _log_binomial(rows: int, rate: float) -> Array:
    """Logarithms of the chances that 0, 1, ... of so many rows are read."""
    k = np.arange(rows + 1)
    ways = gammaln(rows + 1) - gammaln(k + 1) - gammaln(rows - k + 1)
    return np.asarray(ways + k * math.log(rate) + (rows - k) * math.log1p(-rate))


def _bound(
    rate: float, mu: float, curves: Sequence[Curve], first: int, second: int, x: Array
) -> Array:
    """The hockey stick of A, with `first` rows of its own, and B, with `second` rows, at x >= 0.

    A - e^x B = sum a_j A_j - sum b_k B_k, where j and k are the rows that are read. Each A_j is
    compared with each B_k, in proportions that give the thresholds of one test for Gaussian noise.
    """
    log_a = np.repeat(_log_binomial(first, rate)[:, None], x.size, axis=1)
    log_b = _log_binomial(second, rate)[:, None] + x
    # What reads none of the rows is the same on both sides.
    gap = x + (second - first) * math.log1p(-rate)
    with np.errstate(divide="ignore"):
        log_b[0] = log_a[0] + gap + np.log(np.maximum(-np.expm1(-gap), 0.0))
        log_a[0] += np.log(np.maximum(-np.expm1(gap), 0.0))
    j, k = np.arange(first + 1)[:, None], np.arange(second + 1)[:, None]

    def at(test: Array) -> tuple[Array, Array]:
        """Densities of A_j and B_k at the threshold of a test, against that of reading none."""
        return j * mu * test - (j * mu) ** 2 / 2.0, -k * mu * test - (k * mu) ** 2 / 2.0

    low = np.full_like(x, -_REACH - (first + second) * mu)
    high = -low
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        dense_a, dense_b = at(middle)
        more = logsumexp(log_a + dense_a, axis=0) > logsumexp(log_b + dense_b, axis=0)
        low, high = np.where(more, low, middle), np.where(more, middle, high)
    dense_a, dense_b = at(low)
    whole = logsumexp(log_b + dense_b, axis=0)
    scale = logsumexp(log_a + dense_a, axis=0) - whole
    total = np.zeros_like(x)
    for m in range(first + 1):
        for n in range(second + 1):
            if m + n == 0:
                continue  # one of the two has nothing left
            weight = np.exp(log_a[m] + log_b[n] + dense_b[n] - whole)
            threshold = dense_a[m] - dense_b[n] - scale
            # A threshold that is off by this much moves a probability by no more.
            size = np.abs(dense_a[m]) + np.abs(dense_b[n]) + np.abs(log_b[n]) + np.abs(whole)
            error = 2.0**-50 * (16.0 + np.where(weight > 0.0, size, 0.0))
            total += weight * (curves[m + n - 1](threshold) + error)
    return np.asarray(np.minimum(total * _UP, 1.0))
