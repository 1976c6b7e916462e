"""Composes selections and Gaussian sums of all rows exactly, as a rigorous upper bound.

Selections compose by the backward recursion for bounded-range mechanisms. A Gaussian bounds many
equal selections. All Gaussians together are convolved last, and a slack pays for noise on integers.
What is too large for a grid has bounds by zCDP and Rényi divergences. The smallest bound counts.
Proof: docs/proofs/accounting.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from copy import copy
from typing import Protocol

from .accountant import Accountant
from .blocks import merge_blocks
from .bounded_range import Grid, tail_curve
from .events import Event
from .gaussian import GaussianTotals, gaussian_delta, gaussian_epsilon
from .grid_curve import GridCurve
from .rdp import RDPAccountant
from .rounds import Mixture
from .search import root_above
from .zcdp import ZCDP

__all__ = ["BETA", "LOWEST", "TAIL", "Composition", "FlatAccountant", "solve"]

BETA = 1e-6  # share of delta that pays for noise beyond the bound of the discreteness slack
TAIL = 1e-4  # share of delta beyond which the domain of the recursion may end
_BLOCKS = 1e-5  # share of delta by which blocks of selections may exceed a Gaussian
_MOST_LAPLACE = 1000
_MARGIN = 20.0
_LOUD = 10.0  # standard deviations
_LOG_TINY = -640.0
LOWEST = 1e-250  # delta of a curve in doubles


class Composition:
    """Hockey-stick curve of continuous Gaussians of total `mu`, Laplace noise and selections.

    Args:
        mu: Of the Gaussians.
        steps: (eps0, count) of selections in release order.
        log_tail: Log of delta below which the curve may be loose.
        work: Elementary operations that it may take.
        laplace: (epsilon, count) of continuous Laplace noise.
    """

    def __init__(
        self,
        mu: float,
        steps: Sequence[tuple[float, int]],
        log_tail: float,
        work: float,
        laplace: Sequence[tuple[float, int]] = (),
    ) -> None:
        self.far = math.sqrt(2.0 * (_MARGIN - log_tail))  # too rare to matter
        if sum(n for _, n in laplace) > _MOST_LAPLACE:
            # So many are as good as selections, which have blocks; at the front, as Laplace noise.
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
            # Where there is no curve, its losses are charged purely.
            self.left = math.fsum(n * e for e, n in (*self.steps, *self.laplace)) * (1.0 + 1e-15)
            found = tail_curve(self.steps, self.mu, log_tail, work, self.laplace)
            if found is not None:
                self.grid, values = found
                self.curve = GridCurve(self.grid.points(), values, self.grid.step)

    @property
    def scale(self) -> float:
        """About how far all releases move, in standard deviations. It bounds nothing."""
        selections = math.fsum(n * e * e for e, n in self.steps) / 4.0
        return math.sqrt(self.mu**2 + selections + math.fsum(n * e * e for e, n in self.laplace))

    def near(self, delta: float) -> float | None:
        """About the epsilon of a delta, where this saves time in a search. It bounds nothing."""
        return gaussian_epsilon(self.scale, delta) if self.scale > _LOUD else None

    def after(self, mu: float) -> Composition:
        """The same releases with one more Gaussian, on the same grid."""
        other = copy(self)
        other.mu = math.hypot(self.mu, mu) * (1.0 + 1e-15)
        other.bounded = self.bounded and mu == 0.0
        return other

    def delta(self, epsilon: float) -> float:
        """Upper bound of the hockey stick at any real epsilon."""
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


class FlatAccountant(Accountant):
    """(epsilon, delta) of releases that read all rows, adaptively composed.

    Args:
        events: Gaussian and exponential ones, in release order.
        work: Elementary operations that one curve may take; a second is about 1e9 of them. More
            make the bound tighter. Every value gives a valid bound.
    """

    def __init__(self, events: Sequence[Event], work: float = 1e8) -> None:
        mixture = Mixture.of(events)
        if len(mixture.flat) < len(events):
            raise TypeError("`events` holds rounds that do not read all rows.")
        self.events = mixture.flat
        self._renyi = RDPAccountant(self.events)
        self._mixture = mixture
        self._work = work

    def _epsilon(self, delta: float, group: int) -> float:
        if delta >= 1.0:
            return 0.0
        totals, steps, pure = self.totals(group)
        if totals.mu == 0.0 and not steps:
            return 0.0
        if math.isinf(totals.mu) or (delta == 0.0 and totals.mu > 0.0):
            return math.inf
        if delta == 0.0:
            return pure
        coarse = min(ZCDP(totals.mu, steps).epsilon(delta), self._renyi.get_epsilon(delta, group))
        if delta < LOWEST:  # no grid holds such a delta; the coarse bounds work on its logarithm
            return min(pure, coarse) if totals.mu == 0.0 else coarse
        curve = self.composition(group, math.log(delta * TAIL))
        if totals.mu == 0.0:
            return min(pure, coarse, solve(curve, delta, 0.0, curve.near(delta)))
        slack = totals.slack(math.log(delta * BETA))
        eta = slack.eta
        inner = delta * (1.0 - BETA) * math.exp(-slack.eta_to)
        if inner < LOWEST:  # the slack is no longer small
            return coarse
        found = solve(curve, inner, -eta, curve.near(inner))
        return min(coarse, max(0.0, found + eta))

    def _delta(self, epsilon: float, group: int) -> float:
        totals, steps, pure = self.totals(group)
        if totals.mu == 0.0 and epsilon >= pure:
            return 0.0
        if math.isinf(totals.mu):
            return 1.0
        if math.isinf(epsilon):
            return 0.0
        whole = math.sqrt(totals.mu**2 + math.fsum(n * e * e for e, n in steps) / 4.0)
        guess = gaussian_delta(epsilon, whole)
        log_tail = max(math.log(max(guess, 1e-270)) * 1.2 + math.log(TAIL), _LOG_TINY)
        coarse = min(ZCDP(totals.mu, steps).delta(epsilon), self._renyi.get_delta(epsilon, group))
        curve = self.composition(group, log_tail)
        if totals.mu == 0.0:
            return min(coarse, curve.delta(epsilon))
        beta = max(BETA * curve.delta(epsilon), 1e-270)
        slack = totals.slack(math.log(beta))
        return min(coarse, slack.raised(curve.delta(epsilon - slack.eta), beta))

    def curve(
        self, points: Sequence[float], lowest: float, group: int = 1, *, replaced: bool = False
    ) -> list[float]:
        """See :class:`Accountant`."""
        group *= 1 + replaced
        totals, _, pure = self.totals(group)
        if math.isinf(totals.mu):
            return [1.0] * len(points)
        composed = self.composition(group, math.log(lowest * TAIL))
        if totals.mu == 0.0:
            return [0.0 if x >= pure else composed.delta(x) for x in points]
        beta = lowest * BETA
        slack = totals.slack(math.log(beta))
        return [slack.raised(composed.delta(x - slack.eta), beta) for x in points]

    def scale(self, group: int) -> float:
        """About how far all events move, in standard deviations. It bounds nothing."""
        totals, steps, _ = self.totals(group)
        return math.sqrt(totals.mu**2 + math.fsum(n * e * e for e, n in steps) / 4.0)

    def totals(self, group: int) -> tuple[GaussianTotals, list[tuple[float, int]], float]:
        """What composes to the curve.

        Args:
            group: Rows added or removed together.

        Returns:
            Sums over the Gaussians, (eps0, count) of the selections in order, and their pure
            epsilon.
        """
        steps: list[tuple[float, int]] = []
        for event in self._mixture.selections:
            eps0 = event.eps0 * group
            if steps and steps[-1][0] == eps0:
                steps[-1] = (eps0, steps[-1][1] + event.count)
            else:
                steps.append((eps0, event.count))
        pure = group * math.fsum(e.pure() for e in self._mixture.selections) * (1.0 + 2e-15)
        return GaussianTotals.of(self._mixture.gaussians, group), steps, pure

    def composition(self, group: int, log_tail: float, work: float | None = None) -> Composition:
        """The curve of all events.

        Args:
            group: Rows added or removed together.
            log_tail: See :class:`Composition`.
            work: The same; by default that of the accountant.
        """
        return Composition(
            GaussianTotals.of(self._mixture.gaussians, group).mu,
            [(e.eps0 * group, e.count) for e in self._mixture.ordered],
            log_tail,
            self._work if work is None else work,
            [(e.size(group), e.count) for e in self._mixture.laplace],
        )


class Curve(Protocol):
    """A non-increasing bound of delta, and about how far its losses reach."""

    mu: float

    def delta(self, epsilon: float) -> float:
        """Upper bound at an epsilon."""


def solve(curve: Curve, delta: float, lowest: float, near: float | None = None) -> float:
    """Some epsilon >= lowest with curve.delta(epsilon) <= delta, close to the smallest.

    Args:
        curve: The bound.
        delta: In (0, 1).
        lowest: Least epsilon.
        near: A guess of it. Only the time that the search takes depends on it.
    """
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
