"""Composes releases of all rows exactly, as a rigorous upper bound.

Selections compose by the backward recursion for bounded-range mechanisms; a Gaussian dominates long
runs of equal selections. The total Gaussian is convolved last, and a slack covers the discreteness
of the noise. If a grid would be too large, zCDP and Rényi bounds are used. The result is the
smallest of all bounds.
Proof: docs/proofs/accounting.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from copy import copy
from itertools import groupby
from typing import Protocol

from .bounded_range import Grid, tail_curve
from .closed_form_bounds import RDPCurve, ZCDPCurve
from .curve import Curve, GridCurve, root_above
from .gaussian import BETA, GaussianTotals, gaussian_delta, gaussian_epsilon, merge_blocks
from .simplify import Terms

TAIL = 1e-4  # share of delta for the tail beyond the domain of the recursion
_BLOCKS = 1e-5  # share of delta by which blocks of selections may exceed their Gaussian
_MOST_LAPLACE = 1000
_MARGIN = 20.0
_LARGE = 10.0  # standard deviations
_LOG_TINY = -640.0
LOWEST = 1e-250  # smallest delta of a curve in doubles
WORK = 1e8  # elementary operations per curve


class Composition:
    """Hockey-stick curve of continuous Gaussians of total `mu`, Laplace noise and selections."""

    def __init__(
        self,
        mu: float,
        steps: Sequence[tuple[float, int]],
        log_tail: float,
        work: float,
        laplace: Sequence[tuple[float, int]] = (),
    ) -> None:
        self.far = math.sqrt(2.0 * (_MARGIN - log_tail))  # deviations; more are too rare to matter
        if sum(n for _, n in laplace) > _MOST_LAPLACE:
            # Charge them as selections, which a block bound covers. Like Laplace noise, they come
            # first.
            steps = [*((2.0 * e, n) for e, n in laplace), *steps]
            laplace = ()
        self.pure = math.fsum(n * e for e, n in (*steps, *laplace)) * (1.0 + 1e-15)
        self.bounded = mu == 0.0  # no loss is above `pure`
        self.mu, self.steps, self.extra = mu, list(steps), 0.0
        self.laplace = list(laplace)
        self.grid: Grid | None = None
        if steps and math.isfinite(mu):
            log_extra = log_tail + math.log(_BLOCKS / TAIL)
            added, self.steps, self.extra = merge_blocks(steps, log_extra, work)
            self.mu = math.hypot(mu, added) * (1.0 + 1e-15)
        if (self.steps or self.laplace) and math.isfinite(mu):
            # Without a curve, the remaining selections and Laplace noise cost their pure epsilon.
            self.left = math.fsum(n * e for e, n in (*self.steps, *self.laplace)) * (1.0 + 1e-15)
            tail = tail_curve(tuple(self.steps), self.mu, log_tail, work, tuple(self.laplace))
            if tail is not None:
                self.grid, values = tail
                self.curve = GridCurve(self.grid.points(), values, self.grid.step)

    @property
    def scale(self) -> float:
        """Approximate mu of all releases together: an estimate, not a bound."""
        selections = math.fsum(n * e * e for e, n in self.steps) / 4.0
        return math.sqrt(self.mu**2 + selections + math.fsum(n * e * e for e, n in self.laplace))

    def near(self, delta: float) -> float | None:
        """Initial guess of epsilon at a delta; None if a guess would not save time."""
        return gaussian_epsilon(self.scale, delta) if self.scale > _LARGE else None

    def after(self, mu: float) -> Composition:
        """The same releases with one more Gaussian, on the same grid."""
        other = copy(self)
        other.mu = math.hypot(self.mu, mu) * (1.0 + 1e-15)
        other.bounded = self.bounded and mu == 0.0
        return other

    def delta(self, epsilon: float) -> float:
        """Upper bound of the hockey-stick divergence at any real epsilon."""
        if math.isinf(self.mu):
            return 1.0
        if self.bounded and epsilon >= self.pure:
            return 0.0
        if not (self.steps or self.laplace):
            value = gaussian_delta(epsilon, self.mu)
        elif self.grid is None:
            value = gaussian_delta(epsilon - self.left, self.mu)
        elif self.mu == 0.0:
            value = self.curve.at(epsilon)
        else:
            value = self.curve.convolved(epsilon, self.mu, self.far)
        return min(1.0, value + self.extra)


class FlatCurve(Curve):
    """(epsilon, delta) of the adaptive composition of releases that read all rows."""

    def __init__(self, terms: Terms, rows: int, work: float = WORK) -> None:
        self._terms, self._rows, self._work = terms, rows, work
        self.totals = GaussianTotals.of(terms.gaussians, rows)
        by_range = groupby(terms.ranges, key=lambda term: term.eps0 * rows)
        self._steps = [(eps0, sum(term.count for term in run)) for eps0, run in by_range]
        self._pure = rows * math.fsum(t.pure for t in terms.ranges) * (1.0 + 2e-15)
        self._coarse = ZCDPCurve(self.totals.mu, self._steps), RDPCurve(terms, rows)

    def epsilon(self, delta: float) -> float:
        """See :class:`Curve`."""
        mu = self.totals.mu
        if delta >= 1.0 or (mu == 0.0 and not self._steps):
            return 0.0
        if math.isinf(mu) or (delta == 0.0 and mu > 0.0):
            return math.inf
        if delta == 0.0:
            return self._pure
        coarse = min(curve.epsilon(delta) for curve in self._coarse)
        if delta < LOWEST:  # too small for a grid; the coarse bounds use the logarithm of delta
            return min(self._pure, coarse) if mu == 0.0 else coarse
        curve = self.composition(math.log(delta * TAIL))
        if mu == 0.0:
            return min(self._pure, coarse, solve(curve, delta, 0.0, curve.near(delta)))
        eta, inner = self.totals.continuous(delta)
        if inner < LOWEST:  # the slack is no longer small
            return coarse
        root = solve(curve, inner, -eta, curve.near(inner))
        return min(coarse, max(0.0, root + eta))

    def delta(self, epsilon: float) -> float:
        """See :class:`Curve`."""
        mu = self.totals.mu
        if mu == 0.0 and epsilon >= self._pure:
            return 0.0
        if math.isinf(mu):
            return 1.0
        if math.isinf(epsilon):
            return 0.0
        guess = gaussian_delta(epsilon, self.scale)
        log_tail = max(math.log(max(guess, 1e-270)) * 1.2 + math.log(TAIL), _LOG_TINY)
        coarse = min(curve.delta(epsilon) for curve in self._coarse)
        curve = self.composition(log_tail)
        if mu == 0.0:
            return min(coarse, curve.delta(epsilon))
        beta = max(BETA * curve.delta(epsilon), 1e-270)
        return min(coarse, self.totals.raised(curve.delta, epsilon, beta))

    def deltas(self, points: Sequence[float], lowest: float) -> list[float]:
        """See :class:`Curve`."""
        if math.isinf(self.totals.mu):
            return [1.0] * len(points)
        composed = self.composition(math.log(lowest * TAIL))
        if self.totals.mu == 0.0:
            return [0.0 if x >= self._pure else composed.delta(x) for x in points]
        return [self.totals.raised(composed.delta, x, lowest * BETA) for x in points]

    @property
    def scale(self) -> float:
        """Approximate mu of all releases together: an estimate, not a bound."""
        return math.sqrt(self.totals.mu**2 + math.fsum(n * e * e for e, n in self._steps) / 4.0)

    def composition(self, log_tail: float, work: float | None = None) -> Composition:
        """The curve with continuous noise; see :class:`Composition` for the arguments."""
        selections = [t for t in self._terms.ranges if not t.scale]
        laplace = [t for t in self._terms.ranges if t.scale]
        return Composition(
            self.totals.mu,
            [(t.eps0 * self._rows, t.count) for t in selections],
            log_tail,
            self._work if work is None else work,
            [(t.laplace_epsilon(self._rows), t.count) for t in laplace],
        )


class Falling(Protocol):
    """A non-increasing bound of delta, and its approximate scale `mu`."""

    mu: float

    def delta(self, epsilon: float) -> float:
        """Upper bound of delta at an epsilon."""


def solve(curve: Falling, delta: float, lowest: float, near: float | None = None) -> float:
    """An epsilon >= lowest with curve.delta(epsilon) <= delta, close to the smallest."""
    if curve.delta(lowest) <= delta:
        return lowest
    target = math.log(delta)

    def excess(epsilon: float) -> float:
        return math.log(max(curve.delta(epsilon), 1e-300)) - target

    low, high = lowest, max(0.1, 0.5 * curve.mu)
    if near is not None:
        low, high = max(lowest, 0.98 * near), max(lowest, 1.02 * near + 0.01)
        if low > lowest and excess(low) <= 0.0:
            low, high = lowest, low
    while excess(high) > 0.0:
        low, high = high, max(2.0 * high, 0.1)
        if high > 1e12:
            return math.inf

    def is_safe(epsilon: float) -> bool:
        return curve.delta(epsilon) <= delta

    return root_above(excess, is_safe, low, high, xtol=1e-12, rtol=1e-9)
