"""Where something begins or ceases to hold, from a side that is known.

Certified numbers come from here: what is returned as safe was itself found to hold, so that no
tolerance of a root finder enters a guarantee. Nothing is assumed beyond what was asked; where a
condition changes more than once, one of the changes is found.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from scipy.optimize import brentq

__all__ = ["doubled", "narrow", "root_above"]


def doubled(holds: Callable[[float], bool], most: float = math.inf) -> tuple[float, float]:
    """Go up from 1 by doubling while something holds.

    Args:
        holds: The condition.
        most: From here on it is not asked any more.

    Returns:
        The last point at which it held, or 0, and the next one, at which it did not or which is at
        least `most`.
    """
    last, point = 0.0, 1.0
    while point < most and holds(point):
        last, point = point, 2.0 * point
    return last, point


def narrow(
    is_safe: Callable[[float], bool], safe: float, unsafe: float, steps: int
) -> tuple[float, float]:
    """Bisect between a safe point and an unsafe one, in either order.

    Args:
        is_safe: The condition; it holds at `safe`.
        safe: Where it holds.
        unsafe: Where it does not, or need not.
        steps: Halvings.

    Returns:
        A safe point, which is the one given or was found to be safe, and the unsafe one next to it.
    """
    for _ in range(steps):
        middle = 0.5 * (safe + unsafe)
        if is_safe(middle):
            safe = middle
        else:
            unsafe = middle
    return safe, unsafe


def root_above(
    excess: Callable[[float], float],
    is_safe: Callable[[float], bool],
    low: float,
    high: float,
    *,
    xtol: float,
    rtol: float = 4.0 * 2.0**-52,
) -> float:
    """A root of a falling function, moved up until it is safe.

    Args:
        excess: At least 0 at `low` and at most 0 at `high`.
        is_safe: Holds above the root, but for rounding.
        low: Lower end.
        high: Upper end.
        xtol: Absolute tolerance of the root before it is moved.
        rtol: Relative tolerance of the same.

    Returns:
        A point close to the root at which `is_safe` holds.
    """
    root = float(brentq(excess, low, high, xtol=xtol, rtol=rtol))
    step = 1e-9 * max(root, 1e-3)
    while not is_safe(root):
        root += step
        step *= 2.0
    return root
