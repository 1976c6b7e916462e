"""What every accountant answers, for the events that it was given."""

from __future__ import annotations

import abc
import math
from collections.abc import Iterable, Sequence
from pkgutil import resolve_name
from typing import ClassVar

from . import tenants
from .coarse import ZCDPCurve
from .curve import Curve, usual_floats
from .events import Event, ThresholdEvent, one_unit
from .nested import SelectionEvent
from .simplify import Neighbours, Terms, simplify
from .threshold import WithThresholds

ACCOUNTANTS: dict[str, type[Accountant] | str] = {
    "exact": "xgb_dp.accounting.exact:ExactAccountant",
    **tenants.ACCOUNTANTS,
    "pure": "xgb_dp.accounting.pure:PureAccountant",
}
"""Accountants, or where they are defined, by the name that ``dp_accountant`` takes.

The first is the tightest.
"""


class Accountant(abc.ABC):
    """Certified (epsilon, delta) of a list of events that are adaptively composed.

    Neighbours differ by `group` rows, of which some may be added and others removed. With
    `replaced` they differ by `group` rows that are exchanged for others. Proof:
    docs/proofs/neighbours.md

    Args:
        events: In release order.

    Raises:
        TypeError: Something is not an event, or an event that is not known.
        LedgerError: Some of the events hold for rows and some for persons.
    """

    name: ClassVar[str]

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        ACCOUNTANTS[cls.name] = cls

    def __init__(self, events: Iterable[Event]) -> None:
        self._events = tuple(events)
        if not all(isinstance(event, Event) for event in self._events):
            raise TypeError("`events` holds something that is not an event.")
        one_unit(self._events)
        self._curves: dict[Neighbours, Curve] = {}

    @usual_floats
    def get_epsilon(self, delta: float, group: int = 1, *, replaced: bool = False) -> float:
        """Smallest certified epsilon for a failure probability.

        Args:
            delta: In [0, 1].
            group: Rows added or removed together, >= 1.
            replaced: Whether so many rows are exchanged for others instead.

        Returns:
            float: Upper bound in nats, >= 0; infinite if there is none.

        Raises:
            ValueError: ``delta`` or ``group`` is out of range.
        """
        if not 0.0 <= delta <= 1.0:
            raise ValueError("`delta` must lie in [0, 1].")
        return self.privacy_curve(group, replaced=replaced).epsilon(delta)

    @usual_floats
    def get_delta(self, epsilon: float, group: int = 1, *, replaced: bool = False) -> float:
        """Smallest certified failure probability for an epsilon.

        Args:
            epsilon: In nats, >= 0.
            group: Rows added or removed together, >= 1.
            replaced: Whether so many rows are exchanged for others instead.

        Returns:
            float: Upper bound in [0, 1].

        Raises:
            ValueError: ``epsilon`` or ``group`` is out of range.
        """
        if not epsilon >= 0.0:
            raise ValueError("`epsilon` must be at least 0.")
        return self.privacy_curve(group, replaced=replaced).delta(epsilon)

    @usual_floats
    def privacy_curve(self, group: int = 1, *, replaced: bool = False) -> Curve:
        """The curve of all events, for neighbours as in :meth:`get_epsilon`."""
        if not isinstance(group, int) or group < 1:
            raise ValueError("`group` must be an int of at least 1.")
        return self._curve_for(Neighbours.of(group, replaced=replaced))

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
        """The curve of events without thresholds; here without a bound of private selections."""
        if any(isinstance(event, SelectionEvent) and event.count for event in events):
            return ZCDPCurve(math.inf, [])  # no bound
        rest = [event for event in events if not isinstance(event, SelectionEvent)]
        return self._of_terms(simplify(rest, neighbours.coins), neighbours)

    def _of_terms(self, terms: Terms, neighbours: Neighbours) -> Curve:
        """The curve of simplified events."""
        raise NotImplementedError


def make_accountant(name: str, events: Iterable[Event]) -> Accountant:
    """The accountant of a name, for these events.

    Args:
        name: A key of :data:`ACCOUNTANTS`.
        events: In release order.

    Raises:
        ValueError: There is no accountant of that name.
        LedgerError: Some of the events hold for rows and some for persons.

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
