"""Events that consist of others: rounds on samples or parts of the rows, choices, selections.

Proofs: docs/proofs/sampling.md; docs/proofs/accounting.md, "Disjoint parts";
docs/proofs/allocation.md; docs/proofs/choice.md; docs/proofs/selection.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..errors import LedgerError
from .events import Event, ExponentialEvent, GaussianEvent, PlainEvent
from .repetitions import Repetitions

__all__ = [
    "AllocatedEvent",
    "ChoiceEvent",
    "ParallelEvent",
    "RoundsEvent",
    "SampledEvent",
    "SelectionEvent",
]

_MOST_OPTIONS = 64
_MOST_SELECTIONS = 1 << 16  # each has a curve of its own


class RoundsEvent(Event):
    """Rounds that each release the same.

    Attributes:
        events: What one round releases, in release order.
    """

    _several = "rounds"
    events: tuple[PlainEvent, ...]

    def _check(self) -> None:
        sound = isinstance(self.events, tuple)
        if not sound or not all(isinstance(e, PlainEvent) for e in self.events):
            raise LedgerError("A round of the privacy ledger holds an unknown event.")


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


@dataclass(frozen=True)
class AllocatedEvent(ParallelEvent):
    """`count` ensembles of rounds on disjoint parts, where nobody knows the part of a row.

    Attributes:
        halving: Whether the parts are 1/2, 1/4, ... of the rows, of which the last two are equal;
            else all are.

    Examples:
        >>> from xgb_dp.accounting import AllocatedEvent, GaussianEvent
        >>> event = GaussianEvent("leaves", sensitivity2=1, sigma2=400, coordinates=1, count=10)
        >>> parts = AllocatedEvent(parts=8, events=(event,), count=1, halving=False)
        >>> known, secret = (xgb_dp.accounting.ExactAccountant([e]) for e in (event, parts))
        >>> secret.get_epsilon(1e-6) < known.get_epsilon(1e-6)
        True
    """

    mechanism = "allocation"
    halving: bool

    def _check(self) -> None:
        super()._check()
        if type(self.halving) is not bool:
            raise LedgerError("A ledger event does not say with true or false whether it halves.")


@dataclass(frozen=True)
class ChoiceEvent(Event):
    """A first release, and then one of several plans, whichever the first release led to.

    It costs as much as the worst way to choose. Whoever has seen the first release, and everything
    before it, may take any of the plans.

    Attributes:
        first: What is released before the choice; Gaussian.
        options: What each of the plans releases after it, in release order.
        count: Number of choices, >= 0.
    """

    mechanism = "choice"
    _several = "plan"
    first: tuple[Event, ...]
    options: tuple[tuple[Event, ...], ...]
    count: int = 1

    def _check(self) -> None:
        inner = [e for option in self.options for e in option] if _are_lists(self.options) else [0]
        sound = (
            1 <= len(self.options) <= _MOST_OPTIONS
            and self.count <= _MOST_OPTIONS
            and all(isinstance(e, GaussianEvent) for e in self.first)
            and all(isinstance(e, (PlainEvent, RoundsEvent)) for e in inner)
        )
        if not sound:
            raise LedgerError("A choice of the privacy ledger does not list its plans.")

    @property
    def ways(self) -> tuple[tuple[Event, ...], ...]:
        """Everything that is released, for each of the plans."""
        return tuple((*self.first, *option) for option in self.options)


@dataclass(frozen=True)
class SelectionEvent(Event):
    """The best, by a noisy score, of a secret number of runs.

    Each run draws one of the settings without looking at the data, trains on one part of the rows
    and scores on the other part; which part a row belongs to is drawn without looking at the data.

    Attributes:
        repetitions: Distribution of the number of runs.
        runs: What a run trains, for each different cost among the settings, in release order.
        score: What its score releases from the other part.
        count: Number of selections, >= 0.

    Examples:
        >>> from xgb_dp.accounting import GaussianEvent, Repetitions, SelectionEvent
        >>> event = GaussianEvent("leaves", sensitivity2=1, sigma2=400, coordinates=1, count=10)
        >>> runs = Repetitions.of("geometric", mean=3.0)
        >>> best = SelectionEvent(runs, runs=((event,),), score=(event,), count=1)
        >>> once, chosen = (xgb_dp.accounting.make_accountant("exact", [e]) for e in (event, best))
        >>> chosen.get_epsilon(1e-6) > once.get_epsilon(1e-6)
        True
    """

    mechanism = "selection"
    repetitions: Repetitions
    runs: tuple[tuple[Event, ...], ...]
    score: tuple[Event, ...]
    count: int
    release: str = "selection"

    def _check(self) -> None:
        if self.count > _MOST_SELECTIONS:
            raise LedgerError("A selection of the privacy ledger is counted too often.")
        lists = (*self.runs, self.score)
        inner = [e for run in lists for e in run] if _are_lists(lists) else [0]
        sound = isinstance(self.repetitions, Repetitions) and bool(self.runs)
        if not sound or not all(
            isinstance(e, Event) and not isinstance(e, SelectionEvent) for e in inner
        ):
            raise LedgerError("A selection of the privacy ledger does not list its runs.")


def _are_lists(values: tuple[Any, ...]) -> bool:
    return all(isinstance(value, tuple) for value in values)
