"""Accounts for noisy counts of cells whose names come from the data, published above a threshold.

Proof: docs/proofs/discovery.md
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import scipy

from .curve import Curve
from .events import ThresholdEvent

_UP = 1.0 + 1e-9
_SHARES = (*(10.0**-k for k in range(11, 0, -1)), 0.5, 0.9)


def tail(sigma2: int, least: int) -> float:
    """Upper bound of the probability that discrete Gaussian noise is at least `least`."""
    if least < 1:
        return 1.0
    # The normalising sum is at least sqrt(2 pi sigma2), and the tail below the integral.
    return min(1.0, float(scipy.special.ndtr(-(least - 1) / math.sqrt(sigma2))) * _UP)


def failure_of(event: ThresholdEvent, rows: int) -> float:
    """The event's contribution to delta if `rows` rows are added or removed. It may exceed 1."""
    if not event.count:
        return 0.0
    least = event.threshold - rows * event.sensitivity
    each = tail(event.sigma2, least) if event.sigma2 else 1.0
    return rows * event.count * -math.log1p(-each) if each < 1.0 else math.inf


class WithThresholds(Curve):
    """Composes thresholds with other releases: failure probabilities of thresholds add to delta."""

    def __init__(self, rest: Curve, events: Sequence[ThresholdEvent], rows: int) -> None:
        self._rest, self._several = rest, rows > 1
        self._failure = math.fsum(failure_of(event, rows) for event in events) * _UP
        # Alternative bound for several rows: e^epsilon times this is added to delta.
        each = ((e, tail(e.sigma2, e.threshold) if e.sigma2 else 1.0) for e in events)
        self._tail = math.fsum(rows * e.count * chance for e, chance in each) * _UP

    def epsilon(self, delta: float) -> float:
        """See :class:`Curve`."""
        if delta >= 1.0:
            return 0.0
        best = math.inf
        if self._failure < delta:
            best = self._rest.epsilon(delta - self._failure)
        value = 0.0  # epsilon of a smaller share, which is not larger
        for share in _SHARES if self._several and 0.0 < self._tail < delta else ():
            if value < 700.0 and math.exp(value) * self._tail * _UP <= delta * share:
                value = self._rest.epsilon(delta * (1.0 - share))
                if value < 700.0 and math.exp(value) * self._tail * _UP <= delta * share:
                    return min(best, value)
        return best

    def delta(self, epsilon: float) -> float:
        """See :class:`Curve`."""
        added = self._failure
        if self._several and epsilon < 700.0:
            added = min(added, math.exp(epsilon) * self._tail * _UP)
        return min(1.0, self._rest.delta(epsilon) + added)
