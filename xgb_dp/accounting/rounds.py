"""Events that consist of others: rounds that read a sample or a part of the rows.

Proofs: docs/proofs/sampling.md; docs/proofs/accounting.md, "Disjoint parts";
docs/proofs/allocation.md.
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from ..errors import LedgerError
from .events import Event, check_int, one_unit
from .plain import ExponentialEvent, GaussianEvent, LaplacePair, PlainEvent

__all__ = [
    "AllocatedEvent",
    "Mixture",
    "ParallelEvent",
    "RoundsEvent",
    "SampledEvent",
    "squared_parts",
    "with_known_parts",
]


class RoundsEvent(Event):
    """Rounds that each release the same.

    Attributes:
        events: What one round releases, in release order.
    """

    events: tuple[PlainEvent, ...]

    @property
    def unit(self) -> str:  # type: ignore[override]
        """See :class:`Event`; that of its events."""
        return one_unit(self.events)

    def of_unit(self: Rounds, unit: str) -> Rounds:
        """See :class:`Event`."""
        own = tuple(e.of_unit(unit) for e in self.events)
        return replace(self, events=own)  # type: ignore[type-var]

    @property
    def inner(self) -> tuple[PlainEvent, ...]:
        """See :class:`Event`."""
        return self.events

    @property
    def repeats(self) -> int:
        """See :class:`Event`."""
        return self.count

    @property
    def kept(self) -> float:
        """See :class:`Event`."""
        return float(self.count)

    def only(self: Rounds, kinds: Container[tuple[str, str]]) -> Rounds | None:
        """See :class:`Event`."""
        own = tuple(e for e in self.events if e.only(kinds))
        return replace(self, events=own) if own else None  # type: ignore[type-var]

    def _within_round(self, limit: RoundsEvent) -> bool:
        return len(self.events) == len(limit.events) and all(
            e.within(most) for e, most in zip(self.events, limit.events, strict=True)
        )


Rounds = TypeVar("Rounds", bound=RoundsEvent)


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
        >>> from xgb_dp.accounting.plain import GaussianEvent
        >>> event = GaussianEvent("leaves", sensitivity2=1, sigma2=400, coordinates=1, count=10)
        >>> from xgb_dp.accounting.rounds import SampledEvent
        >>> half = SampledEvent(rate_num=1, rate_bits=1, events=(event,), count=20)
        >>> half.rate
        0.5
    """

    mechanism = "poisson"
    rate_num: int
    rate_bits: int
    events: tuple[PlainEvent, ...]
    count: int

    def __post_init__(self) -> None:
        for name in ("rate_num", "rate_bits", "count"):
            check_int(name, getattr(self, name), 0)
        if not 1 <= self.rate_bits <= 60 or not 1 <= self.rate_num <= 1 << self.rate_bits:
            raise LedgerError("A ledger event has a sampling rate that is not in (0, 1].")
        _check_plain(self.events)

    @property
    def rate(self) -> float:
        """Probability with which a round reads a row."""
        return self.rate_num / 2**self.rate_bits

    def group_rate(self, coins: int) -> float:
        """Probability with which one of so many coins, at least, lets its rows take part."""
        if coins == 1 or self.rate == 1.0:
            return self.rate
        return -math.expm1(coins * math.log1p(-self.rate))

    @property
    def kept(self) -> float:
        """See :class:`Event`; about q^2 (e^(mu^2) - 1) is left of a round."""
        mu2 = math.fsum(e.count * e.mu2 for e in self.events)
        left = math.expm1(min(mu2, 700.0)) / mu2 if mu2 else 0.0
        return self.count * self.rate**2 * left

    def pure(self) -> float:
        """See :class:`Event`."""
        if not self.count:
            return 0.0
        inner = math.fsum(e.pure() for e in self.events)
        if inner < 30.0:
            cost = math.log1p(self.rate * math.expm1(inner))
        else:  # the same, where e^inner may overflow
            cost = inner + math.log(self.rate + (1.0 - self.rate) * math.exp(-inner))
        return self.count * cost * (1.0 + 1e-13)

    def simplified(self, coins: int) -> tuple[list[Event], list[Event]]:
        """See :class:`Event`."""
        return [], [replace(self, events=_simplified(self.events, coins))]

    def _covered(self, limit: SampledEvent) -> bool:
        same = self.rate_bits == limit.rate_bits and self.rate_num <= limit.rate_num
        return same and self._within_round(limit)


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
        >>> from xgb_dp.accounting.plain import GaussianEvent
        >>> event = GaussianEvent("leaves", sensitivity2=1, sigma2=400, coordinates=1, count=10)
        >>> from xgb_dp.accounting.rounds import ParallelEvent
        >>> parts = ParallelEvent(parts=8, events=(event,), count=1)
        >>> both = (xgb_dp.accounting.make_accountant("exact", [e]) for e in (event, parts))
        >>> [round(a.get_epsilon(1e-6), 2) for a in both]  # a row is in one part only
        [0.66, 0.66]
    """

    mechanism = "parallel"
    parts: int
    events: tuple[PlainEvent, ...]
    count: int

    def __post_init__(self) -> None:
        check_int("parts", self.parts, 1)
        check_int("count", self.count, 0)
        _check_plain(self.events)
        chosen = [e for e in self.events if isinstance(e, ExponentialEvent) and e.count]
        ranges = {e.eps0 for e in chosen if not isinstance(e, LaplacePair)}
        if len(ranges - {0.0}) > 1:  # `touched` puts all rounds of a kind together
            raise LedgerError(
                "An ensemble of the privacy ledger has selections of different ranges, and the "
                "order of their costs is not known."
            )

    def touched(self, coins: int) -> tuple[PlainEvent, ...]:
        """Releases that rows with so many coins take part in, each with all of them at worst."""
        rounds = min(coins, self.parts)
        return tuple(e.counted(e.count * self.count * rounds) for e in self.events)

    def simplified(self, coins: int) -> tuple[list[Event], list[Event]]:
        """See :class:`Event`."""
        parts = [e.simplified(coins) for e in self.touched(coins)]
        return [e for part in parts for e in part[0]], [e for part in parts for e in part[1]]

    def pure(self) -> float:
        """See :class:`Event`."""
        # An ensemble costs what one row sees of it, once.
        return self.count * math.fsum(e.pure() for e in self.events) if self.count else 0.0

    def _covered(self, limit: Any) -> bool:
        return self.parts <= limit.parts and self._within_round(limit)


@dataclass(frozen=True)
class AllocatedEvent(ParallelEvent):
    """`count` ensembles of rounds on disjoint parts, where nobody knows the part of a row.

    Attributes:
        halving: Whether the parts are 1/2, 1/4, ... of the rows, of which the last two are equal;
            else all are.

    Examples:
        >>> from xgb_dp.accounting.plain import GaussianEvent
        >>> event = GaussianEvent("leaves", sensitivity2=1, sigma2=400, coordinates=1, count=10)
        >>> from xgb_dp.accounting.rounds import AllocatedEvent
        >>> parts = AllocatedEvent(parts=8, events=(event,), count=1, halving=False)
        >>> known, secret = (xgb_dp.accounting.ExactAccountant([e]) for e in (event, parts))
        >>> secret.get_epsilon(1e-6) < known.get_epsilon(1e-6)
        True
    """

    mechanism = "allocation"
    halving: bool

    def __post_init__(self) -> None:
        super().__post_init__()
        if type(self.halving) is not bool:
            raise LedgerError("A ledger event does not say with true or false whether it halves.")

    @property
    def kept(self) -> float:
        """See :class:`Event`; about the sum of the squared parts of e^(mu^2) - 1 is left."""
        mu2 = math.fsum(e.count * e.mu2 for e in self.events)
        left = math.expm1(min(mu2, 700.0)) / mu2 if mu2 else 0.0
        return self.count * min(1.0, squared_parts(self.parts, halving=self.halving) * left)

    def simplified(self, coins: int) -> tuple[list[Event], list[Event]]:
        """See :class:`Event`; of several rows the parts count as known."""
        if coins > 1 or self.parts == 1:
            return super().simplified(coins)
        return [], [replace(self, events=_simplified(self.events, coins))]

    def _covered(self, limit: Any) -> bool:
        # More parts hide more of one row, and a group may be in more of them.
        same = self.parts == limit.parts and self.halving == limit.halving
        return same and self._within_round(limit)


def squared_parts(parts: int, *, halving: bool) -> float:
    """Sum of the squares of the parts of an ensemble, each as a share of the whole."""
    if not halving:
        return 1.0 / parts
    last = 0.25 ** (parts - 1)
    return (1.0 - last) / 3.0 + last


def with_known_parts(events: Iterable[Event], coins: int = 1) -> list[Event]:
    """The events with the parts of rows taken as known, which cost at least as much.

    Args:
        events: In release order.
        coins: See :meth:`ParallelEvent.touched`.
    """
    out: list[Event] = []
    for event in events:
        out += event.touched(coins) if isinstance(event, AllocatedEvent) else [event]
    return out


def _simplified(events: Iterable[PlainEvent], coins: int) -> tuple[Any, ...]:
    """The releases of one round as the accountants take them, in an order that costs the most."""
    parts = [e.simplified(coins) for e in events]
    return tuple(e for i in (0, 1) for part in parts for e in part[i])


def _check_plain(events: tuple[Any, ...]) -> None:
    if not all(isinstance(e, PlainEvent) for e in events):
        raise LedgerError("A round of the privacy ledger holds an unknown event.")
    one_unit(events)


@dataclass(frozen=True)
class Mixture:
    """What the accountants compose: Gaussians, selections and sampled rounds, each in order.

    Attributes:
        flat: Gaussians and selections, which read all rows.
        gaussians: Those of `flat` that show anything.
        selections: Those of `flat` that show anything, Laplace noise among them.
        ordered: Selections by the exponential mechanism.
        laplace: Laplace noise.
        sampled: Rounds that happen, and read some rows that nobody knows.
    """

    flat: tuple[GaussianEvent | ExponentialEvent, ...]
    gaussians: tuple[GaussianEvent, ...]
    selections: tuple[ExponentialEvent, ...]
    ordered: tuple[ExponentialEvent, ...]
    laplace: tuple[LaplacePair, ...]
    sampled: tuple[SampledEvent | AllocatedEvent, ...]

    @classmethod
    def of(cls, events: Iterable[Any]) -> Mixture:
        """The events by kind.

        Raises:
            TypeError: An event of another kind, which would be spent for nothing.
            LedgerError: Some hold for rows and some for persons.
        """
        listed = list(events)
        sampled = [e for e in listed if isinstance(e, (SampledEvent, AllocatedEvent))]
        gaussians = [e for e in listed if isinstance(e, GaussianEvent)]
        selections = [e for e in listed if isinstance(e, ExponentialEvent)]
        if len(sampled) + len(gaussians) + len(selections) < len(listed):
            raise TypeError(
                "`events` holds something that is not an event of this accountant: use "
                "`make_accountant`, which takes all of them."
            )
        one_unit(listed)
        return cls(
            flat=tuple(e for e in listed if not isinstance(e, (SampledEvent, AllocatedEvent))),
            gaussians=tuple(e for e in gaussians if e.count and e.sensitivity2),
            selections=(shown := tuple(e for e in selections if e.count and e.eps_num)),
            ordered=tuple(e for e in shown if not isinstance(e, LaplacePair)),
            laplace=tuple(e for e in shown if isinstance(e, LaplacePair)),
            sampled=tuple(e for e in sampled if e.count),
        )
