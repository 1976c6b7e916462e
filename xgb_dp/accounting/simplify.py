"""Converts events to the terms of accountants: Gaussians, bounded-range losses and choices.

No conversion reduces the privacy loss. Proofs: docs/proofs/accounting.md, "Laplace" and "Disjoint
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
    """The difference between two neighbouring data sets."""

    # Rows (or persons) added or removed together, >= 1; a replaced row counts as two.
    rows: int
    # Independent draws that assign these rows to samples or parts; a row and its replacement share
    # one draw.
    assignments: int

    @classmethod
    def of(cls, group_size: int, *, replaced: bool) -> Neighbours:
        """Neighbours that differ by `group_size` rows, each added or removed, or each replaced."""
        return cls(group_size * (1 + replaced), group_size)


@dataclass(frozen=True)
class BoundedRange:
    """`count` selections of range `eps0`, or Laplace releases with a loss of this range.

    Laplace noise has a `scale` of at least 1, in grid units. It costs less than the worst selection
    of its range and may be charged as a selection.
    """

    eps0: float
    count: int
    scale: int = 0

    @property
    def pure(self) -> float:
        """Pure epsilon of all `count` releases together, for one row."""
        return self.count * self.eps0 * (0.5 * (1.0 + 1e-15) if self.scale else 1.0)

    def laplace_epsilon(self, rows: int) -> float:
        """Epsilon of continuous Laplace noise that costs at least as much."""
        return (rows * self.eps0 / 2.0 + 0.25 / self.scale**2) * (1.0 + 1e-15)


@dataclass(frozen=True)
class ChoiceTerm:
    """`count` choices among plans after a first release; each of `ways` is `first` and a plan."""

    first: Terms
    plans: tuple[Terms, ...]
    ways: tuple[Terms, ...]
    count: int


@dataclass(frozen=True)
class OtherTerm(abc.ABC):
    """`count` events of a kind that another module defines."""

    count: int

    @property
    def is_empty(self) -> bool:
        """Whether the term releases nothing."""
        return not self.count

    def compose(self, terms: Terms, neighbours: Neighbours, work: float) -> Curve:
        """The exact curve of `terms`, including this term."""
        raise NotImplementedError


@dataclass(frozen=True)
class Terms:
    """The terms that accountants compose, in a worst-case order."""

    listed: tuple[GaussianEvent | BoundedRange | ChoiceTerm | OtherTerm, ...] = ()

    @cached_property
    def gaussians(self) -> tuple[GaussianEvent, ...]:
        """Gaussian releases with a positive privacy loss."""
        each = (t for t in self.listed if isinstance(t, GaussianEvent))
        return tuple(e for e in each if e.count and e.sensitivity2)

    @cached_property
    def ranges(self) -> tuple[BoundedRange, ...]:
        """Selections and Laplace releases with a positive privacy loss."""
        each = (t for t in self.listed if isinstance(t, BoundedRange))
        return tuple(r for r in each if r.count and r.eps0)

    @cached_property
    def choices(self) -> tuple[ChoiceTerm, ...]:
        """Choices among plans with count > 0."""
        return tuple(t for t in self.listed if isinstance(t, ChoiceTerm) and t.count)

    @cached_property
    def others(self) -> tuple[OtherTerm, ...]:
        """Terms of other modules with count > 0."""
        return tuple(t for t in self.listed if isinstance(t, OtherTerm) and t.count)

    @cached_property
    def flat(self) -> Terms:
        """The terms that read all rows."""
        return Terms(tuple(t for t in self.listed if isinstance(t, (GaussianEvent, BoundedRange))))

    def without_choices(self, *instead: GaussianEvent) -> Terms:
        """The terms with these Gaussians instead of the choices."""
        return Terms((*instead, *(t for t in self.listed if not isinstance(t, ChoiceTerm))))


def simplify(events: Iterable[Event], assignments: int) -> Terms:
    """Convert events to terms for a group of rows; `assignments` counts their independent draws.

    Laplace noise comes first, because its dominating pair does not depend on earlier releases.
    Selections of unequal range keep their order.
    """
    flat = [inner for event in events for inner in touched(event, assignments)]
    flat.sort(key=lambda event: not isinstance(event, LaplaceEvent))  # a stable sort
    return Terms(tuple(term_of(event, assignments) for event in flat))


@singledispatch
def touched(event: Event, assignments: int) -> Sequence[Event]:
    """The events that rows with `assignments` independent draws touch; one event by default."""
    return [event]


@singledispatch
def term_of(
    event: Event, assignments: int
) -> GaussianEvent | BoundedRange | ChoiceTerm | OtherTerm:
    """Convert one event to a term. Modules that define other kinds register them."""
    if isinstance(event, GaussianEvent):
        return event
    if isinstance(event, ExponentialEvent):
        return BoundedRange(event.eps0, event.count)
    if isinstance(event, LaplaceEvent):
        return _laplace(event)
    if isinstance(event, ChoiceEvent):
        first = simplify(event.first, assignments)
        plans = tuple(simplify(option, assignments) for option in event.options)
        ways = tuple(Terms((*first.listed, *plan.listed)) for plan in plans)
        return ChoiceTerm(first, plans, ways, event.count)
    raise TypeError(f"Accountants have no privacy loss for events of type {type(event).__name__}.")


def _laplace(event: LaplaceEvent) -> GaussianEvent | BoundedRange:
    if event.sensitivity and not event.scale:  # no noise, and so no privacy
        return GaussianEvent(event.release, 1, 0, 1, event.count, unit=event.unit)
    scale = max(event.scale, 1)
    # A loss in [-epsilon, epsilon] has range 2 epsilon.
    return BoundedRange(-(-(2 * event.sensitivity << 60) // scale) / 2**60, event.count, scale)


def parts_of_run(event: SelectionEvent, assignments: int) -> Sequence[tuple[Event, ...]]:
    """Alternatives for the releases of one run that affect the differing rows; the worst counts.

    A row and its replacement are in the same part. Several rows may be in both parts.
    """
    if assignments == 1:
        return (*event.runs, event.score)
    return [(*run, *event.score) for run in event.runs]
