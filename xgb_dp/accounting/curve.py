"""Privacy curves: upper bounds of delta at every epsilon, and the epsilon at a given delta.

A search for epsilon starts from a safe point and returns a point at which the bound was evaluated,
so no tolerance of a root finder enters a guarantee. Between grid points, curves are interpolated by
chords in e^x, which lie above every convex function.

Proof: docs/proofs/accounting.md, "Gaussians last".
"""

from __future__ import annotations

import abc
import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ParamSpec, TypeVar

import numpy as np
import numpy.typing as npt
import scipy

P = ParamSpec("P")
R = TypeVar("R")


def usual_floats(function: Callable[P, R]) -> Callable[P, R]:
    """Run with NumPy's default error handling, regardless of the caller's ``numpy.seterr``.

    Tails of curves underflow as expected, and this must not raise.
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
        """Upper bound of epsilon in nats, >= 0, at a delta in [0, 1]; infinite if unknown."""

    @abc.abstractmethod
    def delta(self, epsilon: float) -> float:
        """Upper bound of delta in [0, 1], at an epsilon >= 0 in nats."""

    def deltas(self, points: Sequence[float], lowest: float) -> list[float]:
        """Upper bounds of delta at several epsilon values; bounds below `lowest` may be loose."""
        return [self.delta(x) for x in points]


def doubled(holds: Callable[[float], bool], most: float = math.inf) -> tuple[float, float]:
    """Double from 1 while the condition holds, and return the last two points."""
    last, point = 0.0, 1.0
    while point < most and holds(point):
        last, point = point, 2.0 * point
    return last, point


def narrow(
    is_safe: Callable[[float], bool], safe: float, unsafe: float, steps: int
) -> tuple[float, float]:
    """Bisect between a safe and an unsafe point, in either order; `safe` stays safe."""
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
    """A root of a decreasing function, moved up until it is safe."""
    root = float(scipy.optimize.brentq(excess, low, high, xtol=xtol, rtol=rtol))
    step = 1e-9 * max(root, 1e-3)
    while not is_safe(root):
        root += step
        step *= 2.0
    return root


_ROUNDING = 1.0 + 1e-9
_ALL = -40.0  # below, every curve is 1 in double precision

Array = npt.NDArray[np.float64]


class GridCurve:
    """Upper bounds of a hockey-stick divergence at evenly spaced points."""

    def __init__(self, points: Array, values: Array, step: float) -> None:
        self.points, self.values, self.step = points, values, step

    def at(self, epsilon: float) -> float:
        """Interpolate by the chord in e^x. A convex function does not rise above its chords."""
        x, v = self.extended(epsilon)
        i = int(np.searchsorted(x, epsilon, side="right")) - 1
        if i >= len(x) - 1:
            return float(v[-1])
        weight = math.expm1(epsilon - x[i + 1]) / math.expm1(-self.step)
        weight = min(1.0, max(0.0, weight) + 1e-13 / min(self.step, 1.0))
        return float(weight * v[i] + (1.0 - weight) * v[i + 1]) * _ROUNDING

    def extended(
        self, lowest: float, first: float = -math.inf, last: float = math.inf
    ) -> tuple[Array, Array]:
        """Extend the grid downwards, where the curve falls by at most the growth of e^x."""
        x, v = self.points, self.values
        begin = int(min(max(0.0, (first - x[0]) / self.step - 1.0), len(x) - 2))
        end = int(min(max(begin + 2.0, (last - x[0]) / self.step + 2.0), len(x)))
        missing = math.ceil((x[0] - lowest) / self.step) + 1
        if missing <= 1:
            return x[begin:end], v[begin:end]
        d = np.arange(missing, 0, -1) * self.step
        rise = math.exp(min(x[0], 700.0)) * -np.expm1(-d)  # above 700, the sum exceeds 1 anyway
        return (
            np.concatenate([x[0] - d, x[:end]]),
            np.concatenate([np.minimum(1.0, v[0] + rise * _ROUNDING), v[:end]]),
        )

    def convolved(self, epsilon: float, mu: float, far: float = math.inf) -> float:
        """Mean of V(epsilon - Y) for the privacy loss Y ~ N(mu^2/2, mu^2) of the Gaussians."""
        h = self.step
        middle = epsilon - mu * mu / 2.0
        # The total below includes the probability that Y is beyond either end.
        lowest, first = max(middle - 12.0 * mu, _ALL), max(middle - far * mu, _ALL)
        x, v = self.extended(lowest, first, middle + far * mu)
        z = (epsilon - x - mu * mu / 2.0) / mu
        # Probability that epsilon - Y lies in [x_i, x_{i+1}], from the smaller tail; z decreases.
        split = np.count_nonzero(z[1:] > 0.0)
        down, up = scipy.special.ndtr(-z[: split + 1]), scipy.special.ndtr(z[split:])
        p = np.concatenate([down[1:] - down[:-1], up[:-1] - up[1:]])
        # Conditional mean of the weight of x_i in the chord, under a dominating density.
        t = z[1:] * (h / mu)
        inside = np.maximum(t, -50.0)
        weight = (1.0 - _ramp(inside + h) / _ramp(inside)) / -math.expm1(-h)
        weight = np.minimum(np.maximum(weight + 1e-14 * (1.0 + 1.0 / h), 0.0), 1.0)
        weight[t < -50.0] = 1.0
        if h > 0.125 * mu:
            weight = np.minimum(weight, self._mean_weight(epsilon, mu, x, z, p))
        inner = np.sum(p * (weight * v[:-1] + (1.0 - weight) * v[1:]))
        total = float(inner) + float(up[-1]) * float(v[-1]) + float(down[0])
        return min(1.0, total * _ROUNDING)

    def _mean_weight(self, epsilon: float, mu: float, x: Array, z: Array, p: Array) -> Array:
        """Mean weights in closed form plus their rounding error, for steps that are not small."""
        tilted = z + mu  # E[e^-Y; Y in I] is the probability of I under N(-mu^2/2, mu^2)
        up, down = scipy.special.ndtr(tilted), scipy.special.ndtr(-tilted)
        q = np.where(tilted[1:] > 0.0, down[1:] - down[:-1], up[:-1] - up[1:])
        usable = (p > 1e-280) & (q > 1e-280)
        q_over_p = np.divide(q, p, out=np.zeros_like(p), where=usable)
        decay = np.exp(np.minimum(epsilon - x[1:], 700.0)) * q_over_p
        # A difference of tails is about as precise as the larger tail, unless it is much smaller.
        # Tails beyond 40 are 0; such a cell matters only if it holds all the mass.
        far = np.minimum(np.maximum(np.abs(z), np.abs(tilted)), 40.0)
        error = 1e-15 * (64.0 + 8.0 * np.minimum(far[1:], far[:-1]) ** 2 + abs(epsilon))
        error += 1e-15 * np.abs(x[1:])
        weight = (1.0 - decay + error) / -math.expm1(-self.step)
        return np.where(usable, np.clip(weight, 0.0, 1.0), 1.0)


def _ramp(x: Array) -> Array:
    """(1 - e^-x) / x, and its limit 1 at 0."""
    near = np.abs(x) < 1e-12
    ramp = np.expm1(-x) / (near - x)
    if near.any():
        ramp[near] = 1.0 - 0.5 * x[near]
    return np.asarray(ramp)


@dataclass(frozen=True)
class ChordTable:
    """Upper bounds v at points x >= 0, joined by chords in e^x and constant after the last."""

    x: Array
    v: Array

    def __call__(self, points: Array) -> Array:
        """Upper bounds at points >= 0."""
        i = np.clip(np.searchsorted(self.x, points, side="right") - 1, 0, len(self.x) - 2)
        low, high = self.x[i], self.x[i + 1]
        weight = np.expm1(np.minimum(points, high) - high) / np.expm1(low - high)
        weight = np.where(points < self.x[-1], np.clip(weight + 1e-12, 0.0, 1.0), 0.0)
        # Bounds may increase, unlike the curve; the right end is then a safe value.
        end = np.maximum(self.v[i + 1], 0.0)
        return np.maximum(weight * self.v[i] + (1.0 - weight) * end, end) * _ROUNDING


def both_signs(curve: Callable[[Array], Array], x: Array) -> Array:
    """Extend a curve that holds in both orders to x < 0: D(-x) = 1 - e^-x + e^-x D(x)."""
    size = np.abs(x)
    value = curve(size)
    negative = -np.expm1(-size) + np.exp(-size) * value
    return np.asarray(np.minimum(1.0, np.where(x < 0.0, negative, value) * (1.0 + 1e-12)))
