"""Finds what several rows cost from what fewer rows cost, one step after another.

Proof: docs/proofs/neighbours.md, "In steps"
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from .curve import Curve, narrow

MOST_ROWS = 20  # in one step; of more rows at once only a coarse bound of sampled rounds is known

_UP = 1.0 + 1e-12
_LOWEST = -560.0  # log of a step's delta: no curve holds a smaller one
_LOWEST_DELTA = 1e-200  # of a step that a curve still shows
_ENOUGH = 1e-3  # of epsilon


def epsilon_in_steps(curve: Curve, delta: float, steps: int) -> float:
    """Epsilon of several rows: the sum over steps, each of few rows and at a smaller delta."""
    if delta <= 0.0:
        return steps * curve.epsilon(0.0) * _UP
    epsilons: dict[float, float] = {}

    def is_safe(log_delta: float) -> bool:
        epsilon = epsilons[log_delta] = curve.epsilon(math.exp(log_delta))
        return log_delta + _log_growth(epsilon, steps) <= math.log(delta)

    # Each answer says how small the delta of a step has to be at its epsilon.
    unsafe = math.log(delta)
    safe = unsafe - math.log(steps)
    lowest = _LOWEST  # from here on there is no answer
    while not is_safe(safe):
        if math.isinf(epsilons[safe]):
            lowest = safe
        else:
            unsafe = safe
            wanted = math.log(delta) - _log_growth(epsilons[safe], steps)
            safe = wanted - 0.1 - 0.1 * (safe - wanted)
        if safe <= lowest:
            if unsafe - lowest < 1e-3:
                return math.inf
            safe = 0.5 * (lowest + unsafe)
    while unsafe - safe > 0.02:
        if epsilons[safe] - epsilons.get(unsafe, 0.0) <= _ENOUGH * epsilons[safe]:
            break
        safe, unsafe = narrow(is_safe, safe, unsafe, 1)
    return steps * epsilons[safe] * _UP


def delta_in_steps(curve: Curve, epsilon: float, steps: int) -> float:
    """Delta of several rows at an epsilon, of which every step takes the same part."""
    if math.isinf(epsilon):
        return curve.delta(epsilon)
    part = epsilon_of_step(epsilon, steps)
    return delta_of_steps(curve.delta(part), part, steps)


def epsilon_of_step(epsilon: float, steps: int) -> float:
    """The part of an epsilon, in nats, that each of so many steps takes."""
    return epsilon / steps * (1.0 - 1e-15)


def delta_of_steps(delta: float, part: float, steps: int) -> float:
    """Delta of all rows together, where that of every step is `delta` at the epsilon `part`."""
    if delta == 0.0:
        return 0.0
    return math.exp(min(0.0, math.log(delta) + _log_growth(part, steps)))


def _log_growth(epsilon: float, steps: int) -> float:
    """The logarithm of 1 + e^epsilon + ... + e^((steps-1) epsilon), raised by its rounding."""
    terms = math.expm1(-steps * epsilon) / math.expm1(-epsilon) if epsilon else float(steps)
    largest = (steps - 1) * epsilon  # taken out of the sum
    return largest + math.log(terms) + 1e-12 * (1.0 + largest)


class Smallest(Curve):
    """The smallest bound: of all rows, in steps, or of pure losses (Laplace noise has no tail)."""

    def __init__(
        self, whole: Curve, pure: Curve, step: Curve | None = None, steps: int = 1
    ) -> None:
        self._whole, self._pure, self._step, self._steps = whole, pure, step, steps

    def epsilon(self, delta: float) -> float:
        """See :class:`Curve`."""
        value = min(self._whole.epsilon(delta), self._pure.epsilon(delta))
        if self._step is not None and 0.0 < delta < 1.0 and value > 0.0:
            value = min(value, epsilon_in_steps(self._step, delta, self._steps))
        return value

    def delta(self, epsilon: float) -> float:
        """See :class:`Curve`."""
        value = min(self._whole.delta(epsilon), self._pure.delta(epsilon))
        if self._step is not None and value > 0.0:
            value = min(value, delta_in_steps(self._step, epsilon, self._steps))
        return value

    def deltas(self, points: Sequence[float], lowest: float) -> list[float]:
        """See :class:`Curve`."""
        deltas = self._whole.deltas(points, lowest)
        if self._step is not None:
            parts = [epsilon_of_step(x, self._steps) for x in points]
            # What a step may be loose by grows at most so much.
            growth = math.exp(-min(max(points), 300.0))
            of_step = self._step.deltas(parts, max(lowest * growth / self._steps, _LOWEST_DELTA))
            stepped = map(delta_of_steps, of_step, parts, [self._steps] * len(parts))
            deltas = list(map(min, deltas, stepped))
        return [min(delta, self._pure.delta(x)) for x, delta in zip(points, deltas, strict=True)]
