"""Rounds that read a random sample or a disjoint part of the rows, and their privacy curves.

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
from .accountant import MOST_ROWS, pure_of, pure_sum
from .composition import FlatCurve, solve
from .curve import ChordTable, Curve, both_signs
from .events import Event, ExponentialEvent, GaussianEvent, PlainEvent, RoundsEvent, counted
from .gaussian import gaussian_epsilon
from .simplify import BoundedRange, Neighbours, OtherTerm, Terms, simplify, term_of, touched

_LOWEST_DELTA = 1e-200
_LOWEST = 1e-250
_LARGEST_MU = 30.0
_TILTS = 6
_DISTRIBUTIONS = 5
_CLEARLY = 0.8
_DRIFT = 4e-16  # rounding error of one round's loss
_LARGEST_STEP = 0.25
_SMALLEST_STEP = 1e-12  # losses in steps must fit in 64-bit integers


@dataclass(frozen=True)
class SampledTerm(OtherTerm):
    """`count` rounds, each with the releases `inner` on a Poisson sample of rate `rate`."""

    inner: Terms
    rate: float

    @property
    def is_empty(self) -> bool:
        """Whether the rounds release nothing."""
        return not self.inner.listed

    def compose(self, terms: Terms, neighbours: Neighbours, work: float) -> Curve:
        """See :class:`OtherTerm`."""
        return SampledCurve(terms, neighbours, work)

    def rate_of(self, assignments: int) -> float:
        """Probability that at least one of `assignments` independent draws selects its rows."""
        if assignments == 1 or self.rate == 1.0:
            return self.rate
        return -math.expm1(assignments * math.log1p(-self.rate))


class SampledCurve(Curve):
    """Rounds on secret samples, composed with releases that read all rows."""

    def __init__(self, terms: Terms, neighbours: Neighbours, work: float) -> None:
        self._terms, self._work = terms, work
        self._rows, self._assignments = neighbours.rows, neighbours.assignments
        self._sampled: list[Any] = [term for term in terms.others if not term.is_empty]
        self._rest = FlatCurve(terms.flat, self._rows, work)
        self._pairs: dict[tuple[float, float], list[list[sampled.Pair]]] = {}

    def epsilon(self, delta: float) -> float:
        """See :class:`Curve`."""
        if delta >= 1.0:
            return 0.0
        rounds = self._rounds(delta) if delta >= _LOWEST_DELTA else None
        best = self._from_distributions(rounds, delta) if rounds else math.inf
        unsampled = self._unsampled
        if unsampled is None:
            return best
        # Without sampling the bound is worse, unless the rate is near 1. Skip it if it is far off.
        about = gaussian_epsilon(unsampled.scale, delta)
        if best < _CLEARLY * about:
            return best
        return min(best, unsampled.epsilon(delta))

    def _from_distributions(self, rounds: Sequence[sampled.Rounds], delta: float) -> float:
        """The bound from the composed loss distributions of the rounds."""
        best = math.inf
        # A tilted distribution is accurate near one loss; the first guess uses Chernoff's bound.
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
        scale, coarse = 1e-9, False  # the mass of infinite losses is a share of `scale`
        while scale > _LOWEST_DELTA and not math.isinf(epsilon):
            rounds = self._rounds(scale)
            composed = self._composed(rounds, scale, epsilon) if rounds else None
            if composed is None:
                return best
            value = composed.delta(epsilon - self._drift)
            best = min(best, value)
            if value > 10.0 * scale and not coarse:  # a larger delta needs less discreteness slack
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
        # A tilted distribution is accurate near one loss, for a delta of about this size.
        for scale in np.geomspace(0.03, lowest, _DISTRIBUTIONS):
            rounds = self._rounds(float(scale))
            composed = self._composed(rounds, float(scale), None) if rounds else None
            if composed is None:
                break
            values = [composed.delta(x - self._drift) for x in points]
            best = np.minimum(best, values)
        return [float(v) for v in best]

    @property
    def _drift(self) -> float:
        """Total rounding error of losses near log(1 - q)."""
        return _DRIFT * sum(term.count for term in self._sampled)

    @cached_property
    def _unsampled(self) -> FlatCurve | None:
        """The same releases without sampling, which cost at least as much.

        This bound is better close to a rate of 1: the sampled bound takes the worst round at every
        loss, while the selections of many rounds together have a smaller curve. None if selections
        of unequal range alternate, because grouping them would change their release order.
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
        """The curve of one round of each kind; None if a loss is too large for a grid."""
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
        """The curve of one round; None if its loss is too large for a grid."""
        rows, count = self._rows, term.count
        mu = FlatCurve(term.inner, rows).scale
        if mu > _LARGEST_MU:
            return None
        rate = min(1.0, term.rate_of(self._assignments) * (1.0 + 1e-15))
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
            mixed = sampled.several_rows(term.rate, one, curves, replaced=self._assignments < rows)
            nodes = np.union1d(tables[0].x, table.x)
            return replace(whole, mu=one, nodes=nodes, mixed=mixed)
        if rows > 1:
            return replace(whole, mixed=partial(sampled.removed_curve, whole))
        return whole

    def _composed(
        self, rounds: Sequence[sampled.Rounds], delta: float, epsilon: float | None
    ) -> _Worst | None:
        """Total losses for each order of neighbours; None if the coarsest grid is too large."""
        step = min(r.size for r in rounds)
        step = min(max(step / 16.0, _SMALLEST_STEP), _LARGEST_STEP)
        while (distributions := self._distributions(rounds, step, delta, epsilon)) is None:
            if step >= _LARGEST_STEP:
                return None
            step = min(2.0 * step, _LARGEST_STEP)
        deviation = math.hypot(self._rest.scale, distributions[0].deviation)
        return _Worst(distributions, self._rest_curve, deviation)

    @cached_property
    def _rest_curve(self) -> ChordTable:
        flat = self._rest.scale
        if flat == 0.0:
            return ChordTable(np.array([0.0, 1.0]), np.array([0.0, 0.0]))
        middle, reach = flat * flat / 2.0, flat * 40.0
        low = max(0.0, middle - reach)  # below, the curve is 1 in double precision
        return _table(self._rest, middle + reach, flat / 64.0, _LOWEST, low)

    def _distributions(
        self,
        rounds: Sequence[sampled.Rounds],
        step: float,
        delta: float,
        epsilon: float | None,
    ) -> list[sampled.Composed] | None:
        """Total loss for each order of neighbours; None if it has too many points."""
        if (delta, step) not in self._pairs:
            self._pairs[delta, step] = [
                sampled.sampled_pairs(r, step, delta * 1e-5 / r.count) for r in rounds
            ]
        pairs = self._pairs[delta, step]
        distributions = []
        for i in range(len(pairs[0])):
            parts = [(pair[i], r.count) for pair, r in zip(pairs, rounds, strict=True)]
            tilt = sampled.best_tilt(parts, self._rest.scale, delta=delta, epsilon=epsilon)
            try:
                distributions.append(sampled.Composed(parts, tilt, delta * 1e-6))
            except sampled.TooManyPoints:
                return None
        return distributions


def _table(
    curve: FlatCurve, top: float, step: float, lowest: float, low: float = 0.0
) -> ChordTable:
    """Upper bounds of a curve between `low` and `top`, down to a delta of `lowest`."""
    x = low + np.arange(math.ceil((top - low) / step) + 1, dtype=np.float64) * step
    x = x if low == 0.0 else np.concatenate([[0.0], x])
    return ChordTable(x, np.array(curve.deltas(list(x), lowest)))


class _Worst:
    """The larger curve of both orders of neighbours."""

    def __init__(
        self, distributions: Sequence[sampled.Composed], rest: ChordTable, deviation: float
    ) -> None:
        self.distributions, self.rest, self.mu = distributions, rest, deviation

    def delta(self, epsilon: float) -> float:
        """Upper bound of delta at an epsilon >= 0."""
        return max(
            distribution.expect(
                np.clip(both_signs(self.rest, epsilon - distribution.losses), 0.0, 1.0)
            )
            for distribution in self.distributions
        )


@dataclass(frozen=True)
class SampledEvent(RoundsEvent):
    """`count` rounds that each read an independent Poisson sample of the rows.

    Attributes:
        rate_num: Each row is in the sample of a round with probability rate_num / 2**rate_bits,
            independently; 1 to 2**rate_bits.
        rate_bits: 1 to 60.
        events: Releases of one round from its sample, in release order.
        count: Number of rounds, >= 0.

    Examples:
        >>> from xgb_dp.accounting import GaussianEvent
        >>> from xgb_dp.accounting.sampled_rounds import SampledEvent
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
        """Probability that a round reads a row."""
        return self.rate_num / 2**self.rate_bits

    def factor_of_mu2(self, mu2: float) -> float:
        """See :class:`RoundsEvent`. Sampling reduces mu^2 to about q^2 (e^(mu^2) - 1)."""
        return self.count * self.rate**2 * _grown(mu2)


@dataclass(frozen=True)
class ParallelEvent(RoundsEvent):
    """`count` ensembles of rounds that read disjoint parts of the rows.

    Each ensemble assigns rows to parts independently of the data, so each row affects one round of
    an ensemble.

    Attributes:
        parts: Number of rounds in an ensemble, >= 1.
        events: Releases of one round from its part, in release order.
        count: Number of ensembles, >= 0.

    Examples:
        >>> from xgb_dp.accounting import GaussianEvent
        >>> from xgb_dp.accounting.sampled_rounds import ParallelEvent
        >>> event = GaussianEvent("leaves", sensitivity2=1, sigma2=400, coordinates=1, count=10)
        >>> parts = ParallelEvent(parts=8, events=(event,), count=1)
        >>> both = (xgb_dp.accounting.make_accountant("exact", [e]) for e in (event, parts))
        >>> [round(a.get_epsilon(1e-6), 2) for a in both]  # a row is in only one part
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
        if len(ranges - {0.0}) > 1:  # accountants group all rounds of one kind
            raise LedgerError(
                "An ensemble in the privacy ledger has selections with different ranges, for "
                "which no bound is known."
            )


@pure_of.register
def _(event: SampledEvent) -> float:
    """A round on a Poisson sample costs log(1 + q (e^eps - 1))."""
    inner, rate = pure_sum(event.events), event.rate
    if inner < 30.0:
        one = math.log1p(rate * math.expm1(inner))
    else:  # the same value without overflow of e^inner
        one = inner + math.log(rate + (1.0 - rate) * math.exp(-inner))
    return event.count * one * (1.0 + 1e-13)


@pure_of.register
def _(event: ParallelEvent) -> float:
    """By parallel composition, an ensemble costs as much as one round."""
    return event.count * pure_sum(event.events)


@touched.register
def _(event: ParallelEvent, assignments: int) -> Sequence[Event]:
    """In the worst case, min(assignments, parts) rounds of an ensemble each read all rows."""
    rounds = min(assignments, event.parts)
    return [counted(e, e.count * event.count * rounds) for e in event.events]


@term_of.register
def _(event: SampledEvent, assignments: int) -> SampledTerm:
    return SampledTerm(event.count, simplify(event.events, assignments), event.rate)


def _grown(mu2: float) -> float:
    """(e^(mu^2) - 1) / mu^2, for the mu^2 of a round."""
    return math.expm1(min(mu2, 700.0)) / mu2 if mu2 else 0.0
