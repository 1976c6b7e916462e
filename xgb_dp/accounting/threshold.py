"""Accounts for noisy counts of cells that only the rows name, where the large ones are shown.

Proof: docs/proofs/discovery.md
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from scipy.special import ndtr

from .accountant import Accountant
from .events import Event, check_int
from .plain import PlainEvent

__all__ = ["ThresholdEvent", "WithThresholds", "tail"]

_UP = 1.0 + 1e-9
_SHARES = (0.5, 0.1, 0.9, *(10.0**-k for k in range(2, 12)))


def tail(sigma2: int, least: int) -> float:
    """Upper bound of the chance that discrete Gaussian noise is at least a number.

    Args:
        sigma2: Parameter of the noise, >= 1.
        least: The number. If it is below 1, the bound is 1.
    """
    if least < 1:
        return 1.0
    # The normalising sum is at least sqrt(2 pi sigma2), and the tail below the integral.
    return min(1.0, float(ndtr(-(least - 1) / math.sqrt(sigma2))) * _UP)


@dataclass(frozen=True)
class ThresholdEvent(PlainEvent):
    """Cells that appear in a release only where their noisy count reaches a threshold.

    The event pays for the fact that a cell appears which one row (or person) alone has made. The
    counts themselves are a Gaussian event of their own.

    Attributes:
        release: What is shown: "categories".
        sensitivity: What one row adds to a cell at most, in grid units, >= 1.
        sigma2: Parameter of the noise of the count, in the same unit squared, >= 1; 0 stands for no
            noise, which costs everything.
        threshold: The least noisy count that is shown, in grid units, >= 0.
        count: How many such cells one row can make, >= 0; one in each column.

    Examples:
        >>> from xgb_dp.accounting.threshold import ThresholdEvent
        >>> event = ThresholdEvent("categories", sensitivity=1, sigma2=16, threshold=25, count=1)
        >>> event.failure(group=1) < 1e-8  # what one row alone has made appears this rarely
        True
    """

    mechanism = "threshold"
    sensitivity: int
    sigma2: int
    threshold: int
    count: int

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("sensitivity", "sigma2", "threshold", "count"):
            check_int(name, getattr(self, name), 1 if name == "sensitivity" else 0)

    def failure(self, group: int) -> float:
        """What the event adds to delta for a group of rows. It may be above 1."""
        if not self.count:
            return 0.0
        each = 1.0
        if self.sigma2:
            each = tail(self.sigma2, self.threshold - group * self.sensitivity)
        return group * self.count * -math.log1p(-each) if each < 1.0 else math.inf

    def tail_failure(self, group: int) -> float:
        """What e^epsilon times is added to delta; another bound, for large groups."""
        each = tail(self.sigma2, self.threshold) if self.sigma2 else 1.0
        return group * self.count * each

    @property
    def mu2(self) -> float:
        """See :class:`Event`."""
        return 0.0

    @property
    def noise(self) -> str:
        """See :class:`Event`."""
        return f"shown from {self.threshold / self.sensitivity:.4g} on"

    def pure(self) -> float:
        """See :class:`Event`."""
        return math.inf if self.count else 0.0

    def simplified(self, coins: int) -> tuple[list[Event], list[Event]]:
        """See :class:`Event`."""
        raise TypeError("A threshold has no curve; see WithThresholds.")

    def _covered(self, limit: ThresholdEvent) -> bool:
        return (
            (self.sigma2, self.sensitivity) == (limit.sigma2, limit.sensitivity)
            and self.threshold >= limit.threshold
        )  # fmt: skip


class WithThresholds(Accountant):
    """Composes thresholds with everything else: the failures of thresholds are added to delta."""

    def __init__(self, rest: Accountant, thresholds: Sequence[ThresholdEvent]) -> None:
        self._rest, self._thresholds = rest, list(thresholds)

    def _epsilon(self, delta: float, group: int) -> float:
        return self._epsilon_of(delta, group, group, replaced=False)

    def _delta(self, epsilon: float, group: int) -> float:
        return self._delta_of(epsilon, group, group, replaced=False)

    def _replaced_epsilon(self, delta: float, rows: int) -> float:
        return self._epsilon_of(delta, rows, 2 * rows, replaced=True)

    def _replaced_delta(self, epsilon: float, rows: int) -> float:
        return self._delta_of(epsilon, rows, 2 * rows, replaced=True)

    def _failure(self, group: int) -> float:
        return math.fsum(event.failure(group) for event in self._thresholds) * _UP

    def _tail_failure(self, group: int) -> float:
        return math.fsum(event.tail_failure(group) for event in self._thresholds) * _UP

    def _epsilon_of(self, delta: float, group: int, changed: int, *, replaced: bool) -> float:
        if delta >= 1.0:
            return 0.0
        best, failure = math.inf, self._failure(changed)
        if failure < delta:
            best = self._rest.get_epsilon(delta - failure, group, replaced=replaced)
        small = self._tail_failure(changed)
        for share in _SHARES if changed > 1 and 0.0 < small < delta else ():
            value = self._rest.get_epsilon(delta * (1.0 - share), group, replaced=replaced)
            if value < 700.0 and math.exp(value) * small * _UP <= delta * share:
                best = min(best, value)
        return best

    def _delta_of(self, epsilon: float, group: int, changed: int, *, replaced: bool) -> float:
        failure = self._failure(changed)
        if changed > 1 and epsilon < 700.0:
            failure = min(failure, math.exp(epsilon) * self._tail_failure(changed) * _UP)
        return min(1.0, self._rest.get_delta(epsilon, group, replaced=replaced) + failure)
