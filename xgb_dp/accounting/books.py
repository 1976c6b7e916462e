"""Makes the accountant of a name, for everything that a ledger may contain.

Proofs: docs/proofs/accounting.md, "Laplace" and "Disjoint parts"; docs/proofs/selection.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from .accountant import Accountant
from .choice import ChoiceEvent, hull
from .classic import ClassicAccountant
from .envelope import ChoiceAccountant, WithChoices, zcdp_mu2
from .events import Event, one_unit
from .exact import ExactAccountant
from .gdp import GDPAccountant, bounded_range_mu
from .groups import delta_in_steps, delta_of_steps, epsilon_in_steps, epsilon_of_step
from .plain import PlainEvent
from .pure import PureAccountant
from .rdp import RDPAccountant
from .rounds import with_known_parts
from .selection import SelectionAccountant, SelectionEvent, map_runs
from .several import MOST_ROWS
from .threshold import ThresholdEvent, WithThresholds
from .zcdp import ZCDPAccountant

__all__ = ["ACCOUNTANTS", "make_accountant", "simplified"]

_UP = 1.0 + 1e-12
_LOWEST = 1e-200  # delta of a step that a curve still shows
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
        LedgerError: Some of the events hold for rows and some for persons.

    Examples:
        >>> from xgb_dp.accounting.plain import GaussianEvent
        >>> event = GaussianEvent("leaves", sensitivity2=1, sigma2=400, coordinates=1, count=10)
        >>> accountant = xgb_dp.accounting.make_accountant("exact", [event])
        >>> round(accountant.get_epsilon(1e-6), 2)
        0.66
    """
    if name not in ACCOUNTANTS:
        raise ValueError(f"`accountant` must be one of {', '.join(ACCOUNTANTS)}; got {name!r}.")
    thresholds = [e for e in events if isinstance(e, ThresholdEvent) and e.count]
    if not thresholds:
        return _Books(name, events)
    one_unit(events)
    rest = [e for e in events if not isinstance(e, ThresholdEvent)]
    return WithThresholds(_Books(name, rest), thresholds)


class _Books(Accountant):
    """Turns Laplace noise and disjoint parts into what the accountants know, for each group.

    A private selection has a curve of its own, which composes with the rest as (epsilon, delta).
    """

    def __init__(self, name: str, events: Sequence[Event]) -> None:
        one_unit(events)
        self._name, self._events = name, tuple(events)
        self._pure = PureAccountant(events)
        self._known: dict[tuple[int, bool], Accountant] = {}
        self._selections = [e for e in events if isinstance(e, SelectionEvent) and e.count]

    def _epsilon(self, delta: float, group: int) -> float:
        return self._smallest_epsilon(delta, group, replaced=False)

    def _delta(self, epsilon: float, group: int) -> float:
        return self._smallest_delta(epsilon, group, replaced=False)

    def _replaced_epsilon(self, delta: float, rows: int) -> float:
        return self._smallest_epsilon(delta, rows, replaced=True)

    def _replaced_delta(self, epsilon: float, rows: int) -> float:
        return self._smallest_delta(epsilon, rows, replaced=True)

    def curve(
        self, points: Sequence[float], lowest: float, group: int = 1, *, replaced: bool = False
    ) -> list[float]:
        """See :class:`Accountant`."""
        if self._name != "exact" or self._selections:
            return super().curve(points, lowest, group, replaced=replaced)
        whole = self._whole(group, replaced=replaced)
        found = whole.curve(points, lowest, group, replaced=replaced)
        steps, each = self._steps(group * (1 + replaced))
        if steps > 1:
            parts = [epsilon_of_step(x, steps) for x in points]
            # What a step may be loose by grows at most so much.
            lowest = max(lowest * math.exp(-min(max(points), 300.0)) / steps, _LOWEST)
            of_step = zip(self.curve(parts, lowest, each), parts, strict=True)
            stepped = [delta_of_steps(delta, part, steps) for delta, part in of_step]
            found = [min(both) for both in zip(found, stepped, strict=True)]
        pure = self._pure.get_epsilon(0.0, group, replaced=replaced)
        return [0.0 if x >= pure else delta for x, delta in zip(points, found, strict=True)]

    def _smallest_epsilon(self, delta: float, group: int, *, replaced: bool) -> float:
        value = self._whole(group, replaced=replaced).get_epsilon(delta, group, replaced=replaced)
        if self._adds_pure:  # Laplace noise has no tail: at small delta it costs less purely
            value = min(value, self._pure.get_epsilon(delta, group, replaced=replaced))
        steps, each = self._steps(group * (1 + replaced))
        if steps > 1 and 0.0 < delta < 1.0 and value > 0.0:
            value = min(value, epsilon_in_steps(self, delta, steps, each))
        return value

    def _smallest_delta(self, epsilon: float, group: int, *, replaced: bool) -> float:
        value = self._whole(group, replaced=replaced).get_delta(epsilon, group, replaced=replaced)
        if self._adds_pure:
            value = min(value, self._pure.get_delta(epsilon, group, replaced=replaced))
        steps, each = self._steps(group * (1 + replaced))
        if steps > 1 and value > 0.0:
            value = min(value, delta_in_steps(self, epsilon, steps, each))
        return value

    def _steps(self, rows: int) -> tuple[int, int]:
        """Number of steps that may cost less than all rows at once, and rows of each step."""
        if self._name != "exact" or all(
            isinstance(e, (PlainEvent, ChoiceEvent)) or not e.count for e in self._events
        ):
            return 1, rows
        return (rows, 1) if rows <= MOST_ROWS else (-(-rows // MOST_ROWS), MOST_ROWS)

    @property
    def _adds_pure(self) -> bool:
        return self._name in ("exact", "classic")

    def _whole(self, group: int, *, replaced: bool) -> Accountant:
        """The accountant of everything, for so many rows."""
        if self._name == "pure":
            return self._pure
        key = (group, replaced)
        if key not in self._known:
            rest = self._rest(group)
            if not self._selections or self._name == "rdp":
                self._known[key] = rest
            elif self._name != "exact":
                self._known[key] = _Nothing()
            else:
                whole = len(self._selections) == len([e for e in self._events if _counts(e)])
                selections = self._of_selections(group, replaced=replaced)
                self._known[key] = _Sum(selections, None if whole else rest)
        return self._known[key]

    def _of_selections(self, group: int, *, replaced: bool) -> list[SelectionAccountant]:
        # A row and the one that replaces it share their coins.
        return [
            SelectionAccountant(
                event.repetitions,
                [make_accountant("exact", part) for part in event.parts(group)],
                group,
                replaced=replaced,
            )
            for event in self._selections
            for _ in range(event.count)
        ]

    def _rest(self, coins: int) -> Accountant:
        known = [e for e in self._events if not isinstance(e, SelectionEvent)]
        plain: list[Event] = [*simplified(known, coins)]
        if self._name != "exact":  # the others have no bound for what a secret part hides
            plain = with_known_parts(plain)
        if self._name == "rdp":
            plain += [
                map_runs(event, lambda run: with_known_parts(simplified(run, coins)))
                for event in self._selections
            ]
        return _composed(self._name, plain, coins)


class _Sum(Accountant):
    """Composes selections with everything else: epsilons add up, and so do deltas.

    Proof: docs/proofs/selection.md, "Composition".
    """

    def __init__(self, selections: Sequence[SelectionAccountant], rest: Accountant | None) -> None:
        self._selections, self._rest = list(selections), rest

    def _epsilon(self, delta: float, group: int) -> float:
        return self._epsilon_of(delta, group)

    def _delta(self, epsilon: float, group: int) -> float:
        return self._delta_of(epsilon, group)

    def _replaced_epsilon(self, delta: float, rows: int) -> float:
        return self._epsilon_of(delta, rows, replaced=True)

    def _replaced_delta(self, epsilon: float, rows: int) -> float:
        return self._delta_of(epsilon, rows, replaced=True)

    def _epsilon_of(self, delta: float, group: int, *, replaced: bool = False) -> float:
        """Epsilon in nats, the sum of all parts with equal shares of delta."""
        each = delta / (len(self._selections) + (self._rest is not None))
        values = [s.get_epsilon(each) for s in self._selections]
        if self._rest is not None:
            values.append(self._rest.get_epsilon(each, group, replaced=replaced))
        return math.fsum(values) * (1.0 + 1e-14)

    def _delta_of(self, epsilon: float, group: int, *, replaced: bool = False) -> float:
        """Delta in [0, 1], the smallest that some divisions of it give."""
        if self._rest is None and len(self._selections) == 1:
            return self._selections[0].get_delta(epsilon)
        best = 1.0
        for each in _EACH:
            delta = each * len(self._selections)
            if delta < best:
                loss = math.fsum(s.get_epsilon(each) for s in self._selections) * _UP
                best = min(best, self._after(loss, delta, epsilon, group, replaced))
        return best

    def _after(
        self, loss: float, delta: float, epsilon: float, group: int, replaced: bool
    ) -> float:
        """Delta of the rest together with what is (loss, delta)-private in both orders.

        The worst release that is so private shows everything with probability delta. Otherwise its
        loss is +loss or -loss, in proportion e^loss to 1.
        """
        if math.isinf(loss):
            return 1.0
        odds = math.exp(-loss)
        ahead, behind = 1.0 / (1.0 + odds), odds / (1.0 + odds)
        value = ahead * self._of_rest(epsilon - loss, group, replaced)
        value += behind * self._of_rest(epsilon + loss, group, replaced)
        return min(1.0, (delta + (1.0 - delta) * value) * _UP)

    def _of_rest(self, epsilon: float, group: int, replaced: bool) -> float:
        """Delta of the rest at any real epsilon. Below zero the other order gives it."""
        if epsilon < 0.0:
            above = self._of_rest(-epsilon, group, replaced)
            return -math.expm1(epsilon) + math.exp(epsilon) * above
        if self._rest is None:
            return 0.0
        return self._rest.get_delta(epsilon, group, replaced=replaced)


class _Nothing(Accountant):
    """An accountant without a bound for something that was released."""

    def _epsilon(self, delta: float, group: int) -> float:
        """Return infinity, unless delta is 1."""
        return 0.0 if delta >= 1.0 else math.inf

    def _delta(self, epsilon: float, group: int) -> float:
        """Return one."""
        return 1.0


def _composed(name: str, events: Sequence[Event], coins: int) -> Accountant:
    """The accountant of a name for simplified events of a group, choices among them.

    A Gaussian that stands for the selections of a group stands for those of a larger one too: its
    mu grows in proportion to the group, and that of a selection grows less.

    Proof: docs/proofs/choice.md, "Accountants" and "Composition".
    """
    happened = [e for e in events if _counts(e)]
    choices = [e for e in happened if isinstance(e, ChoiceEvent)]
    if not choices or name == "rdp":
        return ACCOUNTANTS[name]([e for e in events if e.count or not isinstance(e, ChoiceEvent)])
    if name == "exact":
        alone = len(happened) == 1 and choices[0].count == 1
        return ChoiceAccountant(choices[0]) if alone else WithChoices(happened)
    of_selection = zcdp_mu2 if name == "zcdp" else lambda eps0: bounded_range_mu(eps0) ** 2
    return ACCOUNTANTS[name](
        [hull(e, coins, of_selection) if isinstance(e, ChoiceEvent) else e for e in happened]
    )


def _counts(event: Event) -> bool:
    return event.count > 0


def simplified(events: Sequence[Event], coins: int) -> list[Event]:
    """Gaussians, selections and sampled rounds that cost a group at least as much.

    Laplace noise comes first, because its worst pair of distributions is the same whatever was
    released before. Selections of unequal range keep their order. Proof:
    docs/proofs/accounting.md, "Laplace".

    Args:
        events: In release order, or as one round releases them.
        coins: Draws that decide where the rows of a group take part; see :class:`Event`.

    Raises:
        TypeError: A private selection, which has no such form.
    """
    parts = [event.simplified(coins) for event in events]
    return [e for part in parts for e in part[0]] + [e for part in parts for e in part[1]]
