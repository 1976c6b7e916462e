"""One of a public family of plans, taken after a first release has been seen.

Proof: docs/proofs/choice.md
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..errors import LedgerError
from .events import Event, check_int, event_from_json, one_unit
from .plain import GaussianEvent
from .rounds import Mixture
from .selection import SelectionEvent

__all__ = ["ChoiceEvent", "hull"]

_UP = 1.0 + 1e-12
_MOST_OPTIONS = 64


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
    first: tuple[Event, ...]
    options: tuple[tuple[Event, ...], ...]
    count: int = 1

    def __post_init__(self) -> None:
        check_int("count", self.count, 0)
        inner = [e for option in self.options for e in option]
        sound = (
            1 <= len(self.options) <= _MOST_OPTIONS
            and self.count <= _MOST_OPTIONS
            and all(isinstance(e, GaussianEvent) for e in self.first)
            and not any(isinstance(e, (ChoiceEvent, SelectionEvent)) for e in inner)
        )
        if not sound:
            raise LedgerError("A choice of the privacy ledger does not list its plans.")
        one_unit((*self.first, *inner))

    @property
    def unit(self) -> str:  # type: ignore[override]
        """See :class:`Event`; that of its plans."""
        return one_unit(e for way in self.ways for e in way)

    def of_unit(self, unit: str) -> ChoiceEvent:
        """See :class:`Event`."""
        first = tuple(e.of_unit(unit) for e in self.first)
        options = tuple(tuple(e.of_unit(unit) for e in option) for option in self.options)
        return replace(self, first=first, options=options)

    @property
    def label(self) -> str:
        """See :class:`Event`."""
        return "plan"

    @property
    def ways(self) -> tuple[tuple[Event, ...], ...]:
        """Everything that is released, for each of the plans."""
        return tuple((*self.first, *option) for option in self.options)

    @property
    def mu2(self) -> float:
        """See :class:`Event`."""
        return max(math.fsum(e.kept * _sum_mu2(e.inner) for e in way) for way in self.ways)

    @property
    def noise(self) -> str:
        """See :class:`Event`."""
        return f"one of {len(self.options)} plans"

    def pure(self) -> float:
        """See :class:`Event`."""
        if not self.count:
            return 0.0
        worst = max(math.fsum(e.pure() for e in way) for way in self.ways)
        return self.count * worst * (1.0 + 1e-14)

    def simplified(self, coins: int) -> tuple[list[Event], list[Event]]:
        """See :class:`Event`; it stays a choice, which only some accountants take."""
        return [], [self.of_group(coins)]

    def of_group(self, coins: int) -> ChoiceEvent:
        """The choice among plans that are themselves simplified.

        Args:
            coins: See :meth:`Event.simplified`.
        """
        from .books import simplified  # which knows all kinds

        options = tuple(tuple(simplified(option, coins)) for option in self.options)
        return replace(self, options=options)

    def _content(self) -> dict[str, Any]:
        return {
            "first": [e.to_json() for e in self.first],
            "options": [[e.to_json() for e in option] for option in self.options],
            "count": self.count,
        }

    @classmethod
    def _of_content(cls, content: Mapping[str, Any], unit: str) -> ChoiceEvent:
        sound = (
            set(content) == {"first", "options", "count"}
            and isinstance(content["first"], list)
            and isinstance(content["options"], list)
            and all(isinstance(option, list) for option in content["options"])
        )
        if not sound:
            raise LedgerError("A choice event of the privacy ledger has other fields.")
        return cls(
            tuple(event_from_json(e) for e in content["first"]),
            tuple(tuple(event_from_json(e) for e in option) for option in content["options"]),
            content["count"],
        )


def _sum_mu2(events: Sequence[Event]) -> float:
    return math.fsum(e.count * e.mu2 for e in events)


def hull(event: ChoiceEvent, group: int, selection_mu2: Callable[[float], float]) -> GaussianEvent:
    """A Gaussian release that costs at least as much, for accountants that add up mu^2.

    Args:
        event: A choice among plans of Gaussian releases and selections; see
            :meth:`ChoiceEvent.of_group`.
        group: Rows added or removed together.
        selection_mu2: The mu^2 that stands for a selection of a range, in the sense of the
            accountant.

    Returns:
        One event, to be counted `event.count` times, with the largest mu^2 of the plans, the least
        noise of one release and the most sums.
    """
    parts = [Mixture.of(way) for way in event.ways]
    used = [e for part in parts for e in part.gaussians]
    worst = 0.0
    for part in parts:
        selections = (e.count * selection_mu2(group * e.eps0) for e in part.selections)
        gaussians = math.fsum(e.count * e.mu2 for e in part.gaussians)
        worst = max(worst, gaussians + math.fsum(selections) / group**2)
    if math.isinf(worst) or any(part.sampled for part in parts):  # costs everything
        return GaussianEvent(event.label, 1, 0, 1, event.count, unit=event.unit)
    sums = max(sum(e.count * max(e.coordinates, 1) for e in part.gaussians) for part in parts)
    sigma2 = min((e.sigma2 for e in used), default=1 << 60)
    sens2 = math.ceil(worst * _UP * sigma2)
    return GaussianEvent(event.label, sens2, sigma2, sums, event.count, unit=event.unit)
