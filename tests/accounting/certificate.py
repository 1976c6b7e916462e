"""A lower and an upper bound of epsilon of a ledger, in interval arithmetic.

Nothing of ``xgb_dp.accounting`` is used: events are read as the JSON of the ledger. Proof:
certificate.md beside this file
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from flint import arb, ctx
from scipy.special import ndtr

from .certified_selections import Array, Atoms, Run, above, ball, hinges, lower_sets, upper_atoms

_BITS = 128
_ROUNDED = 2  # tau^2 of the randomised rounding that makes noise on integers of continuous noise
_SMOOTHED = 3  # tau^2 of the noise that makes continuous noise of noise on integers
_LEAST_SIGMA2 = 16
_POINTS = (40, 120)  # of the envelope of several plans, below and above 0
_BEYOND = 1e-6  # share of delta that it may miss above its last point
_PER_SUM = Fraction(1, 10**16)  # more than what the two kinds of noise differ by, in log


class NotCertifiedError(ValueError):
    """A ledger contains something for which there is no certificate."""


@dataclass(frozen=True)
class Certificate:
    """Epsilon of the events of a ledger, for one row or person added or removed.

    Attributes:
        lower: An adversary whom the events allow reaches this epsilon, in nats.
        upper: No adversary whom the events allow exceeds this epsilon, in nats.
        delta: At which both hold.
    """

    lower: float
    upper: float
    delta: float


@dataclass(frozen=True)
class _Totals:
    """What is composed: squared shifts from both sides, the slack of integers, selections.

    And the plans of which one follows; none where there is no choice.
    """

    most: Fraction
    least: Fraction
    slack: Fraction
    runs: tuple[Run, ...]
    plans: tuple[_Totals, ...] = ()

    def taken(self, plan: _Totals) -> _Totals:
        """With one of the plans whatever was released before."""
        return _Totals(
            self.most + plan.most, self.least + plan.least, self.slack + plan.slack, plan.runs
        )


def certify(ledger: Mapping[str, Any], delta: float) -> Certificate:
    """Bounds of epsilon of a ledger at a delta.

    Args:
        ledger: As :func:`json.loads` reads it.
        delta: Above 0 and below 1.

    Raises:
        NotCertifiedError: An event is of a kind without a certificate, or a bound takes too long.
    """
    if not 0.0 < delta < 1.0:
        raise NotCertifiedError("delta is not above 0 and below 1")
    before, ctx.prec = ctx.prec, _BITS
    try:
        totals = _totals(_events(ledger))
        ways = [totals.taken(plan) for plan in totals.plans] or [totals]
        dearest = max(ways, key=lambda way: _curve_above(way, delta).near(delta))
        return Certificate(_lower(dearest, delta), _upper(totals, delta), delta)
    finally:
        ctx.prec = before


def _events(ledger: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    for training in ledger["trainings"]:
        if "masked_sums" in training["public"]:
            raise NotCertifiedError("noise of masked sums is a sum of shares")
        yield from training["events"]


def _totals(events: Iterable[Mapping[str, Any]]) -> _Totals:
    most = least = slack = Fraction(0)
    runs: list[Run] = []
    plans: tuple[_Totals, ...] = ()
    for event in events:
        kind, count = event["mechanism"], event["count"]
        if kind == "choice" and count == 1 and not plans and event["options"]:
            plans = tuple(map(_totals, event["options"]))
            first = _totals(event["first"])
            if first.runs or first.plans:
                raise NotCertifiedError("there are selections before a choice")
            most, least, slack = most + first.most, least + first.least, slack + first.slack
            continue
        if kind == "gaussian":
            if count and event["sensitivity2"]:
                high, low, sums = _shift(event)
                most, least, slack = most + high, least + low, slack + sums * _PER_SUM
        elif kind == "exponential":
            if count and event["eps_num"]:
                runs.append((Fraction(event["eps_num"], 1 << event["eps_bits"]), count))
        else:
            raise NotCertifiedError(f"there is no certificate for the mechanism {kind!r}")
    if (plans and runs) or any(plan.plans for plan in plans):
        raise NotCertifiedError("there are selections or choices beside a choice")
    return _Totals(most, least, slack, tuple(runs), plans)


def _shift(event: Mapping[str, Any]) -> tuple[Fraction, Fraction, int]:
    """Squared shifts of continuous noise that costs more, and less; and the sums touched."""
    length2, sigma2, count = event["sensitivity2"], event["sigma2"], event["count"]
    if sigma2 < _LEAST_SIGMA2:
        raise NotCertifiedError("there is noise of less than 4 units of the grid, or none")
    reached = 0
    for _ in range(min(max(event["coordinates"], 1), 64)):  # an integer vector of that length
        reached += math.isqrt(length2 - reached) ** 2
    sums = count * max(event["coordinates"], 1)
    return (
        Fraction(count * length2, sigma2 - _ROUNDED),
        Fraction(count * reached, sigma2 + _SMOOTHED),
        sums,
    )


def _curve_above(totals: _Totals, delta: float) -> _Mixture:
    """A curve above that of everything, but for the slack."""
    if totals.plans:
        return _Mixture(*_envelope(totals.plans, delta), totals.most)
    atoms = upper_atoms(totals.runs, delta) if totals.runs else ([(arb(0), arb(1))], arb(0))
    if atoms is None:
        raise NotCertifiedError("there are too many selections")
    return _Mixture(*atoms, totals.most)


def _envelope(plans: Sequence[_Totals], delta: float) -> tuple[Atoms, Any]:
    """The chords of a curve that is above those of all plans, slack included."""
    curves = [(_curve_above(plan, delta), ball(plan.slack)) for plan in plans]
    reach = max(curve.near(delta * _BEYOND) for curve, _ in curves)
    below, over = (np.linspace(0.0, reach, count + 1) for count in _POINTS)
    x = [arb(float(v)) for v in (*-below[:0:-1], *over)]
    most = [
        max(above(curve.delta(v - 2 * slack) * slack.exp()) for curve, slack in curves) for v in x
    ]
    return hinges(x, np.clip(most, 0.0, 1.0))


def _upper(totals: _Totals, delta: float) -> float:
    mixture = _curve_above(totals, delta)
    slack = ball(totals.slack)

    def is_above(epsilon: float) -> bool:
        value = mixture.delta(arb(epsilon) - 2 * slack) * slack.exp()
        return bool(value <= arb(delta))

    return 0.0 if is_above(0.0) else _moved(mixture.near(delta), is_above, 1.0)


def _lower(totals: _Totals, delta: float) -> float:
    attack: _Mixture | _Attack = _Mixture([(arb(0), arb(1))], arb(0), totals.least)
    if totals.runs:
        sets = lower_sets(totals.runs, delta)
        if sets is None:
            raise NotCertifiedError("there are too many selections")
        attack = _Attack(*sets, totals.least)
    slack = ball(totals.slack)

    def is_below(epsilon: float) -> bool:
        value = attack.delta(arb(epsilon) + 2 * slack) * (-slack).exp()
        return bool(value > arb(delta))

    return _moved(attack.near(delta), is_below, -1.0) if is_below(0.0) else 0.0


def _moved(start: float, holds: Callable[[float], bool], direction: float) -> float:
    """A point near `start` at which something was found to hold, in balls."""
    step = 1e-6
    while step < 1e12:
        point = max(0.0, start + direction * step * max(start, 1e-3))
        if holds(point):
            return point
        step *= 4.0
    raise NotCertifiedError("no bound was found")


def _near(about: Callable[[float], float], delta: float) -> float:
    low, high = 0.0, 1.0
    while about(high) > delta and high < 1e9:
        high *= 2.0
    for _ in range(50):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if about(middle) > delta else (low, middle)
    return high


class _Mixture:
    """The curve of a Gaussian shift and a loss of finitely many values."""

    def __init__(self, atoms: Atoms, infinite: Any, mu2: Fraction) -> None:
        self._atoms, self._infinite, self._mu = atoms, infinite, ball(mu2).sqrt()
        self._continuous = mu2 > 0
        self._x = np.array([float(x) for x, _ in atoms])
        self._c = np.array([float(c) for _, c in atoms])
        self._float_mu, self._float_infinite = math.sqrt(mu2), float(infinite)

    def delta(self, epsilon: Any) -> Any:
        """The hockey stick at an epsilon, as a ball around it."""
        total = self._infinite
        for loss, mass in self._atoms:
            total += mass * self._stick(epsilon - loss)
        return total

    def _stick(self, x: Any) -> Any:
        if not self._continuous:
            return (1 - x.exp()).max(arb(0))
        root = arb(2).sqrt()
        first = ((x / self._mu - self._mu / 2) / root).erfc()
        second = ((x / self._mu + self._mu / 2) / root).erfc()
        return (first - x.exp() * second) / 2

    def near(self, delta: float) -> float:
        """About the epsilon of a delta; it bounds nothing."""
        return _near(self._about, delta)

    def _about(self, epsilon: float) -> float:
        x, mu = epsilon - self._x, self._float_mu
        with np.errstate(over="ignore", invalid="ignore"):
            if self._continuous:
                each = ndtr(mu / 2 - x / mu) - np.exp(x) * ndtr(-mu / 2 - x / mu)
                each = np.nan_to_num(each)
            else:
                each = np.maximum(-np.expm1(x), 0.0)
        return float(self._c @ each) + self._float_infinite


class _Attack:
    """A Gaussian shift, after which an adversary tries the set of the nearest point of a grid."""

    def __init__(self, step: Fraction, p: Array, q: Array, mu2: Fraction) -> None:
        self._step, self._p, self._q = step, p, q
        self._mu, self._float_mu = ball(mu2).sqrt(), math.sqrt(mu2)
        self._middle = len(p) // 2
        self._ends = (np.arange(len(p) + 1) - self._middle - 0.5) * float(step)

    def delta(self, epsilon: Any) -> Any:
        """What the adversary reaches at an epsilon, as a ball below or around it."""
        grown = epsilon.exp()
        if self._float_mu == 0.0:
            best = int(np.argmax(self._p - math.exp(float(epsilon)) * self._q))
            return arb(float(self._p[best])) - grown * arb(float(self._q[best]))
        root, total, before = arb(2).sqrt() * self._mu, arb(0), None
        for i, (p, q) in enumerate(zip(self._p, self._q, strict=True)):
            if before is None:
                # Below the grid every outcome is in the set.
                before = self._chances(epsilon, i, root)
                total += before[0] - grown * before[1]
            after = self._chances(epsilon, i + 1, root)
            total += arb(float(p)) * (after[0] - before[0])
            total -= grown * arb(float(q)) * (after[1] - before[1])
            before = after
        return total

    def _chances(self, epsilon: Any, i: int, root: Any) -> tuple[Any, Any]:
        """Chances that the loss is above epsilon less the lower end of a cell, in both orders."""
        y = epsilon - ball(self._step * (2 * (i - self._middle) - 1) / 2)
        shift = self._mu * self._mu / 2
        return ((y - shift) / root).erfc() / 2, ((y + shift) / root).erfc() / 2

    def near(self, delta: float) -> float:
        """About the epsilon of a delta; it bounds nothing."""
        return _near(self._about, delta)

    def _about(self, epsilon: float) -> float:
        grown, mu = math.exp(min(epsilon, 700.0)), self._float_mu
        if mu == 0.0:
            return float(np.max(self._p - grown * self._q))
        y = epsilon - self._ends
        with_row, without = ndtr(mu / 2 - y / mu), ndtr(-mu / 2 - y / mu)
        inside = self._p @ np.diff(with_row) - grown * (self._q @ np.diff(without))
        return float(inside + with_row[0] - grown * without[0])
