"""What releases on both parts of a split cost together while nobody knows who is in which part.

Proof: docs/proofs/secret-splits.md
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import scipy

from ..data.parts import COIN_BITS, may_hide
from .curve import narrow
from .events import Event, one_unit
from .exact import ExactAccountant
from .grid_curve import ChordTable, both_signs

_POINTS = 150  # of the curve of a part
_BEYOND = 1e-4  # of delta, for losses above the last point
_REACH = 12.0  # log-odds beyond which no division of a factor is tried
_DOWN = 1e-12  # by which arguments are lowered, more than their rounding
_UP = 1.0 + 1e-12

Delta = Callable[[float], float]


def mixed_delta(epsilon: float, share: float, first: Delta, second: Delta) -> float:
    """Upper bound of the hockey stick where a secret coin decides on what a row takes part in."""
    coin = (math.log(share), math.log1p(-share))
    low = epsilon - _DOWN * (1.0 + abs(epsilon))
    expit, log_expit = scipy.special.expit, scipy.special.log_expit

    def removed(odds: float) -> float:
        parts = low + float(log_expit(odds)) - coin[0], low + float(log_expit(-odds)) - coin[1]
        return share * first(parts[0]) + (1.0 - share) * second(parts[1])

    def added(odds: float) -> float:
        parts = low + coin[0] - float(log_expit(odds)), low + coin[1] - float(log_expit(-odds))
        return float(expit(odds)) * first(parts[0]) + float(expit(-odds)) * second(parts[1])

    # Every division of the factor e^epsilon gives a bound. The search only finds a good one.
    reach = abs(epsilon) + abs(coin[0] - coin[1]) + _REACH
    ends = {"bounds": (-reach, reach), "method": "bounded", "options": {"xatol": 1e-7}}
    best = [float(scipy.optimize.minimize_scalar(order, **ends).fun) for order in (removed, added)]
    return min(1.0, max(*best) * _UP)


@dataclass(frozen=True)
class SecretSplit:
    """Releases on the rows of a split whose coins stay secret, fixed before the first of them."""

    test_num: int  # a row, or a person, is in the second part with probability test_num / 2**32
    # what is released from the first part and from all rows, in release order
    train: tuple[Event, ...]
    # what is released from the second part and from all rows, in release order
    test: tuple[Event, ...]

    def __post_init__(self) -> None:
        if not may_hide(self.test_num):
            raise ValueError("`test_num` must be between 0.01 and 0.99 of 2**32.")
        one_unit((*self.train, *self.test))

    def get_epsilon(self, delta: float) -> float:
        """Certified epsilon of all releases together, for one row or person added or removed.

        It does not add up with what else is released from the parts: their coin is the same.
        """
        share = 1.0 - self.test_num / 2**COIN_BITS
        parts = [_Part(events, delta * _BEYOND) for events in (self.train, self.test)]
        most = max(part.most for part in parts)

        def is_safe(epsilon: float) -> bool:
            return mixed_delta(epsilon, share, *(part.delta for part in parts)) <= delta

        if math.isinf(most) or not is_safe(most):
            return math.inf
        return narrow(is_safe, most, 0.0, 30)[0]


class _Part:
    """Curve of what one part takes part in, by chords down to the delta `lowest`."""

    def __init__(self, events: Sequence[Event], lowest: float) -> None:
        curve = ExactAccountant(events).privacy_curve()
        self.most = curve.epsilon(lowest)
        if math.isfinite(self.most):
            points = np.linspace(0.0, self.most or 1.0, _POINTS)
            self._table = ChordTable(points, np.array(curve.deltas(list(points), lowest)))

    def delta(self, epsilon: float) -> float:
        """Upper bound at any real epsilon."""
        return float(both_signs(self._table, np.array([epsilon]))[0])
