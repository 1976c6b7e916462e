"""Finds what several rows cost from what one row costs, one step after another.

Proof: docs/proofs/neighbours.md, "In steps"
"""

from __future__ import annotations

import math

from .accountant import Accountant
from .search import narrow

__all__ = ["delta_in_steps", "delta_of_steps", "epsilon_in_steps", "epsilon_of_step"]

_UP = 1.0 + 1e-12
_LOWEST = -560.0  # log of a step's delta: no curve holds a smaller one
_ENOUGH = 1e-3  # of epsilon


def epsilon_in_steps(books: Accountant, delta: float, steps: int, each: int = 1) -> float:
    """Epsilon of several rows: the sum over steps, each of few rows and at a smaller delta.

    Args:
        books: What was released.
        delta: In (0, 1), of all rows together.
        steps: >= 2.
        each: Rows added or removed in a step.

    Returns:
        float: In nats; infinite if no step has a delta small enough.
    """
    if delta <= 0.0:
        return steps * books.get_epsilon(0.0, each) * _UP
    found: dict[float, float] = {}

    def is_safe(log_delta: float) -> bool:
        epsilon = found[log_delta] = books.get_epsilon(math.exp(log_delta), each)
        return log_delta + _log_growth(epsilon, steps) <= math.log(delta)

    # Each answer says how small the delta of a step has to be at its epsilon.
    unsafe = math.log(delta)
    safe = unsafe - math.log(steps)
    lowest = _LOWEST  # from here on there is no answer
    while not is_safe(safe):
        if math.isinf(found[safe]):
            lowest = safe
        else:
            unsafe = safe
            wanted = math.log(delta) - _log_growth(found[safe], steps)
            safe = wanted - 0.1 - 0.1 * (safe - wanted)
        if safe <= lowest:
            if unsafe - lowest < 1e-3:
                return math.inf
            safe = 0.5 * (lowest + unsafe)
    while unsafe - safe > 0.02 and found[safe] - found.get(unsafe, 0.0) > _ENOUGH * found[safe]:
        safe, unsafe = narrow(is_safe, safe, unsafe, 1)
    return steps * found[safe] * _UP


def delta_in_steps(books: Accountant, epsilon: float, steps: int, each: int = 1) -> float:
    """Delta of several rows at an epsilon, of which every step takes the same part.

    Args:
        books: What was released.
        epsilon: In nats, >= 0, of all rows together.
        steps: >= 2.
        each: Rows added or removed in a step.
    """
    if math.isinf(epsilon):
        return books.get_delta(epsilon, each)
    part = epsilon_of_step(epsilon, steps)
    return delta_of_steps(books.get_delta(part, each), part, steps)


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
