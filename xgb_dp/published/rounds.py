"""Rounds that read a sample or a part of the rows, and how accountants read their events.

Proofs: docs/proofs/sampling.md; docs/proofs/accounting.md, "Disjoint parts".
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ..accounting.events import Event, ExponentialEvent, PlainEvent, counted
from ..accounting.nested import RoundsEvent
from ..accounting.pure import pure_of, pure_sum
from ..accounting.simplify import simplify, term_of, touched
from ..errors import LedgerError
from .poisson import SampledTerm


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
