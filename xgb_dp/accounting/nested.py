"""Events that consist of others: choices among plans, private selections, and rounds.

Proofs: docs/proofs/choice.md; docs/proofs/selection.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import LedgerError
from .events import Event, GaussianEvent, PlainEvent
from .repetitions import Repetitions

_MOST_OPTIONS = 64
_MOST_SELECTIONS = 1 << 16  # each has a curve of its own


class RoundsEvent(Event):
    """Rounds that each release the same, `events`, in release order.

    A module that defines a kind of them registers what it costs with :func:`pure.pure_of`,
    :func:`simplify.touched` and :func:`simplify.term_of`. Otherwise accountants refuse it.
    """

    def factor_of_mu2(self, mu2: float) -> float:
        """About the factor by which all rounds multiply this mu^2 of a round; it bounds nothing."""
        return float(self.count)

    _several = "rounds"
    events: tuple[PlainEvent, ...]

    def _check(self) -> None:
        sound = isinstance(self.events, tuple)
        if not sound or not all(isinstance(e, PlainEvent) for e in self.events):
            raise LedgerError("A round of the privacy ledger holds an unknown event.")


@dataclass(frozen=True)
class ChoiceEvent(Event):
    """A first release, and then one of several plans, whichever the first release led to.

    It costs as much as the worst way to choose. Whoever has seen the first release, and everything
    before it, may take any of the plans.
    """

    mechanism = "choice"
    _several = "plan"
    first: tuple[Event, ...]  # what is released before the choice; Gaussian
    # what each of the plans releases after it, in release order
    options: tuple[tuple[Event, ...], ...]
    count: int = 1  # number of choices, >= 0

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


def charged(rounds: int, events: Iterable[Event]) -> int:
    """How many rounds a row takes part in: those on disjoint parts are recorded as one."""
    return -(-rounds // max((getattr(e, "parts", 1) for e in events), default=1))


def ways_of(events: Sequence[Event]) -> Iterable[Sequence[Event]]:
    """What may have made the trees: the events, or one of the runs of a selection."""
    for i, event in enumerate(events):
        if isinstance(event, ChoiceEvent):  # the run of a selection, which says no more
            for way in event.ways:
                yield from ways_of([*events[:i], *way, *events[i + 1 :]])
            return
    others = [e for e in events if not isinstance(e, SelectionEvent)]
    yield others
    for event in events:
        for run in event.runs if isinstance(event, SelectionEvent) and event.count else ():
            yield from ways_of([*others, *run])
