"""Composes sampled rounds with releases that read all rows: (epsilon, delta) of both.

Proof: docs/proofs/sampling.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property, partial

import numpy as np

from . import sampled
from .allocated import AllocatedRounds
from .events import Event
from .flat import FlatAccountant, solve
from .gaussian import gaussian_epsilon
from .rounds import AllocatedEvent, Mixture, SampledEvent
from .several import MOST_ROWS, several_rows
from .table import ChordTable

__all__ = ["SampledComposition"]

_LOWEST_DELTA = 1e-200
_LOWEST = 1e-250
_LARGEST_MU = 30.0
_TILTS = 6
_LAWS = 5
_CLEARLY = 0.8
_DRIFT = 4e-16  # of one round's loss
_LARGEST_STEP = 0.25
_LARGEST_LOSS = 600.0  # its ratio is a double


class SampledComposition:
    """Rounds that each read a Poisson sample, together with releases that read all rows.

    Args:
        events: Gaussians, selections and sampled rounds, in release order.
        group: Rows added or removed together.
        coins: Those that decide which of these rows a round reads: fewer than rows where a row and
            the one that replaces it share one.
        work: See :class:`~xgb_dp.accounting.flat.FlatAccountant`.
    """

    def __init__(
        self,
        events: Sequence[Event],
        group: int,
        coins: int,
        work: float,
    ) -> None:
        self.events, self.group, self.coins, self.work = list(events), group, coins, work
        mixture = Mixture.of(events)
        self.sampled = [e for e in mixture.sampled if e.events]
        self.rest = FlatAccountant(mixture.flat, work)
        self._pairs: dict[tuple[float, float], list[list[sampled.Pair]]] = {}

    def epsilon(self, delta: float) -> float:
        """Smallest certified epsilon."""
        rounds = self._rounds(delta) if delta >= _LOWEST_DELTA else None
        best = self._from_laws(rounds, delta) if rounds else math.inf
        unsampled = self._unsampled()
        if unsampled is None:
            return best
        # All rows cost more, unless nearly all are read; far from there the bound is not needed.
        about = gaussian_epsilon(unsampled.scale(self.group), delta)
        if best < _CLEARLY * about:
            return best
        return min(best, unsampled.get_epsilon(delta, self.group))

    def _from_laws(self, rounds: Sequence[sampled.Rounds], delta: float) -> float:
        """The bound by the composed laws of the rounds."""
        best = math.inf
        # A law is accurate near one loss; the first one is Chernoff's guess of where that is.
        near: float | None = None
        for _ in range(_TILTS):
            found = self._composed(rounds, delta, near)
            value = math.inf
            if found is not None:
                guess = found.near(delta) if near is None else near
                value = max(0.0, solve(found, delta, -self._drift, guess) + self._drift)
            enough = value > best * (1.0 - 1e-3) or (near is not None and value > 0.9 * near)
            best = min(best, value)
            if enough:
                break
            near = value
        return best

    def delta(self, epsilon: float) -> float:
        """Smallest certified delta."""
        unsampled = self._unsampled()
        best = unsampled.get_delta(epsilon, self.group) if unsampled else 1.0
        scale, coarse = 1e-9, False  # what is called infinite is a part of this
        while scale > _LOWEST_DELTA and not math.isinf(epsilon):
            rounds = self._rounds(scale)
            found = self._composed(rounds, scale, epsilon) if rounds else None
            if found is None:
                return best
            value = found.delta(epsilon - self._drift)
            best = min(best, value)
            if value > 10.0 * scale and not coarse:  # where less slack is enough for discrete noise
                scale, coarse = min(value, 0.03), True
                continue
            if coarse or value > scale or value < 1e-30:
                return best
            scale = value * 1e-2
        return best

    def curve(self, points: Sequence[float], lowest: float) -> list[float]:
        """Upper bounds of delta at many epsilon >= 0, all at once.

        Args:
            points: In nats.
            lowest: Where delta is below this, bounds may be loose.
        """
        unsampled = self._unsampled()
        best = np.ones(len(points))
        if unsampled is not None:
            best = np.array(unsampled.curve(points, lowest, self.group))
        # A law is accurate near one loss, for a delta of about this size.
        for scale in np.geomspace(0.03, lowest, _LAWS):
            rounds = self._rounds(float(scale))
            found = self._composed(rounds, float(scale), None) if rounds else None
            if found is None:
                break
            values = [found.delta(x - self._drift) for x in points]
            best = np.minimum(best, values)
        return [float(v) for v in best]

    @property
    def _drift(self) -> float:
        """How much the rounding of losses near log(1 - q) may add up to."""
        return _DRIFT * sum(e.count for e in self.sampled)

    def _unsampled(self) -> FlatAccountant | None:
        """The same releases from all rows, which cost at least as much.

        Close to a rate of 1 this is the better bound. The sampled bound takes the worst round at
        every loss, and the selections of many rounds together have a smaller curve. It is None
        where selections of unequal range take turns: runs of them would not be in release order.
        """
        flat: list[Event] = []
        for event in self.events:
            inner = Mixture.of(event.inner)
            if event.repeats > 1 and len({e.eps0 for e in inner.ordered}) > 1:
                return None
            flat += [e.counted(e.count * event.repeats) for e in inner.flat]
        return FlatAccountant(flat, self.work)

    def _rounds(self, delta: float) -> list[sampled.Rounds] | None:
        """The curves of one round each; None if one is too loud for a grid."""
        rounds: list[sampled.Rounds] = []
        for event in self.sampled:
            inner = FlatAccountant(event.events, self.work)
            mu = inner.scale(self.group)
            if mu == 0.0:
                continue
            if mu > _LARGEST_MU:
                return None
            rate = 1.0  # that of a round which reads the row
            if isinstance(event, SampledEvent):
                rate = min(1.0, event.group_rate(self.coins) * (1.0 + 1e-15))
            lowest = min(max(delta * 1e-6 / event.count / rate, _LOWEST), 1e-6)

            def of_rows(
                rows: int, inner: FlatAccountant = inner, lowest: float = lowest
            ) -> ChordTable:
                size = inner.scale(rows)
                top = size * size / 2.0 + size * (math.sqrt(-2.0 * math.log(lowest)) + 1.0)
                return _table(inner, top, size / 32.0, lowest, rows)

            table = of_rows(self.group)
            if isinstance(event, AllocatedEvent):  # of one row: `exact.py`
                if table.x[-1] > _LARGEST_LOSS:
                    return None
                parts, lost = (event.parts, event.halving), delta * 1e-7 / event.count
                rounds.append(
                    AllocatedRounds(1.0, mu, table, table.x, event.count, None, *parts, lost)
                )
                continue
            whole = sampled.Rounds(rate, mu, table, table.x, event.count)
            if 1 < self.group <= MOST_ROWS:
                tables = [*map(of_rows, range(1, self.group)), table]
                curves = [partial(sampled.both_signs, t) for t in tables]
                one = inner.scale(1)
                mixed = several_rows(event.rate, one, curves, replaced=self.coins < self.group)
                nodes = np.union1d(tables[0].x, table.x)
                whole = replace(whole, mu=one, nodes=nodes, mixed=mixed)
            elif self.group > 1:
                whole = replace(whole, mixed=partial(sampled.removed_curve, whole))
            rounds.append(whole)
        return rounds

    def _composed(
        self, rounds: Sequence[sampled.Rounds], delta: float, epsilon: float | None
    ) -> _Worst | None:
        """Losses of all rounds, in every order that counts; None if they fit no grid."""
        step = min(r.size for r in rounds)
        step = min(step / 16.0, _LARGEST_STEP)
        flat = self.rest.scale(self.group)
        while (laws := self._laws(rounds, step, flat, delta, epsilon)) is None:
            if step >= _LARGEST_STEP:
                return None
            step = min(2.0 * step, _LARGEST_STEP)
        deviation = math.hypot(flat, laws[0].deviation)
        return _Worst(laws, self._rest_curve, deviation)

    @cached_property
    def _rest_curve(self) -> ChordTable:
        flat = self.rest.scale(self.group)
        if flat == 0.0:
            return ChordTable(np.array([0.0, 1.0]), np.array([0.0, 0.0]))
        middle, reach = flat * flat / 2.0, flat * 40.0
        low = max(0.0, middle - reach)  # below, the curve is 1 for all that doubles can tell
        return _table(self.rest, middle + reach, flat / 64.0, _LOWEST, self.group, low)

    def _laws(
        self,
        rounds: Sequence[sampled.Rounds],
        step: float,
        flat: float,
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
            tilt = sampled.best_tilt(parts, flat, delta=delta, epsilon=epsilon)
            try:
                laws.append(sampled.Composed(parts, tilt, delta * 1e-6))
            except sampled.TooManyPoints:
                return None
        return laws


def _table(
    accountant: FlatAccountant,
    top: float,
    step: float,
    lowest: float,
    group: int,
    low: float = 0.0,
) -> ChordTable:
    x = low + np.arange(math.ceil((top - low) / step) + 1, dtype=np.float64) * step
    x = x if low == 0.0 else np.concatenate([[0.0], x])
    return ChordTable(x, np.array(accountant.curve(list(x), lowest, group)))


class _Worst:
    """The largest curve of all orders."""

    def __init__(
        self, laws: Sequence[sampled.Composed], rest: ChordTable, deviation: float
    ) -> None:
        self.laws, self.rest, self.mu = laws, rest, deviation

    def near(self, delta: float) -> float:
        """About the epsilon of a delta. It bounds nothing."""
        return gaussian_epsilon(self.mu, delta)

    def delta(self, epsilon: float) -> float:
        """Upper bound at an epsilon >= 0."""
        return max(
            law.expect(np.clip(sampled.both_signs(self.rest, epsilon - law.losses), 0.0, 1.0))
            for law in self.laws
        )
