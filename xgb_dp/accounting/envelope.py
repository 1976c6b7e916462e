"""The exact cost of choosing one of several plans after a first release.

The curve of what follows the first release is at most the largest curve of the plans, point by
point. That envelope is integrated over the loss of the first release, which is Gaussian.

Proof: docs/proofs/choice.md
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cached_property

import numpy as np

from .accountant import Accountant
from .blocks import dominating_mu
from .choice import ChoiceEvent, hull
from .events import Event
from .exact import ExactAccountant
from .flat import BETA, LOWEST, TAIL, Composition, FlatAccountant, solve
from .gaussian import GaussianTotals, gaussian_delta
from .grid_curve import GridCurve
from .plain import GaussianEvent
from .rdp import RDPAccountant
from .rounds import Mixture
from .search import doubled, narrow
from .zcdp import ZCDPAccountant

__all__ = ["ChoiceAccountant", "WithChoices", "zcdp_mu2"]

_POINTS = 3  # of the envelope, for each standard deviation of the first release's loss
_ABOVE = 5.0  # deviations above the mean that the envelope covers; the rest counts its last value
_BELOW = 1e-4  # share of delta beyond which it ends below
_POINTS_PER_MU = 30
_REACH = 1.25
_EXTRA = 1e-4  # share of delta by which a choice among other releases may exceed a Gaussian
_LOG_TINY = -640.0
_UP = 1.0 + 1e-12


def zcdp_mu2(eps0: float) -> float:
    """A selection of range eps0 is eps0^2 / 8-zCDP, as is a Gaussian of this mu^2."""
    return eps0 * eps0 / 4.0


class _Envelope:
    """Hockey-stick curve of a Gaussian of shift `first`, followed by the worst of some curves."""

    def __init__(self, first: float, plans: Sequence[Composition], log_low: float) -> None:
        self.first, self.plans = first, list(plans)
        self.mu = max(math.hypot(first, plan.scale) for plan in plans)
        self._step = first / _POINTS
        self._below = math.ceil(math.sqrt(-2.0 * (log_low + math.log(_BELOW))) * _POINTS)
        self._known: dict[int, float] = {}

    def delta(self, epsilon: float) -> float:
        """Upper bound of the hockey stick at any real epsilon."""
        if math.isinf(self.first):
            return 1.0
        if self.first == 0.0:
            return self._largest(epsilon)
        middle = math.floor((epsilon - self.first * self.first / 2.0) / self._step)
        known = range(middle - self._below, middle + math.ceil(_ABOVE * _POINTS) + 1)
        values = np.array([self._at(i) for i in known])
        values = np.maximum.accumulate(values[::-1])[::-1]  # it does not rise
        points = np.array(known, dtype=np.float64) * self._step
        return GridCurve(points, values, self._step).convolved(epsilon, self.first)

    def _at(self, i: int) -> float:
        if i not in self._known:
            self._known[i] = self._largest(i * self._step)
        return self._known[i]

    def _largest(self, epsilon: float) -> float:
        return max(plan.delta(epsilon) for plan in self.plans)


class ChoiceAccountant(Accountant):
    """(epsilon, delta) of one choice among plans, by the exact curves of the plans.

    Args:
        event: The choice, with simplified plans (:meth:`ChoiceEvent.of_group`) for the group of
            rows that is asked for.
        work: Elementary operations that the curves of all plans may take together.
    """

    def __init__(self, event: ChoiceEvent, work: float = 1e8) -> None:
        self._event, self._work = event, work
        self._sampled = any(Mixture.of(option).sampled for option in event.options)

    @cached_property
    def _plans(self) -> list[FlatAccountant]:
        return [FlatAccountant(option) for option in dict.fromkeys(self._event.options)]

    def _epsilon(self, delta: float, group: int) -> float:
        if delta >= 1.0 or not self._event.count:
            return 0.0
        coarse = min(a.get_epsilon(delta, group) for a in self._coarse(group))
        if self._sampled or delta < LOWEST or math.isinf(self._shift(group)):
            return coarse
        totals = self._totals(group)
        slack = totals.slack(math.log(delta * BETA))
        inner = delta * (1.0 - BETA) * math.exp(-slack.eta_to)
        if math.isinf(totals.mu) or inner < LOWEST:
            return coarse
        curve, alone = self._curves(group, math.log(delta))
        # No plan alone costs more than the worst choice, and it costs little more.
        low = max(solve(one, inner, -slack.eta) for one in alone)
        return min(coarse, max(0.0, _least(curve, inner, low) + slack.eta))

    def _delta(self, epsilon: float, group: int) -> float:
        if not self._event.count:
            return 0.0
        coarse = min(a.get_delta(epsilon, group) for a in self._coarse(group))
        totals = self._totals(group)
        if self._sampled or math.isinf(totals.mu) or math.isinf(epsilon):
            return coarse
        whole = max(math.hypot(self._shift(group), plan.scale(group)) for plan in self._plans)
        guess = gaussian_delta(epsilon, whole)
        curve, _ = self._curves(group, math.log(max(guess, 1e-270)) * 1.2)
        beta = max(BETA * curve.delta(epsilon), 1e-270)
        slack = totals.slack(math.log(beta))
        return min(coarse, slack.raised(curve.delta(epsilon - slack.eta), beta))

    def dominating(self, extra: float, group: int) -> float | None:
        """mu of a Gaussian whose curve, raised by `extra`, is above that of the choice.

        Args:
            extra: A probability.
            group: Rows added or removed together.

        Returns:
            About the smallest such mu, 0 if nothing was released; None if there is none.
        """
        delta = self._raised(extra, group)
        if delta is None:
            return None
        target = delta(0.0)
        if target >= 1.0:
            return None
        if target <= extra:  # above the whole curve, with any mu
            return 1e-9 if target else 0.0

        def is_less(mu: float) -> bool:
            return gaussian_delta(0.0, mu) < target

        scale = narrow(is_less, 0.0, doubled(is_less, 1e3)[1], 60)[1]
        step = scale / _POINTS_PER_MU
        reach = scale * scale / 2.0 + scale * math.sqrt(-2.0 * math.log(extra))
        points = [i * step for i in range(math.ceil(_REACH * reach / step) + 2)]
        return dominating_mu(np.array([delta(x) for x in points]), step, extra, scale, most=4.0)

    def curve(
        self, points: Sequence[float], lowest: float, group: int = 1, *, replaced: bool = False
    ) -> list[float]:
        """See :class:`Accountant`."""
        delta = self._raised(lowest, group * (1 + replaced))
        return [1.0] * len(points) if delta is None else [delta(x) for x in points]

    def _raised(self, lowest: float, group: int) -> Callable[[float], float] | None:
        """The curve with the slack of discrete noise, known down to a delta; None without one."""
        totals = self._totals(group)
        if self._sampled or math.isinf(totals.mu):
            return None
        curve, _ = self._curves(group, math.log(lowest))
        beta = lowest * BETA
        slack = totals.slack(math.log(beta))
        return lambda epsilon: slack.raised(curve.delta(epsilon - slack.eta), beta)

    def _shift(self, group: int) -> float:
        return GaussianTotals.of(Mixture.of(self._event.first).gaussians, group).mu

    def _totals(self, group: int) -> GaussianTotals:
        """The largest totals of the Gaussians on any path."""
        each = [GaussianTotals.of(Mixture.of(way).gaussians, group) for way in self._event.ways]
        return GaussianTotals(
            mu=max(t.mu for t in each),
            shift=max(t.shift for t in each),
            a1=max(t.a1 for t in each),
            a2=max(t.a2 for t in each),
            a_max=max(t.a_max for t in each),
        )

    def _curves(self, group: int, log_delta: float) -> tuple[_Envelope, list[Composition]]:
        """The curve of the choice, and those of each plan with the first release."""
        first = self._shift(group)
        log_low = max(log_delta, _LOG_TINY - math.log(TAIL))
        log_tail = log_low + math.log(TAIL)
        work = self._work / len(self._plans)
        plans = []
        for plan in self._plans:
            plans.append(plan.composition(group, log_tail, work))
        return _Envelope(first, plans, log_low), [plan.after(first) for plan in plans]

    def _coarse(self, group: int) -> list[Accountant]:
        """Bounds that need no grid."""
        if self._sampled:
            return [RDPAccountant([self._event])]  # infinite
        return [
            RDPAccountant([self._event]),
            ZCDPAccountant([hull(self._event, group, zcdp_mu2)]),
        ]


def _least(curve: _Envelope, delta: float, low: float) -> float:
    """Some epsilon at which the curve is at most delta, close above one at which it may not be."""
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
        # Where a line through the logarithms would be there, and a little beyond.
        slope = max((math.log(value) - math.log(reached)) / step, 1e-3)
        low, value = point, reached
        step = max(1.05 * (math.log(reached) - math.log(delta)) / slope, 1e-9 * max(low, 1e-3))
    else:
        return math.inf

    def is_safe(epsilon: float) -> bool:
        return curve.delta(epsilon) <= delta

    return narrow(is_safe, high, low, 8)[0]


class WithChoices(Accountant):
    """Choices among plans together with other releases: each choice is bounded by a Gaussian.

    Args:
        events: Simplified ones, for the group of rows that is asked for.
    """

    def __init__(self, events: Sequence[Event]) -> None:
        self._rest = [e for e in events if not isinstance(e, ChoiceEvent)]
        self._choices = [e for e in events if isinstance(e, ChoiceEvent) and e.count]

    def _epsilon(self, delta: float, group: int) -> float:
        if delta >= 1.0:
            return 0.0
        each = delta * _EXTRA
        rest = self._with_gaussians(each, group) if each > LOWEST else None
        return math.inf if rest is None else rest.get_epsilon(self._left(delta, each), group)

    def _delta(self, epsilon: float, group: int) -> float:
        best, each = 1.0, 1e-9
        for _ in range(2):
            rest = self._with_gaussians(each, group)
            if rest is not None:
                found = (rest.get_delta(epsilon, group) + each * self._number) * _UP
                best = min(best, found)
            each = max(best * _EXTRA, 1e-200)
        return best

    def curve(
        self, points: Sequence[float], lowest: float, group: int = 1, *, replaced: bool = False
    ) -> list[float]:
        """See :class:`Accountant`."""
        each = lowest * _EXTRA
        rest = self._with_gaussians(each, group * (1 + replaced))
        if rest is None:
            return [1.0] * len(points)
        found = rest.curve(points, lowest, group, replaced=replaced)
        return [min(1.0, (delta + each * self._number) * _UP) for delta in found]

    @property
    def _number(self) -> int:
        return sum(e.count for e in self._choices)

    def _left(self, delta: float, each: float) -> float:
        return (delta - each * self._number) * (1.0 - 1e-12)

    def _with_gaussians(self, each: float, group: int) -> ExactAccountant | None:
        """Everything else, and a Gaussian for each choice, up to `each`; None without one."""
        gaussians = []
        for event in self._choices:
            mu = ChoiceAccountant(event).dominating(each, group)
            if mu is None:
                return None
            # Almost continuous, so that it adds nothing to the slack of discrete noise.
            sens2 = math.ceil(math.ldexp(mu * mu * _UP / group**2, 100))
            gaussians.append(
                GaussianEvent(event.label, sens2, 1 << 100, 0, event.count, unit=event.unit)
            )
        return ExactAccountant([*gaussians, *self._rest])
