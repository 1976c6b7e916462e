"""The exact privacy loss of choosing one of several plans after a first release.

The pointwise maximum of the plans' curves bounds all releases after the first. This envelope is
integrated over the privacy loss of the first release, which is Gaussian.

Proof: docs/proofs/choice.md
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cached_property

import numpy as np

from .closed_form_bounds import RDPCurve, ZCDPCurve, zcdp_mu2
from .composition import LOWEST, TAIL, Composition, FlatCurve, solve
from .curve import Curve, GridCurve, narrow
from .events import GaussianEvent
from .gaussian import BETA, GaussianTotals, dominating_gaussian, gaussian_delta
from .simplify import ChoiceTerm, Terms

_POINTS = 3  # of the envelope, for each standard deviation of the first release's loss
_ABOVE = 5.0  # deviations above the mean that the envelope covers; its last value extends it
_BELOW = 1e-4  # share of delta for the probability below the envelope
_ROUNDS = 4
_EXTRA = 1e-4  # share of delta by which a choice may exceed its dominating Gaussian
_LOG_TINY = -640.0
_UP = 1.0 + 1e-12


class _Envelope:
    """Hockey-stick curve of a Gaussian with mu = `first`, then the worst of several curves."""

    def __init__(self, first: float, plans: Sequence[Composition], log_low: float) -> None:
        self.first, self.plans = first, list(plans)
        self.mu = max(math.hypot(first, plan.scale) for plan in plans)
        self._step = first / _POINTS
        self._below = math.ceil(math.sqrt(-2.0 * (log_low + math.log(_BELOW))) * _POINTS)
        self._known: dict[int, float] = {}

    def delta(self, epsilon: float) -> float:
        """Upper bound of the hockey-stick divergence at any real epsilon."""
        if math.isinf(self.first):
            return 1.0
        if self.first == 0.0:
            return self._largest(epsilon)
        middle = math.floor((epsilon - self.first * self.first / 2.0) / self._step)
        known = range(middle - self._below, middle + math.ceil(_ABOVE * _POINTS) + 1)
        values = np.array([self._at(i) for i in known])
        values = np.maximum.accumulate(values[::-1])[::-1]  # make it non-increasing
        points = np.array(known, dtype=np.float64) * self._step
        return GridCurve(points, values, self._step).convolved(epsilon, self.first)

    def _at(self, i: int) -> float:
        if i not in self._known:
            self._known[i] = self._largest(i * self._step)
        return self._known[i]

    def _largest(self, epsilon: float) -> float:
        return max(plan.delta(epsilon) for plan in self.plans)


class ChoiceCurve(Curve):
    """(epsilon, delta) of one choice among plans, from the exact curves of the plans."""

    def __init__(self, choice: ChoiceTerm, rows: int, work: float = 1e8) -> None:
        self._choice, self._rows, self._work = choice, rows, work
        self._unbounded = any(plan.others for plan in choice.plans)
        self._first = GaussianTotals.of(choice.first.gaussians, rows).mu
        # The largest totals of the Gaussians over all plans, each with the first release.
        each = [GaussianTotals.of(way.gaussians, rows) for way in choice.ways]
        self._totals = GaussianTotals(
            mu=max(t.mu for t in each),
            shift=max(t.shift for t in each),
            a1=max(t.a1 for t in each),
            a2=max(t.a2 for t in each),
            a_max=max(t.a_max for t in each),
        )

    @cached_property
    def _plans(self) -> list[FlatCurve]:
        return [FlatCurve(plan, self._rows) for plan in dict.fromkeys(self._choice.plans)]

    @cached_property
    def _coarse(self) -> list[Curve]:
        """Bounds without a grid; infinite if a plan has events of another module."""
        whole = RDPCurve(Terms((self._choice,)), self._rows)
        if self._unbounded:
            return [whole]
        like = hull(self._choice, self._rows, zcdp_mu2)
        mu2 = like.count * like.sensitivity2 / like.sigma2 if like.sigma2 else math.inf
        return [whole, ZCDPCurve(self._rows * math.sqrt(mu2), [])]

    def epsilon(self, delta: float) -> float:
        """See :class:`Curve`."""
        if delta >= 1.0:
            return 0.0
        coarse = min(curve.epsilon(delta) for curve in self._coarse)
        if self._unbounded or delta < LOWEST or math.isinf(self._totals.mu):
            return coarse
        eta, inner = self._totals.continuous(delta)
        if inner < LOWEST:
            return coarse
        curve, alone = self._curves(math.log(delta))
        # The worst choice costs at least as much as any single plan, and only slightly more.
        low = -eta
        for one in reversed(alone):  # larger plans usually cost more
            if one.delta(low) > inner:
                low = max(low, solve(one, inner, -eta))
        return min(coarse, max(0.0, _least(curve, inner, low) + eta))

    def delta(self, epsilon: float) -> float:
        """See :class:`Curve`."""
        coarse = min(curve.delta(epsilon) for curve in self._coarse)
        if self._unbounded or math.isinf(self._totals.mu) or math.isinf(epsilon):
            return coarse
        whole = max(math.hypot(self._first, plan.scale) for plan in self._plans)
        guess = gaussian_delta(epsilon, whole)
        curve, _ = self._curves(math.log(max(guess, 1e-270)) * 1.2)
        beta = max(BETA * curve.delta(epsilon), 1e-270)
        return min(coarse, self._totals.raised(curve.delta, epsilon, beta))

    def deltas(self, points: Sequence[float], lowest: float) -> list[float]:
        """See :class:`Curve`."""
        delta = self._raised(lowest)
        return [1.0] * len(points) if delta is None else [delta(x) for x in points]

    def dominating(self, extra: float) -> float | None:
        """See :func:`dominating_gaussian`; 0 if the choice releases nothing."""
        delta = self._raised(extra)
        if delta is None:
            return None
        target = delta(0.0)
        if target <= extra:  # `extra` alone is above the curve, for any mu
            return 1e-9 if target else 0.0
        return dominating_gaussian(lambda points, _: [delta(x) for x in points], extra, target)

    def _raised(self, lowest: float) -> Callable[[float], float] | None:
        """The curve with discreteness slack, down to `lowest`; None if there is no bound."""
        if self._unbounded or math.isinf(self._totals.mu):
            return None
        curve, _ = self._curves(math.log(lowest))
        return lambda epsilon: self._totals.raised(curve.delta, epsilon, lowest * BETA)

    def _curves(self, log_delta: float) -> tuple[_Envelope, list[Composition]]:
        """The curve of the choice, and each plan's curve composed with the first release."""
        log_low = max(log_delta, _LOG_TINY - math.log(TAIL))
        work = self._work / len(self._plans)
        plans = [plan.composition(log_low + math.log(TAIL), work) for plan in self._plans]
        envelope = _Envelope(self._first, plans, log_low)
        return envelope, [plan.after(self._first) for plan in plans]


def _least(curve: _Envelope, delta: float, low: float) -> float:
    """An epsilon >= low at which the curve is at most delta, close to the smallest."""
    value = curve.delta(low)
    if value <= delta:
        return low
    step = 1e-4 * max(curve.mu, 1e-6)
    for _ in range(60):
        point = low + step
        reached = curve.delta(point)
        if reached <= delta:
            high = point
            break
        # Secant step on the logarithms, extended slightly.
        slope = max((math.log(value) - math.log(reached)) / step, 1e-3)
        low, value = point, reached
        step = max(1.05 * (math.log(reached) - math.log(delta)) / slope, 1e-9 * max(low, 1e-3))
    else:
        return math.inf

    def is_safe(epsilon: float) -> bool:
        return curve.delta(epsilon) <= delta

    return narrow(is_safe, high, low, 8)[0]


class WithChoices(Curve):
    """Choices composed with other releases; a dominating Gaussian replaces each choice."""

    def __init__(self, terms: Terms, rows: int, compose: Callable[[Terms], Curve]) -> None:
        self._terms, self._rows, self._compose = terms, rows, compose
        self._number = sum(choice.count for choice in terms.choices)

    def epsilon(self, delta: float) -> float:
        """See :class:`Curve`."""
        if delta >= 1.0:
            return 0.0
        each = delta * _EXTRA
        rest = self._with_gaussians(each) if each > LOWEST else None
        left = (delta - each * self._number) * (1.0 - 1e-12)
        return math.inf if rest is None else rest.epsilon(left)

    def delta(self, epsilon: float) -> float:
        """See :class:`Curve`."""
        best, each = 1.0, 1e-9
        for _ in range(_ROUNDS):  # until `each` matches the delta of this epsilon
            rest = self._with_gaussians(each)
            value = 1.0 if rest is None else rest.delta(epsilon)
            best = min(best, (value + each * self._number) * _UP)
            before, each = each, max(min(best, value) * _EXTRA, LOWEST)
            if 0.5 < each / before < 2.0:
                break
        return best

    def deltas(self, points: Sequence[float], lowest: float) -> list[float]:
        """See :class:`Curve`."""
        each = lowest * _EXTRA
        rest = self._with_gaussians(each)
        if rest is None:
            return [1.0] * len(points)
        deltas = rest.deltas(points, lowest)
        return [min(1.0, (delta + each * self._number) * _UP) for delta in deltas]

    def _with_gaussians(self, each: float) -> Curve | None:
        """All other releases and one Gaussian per choice, which it exceeds by at most `each`.

        None if some choice has no such Gaussian.
        """
        gaussians = []
        for choice in self._terms.choices:
            mu = ChoiceCurve(choice, self._rows).dominating(each)
            if mu is None:
                return None
            # The grid is so fine that the Gaussian adds no discreteness slack.
            sens2 = math.ceil(math.ldexp(mu * mu * _UP / self._rows**2, 100))
            gaussians.append(GaussianEvent("plan", sens2, 1 << 100, 0, choice.count))
        return self._compose(self._terms.without_choices(*gaussians))


def hull(choice: ChoiceTerm, rows: int, selection_mu2: Callable[[float], float]) -> GaussianEvent:
    """A Gaussian release that costs at least as much, for accountants that add up mu^2."""
    worst = 0.0
    for way in choice.ways:
        selections = (t.count * selection_mu2(rows * t.eps0) for t in way.ranges)
        gaussians = math.fsum(
            e.count * (e.sensitivity2 / e.sigma2) if e.sigma2 else math.inf for e in way.gaussians
        )
        worst = max(worst, gaussians + math.fsum(selections) / rows**2)
    if math.isinf(worst) or any(way.others for way in choice.ways):  # no finite bound
        return GaussianEvent("plan", 1, 0, 1, choice.count)
    sums = max(sum(e.count * max(e.coordinates, 1) for e in way.gaussians) for way in choice.ways)
    sigma2 = min((e.sigma2 for way in choice.ways for e in way.gaussians), default=1 << 60)
    return GaussianEvent("plan", math.ceil(worst * _UP * sigma2), sigma2, sums, choice.count)
