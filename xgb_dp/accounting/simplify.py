"""Writes events as what accountants compose: Gaussians, losses of bounded range, choices.

Every step may only raise the cost. Proofs: docs/proofs/accounting.md, "Laplace" and "Disjoint
parts"; docs/proofs/neighbours.md; docs/proofs/choice.md; docs/proofs/selection.md.
"""

from __future__ import annotations

import abc
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, singledispatch

from .curve import Curve
from .events import (
    ChoiceEvent,
    Event,
    ExponentialEvent,
    GaussianEvent,
    LaplaceEvent,
    SelectionEvent,
)


@dataclass(frozen=True)
class Neighbours:
    """What two data sets differ by."""

    rows: int  # added or removed together (or persons), >= 1; a row that is replaced is two
    coins: int  # that decide where they take part; a row and the one that replaces it share one

    @classmethod
    def of(cls, group: int, *, replaced: bool) -> Neighbours:
        """So many rows added or removed, or replaced by others."""
        return cls(group * (1 + replaced), group)


@dataclass(frozen=True)
class BoundedRange:
    """`count` selections of range `eps0`, or Laplace noise, whose loss has a range too.

    Laplace noise has a `scale` of at least 1, in grid units. It costs less than any selection of
    its range, and may be charged as one.
    """

    eps0: float
    count: int
    scale: int = 0

    @property
    def pure(self) -> float:
        """Pure epsilon of all of them together, for one row."""
        return self.count * self.eps0 * (0.5 * (1.0 + 1e-15) if self.scale else 1.0)

    def laplace_epsilon(self, rows: int) -> float:
        """Epsilon of continuous Laplace noise that costs at least as much."""
        return (rows * self.eps0 / 2.0 + 0.25 / self.scale**2) * (1.0 + 1e-15)


@dataclass(frozen=True)
class ChoiceTerm:
    """`count` choices among plans after a first release; `ways` are both together."""

    first: Terms
    plans: tuple[Terms, ...]
    ways: tuple[Terms, ...]
    count: int


@dataclass(frozen=True)
class OtherTerm(abc.ABC):
    """`count` events of a kind that is defined outside of this package."""

    count: int

    @property
    def is_empty(self) -> bool:
        """Whether it shows nothing."""
        return not self.count

    def compose(self, terms: Terms, neighbours: Neighbours, work: float) -> Curve:
        """The exact curve of all these terms, of which this is one."""
        raise NotImplementedError


@dataclass(frozen=True)
class Terms:
    """What accountants compose, in an order that costs the most."""

    listed: tuple[GaussianEvent | BoundedRange | ChoiceTerm | OtherTerm, ...] = ()

    @cached_property
    def gaussians(self) -> tuple[GaussianEvent, ...]:
        """Gaussian releases that show anything."""
        each = (t for t in self.listed if isinstance(t, GaussianEvent))
        return tuple(e for e in each if e.count and e.sensitivity2)

    @cached_property
    def ranges(self) -> tuple[BoundedRange, ...]:
        """Selections and Laplace noise that show anything."""
        each = (t for t in self.listed if isinstance(t, BoundedRange))
        return tuple(r for r in each if r.count and r.eps0)

    @cached_property
    def choices(self) -> tuple[ChoiceTerm, ...]:
        """Choices among plans that happen."""
        return tuple(t for t in self.listed if isinstance(t, ChoiceTerm) and t.count)

    @cached_property
    def others(self) -> tuple[OtherTerm, ...]:
        """What happens and has no bound in this package."""
        return tuple(t for t in self.listed if isinstance(t, OtherTerm) and t.count)

    @cached_property
    def flat(self) -> Terms:
        """What reads all rows."""
        return Terms(tuple(t for t in self.listed if isinstance(t, (GaussianEvent, BoundedRange))))

    def without_choices(self, *instead: GaussianEvent) -> Terms:
        """Some Gaussians, and everything that is no choice."""
        return Terms((*instead, *(t for t in self.listed if not isinstance(t, ChoiceTerm))))


def simplify(events: Iterable[Event], coins: int) -> Terms:
    """What accountants compose for rows with so many coins.

    Laplace noise comes first, because its worst pair of distributions is the same whatever was
    released before. Selections of unequal range keep their order.
    """
    flat = [inner for event in events for inner in touched(event, coins)]
    flat.sort(key=lambda event: not isinstance(event, LaplaceEvent))  # a stable sort
    return Terms(tuple(term_of(event, coins) for event in flat))


@singledispatch
def touched(event: Event, coins: int) -> Sequence[Event]:
    """What rows with so many coins take part in; of most kinds the event itself."""
    return [event]


@singledispatch
def term_of(event: Event, coins: int) -> GaussianEvent | BoundedRange | ChoiceTerm | OtherTerm:
    """What accountants compose for one event. Kinds that are defined elsewhere register theirs."""
    if isinstance(event, GaussianEvent):
        return event
    if isinstance(event, ExponentialEvent):
        return BoundedRange(event.eps0, event.count)
    if isinstance(event, LaplaceEvent):
        return _laplace(event)
    if isinstance(event, ChoiceEvent):
        first = simplify(event.first, coins)
        plans = tuple(simplify(option, coins) for option in event.options)
        ways = tuple(Terms((*first.listed, *plan.listed)) for plan in plans)
        return ChoiceTerm(first, plans, ways, event.count)
    raise TypeError(f"Accountants do not know what the event {type(event).__name__} costs.")


def _laplace(event: LaplaceEvent) -> GaussianEvent | BoundedRange:
    if event.sensitivity and not event.scale:  # hides nothing
        return GaussianEvent(event.release, 1, 0, 1, event.count, unit=event.unit)
    scale = max(event.scale, 1)
    # A loss in [-epsilon, epsilon] has range 2 epsilon.
    return BoundedRange(-(-(2 * event.sensitivity << 60) // scale) / 2**60, event.count, scale)


def parts_of_run(event: SelectionEvent, coins: int) -> Sequence[tuple[Event, ...]]:
    """Alternatives for what one run shows of some rows, of which the worst counts.

    One row is in one part, together with the row that replaces it. Several rows may be in both.
    """
    if coins == 1:
        return (*event.runs, event.score)
    return [(*run, *event.score) for run in event.runs]
