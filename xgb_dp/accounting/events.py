"""Says what every kind of event in a ledger has to answer, and what it is in JSON."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import fields, replace
from typing import Any, ClassVar, TypeVar

from ..errors import LedgerError
from .units import PERSON, ROW, UNITS

__all__ = [
    "Event",
    "check_int",
    "check_release",
    "check_unit",
    "event_from_json",
    "events_from_ledger",
    "one_unit",
    "release_counts",
]

_BITS = 200  # no number of a ledger comes near; much larger ones are no doubles


def check_int(name: str, value: Any, low: int) -> int:
    """Refuse what is not an int of at least `low`, or too large for a double."""
    if type(value) is not int or not low <= value < 1 << _BITS:
        shown = f"{value.bit_length()} bits" if type(value) is int and value > low else repr(value)
        raise LedgerError(
            f"A ledger event has `{name}` = {shown}; an int of at least {low} and below "
            f"2^{_BITS} was expected."
        )
    return value


def check_release(value: Any) -> None:
    """Refuse what is not the name of a release."""
    if type(value) is not str or not value:
        raise LedgerError("A ledger event does not name its release.")


def check_unit(value: Any) -> None:
    """Refuse what is not a unit of privacy."""
    if value not in UNITS:
        raise LedgerError(f"A ledger event has an unknown `unit`; known are {', '.join(UNITS)}.")


class Event:
    """Noisy releases of one kind, as the sampler made them.

    Every kind answers for itself, and this class has a method for each question. A new kind is a
    subclass. Ledgers then read and write it under its `mechanism`.

    Attributes:
        mechanism: Name of the kind in ledgers.
        count: How often it happened, >= 0.
        unit: Whom its cost holds for: "row" or "person". Wherever something is said of one row, it
            then holds for all rows of one person.

    Examples:
        >>> from xgb_dp.accounting.plain import GaussianEvent
        >>> event = GaussianEvent("leaves", sensitivity2=1, sigma2=400, coordinates=1, count=10)
        >>> event.label, event.mechanism, event.unit
        ('leaves', 'gaussian', 'row')
    """

    mechanism: ClassVar[str] = ""
    count: int
    unit: str
    _kinds: ClassVar[dict[str, type[Event]]] = {}

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if cls.mechanism:
            Event._kinds[cls.mechanism] = cls

    @property
    def label(self) -> str:
        """What is released, or "rounds" where several things are."""
        return "rounds"

    @property
    def mu2(self) -> float:
        """About the mu^2 of one such event, in which budgets are divided. It bounds nothing."""
        raise NotImplementedError

    @property
    def noise(self) -> str:
        """The noise of one release in words."""
        raise NotImplementedError

    @property
    def inner(self) -> tuple[Event, ...]:
        """The releases that the event consists of: itself, or those of one round."""
        return (self,)

    @property
    def repeats(self) -> int:
        """How often :attr:`inner` happens."""
        return 1

    @property
    def kept(self) -> float:
        """About the factor by which the event multiplies mu^2 of all :attr:`inner`."""
        return 1.0

    def pure(self) -> float:
        """Pure epsilon of the whole event for one row, in nats; infinite if there is none."""
        raise NotImplementedError

    def simplified(self, coins: int) -> tuple[list[Event], list[Event]]:
        """Gaussians, selections and sampled rounds that cost a group at least as much.

        Args:
            coins: Draws that decide where the rows of the group take part: one for each row, and
                one for a row and the one that replaces it.

        Returns:
            What goes to the front of every order, and the rest; see ``books.simplified``.

        Raises:
            TypeError: There is no such form.
        """
        return [], [self]

    def within(self, limit: Event) -> bool:
        """Whether the event costs no more than another one with the same noise.

        Args:
            limit: What was planned.
        """
        same = [(e.mechanism, e.label, e.unit) for e in (self, limit)]
        return same[0] == same[1] and self.count <= limit.count and self._covered(limit)

    def _covered(self, limit: Any) -> bool:
        """Whether a single event costs no more than a single `limit`, both of this kind."""
        return bool(self.counted(0) == limit.counted(0))

    def counted(self: Kind, count: int) -> Kind:
        """The same event, `count` times."""
        return replace(self, count=count)  # type: ignore[type-var]

    def of_unit(self: Kind, unit: str) -> Kind:
        """The same event with its cost for another unit. The caller has to prove that cost."""
        return replace(self, unit=unit)  # type: ignore[type-var]

    def only(self: Kind, kinds: Container[tuple[str, str]]) -> Kind | None:
        """The event with the releases of some kinds only; None if nothing is left.

        Args:
            kinds: (label, mechanism) of what stays.
        """
        return self if (self.label, self.mechanism) in kinds else None

    def to_json(self) -> dict[str, Any]:
        """The event as the ledger writes it. An event that names no unit is about rows."""
        named = {} if self.unit == ROW else {"unit": self.unit}
        return {"mechanism": self.mechanism, **self._content(), **named}

    def _content(self) -> dict[str, Any]:
        """The fields of this kind of event, as JSON contains them."""
        own = {name: getattr(self, name) for name in self._fields()}
        if "events" in own:
            own["events"] = [e.to_json() for e in own["events"]]
        return own

    @classmethod
    def from_json(cls: type[Kind], data: Mapping[str, Any]) -> Kind:
        """The inverse of :meth:`to_json`.

        Raises:
            LedgerError: The event is ill-formed.
        """
        if "unit" in data and data["unit"] != PERSON:
            raise LedgerError(
                "A ledger event has an unknown `unit`: it names none, which stands for rows, or "
                "'person'."
            )
        own = {name: value for name, value in data.items() if name not in ("mechanism", "unit")}
        event = cls._of_content(own, data.get("unit", ROW))
        if event.unit != data.get("unit", ROW):
            raise LedgerError("A ledger event has another `unit` than the events inside it.")
        return event

    @classmethod
    def _of_content(cls: type[Kind], content: Mapping[str, Any], unit: str) -> Kind:
        """The inverse of :meth:`_content`. The unit is that of the whole event."""
        names = cls._fields()
        if set(content) != set(names):
            raise LedgerError(
                f"A {cls.mechanism} event of the privacy ledger must have exactly the fields "
                f"{', '.join(sorted((*names, 'mechanism')))}."
            )
        values = dict(content)
        if "events" in values:
            if not isinstance(values["events"], list):
                raise LedgerError("A round of the privacy ledger does not list its events.")
            values["events"] = tuple(event_from_json(e) for e in values["events"])
        elif unit != ROW:
            values["unit"] = unit
        return cls(**values)

    @classmethod
    def _fields(cls) -> list[str]:
        """Names of the fields of this kind of event."""
        return [field.name for field in fields(cls) if field.name != "unit"]  # type: ignore[arg-type]


Kind = TypeVar("Kind", bound=Event)


def event_from_json(data: Mapping[str, Any]) -> Event:
    """Read one event; the inverse of ``to_json``.

    Args:
        data: One entry of a ledger's ``events``.

    Raises:
        LedgerError: The event is unknown or ill-formed. It is never skipped, because its cost
            would then be left out.

    Examples:
        >>> from xgb_dp.accounting.plain import GaussianEvent
        >>> event = GaussianEvent("leaves", sensitivity2=1, sigma2=400, coordinates=1, count=10)
        >>> from xgb_dp.accounting.events import event_from_json
        >>> event_from_json(event.to_json()) == event
        True
    """
    name = data.get("mechanism") if isinstance(data, Mapping) else None
    if type(name) is not str or name not in Event._kinds:
        raise LedgerError("The privacy ledger holds an event of an unknown mechanism.")
    return Event._kinds[name].from_json(data)


def one_unit(events: Iterable[Event]) -> str:
    """The unit that all events hold for; "row" if there are no events.

    Raises:
        LedgerError: There are two units. Their costs are about different neighbours and do not
            add up.

    Examples:
        >>> from xgb_dp.accounting.plain import GaussianEvent
        >>> event = GaussianEvent("leaves", sensitivity2=1, sigma2=400, coordinates=1, count=10)
        >>> from xgb_dp.accounting.events import one_unit
        >>> one_unit([event, event])
        'row'
    """
    units = {event.unit for event in events} or {ROW}
    if len(units) > 1:
        raise LedgerError(
            "Some events are for rows and some for persons. What they cost together is not "
            "known: a guarantee for rows says nothing about a person with several rows. Give "
            "each unit an account of its own."
        )
    return units.pop()


def release_counts(events: Iterable[Event]) -> dict[str, int]:
    """How often each release was made, by name, including those of rounds."""
    out: dict[str, int] = {}
    for event in events:
        for release in event.inner:
            out[release.label] = out.get(release.label, 0) + event.repeats * release.count
    return out


def events_from_ledger(ledger: Mapping[str, Any]) -> list[Event]:
    """All events of all trainings of a model, in release order.

    Args:
        ledger: A whole ledger, see ``xgb_dp.record.ledger``.

    Raises:
        LedgerError: An event is unknown or ill-formed.

    Examples:
        >>> import json
        >>> from xgb_dp.accounting.events import events_from_ledger
        >>> ledger = json.loads(model.attr("dp_ledger"))
        >>> events_from_ledger(ledger)[0].release
        'intercept'
    """
    return [
        event_from_json(event) for training in ledger["trainings"] for event in training["events"]
    ]
