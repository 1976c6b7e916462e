"""Exact composition of selections and Gaussian sums of all rows, as a rigorous upper bound.

Proof: docs/proofs/accounting.md. Selections compose by the backward recursion for bounded-range
mechanisms, many equal ones are bounded by a Gaussian, all Gaussians together are convolved last,
and a slack pays for noise on integers. What is too large for a grid has bounds by zCDP and Rényi
divergences, and the smallest counts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr

from .accountant import Accountant
from .blocks import merge_blocks
from .bounded_range import Grid, tail_curve
from .events import Event
from .gaussian import GaussianTotals, gaussian_delta
from .rdp import RDPAccountant
from .rounds import Mixture
from .search import root_above
from .zcdp import ZCDP

__all__ = ["FlatAccountant", "solve"]

_BETA = 1e-6  # share of delta that pays for noise beyond the bound of the discreteness slack
_TAIL = 1e-4  # share of delta beyond which the domain of the recursion may end
_BLOCKS = 1e-5  # share of delta by which blocks of selections may exceed a Gaussian
_ROUNDING = 1.0 + 1e-9
_LOG_TINY = -640.0
_LOWEST = 1e-250  # delta of a curve in doubles


class _Composition:
    """Hockey-stick curve of continuous Gaussians of total `mu` and of selections."""

    def __init__(
        self, mu: float, steps: Sequence[tuple[float, int]], log_tail: float, work: float
    ) -> None:
        self.pure = math.fsum(n * e for e, n in steps) * (1.0 + 1e-15)
        self.bounded = mu == 0.0  # no loss is above `pure`
        self.mu, self.steps, self.extra = mu, list(steps), 0.0
        self.grid: Grid | None = None
        if steps and math.isfinite(mu):
            log_extra = log_tail + math.log(_BLOCKS / _TAIL)
            added, self.steps, self.extra = merge_blocks(steps, log_extra, work)
            self.mu = math.hypot(mu, added) * (1.0 + 1e-15)
        if self.steps and math.isfinite(mu):
            # Where there is no curve, its selections are charged purely.
            self.left = math.fsum(n * e for e, n in self.steps) * (1.0 + 1e-15)
            found = tail_curve(self.steps, self.mu, log_tail, work)
            if found is not None:
                self.grid, self.v = found
                self.h = self.grid.step
                self.x = self.grid.points()

    def delta(self, epsilon: float) -> float:
        """Upper bound of the hockey stick at any real epsilon."""
        if math.isinf(self.mu):
            return 1.0
        if self.bounded and epsilon >= self.pure:
            return 0.0
        if not self.steps:
            value = gaussian_delta(epsilon, self.mu)
        elif self.grid is None:
            value = gaussian_delta(epsilon - self.left, self.mu)
        elif self.mu == 0.0:
            value = self._interpolate(epsilon)
        else:
            value = self._convolve(epsilon)
        return min(1.0, value + self.extra)

    def _interpolate(self, epsilon: float) -> float:
        """Chord of the curve in e^x, above which a convex function does not rise."""
        x, v = self._extended(epsilon)
        i = int(np.searchsorted(x, epsilon, side="right")) - 1
        if i >= len(x) - 1:
            return float(v[-1])
        weight = math.expm1(epsilon - x[i + 1]) / math.expm1(-self.h)
        weight = min(1.0, max(0.0, weight) + 1e-13 / min(self.h, 1.0))
        return float(weight * v[i] + (1.0 - weight) * v[i + 1]) * _ROUNDING

    def _extended(self, lowest: float) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """The grid continued below, where the curve falls by at most the growth of e^x."""
        missing = math.ceil((self.x[0] - lowest) / self.h) + 1
        if missing <= 1:
            return self.x, self.v
        d = np.arange(missing, 0, -1) * self.h
        rise = math.exp(self.x[0]) * -np.expm1(-d)
        return (
            np.concatenate([self.x[0] - d, self.x]),
            np.concatenate([np.minimum(1.0, self.v[0] + rise * _ROUNDING), self.v]),
        )

    def _convolve(self, epsilon: float) -> float:
        """Mean of V(epsilon - Y) over the loss Y ~ N(mu^2/2, mu^2) of the Gaussians."""
        mu, h = self.mu, self.h
        x, v = self._extended(epsilon - mu * mu / 2.0 - 12.0 * mu)
        z = (epsilon - x - mu * mu / 2.0) / mu
        up, down = ndtr(z), ndtr(-z)
        # Chance that epsilon - Y lies in [x_i, x_{i+1}], from the smaller tail.
        p = np.where(z[1:] > 0.0, down[1:] - down[:-1], up[:-1] - up[1:])
        # Conditional mean of the weight of x_i in the chord, under a density that dominates.
        t = z[1:] * (h / mu)
        inside = np.maximum(t, -50.0)
        weight = (1.0 - _ramp(inside + h) / _ramp(inside)) / -math.expm1(-h)
        weight = np.clip(weight + 1e-14 * (1.0 + 1.0 / h), 0.0, 1.0)
        weight[t < -50.0] = 1.0
        if h > 0.125 * mu:
            weight = np.minimum(weight, self._mean_weight(epsilon, x, z, p))
        inner = np.sum(p * (weight * v[:-1] + (1.0 - weight) * v[1:]))
        total = float(inner) + float(up[-1]) * float(v[-1]) + float(down[0])
        return min(1.0, total * _ROUNDING)

    def _mean_weight(
        self,
        epsilon: float,
        x: npt.NDArray[np.float64],
        z: npt.NDArray[np.float64],
        p: npt.NDArray[np.float64],
    ) -> npt.NDArray[np.float64]:
        """The same mean, in closed form plus its rounding, for steps that are not small."""
        tilted = z + self.mu  # E[e^-Y; Y in I] is the chance of I under N(-mu^2/2, mu^2)
        up, down = ndtr(tilted), ndtr(-tilted)
        q = np.where(tilted[1:] > 0.0, down[1:] - down[:-1], up[:-1] - up[1:])
        usable = (p > 1e-280) & (q > 1e-280)
        q_over_p = np.divide(q, p, out=np.zeros_like(p), where=usable)
        decay = np.exp(np.minimum(epsilon - x[1:], 700.0)) * q_over_p
        # A difference of tails is about as exact as the larger one, if it is not much smaller;
        # beyond 40 tails are 0 and such a cell counts only if it holds all the mass.
        far = np.minimum(np.maximum(np.abs(z), np.abs(tilted)), 40.0)
        error = 1e-15 * (64.0 + 8.0 * np.minimum(far[1:], far[:-1]) ** 2 + abs(epsilon))
        error += 1e-15 * np.abs(x[1:])
        weight = (1.0 - decay + error) / -math.expm1(-self.h)
        return np.where(usable, np.clip(weight, 0.0, 1.0), 1.0)


def _ramp(x: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """(1 - e^-x) / x, continued to 1 at 0."""
    safe = np.where(np.abs(x) < 1e-12, 1.0, x)
    return np.where(np.abs(x) < 1e-12, 1.0 - 0.5 * x, -np.expm1(-safe) / safe)


class FlatAccountant(Accountant):
    """(epsilon, delta) of releases that read all rows, adaptively composed.

    Args:
        events: Gaussian and exponential ones, in release order.
        work: Elementary operations that one curve may take, about 1e9 a second. More make
            the bound tighter; every value gives a valid bound.
    """

    def __init__(self, events: Sequence[Event], work: float = 1e8) -> None:
        mixture = Mixture.of(events)
        if len(mixture.flat) < len(events):
            raise TypeError("`events` holds rounds that do not read all rows.")
        self.events = mixture.flat
        self._renyi = RDPAccountant(self.events)
        self._gaussians, self._selections = mixture.gaussians, mixture.selections
        self._work = work

    def _epsilon(self, delta: float, group: int) -> float:
        if delta >= 1.0:
            return 0.0
        totals, steps, pure = self._totals(group)
        if totals.mu == 0.0 and not steps:
            return 0.0
        if math.isinf(totals.mu) or (delta == 0.0 and totals.mu > 0.0):
            return math.inf
        if delta == 0.0:
            return pure
        coarse = min(ZCDP(totals.mu, steps).epsilon(delta), self._renyi.get_epsilon(delta, group))
        if delta < _LOWEST:  # no grid holds such a delta; the coarse bounds work on its logarithm
            return min(pure, coarse) if totals.mu == 0.0 else coarse
        curve = _Composition(totals.mu, steps, math.log(delta * _TAIL), self._work)
        if totals.mu == 0.0:
            return min(pure, coarse, solve(curve, delta, 0.0))
        slack = totals.slack(math.log(delta * _BETA))
        eta = slack.eta
        inner = delta * (1.0 - _BETA) * math.exp(-slack.eta_to)
        if inner < _LOWEST:  # the slack is no longer small
            return coarse
        return min(coarse, max(0.0, solve(curve, inner, -eta) + eta))

    def _delta(self, epsilon: float, group: int) -> float:
        totals, steps, pure = self._totals(group)
        if totals.mu == 0.0 and epsilon >= pure:
            return 0.0
        if math.isinf(totals.mu):
            return 1.0
        if math.isinf(epsilon):
            return 0.0
        whole = math.sqrt(totals.mu**2 + math.fsum(n * e * e for e, n in steps) / 4.0)
        guess = gaussian_delta(epsilon, whole)
        log_tail = max(math.log(max(guess, 1e-270)) * 1.2 + math.log(_TAIL), _LOG_TINY)
        coarse = min(ZCDP(totals.mu, steps).delta(epsilon), self._renyi.get_delta(epsilon, group))
        curve = _Composition(totals.mu, steps, log_tail, self._work)
        if totals.mu == 0.0:
            return min(coarse, curve.delta(epsilon))
        beta = max(_BETA * curve.delta(epsilon), 1e-270)
        slack = totals.slack(math.log(beta))
        return min(coarse, slack.raised(curve.delta(epsilon - slack.eta), beta))

    def curve(self, points: Sequence[float], lowest: float, group: int) -> list[float]:
        """Upper bounds of delta at many epsilon, all at once.

        Args:
            points: In nats, >= 0.
            lowest: Where delta is below this, bounds may be loose.
            group: Rows added or removed together, >= 1.
        """
        totals, steps, pure = self._totals(group)
        if math.isinf(totals.mu):
            return [1.0] * len(points)
        composed = _Composition(totals.mu, steps, math.log(lowest * _TAIL), self._work)
        if totals.mu == 0.0:
            return [0.0 if x >= pure else composed.delta(x) for x in points]
        beta = lowest * _BETA
        slack = totals.slack(math.log(beta))
        return [slack.raised(composed.delta(x - slack.eta), beta) for x in points]

    def scale(self, group: int) -> float:
        """About how far all events move, in standard deviations; bounds nothing."""
        totals, steps, _ = self._totals(group)
        return math.sqrt(totals.mu**2 + math.fsum(n * e * e for e, n in steps) / 4.0)

    def _totals(self, group: int) -> tuple[GaussianTotals, list[tuple[float, int]], float]:
        steps: list[tuple[float, int]] = []
        for event in self._selections:
            eps0 = event.eps0 * group
            if steps and steps[-1][0] == eps0:
                steps[-1] = (eps0, steps[-1][1] + event.count)
            else:
                steps.append((eps0, event.count))
        pure = math.fsum(n * e for e, n in steps) * (1.0 + 1e-15)
        return GaussianTotals.of(self._gaussians, group), steps, pure


class Curve(Protocol):
    """A non-increasing bound of delta, and about how far its losses reach."""

    mu: float

    def delta(self, epsilon: float) -> float:
        """Upper bound at an epsilon."""


def solve(curve: Curve, delta: float, lowest: float) -> float:
    """Some epsilon >= lowest with curve.delta(epsilon) <= delta, close to the smallest."""
    if curve.delta(lowest) <= delta:
        return lowest
    target = math.log(delta)

    def excess(epsilon: float) -> float:
        return math.log(max(curve.delta(epsilon), 1e-300)) - target

    low, high = lowest, max(0.1, 0.5 * curve.mu)
    while excess(high) > 0.0:
        low, high = high, 2.0 * high
        if high > 1e12:
            return math.inf

    def is_safe(epsilon: float) -> bool:
        return curve.delta(epsilon) <= delta

    return root_above(excess, is_safe, low, high, xtol=1e-12, rtol=1e-9)
