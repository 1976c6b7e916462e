"""An accountant by its name, for everything that a ledger may hold.

Proofs: docs/proofs/accounting.md, "Laplace" and "Disjoint parts"; docs/proofs/selection.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from .accountant import Accountant
from .classic import ClassicAccountant
from .events import Event
from .exact import ExactAccountant
from .gdp import GDPAccountant
from .pure import PureAccountant
from .rdp import RDPAccountant
from .selection import SelectionAccountant, SelectionEvent, map_runs
from .zcdp import ZCDPAccountant

__all__ = ["ACCOUNTANTS", "make_accountant", "simplified"]

_UP = 1.0 + 1e-12
# Shares of delta that each of several selections is tried with: any of them gives a bound.
_EACH = (1e-3, 1e-2, 0.1, 0.03, 0.3, *(10.0**-digits for digits in range(4, 21)))


ACCOUNTANTS: dict[str, Callable[[Sequence[Event]], Accountant]] = {
    "exact": ExactAccountant,
    "rdp": RDPAccountant,
    "gdp": GDPAccountant,
    "zcdp": ZCDPAccountant,
    "classic": ClassicAccountant,
    "pure": PureAccountant,
}
"""Accountants by the name that ``dp_accountant`` takes; the first is the tightest."""


def make_accountant(name: str, events: Sequence[Event]) -> Accountant:
    """The accountant of a name, for these events.

    Args:
        name: A key of :data:`ACCOUNTANTS`.
        events: In release order.

    Raises:
        ValueError: There is no accountant of that name.
    """
    if name not in ACCOUNTANTS:
        raise ValueError(f"`accountant` must be one of {', '.join(ACCOUNTANTS)}; got {name!r}.")
    return _Books(name, events)


class _Books(Accountant):
    """Turns Laplace noise and disjoint parts into what the accountants know, for each group.

    A private selection has a curve of its own, which composes with the rest as (epsilon, delta).
    """

    def __init__(self, name: str, events: Sequence[Event]) -> None:
        self._name, self._events = name, tuple(events)
        self._pure = PureAccountant(events)
        self._of_group: dict[int, Accountant] = {}
        self._selections = [e for e in events if isinstance(e, SelectionEvent) and e.count]
        self._of_selections: dict[int, list[SelectionAccountant]] = {}

    def _epsilon(self, delta: float, group: int) -> float:
        value = self._with_selections(group).get_epsilon(delta, group)
        # Laplace noise has no tail: at small delta its pure cost is the smaller one.
        return min(value, self._pure.get_epsilon(delta, group)) if self._adds_pure else value

    def _delta(self, epsilon: float, group: int) -> float:
        value = self._with_selections(group).get_delta(epsilon, group)
        return min(value, self._pure.get_delta(epsilon, group)) if self._adds_pure else value

    @property
    def _adds_pure(self) -> bool:
        return self._name in ("exact", "classic")

    def _with_selections(self, group: int) -> Accountant:
        rest = self._accountant(group)
        if not self._selections or self._name in ("pure", "rdp"):
            return rest
        if self._name != "exact":
            return _Nothing()
        if group not in self._of_selections:
            self._of_selections[group] = [
                SelectionAccountant(
                    event.repetitions,
                    [make_accountant("exact", part) for part in event.parts(group)],
                    group,
                )
                for event in self._selections
                for _ in range(event.count)
            ]
        whole = len(self._selections) == len([e for e in self._events if _counts(e)])
        return _Sum(self._of_selections[group], None if whole else rest)

    def _accountant(self, group: int) -> Accountant:
        if self._name == "pure":
            return self._pure
        if group not in self._of_group:
            known = [e for e in self._events if not isinstance(e, SelectionEvent)]
            plain: list[Event] = [*simplified(known, group)]
            if self._name == "rdp":
                plain += [
                    map_runs(event, lambda run: list(simplified(run, group)))
                    for event in self._selections
                ]
            self._of_group[group] = ACCOUNTANTS[self._name](plain)
        return self._of_group[group]


class _Sum(Accountant):
    """Selections and everything else: epsilons add up, and so do deltas.

    Proof: docs/proofs/selection.md, "Composition".
    """

    def __init__(self, selections: Sequence[SelectionAccountant], rest: Accountant | None) -> None:
        self._selections, self._rest = list(selections), rest

    def _epsilon(self, delta: float, group: int) -> float:
        """Epsilon in nats, each part at its share of delta."""
        each = delta / (len(self._selections) + (self._rest is not None))
        values = [s.get_epsilon(each) for s in self._selections]
        if self._rest is not None:
            values.append(self._rest.get_epsilon(each, group))
        return math.fsum(values) * (1.0 + 1e-14)

    def _delta(self, epsilon: float, group: int) -> float:
        """Delta in [0, 1], the smallest of some divisions."""
        if self._rest is None and len(self._selections) == 1:
            return self._selections[0].get_delta(epsilon)
        best = 1.0
        for each in _EACH:
            delta = each * len(self._selections)
            if delta < best:
                loss = math.fsum(s.get_epsilon(each) for s in self._selections) * _UP
                best = min(best, self._after(loss, delta, epsilon, group))
        return best

    def _after(self, loss: float, delta: float, epsilon: float, group: int) -> float:
        """Delta of the rest together with what is (loss, delta)-private in both orders.

        The worst that is so private shows everything with probability delta, and else has the loss
        +loss or -loss, in proportion e^loss to 1.
        """
        if math.isinf(loss):
            return 1.0
        odds = math.exp(-loss)
        ahead, behind = 1.0 / (1.0 + odds), odds / (1.0 + odds)
        value = ahead * self._of_rest(epsilon - loss, group)
        value += behind * self._of_rest(epsilon + loss, group)
        return min(1.0, (delta + (1.0 - delta) * value) * _UP)

    def _of_rest(self, epsilon: float, group: int) -> float:
        """Delta of the rest at any real epsilon; the other order gives that below zero."""
        if epsilon < 0.0:
            return -math.expm1(epsilon) + math.exp(epsilon) * self._of_rest(-epsilon, group)
        return 0.0 if self._rest is None else self._rest.get_delta(epsilon, group)


class _Nothing(Accountant):
    """An accountant without a bound for something that was released."""

    def _epsilon(self, delta: float, group: int) -> float:
        """Infinite."""
        return 0.0 if delta >= 1.0 else math.inf

    def _delta(self, epsilon: float, group: int) -> float:
        """One."""
        return 1.0


def _counts(event: Event) -> bool:
    return event.count > 0


def simplified(events: Sequence[Event], group: int) -> list[Event]:
    """Gaussians, selections and sampled rounds that cost a group at least as much.

    Laplace noise, the front of every order, comes first: its worst pair of laws is the same
    whatever was released before, while selections of unequal range keep their order. Proof:
    docs/proofs/accounting.md, "Laplace".

    Args:
        events: In release order, or as one round releases them.
        group: Rows added or removed together.

    Raises:
        TypeError: A private selection, which has no such form.
    """
    parts = [event.simplified(group) for event in events]
    return [e for part in parts for e in part[0]] + [e for part in parts for e in part[1]]
