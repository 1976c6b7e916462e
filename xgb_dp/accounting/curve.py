"""What a list of releases costs: delta for every epsilon, and epsilon for every delta.

Where a curve crosses a value is found from a side that is known. Certified numbers come from here:
what is returned as safe was itself found to hold, so that no tolerance of a root finder enters a
guarantee. Nothing is assumed beyond what was asked; where a condition changes more than once, one
of the changes is found.
"""

from __future__ import annotations

import abc
import functools
import math
from collections.abc import Callable, Sequence
from typing import ParamSpec, TypeVar

import numpy as np
import scipy

P = ParamSpec("P")
R = TypeVar("R")


def usual_floats(function: Callable[P, R]) -> Callable[P, R]:
    """Compute under NumPy's defaults, whatever the caller has told ``numpy.seterr``.

    Tails of curves underflow, which is expected, and must not raise.
    """

    @functools.wraps(function)
    def computed(*args: P.args, **kwargs: P.kwargs) -> R:
        with np.errstate(divide="warn", over="warn", under="ignore", invalid="warn"):
            return function(*args, **kwargs)

    return computed


class Curve(abc.ABC):
    """Certified (epsilon, delta) of some releases, for fixed neighbours in both orders."""

    @abc.abstractmethod
    def epsilon(self, delta: float) -> float:
        """Upper bound in nats, >= 0, for a delta in [0, 1]; infinite if there is none."""

    @abc.abstractmethod
    def delta(self, epsilon: float) -> float:
        """Upper bound in [0, 1] for an epsilon >= 0, in nats."""

    def deltas(self, points: Sequence[float], lowest: float) -> list[float]:
        """Upper bounds at many epsilon; those below `lowest` may be loose."""
        return [self.delta(x) for x in points]


def doubled(holds: Callable[[float], bool], most: float = math.inf) -> tuple[float, float]:
    """Go up from 1 by doubling while something holds."""
    last, point = 0.0, 1.0
    while point < most and holds(point):
        last, point = point, 2.0 * point
    return last, point


def narrow(
    is_safe: Callable[[float], bool], safe: float, unsafe: float, steps: int
) -> tuple[float, float]:
    """Bisect between a safe point and an unsafe one, in either order."""
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
    """A root of a falling function, moved up until it is safe."""
    root = float(scipy.optimize.brentq(excess, low, high, xtol=xtol, rtol=rtol))
    step = 1e-9 * max(root, 1e-3)
    while not is_safe(root):
        root += step
        step *= 2.0
    return root
