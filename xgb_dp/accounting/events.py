"""Events of a ledger: what a training released, as plain data, in the integers of the sampler.

An event has fields, checks of their ranges and a form in JSON. What events cost is computed by the
accountants.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, ClassVar, TypeVar

from ..errors import LedgerError
from .repetitions import Repetitions
from .units import ROW, UNITS

_BITS = 200  # no number of a ledger comes near; much larger ones are no doubles
LISTS = {"events": 1, "first": 1, "score": 1, "options": 2, "runs": 2}  # of events, by field


class Event:
    """Noisy releases of one kind, as the sampler made them.

    A new kind is a subclass. Ledgers then read and write it under its `mechanism`.

    Attributes:
        mechanism: Name of the kind in ledgers.
        count: How often it happened, >= 0.

    Examples:
        >>> from xgb_dp.accounting import GaussianEvent
        >>> event = GaussianEvent("leaves", sensitivity2=1, sigma2=400, coordinates=1, count=10)
        >>> event.label, event.mechanism, event.unit
        ('leaves', 'gaussian', 'row')
    """

    mechanism: ClassVar[str]
    count: int
    _several: ClassVar[str] = ""
    _least: ClassVar[Mapping[str, int]] = {}  # of whole numbers, where it is not 0
    # Fields of which an event with more costs at least as much as one with less.
    _costly: ClassVar[tuple[str, ...]] = ()
    _kinds: ClassVar[dict[str, type[Event]]] = {}

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "mechanism" in vars(cls):
            Event._kinds[cls.mechanism] = cls

    def __post_init__(self) -> None:
        for item in fields(self):  # type: ignore[arg-type]
            if item.type == "int":
                _check_int(item.name, getattr(self, item.name), self._least.get(item.name, 0))
        if type(self.label) is not str or not self.label:
            raise LedgerError("A ledger event does not name its release.")
        self._check()
        if self.unit not in UNITS:
            raise LedgerError(
                f"A ledger event has an unknown `unit`; known are {', '.join(UNITS)}."
            )

    def _check(self) -> None:
        """Refuse fields that do not fit each other."""

    @property
    def label(self) -> str:
        """What was released; "rounds" or "plan" where several things are."""
        return getattr(self, "release", self._several)

    @property
    def unit(self) -> str:
        """Whom its cost holds for, "row" or "person".

        Wherever something is said of one row, it then holds for all rows of one person. An event
        that consists of others has their unit.
        """
        return one_unit(plain_events(self))

    def to_json(self) -> dict[str, Any]:
        """The event as the ledger writes it. An event that names no unit is about rows."""
        content = {name: _written(getattr(self, name)) for name in self._names()}
        named = {} if self.unit == ROW else {"unit": self.unit}
        return {"mechanism": self.mechanism, **content, **named}

    @classmethod
    def _names(cls) -> list[str]:
        """Names of the fields in JSON, in their order there."""
        names = [item.name for item in fields(cls) if item.name != "unit"]  # type: ignore[arg-type]
        return sorted(names, key=lambda name: name != "release")


@dataclass(frozen=True)
class PlainEvent(Event):
    """Releases of one mechanism, which may be part of a round."""

    release: str
    unit: str = field(default=ROW, kw_only=True)


@dataclass(frozen=True)
class GaussianEvent(PlainEvent):
    """`count` releases of integer sums with discrete Gaussian noise.

    Attributes:
        release: What was released: "intercept", "candidates", "leaves".
        sensitivity2: Squared L2 norm of what one row adds to the sums of one release, in grid
            units squared, >= 0.
        sigma2: Parameter of the noise, about its variance, in the same unit, >= 1; 0 stands for
            no noise, which costs everything.
        coordinates: Sums of one release that one row can touch, >= 0. Only the discreteness
            slack depends on it.
        count: Number of releases, >= 0.

    Examples:
        >>> from xgb_dp.accounting import GaussianEvent
        >>> event = GaussianEvent("leaves", sensitivity2=1, sigma2=400, coordinates=1, count=10)
        >>> event.to_json()["sigma2"]
        400
    """

    mechanism = "gaussian"
    _costly = ("sensitivity2", "coordinates")
    sensitivity2: int
    sigma2: int
    coordinates: int
    count: int


@dataclass(frozen=True)
class ExponentialEvent(PlainEvent):
    """`count` selections by the exponential mechanism, each of bounded range eps0.

    Attributes:
        release: What was selected: "splits".
        eps_num: eps0 in units of 2**-eps_bits nats, >= 0. With 0 the choice ignores the data.
        eps_bits: 0 to 60.
        count: Number of selections that one row takes part in, >= 0. The selections in the
            disjoint nodes of one level count as one.

    Examples:
        >>> from xgb_dp.accounting import ExponentialEvent
        >>> ExponentialEvent("splits", eps_num=1, eps_bits=4, count=20).eps0
        0.0625
    """

    mechanism = "exponential"
    _costly = ("eps_num",)
    eps_num: int
    eps_bits: int
    count: int

    def _check(self) -> None:
        if self.eps_bits > 60:
            raise LedgerError("A ledger event has `eps_bits` above 60.")

    @property
    def eps0(self) -> float:
        """Range of the privacy loss of one selection, in nats."""
        return self.eps_num / 2**self.eps_bits


@dataclass(frozen=True)
class LaplaceEvent(PlainEvent):
    """`count` releases of integers with discrete Laplace noise.

    Attributes:
        release: What was released.
        sensitivity: L1 norm of what one row changes in the numbers of one release, in grid units,
            >= 0.
        scale: Scale of the noise in the same unit, >= 1; 0 stands for no noise, which costs
            everything.
        count: Number of releases, >= 0.

    Examples:
        >>> from xgb_dp.accounting import LaplaceEvent
        >>> LaplaceEvent("leaves", sensitivity=1, scale=20, count=10).epsilon
        0.05
    """

    mechanism = "laplace"
    _costly = ("sensitivity",)
    sensitivity: int
    scale: int
    count: int

    @property
    def epsilon(self) -> float:
        """Pure epsilon of one release, in nats."""
        if not self.sensitivity:
            return 0.0
        return self.sensitivity / self.scale if self.scale else math.inf


@dataclass(frozen=True)
class ThresholdEvent(PlainEvent):
    """Cells that appear in a release only where their noisy count reaches a threshold.

    The event pays for the fact that a cell appears which one row (or person) alone has made. The
    counts themselves are a Gaussian event of their own.

    Attributes:
        release: What is shown: "categories".
        sensitivity: What one row adds to a cell at most, in grid units, >= 1.
        sigma2: Parameter of the noise of the count, in the same unit squared, >= 1; 0 stands for no
            noise, which costs everything.
        threshold: The least noisy count that is shown, in grid units, >= 0.
        count: How many such cells one row can make, >= 0; one in each column.

    Examples:
        >>> from xgb_dp.accounting import ThresholdEvent
        >>> event = ThresholdEvent("categories", sensitivity=1, sigma2=16, threshold=25, count=1)
        >>> from xgb_dp.accounting.threshold import failure_of
        >>> failure_of(event, rows=1) < 1e-8  # what one row alone has made appears this rarely
        True
    """

    mechanism = "threshold"
    _least = {"sensitivity": 1}  # noqa: RUF012
    sensitivity: int
    sigma2: int
    threshold: int
    count: int


def _check_int(name: str, value: Any, low: int) -> None:
    """Refuse what is not an int of at least `low`, or too large for a double."""
    if type(value) is not int or not low <= value < 1 << _BITS:
        shown = f"{value.bit_length()} bits" if type(value) is int and value > low else repr(value)
        raise LedgerError(
            f"A ledger event has `{name}` = {shown}; an int of at least {low} and below "
            f"2^{_BITS} was expected."
        )


def plain_events(value: Any) -> Iterator[PlainEvent]:
    """All releases inside an event, or inside lists of them, in release order."""
    if isinstance(value, PlainEvent):
        yield value
    elif isinstance(value, (tuple, list)):
        for item in value:
            yield from plain_events(item)
    elif isinstance(value, Event):
        for name in LISTS:
            yield from plain_events(getattr(value, name, ()))


Kind = TypeVar("Kind", bound=Event)


def counted(event: Kind, count: int) -> Kind:
    """The same event, `count` times."""
    return replace(event, count=count)  # type: ignore[type-var]


def with_unit(event: Kind, unit: str) -> Kind:
    """The same event with its cost for another unit. The caller has to prove that cost."""
    if isinstance(event, PlainEvent):
        return replace(event, unit=unit)

    def changed(value: Any) -> Any:
        return tuple(map(changed, value)) if isinstance(value, tuple) else with_unit(value, unit)

    lists = {name: changed(getattr(event, name)) for name in LISTS if hasattr(event, name)}
    return replace(event, **lists)  # type: ignore[type-var]


def is_within(event: Event, limit: Event) -> bool:
    """Whether the event costs no more than another one with the same noise."""
    same = [(e.mechanism, e.label, e.unit) for e in (event, limit)]
    if same[0] != same[1] or event.count > limit.count:
        return False
    return all(_is_covered(event, limit, name) for name in event._names() if name != "count")


def _is_covered(event: Event, limit: Event, name: str) -> bool:
    value, most = getattr(event, name), getattr(limit, name)
    if name in event._costly:
        return bool(value <= most)
    if name == "threshold":  # below a lower one more cells are shown
        return bool(value >= most)
    if name == "events":
        return len(value) == len(most) and all(map(is_within, value, most))
    return bool(value == most)


def one_unit(events: Iterable[Event]) -> str:
    """The unit that all events hold for; "row" if there are no events.

    Raises:
        LedgerError: There are two units. Their costs are about different neighbours and do not
            add up.

    Examples:
        >>> from xgb_dp.accounting import GaussianEvent, one_unit
        >>> event = GaussianEvent("leaves", sensitivity2=1, sigma2=400, coordinates=1, count=10)
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
        rounds: tuple[Event, ...] | None = getattr(event, "events", None)
        for release in (event,) if rounds is None else rounds:
            times = release.count * (1 if rounds is None else event.count)
            out[release.label] = out.get(release.label, 0) + times
    return out


def _written(value: Any) -> Any:
    """The value of a field as JSON has it."""
    if isinstance(value, Event):
        return value.to_json()
    if isinstance(value, Repetitions):
        return asdict(value)
    return [_written(item) for item in value] if isinstance(value, tuple) else value
