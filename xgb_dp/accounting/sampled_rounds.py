"""Rounds that read a random sample or a part of the rows, and what they cost.

Proofs: docs/proofs/sampling.md; docs/proofs/accounting.md, "Disjoint parts".
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from ..errors import LedgerError
from . import sampled_selection as sampled
from .accountant import MOST_ROWS
from .composition import FlatCurve, solve
from .curve import ChordTable, Curve, both_signs
from .events import Event, ExponentialEvent, GaussianEvent, PlainEvent, RoundsEvent, counted
from .gaussian import gaussian_epsilon
from .pure import pure_of, pure_sum
from .simplify import BoundedRange, Neighbours, OtherTerm, Terms, simplify, term_of, touched

_LOWEST_DELTA = 1e-200
_LOWEST = 1e-250
_LARGEST_MU = 30.0
_TILTS = 6
_LAWS = 5
_CLEARLY = 0.8
_DRIFT = 4e-16  # of one round's loss
_LARGEST_STEP = 0.25
_SMALLEST_STEP = 1e-12  # so that all losses in steps are integers of 64 bits


@dataclass(frozen=True)
class SampledTerm(OtherTerm):
    """`count` rounds that each release `inner` of rows that they read with probability `rate`."""

    inner: Terms
    rate: float

    @property
    def is_empty(self) -> bool:
        """Whether they show nothing."""
        return not self.inner.listed

    def compose(self, terms: Terms, neighbours: Neighbours, work: float) -> Curve:
        """See :class:`OtherTerm`."""
        return SampledCurve(terms, neighbours, work)

    def rate_of(self, coins: int) -> float:
        """Probability with which one of the coins, at least, lets its rows take part."""
        if coins == 1 or self.rate == 1.0:
            return self.rate
        return -math.expm1(coins * math.log1p(-self.rate))


class SampledCurve(Curve):
    """Rounds that each read rows nobody knows, together with releases that read all rows."""

    def __init__(self, terms: Terms, neighbours: Neighbours, work: float) -> None:
        self._terms, self._work = terms, work
        self._rows, self._coins = neighbours.rows, neighbours.coins
        self._sampled: list[Any] = [term for term in terms.others if not term.is_empty]
        self._rest = FlatCurve(terms.flat, self._rows, work)
        self._pairs: dict[tuple[float, float], list[list[sampled.Pair]]] = {}

    def epsilon(self, delta: float) -> float:
        """See :class:`Curve`."""
        if delta >= 1.0:
            return 0.0
        rounds = self._rounds(delta) if delta >= _LOWEST_DELTA else None
        best = self._from_laws(rounds, delta) if rounds else math.inf
        unsampled = self._unsampled
        if unsampled is None:
            return best
        # All rows cost more, unless nearly all are read; far from there the bound is not needed.
        about = gaussian_epsilon(unsampled.scale, delta)
        if best < _CLEARLY * about:
            return best
        return min(best, unsampled.epsilon(delta))

    def _from_laws(self, rounds: Sequence[sampled.Rounds], delta: float) -> float:
        """The bound by the composed laws of the rounds."""
        best = math.inf
        # A law is accurate near one loss; the first one is Chernoff's guess of where that is.
        near: float | None = None
        for _ in range(_TILTS):
            composed = self._composed(rounds, delta, near)
            value = math.inf
            if composed is not None:
                guess = gaussian_epsilon(composed.mu, delta) if near is None else near
                value = max(0.0, solve(composed, delta, -self._drift, guess) + self._drift)
            enough = value > best * (1.0 - 1e-3) or (near is not None and value > 0.9 * near)
            best = min(best, value)
            if enough:
                break
            near = value
        return best

    def delta(self, epsilon: float) -> float:
        """See :class:`Curve`."""
        best = self._unsampled.delta(epsilon) if self._unsampled else 1.0
        scale, coarse = 1e-9, False  # what is called infinite is a part of this
        while scale > _LOWEST_DELTA and not math.isinf(epsilon):
            rounds = self._rounds(scale)
            composed = self._composed(rounds, scale, epsilon) if rounds else None
            if composed is None:
                return best
            value = composed.delta(epsilon - self._drift)
            best = min(best, value)
            if value > 10.0 * scale and not coarse:  # where less slack is enough for discrete noise
                scale, coarse = min(value, 0.03), True
                continue
            if coarse or value > scale or value < 1e-30:
                return best
            scale = value * 1e-2
        return best

    def deltas(self, points: Sequence[float], lowest: float) -> list[float]:
        """See :class:`Curve`."""
        best = np.ones(len(points))
        if self._unsampled is not None:
            best = np.array(self._unsampled.deltas(points, lowest))
        # A law is accurate near one loss, for a delta of about this size.
        for scale in np.geomspace(0.03, lowest, _LAWS):
            rounds = self._rounds(float(scale))
            composed = self._composed(rounds, float(scale), None) if rounds else None
            if composed is None:
                break
            values = [composed.delta(x - self._drift) for x in points]
            best = np.minimum(best, values)
        return [float(v) for v in best]

    @property
    def _drift(self) -> float:
        """How much the rounding of losses near log(1 - q) may add up to."""
        return _DRIFT * sum(term.count for term in self._sampled)

    @cached_property
    def _unsampled(self) -> FlatCurve | None:
        """The same releases from all rows, which cost at least as much.

        Close to a rate of 1 this is the better bound. The sampled bound takes the worst round at
        every loss, and the selections of many rounds together have a smaller curve. It is None
        where selections of unequal range take turns: runs of them would not be in release order.
        """
        flat: list[Any] = []
        for term in self._terms.listed:
            if not isinstance(term, SampledTerm):
                flat.append(term)
                continue
            ranges = {t.eps0 for t in term.inner.ranges if not t.scale}
            if term.count > 1 and len(ranges) > 1:
                return None
            for inner in term.inner.listed:
                if isinstance(inner, (GaussianEvent, BoundedRange)):
                    flat.append(replace(inner, count=inner.count * term.count))
        return FlatCurve(Terms(tuple(flat)), self._rows, self._work)

    def _rounds(self, delta: float) -> list[sampled.Rounds] | None:
        """The curves of one round each; None if one is too loud for a grid."""
        rounds: list[sampled.Rounds] = []
        for term in self._sampled:
            if FlatCurve(term.inner, self._rows).scale == 0.0:
                continue
            one = self._round(term, delta)
            if one is None:
                return None
            rounds.append(one)
        return rounds

    def _round(self, term: SampledTerm, delta: float) -> sampled.Rounds | None:
        """The curve of one round; None if it is too loud for a grid."""
        rows, count = self._rows, term.count
        mu = FlatCurve(term.inner, rows).scale
        if mu > _LARGEST_MU:
            return None
        rate = min(1.0, term.rate_of(self._coins) * (1.0 + 1e-15))
        lowest = min(max(delta * 1e-6 / count / rate, _LOWEST), 1e-6)

        def of_rows(several: int) -> ChordTable:
            inner = FlatCurve(term.inner, several, self._work)
            size = inner.scale
            top = size * size / 2.0 + size * (math.sqrt(-2.0 * math.log(lowest)) + 1.0)
            return _table(inner, top, size / 32.0, lowest)

        table = of_rows(rows)
        whole = sampled.Rounds(rate, mu, table, table.x, count)
        if 1 < rows <= MOST_ROWS:
            tables = [*map(of_rows, range(1, rows)), table]
            curves = [partial(both_signs, t) for t in tables]
            one = FlatCurve(term.inner, 1).scale
            mixed = sampled.several_rows(term.rate, one, curves, replaced=self._coins < rows)
            nodes = np.union1d(tables[0].x, table.x)
            return replace(whole, mu=one, nodes=nodes, mixed=mixed)
        if rows > 1:
            return replace(whole, mixed=partial(sampled.removed_curve, whole))
        return whole

    def _composed(
        self, rounds: Sequence[sampled.Rounds], delta: float, epsilon: float | None
    ) -> _Worst | None:
        """Losses of all rounds, in every order that counts; None if they fit no grid."""
        step = min(r.size for r in rounds)
        step = min(max(step / 16.0, _SMALLEST_STEP), _LARGEST_STEP)
        while (laws := self._laws(rounds, step, delta, epsilon)) is None:
            if step >= _LARGEST_STEP:
                return None
            step = min(2.0 * step, _LARGEST_STEP)
        deviation = math.hypot(self._rest.scale, laws[0].deviation)
        return _Worst(laws, self._rest_curve, deviation)

    @cached_property
    def _rest_curve(self) -> ChordTable:
        flat = self._rest.scale
        if flat == 0.0:
            return ChordTable(np.array([0.0, 1.0]), np.array([0.0, 0.0]))
        middle, reach = flat * flat / 2.0, flat * 40.0
        low = max(0.0, middle - reach)  # below, the curve is 1 for all that doubles can tell
        return _table(self._rest, middle + reach, flat / 64.0, _LOWEST, low)

    def _laws(
        self,
        rounds: Sequence[sampled.Rounds],
        step: float,
        delta: float,
        epsilon: float | None,
    ) -> list[sampled.Composed] | None:
        """The sums of losses in every order, on a grid of this step; None if it is too large."""
        if (delta, step) not in self._pairs:
            self._pairs[delta, step] = [
                sampled.sampled_pairs(r, step, delta * 1e-5 / r.count) for r in rounds
            ]
        pairs = self._pairs[delta, step]
        laws = []
        for i in range(len(pairs[0])):
            parts = [(pair[i], r.count) for pair, r in zip(pairs, rounds, strict=True)]
            tilt = sampled.best_tilt(parts, self._rest.scale, delta=delta, epsilon=epsilon)
            try:
                laws.append(sampled.Composed(parts, tilt, delta * 1e-6))
            except sampled.TooManyPoints:
                return None
        return laws


def _table(
    curve: FlatCurve, top: float, step: float, lowest: float, low: float = 0.0
) -> ChordTable:
    """Upper bounds of a curve from `low` to `top`, down to a delta of `lowest`."""
    x = low + np.arange(math.ceil((top - low) / step) + 1, dtype=np.float64) * step
    x = x if low == 0.0 else np.concatenate([[0.0], x])
    return ChordTable(x, np.array(curve.deltas(list(x), lowest)))


class _Worst:
    """The largest curve of all orders."""

    def __init__(
        self, laws: Sequence[sampled.Composed], rest: ChordTable, deviation: float
    ) -> None:
        self.laws, self.rest, self.mu = laws, rest, deviation

    def delta(self, epsilon: float) -> float:
        """Upper bound at an epsilon >= 0."""
        return max(
            law.expect(np.clip(both_signs(self.rest, epsilon - law.losses), 0.0, 1.0))
            for law in self.laws
        )


@dataclass(frozen=True)
class SampledEvent(RoundsEvent):
    """`count` rounds, each of which reads its own Poisson sample of the rows.

    Attributes:
        rate_num: A row is in the sample of a round with probability rate_num / 2**rate_bits,
            independently of everything else; 1 to 2**rate_bits.
        rate_bits: 1 to 60.
        events: What one round releases from its sample, in release order.
        count: Number of rounds, >= 0.

    Examples:
        >>> from xgb_dp.accounting import GaussianEvent, SampledEvent
        >>> event = GaussianEvent("leaves", sensitivity2=1, sigma2=400, coordinates=1, count=10)
        >>> SampledEvent(rate_num=1, rate_bits=1, events=(event,), count=20).rate
        0.5
    """

    mechanism = "poisson"
    _costly = ("rate_num",)
    rate_num: int
    rate_bits: int
    events: tuple[PlainEvent, ...]
    count: int

    def _check(self) -> None:
        super()._check()
        if not 1 <= self.rate_bits <= 60 or not 1 <= self.rate_num <= 1 << self.rate_bits:
            raise LedgerError("A ledger event has a sampling rate that is not in (0, 1].")

    @property
    def rate(self) -> float:
        """Probability with which a round reads a row."""
        return self.rate_num / 2**self.rate_bits

    def factor_of_mu2(self, mu2: float) -> float:
        """About q^2 (e^(mu^2) - 1) is left of a round."""
        return self.count * self.rate**2 * _grown(mu2)


@dataclass(frozen=True)
class ParallelEvent(RoundsEvent):
    """`count` ensembles of rounds that read disjoint parts of the rows.

    Which part a row belongs to is drawn for each ensemble without looking at the data, so that one
    row touches one round of an ensemble.

    Attributes:
        parts: Rounds of one ensemble, >= 1.
        events: What one round releases from its part, in release order.
        count: Number of ensembles, >= 0.

    Examples:
        >>> from xgb_dp.accounting import GaussianEvent, ParallelEvent
        >>> event = GaussianEvent("leaves", sensitivity2=1, sigma2=400, coordinates=1, count=10)
        >>> parts = ParallelEvent(parts=8, events=(event,), count=1)
        >>> both = (xgb_dp.accounting.make_accountant("exact", [e]) for e in (event, parts))
        >>> [round(a.get_epsilon(1e-6), 2) for a in both]  # a row is in one part only
        [0.66, 0.66]
    """

    mechanism = "parallel"
    _costly = ("parts",)
    _least = {"parts": 1}  # noqa: RUF012
    parts: int
    events: tuple[PlainEvent, ...]
    count: int

    def _check(self) -> None:
        super()._check()
        ranges = {e.eps0 for e in self.events if isinstance(e, ExponentialEvent) and e.count}
        if len(ranges - {0.0}) > 1:  # accountants put all rounds of a kind together
            raise LedgerError(
                "An ensemble of the privacy ledger has selections of different ranges, and the "
                "order of their costs is not known."
            )


@pure_of.register
def _(event: SampledEvent) -> float:
    """A round that reads a Poisson sample costs log(1 + q (e^eps - 1))."""
    inner, rate = pure_sum(event.events), event.rate
    if inner < 30.0:
        one = math.log1p(rate * math.expm1(inner))
    else:  # the same, where e^inner may overflow
        one = inner + math.log(rate + (1.0 - rate) * math.exp(-inner))
    return event.count * one * (1.0 + 1e-13)


@pure_of.register
def _(event: ParallelEvent) -> float:
    """What one row sees of an ensemble, once."""
    return event.count * pure_sum(event.events)


@touched.register
def _(event: ParallelEvent, coins: int) -> Sequence[Event]:
    """Releases that rows with so many coins take part in, each with all of them at worst."""
    rounds = min(coins, event.parts)
    return [counted(e, e.count * event.count * rounds) for e in event.events]


@term_of.register
def _(event: SampledEvent, coins: int) -> SampledTerm:
    return SampledTerm(event.count, simplify(event.events, coins), event.rate)


def _grown(mu2: float) -> float:
    """(e^(mu^2) - 1) / mu^2 of a round."""
    return math.expm1(min(mu2, 700.0)) / mu2 if mu2 else 0.0
