"""Accountants: (epsilon, delta) of the adaptive composition of a list of events.

The pure accountant adds up epsilons. The exact accountant is the tightest proved bound for all
releases of a training. Both derive group privacy from the privacy curve of smaller groups.

Proofs: docs/proofs/accounting.md, docs/proofs/neighbours.md ("In steps"), docs/proofs/choice.md,
docs/proofs/selection.md, and docs/proofs/sampling.md for rounds that read a sample of the rows.
Source of pure epsilon: Dwork and Roth (2014), theorem 3.16.
"""

from __future__ import annotations

import abc
import math
from collections.abc import Iterable, Sequence
from functools import partial, singledispatch
from pkgutil import resolve_name
from typing import ClassVar

from .choice import ChoiceCurve, WithChoices
from .closed_form_bounds import ZCDPCurve
from .composition import WORK, FlatCurve
from .curve import Curve, narrow, usual_floats
from .events import (
    ChoiceEvent,
    Event,
    ExponentialEvent,
    GaussianEvent,
    LaplaceEvent,
    PlainEvent,
    SelectionEvent,
    ThresholdEvent,
    one_unit,
)
from .gaussian import WithThresholds
from .selection import SelectionCurve, WithSelections
from .simplify import Neighbours, Terms, parts_of_run, simplify

ACCOUNTANTS: dict[str, type[Accountant] | str] = {
    "exact": "xgb_dp.accounting.accountant:ExactAccountant",
    "rdp": "xgb_dp.accounting.published_accountants:RDPAccountant",
    "gdp": "xgb_dp.accounting.published_accountants:GDPAccountant",
    "classic": "xgb_dp.accounting.published_accountants:ClassicAccountant",
    "pure": "xgb_dp.accounting.accountant:PureAccountant",
}
"""Accountant classes, or their import paths, by ``dp_accountant`` name; the first is tightest."""


class Accountant(abc.ABC):
    """Certified (epsilon, delta) of the adaptive composition of a list of events.

    Neighbours differ by `group_size` rows, each of them added or removed. With `replaced`,
    neighbours differ by `group_size` replaced rows. Proof: docs/proofs/neighbours.md

    Args:
        events: In release order.

    Raises:
        TypeError: An item is not an event, or its type is unknown.
        LedgerError: The events have different privacy units, "row" and "person".
    """

    name: ClassVar[str]

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        ACCOUNTANTS[cls.name] = cls

    def __init__(self, events: Iterable[Event]) -> None:
        self._events = tuple(events)
        if not all(isinstance(event, Event) for event in self._events):
            raise TypeError("`events` must contain only ledger events.")
        one_unit(self._events)
        self._curves: dict[Neighbours, Curve] = {}

    @usual_floats
    def get_epsilon(self, delta: float, group_size: int = 1, *, replaced: bool = False) -> float:
        """Smallest certified epsilon for a failure probability.

        Args:
            delta: In [0, 1].
            group_size: Rows added or removed together, >= 1.
            replaced: Whether these rows are replaced instead of added or removed.

        Returns:
            float: Upper bound in nats, >= 0; infinite if no bound is known.

        Raises:
            ValueError: ``delta`` or ``group_size`` is out of range.
        """
        if not 0.0 <= delta <= 1.0:
            raise ValueError("`delta` must lie in [0, 1].")
        return self.privacy_curve(group_size, replaced=replaced).epsilon(delta)

    @usual_floats
    def get_delta(self, epsilon: float, group_size: int = 1, *, replaced: bool = False) -> float:
        """Smallest certified failure probability for an epsilon.

        Args:
            epsilon: In nats, >= 0.
            group_size: Rows added or removed together, >= 1.
            replaced: Whether these rows are replaced instead of added or removed.

        Returns:
            float: Upper bound in [0, 1].

        Raises:
            ValueError: ``epsilon`` or ``group_size`` is out of range.
        """
        if not epsilon >= 0.0:
            raise ValueError("`epsilon` must be at least 0.")
        return self.privacy_curve(group_size, replaced=replaced).delta(epsilon)

    @usual_floats
    def privacy_curve(self, group_size: int = 1, *, replaced: bool = False) -> Curve:
        """The privacy curve of all events, for neighbours as in :meth:`get_epsilon`."""
        if not isinstance(group_size, int) or group_size < 1:
            raise ValueError("`group_size` must be an integer of at least 1.")
        return self._curve_for(Neighbours.of(group_size, replaced=replaced))

    def _curve_for(self, neighbours: Neighbours) -> Curve:
        if neighbours not in self._curves:
            thresholds = [e for e in self._events if isinstance(e, ThresholdEvent) and e.count]
            rest = [e for e in self._events if not isinstance(e, ThresholdEvent)]
            curve = self._composed(rest, neighbours)
            if thresholds:
                curve = WithThresholds(curve, thresholds, neighbours.rows)
            self._curves[neighbours] = curve
        return self._curves[neighbours]

    def _composed(self, events: Sequence[Event], neighbours: Neighbours) -> Curve:
        """The curve of all events except thresholds; infinite here with private selections."""
        if any(isinstance(event, SelectionEvent) and event.count for event in events):
            return ZCDPCurve(math.inf, [])  # no bound
        rest = [event for event in events if not isinstance(event, SelectionEvent)]
        return self._of_terms(simplify(rest, neighbours.assignments), neighbours)

    def _of_terms(self, terms: Terms, neighbours: Neighbours) -> Curve:
        """The curve of simplified events."""
        raise NotImplementedError


def make_accountant(name: str, events: Iterable[Event]) -> Accountant:
    """Create an accountant of the given name for these events.

    Args:
        name: A key of :data:`ACCOUNTANTS`.
        events: In release order.

    Raises:
        ValueError: The name is unknown.
        LedgerError: The events have different privacy units, "row" and "person".

    Examples:
        >>> from xgb_dp.accounting import GaussianEvent
        >>> event = GaussianEvent("leaves", sensitivity2=1, sigma2=400, coordinates=1, count=10)
        >>> accountant = xgb_dp.accounting.make_accountant("exact", [event])
        >>> round(accountant.get_epsilon(1e-6), 2)
        0.66
    """
    if name not in ACCOUNTANTS:
        raise ValueError(f"`accountant` must be one of {', '.join(ACCOUNTANTS)}; got {name!r}.")
    accountant = ACCOUNTANTS[name]
    return (resolve_name(accountant) if isinstance(accountant, str) else accountant)(events)


MOST_ROWS = 20  # largest number of rows in one step; for more, sampled rounds have a coarse bound

_UP = 1.0 + 1e-12
_LOWEST = -560.0  # log of a step's delta: no curve resolves a smaller one
_LOWEST_DELTA = 1e-200  # smallest delta of a step that a curve resolves
_ENOUGH = 1e-3  # relative tolerance of epsilon


def epsilon_in_steps(curve: Curve, delta: float, steps: int) -> float:
    """Group epsilon: the sum over steps; each step changes fewer rows, at a smaller delta."""
    if delta <= 0.0:
        return steps * curve.epsilon(0.0) * _UP
    epsilons: dict[float, float] = {}

    def is_safe(log_delta: float) -> bool:
        epsilon = epsilons[log_delta] = curve.epsilon(math.exp(log_delta))
        return log_delta + _log_growth(epsilon, steps) <= math.log(delta)

    # The epsilon of a step determines the largest allowed delta of a step.
    unsafe = math.log(delta)
    safe = unsafe - math.log(steps)
    lowest = _LOWEST  # no curve is known at or below
    while not is_safe(safe):
        if math.isinf(epsilons[safe]):
            lowest = safe
        else:
            unsafe = safe
            required = math.log(delta) - _log_growth(epsilons[safe], steps)
            safe = required - 0.1 - 0.1 * (safe - required)
        if safe <= lowest:
            if unsafe - lowest < 1e-3:
                return math.inf
            safe = 0.5 * (lowest + unsafe)
    while unsafe - safe > 0.02:
        if epsilons[safe] - epsilons.get(unsafe, 0.0) <= _ENOUGH * epsilons[safe]:
            break
        safe, unsafe = narrow(is_safe, safe, unsafe, 1)
    return steps * epsilons[safe] * _UP


def delta_in_steps(curve: Curve, epsilon: float, steps: int) -> float:
    """Group delta at an epsilon that is divided equally among the steps."""
    if math.isinf(epsilon):
        return curve.delta(epsilon)
    part = epsilon_of_step(epsilon, steps)
    return delta_of_steps(curve.delta(part), part, steps)


def epsilon_of_step(epsilon: float, steps: int) -> float:
    """The share of epsilon of each step, in nats."""
    return epsilon / steps * (1.0 - 1e-15)


def delta_of_steps(delta: float, part: float, steps: int) -> float:
    """Group delta, given the delta of one step at the epsilon `part`."""
    if delta == 0.0:
        return 0.0
    return math.exp(min(0.0, math.log(delta) + _log_growth(part, steps)))


def _log_growth(epsilon: float, steps: int) -> float:
    """Upper bound of the logarithm of 1 + e^epsilon + ... + e^((steps-1) epsilon)."""
    terms = math.expm1(-steps * epsilon) / math.expm1(-epsilon) if epsilon else float(steps)
    largest = (steps - 1) * epsilon  # factored out of the sum
    return largest + math.log(terms) + 1e-12 * (1.0 + largest)


class Smallest(Curve):
    """The minimum of three bounds: all rows at once, rows in steps, and pure composition.

    Pure composition matters for Laplace noise, which has a bounded loss.
    """

    def __init__(
        self, whole: Curve, pure: Curve, step: Curve | None = None, steps: int = 1
    ) -> None:
        self._whole, self._pure, self._step, self._steps = whole, pure, step, steps

    def epsilon(self, delta: float) -> float:
        """See :class:`Curve`."""
        value = min(self._whole.epsilon(delta), self._pure.epsilon(delta))
        if self._step is not None and 0.0 < delta < 1.0 and value > 0.0:
            value = min(value, epsilon_in_steps(self._step, delta, self._steps))
        return value

    def delta(self, epsilon: float) -> float:
        """See :class:`Curve`."""
        value = min(self._whole.delta(epsilon), self._pure.delta(epsilon))
        if self._step is not None and value > 0.0:
            value = min(value, delta_in_steps(self._step, epsilon, self._steps))
        return value

    def deltas(self, points: Sequence[float], lowest: float) -> list[float]:
        """See :class:`Curve`."""
        deltas = self._whole.deltas(points, lowest)
        if self._step is not None:
            parts = [epsilon_of_step(x, self._steps) for x in points]
            # The looseness of a step is multiplied by at most the inverse of this factor.
            growth = math.exp(-min(max(points), 300.0))
            of_step = self._step.deltas(parts, max(lowest * growth / self._steps, _LOWEST_DELTA))
            stepped = map(delta_of_steps, of_step, parts, [self._steps] * len(parts))
            deltas = list(map(min, deltas, stepped))
        return [min(delta, self._pure.delta(x)) for x, delta in zip(points, deltas, strict=True)]


class PureCurve(Curve):
    """The curve of pure epsilon-differential privacy; an infinite epsilon means no bound."""

    def __init__(self, epsilon: float) -> None:
        self._epsilon = epsilon

    def epsilon(self, delta: float) -> float:
        """See :class:`Curve`."""
        return self._epsilon

    def delta(self, epsilon: float) -> float:
        """See :class:`Curve`."""
        return 0.0 if epsilon >= self._epsilon else 1.0


def pure_curve(events: Sequence[Event], rows: int) -> PureCurve:
    """The curve of basic composition. Group privacy multiplies epsilon by the number of rows."""
    return PureCurve(rows * pure_sum(events) * (1.0 + 1e-14))


def pure_sum(events: Iterable[Event]) -> float:
    """Pure epsilon of these events for one row, in nats; infinite if there is no bound."""
    return math.fsum(pure_of(event) if event.count else 0.0 for event in events)


@singledispatch
def pure_of(event: Event) -> float:
    """Pure epsilon of an event with count > 0. Modules that define other kinds register them."""
    if isinstance(event, GaussianEvent):
        return math.inf if event.sensitivity2 else 0.0
    if isinstance(event, ThresholdEvent):
        return math.inf
    if isinstance(event, ExponentialEvent):
        return event.count * event.eps0
    if isinstance(event, LaplaceEvent):
        return event.count * event.epsilon * (1.0 + 1e-15)
    if isinstance(event, ChoiceEvent):
        return event.count * max(map(pure_sum, event.ways)) * (1.0 + 1e-14)
    if isinstance(event, SelectionEvent):
        return event.count * _best_run(event) * (1.0 + 1e-13)
    raise TypeError(f"Accountants have no privacy loss for events of type {type(event).__name__}.")


def _best_run(event: SelectionEvent) -> float:
    """Pure epsilon of the best of a random number of runs: docs/proofs/selection.md."""
    run, distribution = max(map(pure_sum, parts_of_run(event, 1))), event.repetitions
    if distribution.family == "poisson":
        return run - distribution.rate * math.expm1(-run)
    return (2.0 + distribution.shape) * run


class PureAccountant(Accountant):
    """(epsilon, 0) of a list of events by basic composition.

    A selection of range eps0 is eps0-private, and so is Laplace noise of scale sensitivity / eps0.
    Rounds on disjoint parts cost as much as one round (parallel composition). A round on a Poisson
    sample of rate q costs log(1 + q (e^eps - 1)) (docs/proofs/sampling.md).

    Args:
        events: In any order.

    Examples:
        >>> from xgb_dp.accounting import LaplaceEvent
        >>> event = LaplaceEvent("leaves", sensitivity=1, scale=20, count=10)
        >>> round(xgb_dp.accounting.PureAccountant([event]).get_epsilon(0.0), 6)
        0.5
    """

    name = "pure"

    def get_epsilon(
        self, delta: float = 0.0, group_size: int = 1, *, replaced: bool = False
    ) -> float:
        """Epsilon, which does not depend on delta and is infinite with Gaussian noise."""
        return super().get_epsilon(delta, group_size, replaced=replaced)

    def _composed(self, events: Sequence[Event], neighbours: Neighbours) -> Curve:
        return pure_curve(events, neighbours.rows)


class ExactAccountant(Accountant):
    """(epsilon, delta) of the adaptive composition of a list of events, from its exact curve.

    Args:
        events: In release order.
        work: Limit of elementary operations per curve; about 1e9 take a second. Every value gives a
            valid bound, and larger values give tighter bounds.

    Examples:
        >>> from xgb_dp.accounting import GaussianEvent
        >>> event = GaussianEvent("leaves", sensitivity2=1, sigma2=400, coordinates=1, count=10)
        >>> accountant = xgb_dp.accounting.ExactAccountant([event])
        >>> round(accountant.get_epsilon(1e-6), 2)
        0.66
    """

    name = "exact"

    def __init__(self, events: Iterable[Event], work: float = WORK) -> None:
        super().__init__(events)
        self._work = work

    def _composed(self, events: Sequence[Event], neighbours: Neighbours) -> Curve:
        whole = self._at_once(events, neighbours)
        steps, each = 1, neighbours.rows
        if not all(isinstance(e, (PlainEvent, ChoiceEvent)) or not e.count for e in events):
            each = 1 if neighbours.rows <= MOST_ROWS else MOST_ROWS
            steps = -(-neighbours.rows // each)
        step = self._composed(events, Neighbours(each, each)) if steps > 1 else None
        return Smallest(whole, pure_curve(events, neighbours.rows), step, steps)

    def _at_once(self, events: Sequence[Event], neighbours: Neighbours) -> Curve:
        """The curve for all rows in one step."""
        rest = [e for e in events if not isinstance(e, SelectionEvent)]
        selections: list[Curve] = []
        for event in events:
            if isinstance(event, SelectionEvent) and event.count:
                parts = [
                    ExactAccountant(part)._curve_for(neighbours)
                    for part in parts_of_run(event, neighbours.assignments)
                ]
                selections += [SelectionCurve(event.repetitions, parts)] * event.count
        if not selections:
            return self._of_rest(rest, neighbours)
        alone = not any(event.count for event in rest)
        return WithSelections(selections, None if alone else self._of_rest(rest, neighbours))

    def _of_rest(self, events: Sequence[Event], neighbours: Neighbours) -> Curve:
        """The curve of all events except private selections."""
        happened = [event for event in events if event.count]
        if not any(isinstance(event, ChoiceEvent) for event in happened):
            return compose(simplify(events, neighbours.assignments), neighbours, self._work)
        if len(happened) == 1 and happened[0].count == 1:
            [choice] = simplify(happened, neighbours.assignments).choices
            return ChoiceCurve(choice, neighbours.rows)
        # Sampling every row independently costs at least as much.
        replaced = Neighbours(neighbours.rows, neighbours.rows)
        of_terms = partial(compose, neighbours=replaced)
        return WithChoices(simplify(happened, replaced.assignments), replaced.rows, of_terms)


def compose(terms: Terms, neighbours: Neighbours, work: float = WORK) -> Curve:
    """The exact curve of Gaussians, selections, Laplace noise and terms of other modules."""
    for other in terms.others:
        if not other.is_empty:
            return other.compose(terms, neighbours, work)
    return FlatCurve(terms.flat, neighbours.rows, work)
