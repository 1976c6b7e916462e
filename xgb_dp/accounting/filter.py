"""A privacy filter: enforces a fixed total (epsilon, delta) under fully adaptive composition.

All accepted releases together satisfy the total, even if each release and its noise are chosen
after the results of the earlier ones.

Proof: docs/proofs/filter.md
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from .accountant import ExactAccountant, compose
from .choice import ChoiceCurve
from .curve import doubled, narrow, usual_floats
from .events import ChoiceEvent, Event, PlainEvent, SelectionEvent, ThresholdEvent, one_unit
from .gaussian import dominating_gaussian, failure_of, gaussian_delta, gaussian_epsilon
from .simplify import Neighbours, simplify

_EXTRA = 0.25  # share of delta for the excess over Gaussian curves
_EXTRA_EACH = 1e-4  # share of delta for the excess of one training
_MARGIN = 0.004  # relative excess of a training's mu over the Gaussian of its epsilon
_POINTS_PER_MU = 30
_POINTS_OF_ROUNDS = 12  # fewer, because each point of their curve takes longer
_UP = 1.0 + 1e-12


@dataclass(frozen=True)
class Charge:
    """Charge of a release against a total. Its privacy curve is at most G_mu(x - shift) + extra.

    Attributes:
        mu2: mu^2 of the Gaussian G_mu.
        shift: In nats.
        extra: A probability.

    Examples:
        >>> from xgb_dp.accounting.filter import Charge
        >>> Charge.total([Charge(mu2=0.25), Charge(mu2=0.5)]).mu2
        0.75
    """

    mu2: float = 0.0
    shift: float = 0.0
    extra: float = 0.0

    @classmethod
    def total(cls, charges: Iterable[Charge]) -> Charge:
        """The sum of all charges, rounded up to the next double."""
        each = list(charges)
        return cls(
            _sum_up([c.mu2 for c in each]),
            _sum_up([c.shift for c in each]),
            _sum_up([c.extra for c in each]),
        )


def _sum_up(values: Sequence[float]) -> float:
    """Sum of non-negative doubles, rounded up to the next double."""
    if not all(map(math.isfinite, values)):
        return math.inf
    exact = sum(map(Fraction, values), Fraction(0))
    near = float(exact)
    return near if near >= exact else math.nextafter(near, math.inf)


def _left(total: float, spent: float) -> float:
    """`total` - `spent`, rounded down to the next double, but at least 0."""
    exact = Fraction(total) - Fraction(spent)
    near = float(exact)
    return max(0.0, near if near <= exact else math.nextafter(near, -math.inf))


@dataclass(frozen=True)
class Capacity:
    """Limits of the total charge under an (epsilon, delta).

    Attributes:
        mu2: Limit for releases with a Gaussian bound, which add up in mu^2.
        shift: Limit for other releases, which add up in epsilon; in nats.
        extra: Limit for the deltas of both.

    Examples:
        >>> from xgb_dp.accounting.filter import Capacity, Charge
        >>> room = Capacity.of(epsilon=1.0, delta=1e-6)
        >>> room.holds(Charge(mu2=0.03)), room.holds(Charge(mu2=0.3))
        (True, False)
    """

    mu2: float
    shift: float
    extra: float

    @classmethod
    def of(cls, epsilon: float, delta: float, selection_epsilon: float = 0.0) -> Capacity:
        """Compute the limits for a total (epsilon, delta).

        Args:
            epsilon: In nats, > 0.
            delta: In (0, 1).
            selection_epsilon: Part of epsilon reserved for releases without a Gaussian bound.
        """
        extra = _EXTRA * delta
        inner, rest = (delta - extra) * (1.0 - 1e-9), epsilon - selection_epsilon

        def fits(mu: float) -> bool:
            return gaussian_delta(rest, mu) <= inner

        mu, _ = narrow(fits, *doubled(fits, 1e6), 80)
        return cls(mu * mu * (1.0 - 1e-12), selection_epsilon, extra)

    def holds(self, total: Charge) -> bool:
        """Whether the total charge is within the limits."""
        return total.mu2 <= self.mu2 and total.shift <= self.shift and total.extra <= self.extra


@dataclass(frozen=True)
class Filter:
    """The filter of one total: accepts a release if its charge fits under one of two rules.

    The first release with a positive charge fixes the rule for all later charges, before any result
    is published: Gaussian charges add up in mu^2, or epsilons and deltas add up (basic
    composition). The second rule is for releases that do not fit under the first, above all a
    single training that spends the entire total.
    """

    epsilon: float
    delta: float
    selection_epsilon: float = 0.0  # reserved for releases without a Gaussian bound; implies mu^2

    def adds_up(self, spent: Charge) -> bool:
        """Whether basic composition applies, given the charges so far."""
        # A Gaussian charge with a positive delta has mu > 0.
        plain = spent.shift > 0.0 or (spent.mu2 == 0.0 and spent.extra > 0.0)
        return self.selection_epsilon == 0.0 and plain

    def room(self, spent: Charge) -> Capacity:
        """The limits under the rule that the first release fixed."""
        return _room(self, self.adds_up(spent))

    def charge(
        self,
        spent: Charge,
        events: Sequence[Event],
        charge: Charge,
        group_size: int = 1,
        paid: Charge | None = None,
    ) -> Charge | None:
        """The charge to record for a release; None if the total does not permit the release.

        Args:
            spent: Sum of all earlier charges. It determines the composition rule.
            events: Events of the release.
            charge: Charge with a Gaussian bound, from :func:`charge_of`.
            group_size: Number of rows (or persons) by which the neighbours of the total differ.
            paid: Earlier charges to the units that this release reads; default: `spent`.
        """
        paid = spent if paid is None else paid
        if not self.adds_up(spent):
            if _room(self, False).holds(Charge.total([paid, charge])):
                return charge
            selects = any(isinstance(e, SelectionEvent) for e in events)
            if spent != Charge() or self.selection_epsilon or selects:
                return None
        # First without delta, to leave it for later releases; then with all remaining delta.
        for delta in (0.0, _left(self.delta, paid.extra)):
            plain = plain_charge(events, delta, group_size)
            if _room(self, True).holds(Charge.total([paid, plain])):
                return plain
        return None

    def remaining(self, spent: Charge, delta: float, paid: Charge | None = None) -> float:
        """Approximately the largest epsilon for one more training with this delta."""
        paid, left = spent if paid is None else paid, 0.0
        plain = self.adds_up(spent) or (spent == Charge() and not self.selection_epsilon)
        if plain and delta <= _left(self.delta, paid.extra):
            left = _left(self.epsilon, paid.shift)
        if self.adds_up(spent):
            return left
        room = self.room(spent)
        if paid.extra + _EXTRA_EACH * self.delta > room.extra:
            return left
        mu = math.sqrt(max(0.0, room.mu2 - paid.mu2)) * (1.0 - _MARGIN)
        return max(left, gaussian_epsilon(mu, delta))


@lru_cache(maxsize=64)
def _room(total: Filter, plain: bool) -> Capacity:
    if plain:
        return Capacity(0.0, total.epsilon, total.delta)
    return Capacity.of(total.epsilon, total.delta, total.selection_epsilon)


def plain_charge(events: Sequence[Event], delta: float, group_size: int = 1) -> Charge:
    """Charge the epsilon of these releases at `delta`, without a Gaussian bound."""
    return Charge(0.0, ExactAccountant(events).get_epsilon(delta, group_size), delta)


@usual_floats
def charge_of(
    events: Sequence[Event], delta: float, own_delta: float | None = None, group_size: int = 1
) -> Charge:
    """The smallest known charge for these releases, independent of all others.

    Args:
        events: In release order; all parameters are fixed before the first release.
        delta: Delta of the total. A small share covers the excess over the Gaussian curve.
        own_delta: Delta of the charge of releases without a Gaussian bound; default: a hundredth of
            `delta`.
        group_size: Number of rows (or persons) by which the neighbours of the total differ.

    Returns:
        Charge: Infinite if no bound is known.

    Raises:
        LedgerError: The events have different privacy units, "row" and "person".

    Examples:
        >>> from xgb_dp.accounting import GaussianEvent
        >>> event = GaussianEvent("leaves", sensitivity2=1, sigma2=400, coordinates=1, count=10)
        >>> from xgb_dp.accounting.filter import charge_of
        >>> round(charge_of([event], delta=1e-6).mu2, 3)
        0.031
    """
    one_unit(events)
    events = [event for event in events if event.count]
    thresholds = [e for e in events if isinstance(e, ThresholdEvent)]
    if thresholds:  # their failure probabilities add up, regardless of the other events
        rest = [e for e in events if not isinstance(e, ThresholdEvent)]
        failures = math.fsum(failure_of(e, group_size) for e in thresholds)
        added = Charge(extra=min(1.0, failures * _UP))
        return Charge.total([charge_of(rest, delta, own_delta, group_size), added])
    if not any(isinstance(e, SelectionEvent) for e in events):
        choices = [e for e in events if isinstance(e, ChoiceEvent)]
        if choices:
            return _with_choices(choices, events, delta, group_size)
        extra = delta * _EXTRA_EACH
        mu = _gaussian(events, extra, group_size)
        if mu is not None:
            return _gaussian_charge(mu, extra)
    return plain_charge(events, delta / 100.0 if own_delta is None else own_delta, group_size)


def _gaussian_charge(mu: float, extra: float) -> Charge:
    return Charge(mu * mu * _UP, 0.0, extra if mu else 0.0)


def _with_choices(
    choices: Sequence[ChoiceEvent], events: Sequence[Event], delta: float, group_size: int
) -> Charge:
    """Sum of the charges for each choice among plans and for the other events."""
    rest = [e for e in events if not isinstance(e, ChoiceEvent)]
    charges = [charge_of(rest, delta, group_size=group_size)] if rest else []
    for choice in simplify(choices, group_size).choices:
        extra = delta * _EXTRA_EACH
        mu = ChoiceCurve(choice, group_size).dominating(extra)
        charges += [Charge(math.inf) if mu is None else _gaussian_charge(mu, extra)] * choice.count
    return Charge.total(charges)


def _gaussian(events: Sequence[Event], extra: float, group_size: int) -> float | None:
    """A mu such that the Gaussian curve plus `extra` bounds the curve of the events."""
    at_once = simplify(events, group_size)
    at_zero = compose(at_once, Neighbours(group_size, group_size)).delta(0.0)
    if at_zero == 0.0:
        return 0.0
    in_steps = group_size > 1 and not all(isinstance(event, PlainEvent) for event in events)
    curve = ExactAccountant(events).privacy_curve(group_size)
    points = _POINTS_OF_ROUNDS if at_once.others or in_steps else _POINTS_PER_MU
    return dominating_gaussian(curve.deltas, extra, at_zero, points)
