"""Events of a ledger: every noisy release, with the integers that the sampler was given."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

from ..errors import LedgerError

if TYPE_CHECKING:
    from .selection import SelectionEvent

__all__ = [
    "Event",
    "ExponentialEvent",
    "GaussianEvent",
    "LaplaceEvent",
    "ParallelEvent",
    "SampledEvent",
    "check_mixture",
    "event_from_json",
    "events_from_ledger",
]

_BITS = 200  # no number of a ledger comes near; much larger ones are no doubles


def _check_int(name: str, value: Any, low: int) -> int:
    if type(value) is not int or not low <= value < 1 << _BITS:
        shown = f"{value.bit_length()} bits" if type(value) is int and value > low else repr(value)
        raise LedgerError(
            f"A ledger event has `{name}` = {shown}; an int of at least {low} and below "
            f"2^{_BITS} was expected."
        )
    return value


def _check_release(value: Any) -> None:
    if type(value) is not str or not value:
        raise LedgerError("A ledger event does not name its release.")


@dataclass(frozen=True)
class GaussianEvent:
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
    """

    release: str
    sensitivity2: int
    sigma2: int
    coordinates: int
    count: int

    def __post_init__(self) -> None:
        _check_release(self.release)
        for name in ("sensitivity2", "sigma2", "coordinates", "count"):
            _check_int(name, getattr(self, name), 0)

    def to_json(self) -> dict[str, Any]:
        """The ledger's form of the event."""
        return {
            "mechanism": "gaussian",
            "release": self.release,
            "sensitivity2": self.sensitivity2,
            "sigma2": self.sigma2,
            "coordinates": self.coordinates,
            "count": self.count,
        }


@dataclass(frozen=True)
class ExponentialEvent:
    """`count` selections by the exponential mechanism, each of bounded range eps0.

    Attributes:
        release: What was selected: "splits".
        eps_num: eps0 in units of 2**-eps_bits nats, >= 0. 0 is a choice that ignores the data.
        eps_bits: 0 to 60.
        count: Number of selections that one row takes part in, >= 0; selections in disjoint
            nodes of one level are one.
    """

    release: str
    eps_num: int
    eps_bits: int
    count: int

    def __post_init__(self) -> None:
        _check_release(self.release)
        for name in ("eps_num", "eps_bits", "count"):
            _check_int(name, getattr(self, name), 0)
        if self.eps_bits > 60:
            raise LedgerError("A ledger event has `eps_bits` above 60.")

    @property
    def eps0(self) -> float:
        """Range of the privacy loss of one selection, in nats."""
        return self.eps_num / 2**self.eps_bits

    def to_json(self) -> dict[str, Any]:
        """The ledger's form of the event."""
        return {
            "mechanism": "exponential",
            "release": self.release,
            "eps_num": self.eps_num,
            "eps_bits": self.eps_bits,
            "count": self.count,
        }


@dataclass(frozen=True)
class LaplaceEvent:
    """`count` releases of integers with discrete Laplace noise.

    Attributes:
        release: What was released.
        sensitivity: L1 norm of what one row changes in the numbers of one release, in grid units,
            >= 0.
        scale: Scale of the noise in the same unit, >= 1; 0 stands for no noise, which costs
            everything.
        count: Number of releases, >= 0.
    """

    release: str
    sensitivity: int
    scale: int
    count: int

    def __post_init__(self) -> None:
        _check_release(self.release)
        for name in ("sensitivity", "scale", "count"):
            _check_int(name, getattr(self, name), 0)

    @property
    def epsilon(self) -> float:
        """Pure epsilon of one release, in nats."""
        if not self.sensitivity:
            return 0.0
        return self.sensitivity / self.scale if self.scale else math.inf

    def as_range(self) -> GaussianEvent | ExponentialEvent:
        """What costs at least as much: a loss in [-epsilon, epsilon] has range 2 epsilon."""
        if self.sensitivity and not self.scale:
            return GaussianEvent(self.release, 1, 0, 1, self.count)  # costs everything
        num = -(-(2 * self.sensitivity << 60) // max(self.scale, 1))
        return ExponentialEvent(self.release, num, 60, self.count)

    def to_json(self) -> dict[str, Any]:
        """The ledger's form of the event."""
        return {
            "mechanism": "laplace",
            "release": self.release,
            "sensitivity": self.sensitivity,
            "scale": self.scale,
            "count": self.count,
        }


@dataclass(frozen=True)
class SampledEvent:
    """`count` rounds, each of which reads its own Poisson sample of the rows.

    Attributes:
        rate_num: A row is in the sample of a round with probability rate_num / 2**rate_bits,
            independently of everything else; 1 to 2**rate_bits.
        rate_bits: 1 to 60.
        events: What one round releases from its sample, in release order.
        count: Number of rounds, >= 0.
    """

    rate_num: int
    rate_bits: int
    events: tuple[PlainEvent, ...]
    count: int

    def __post_init__(self) -> None:
        for name in ("rate_num", "rate_bits", "count"):
            _check_int(name, getattr(self, name), 0)
        if not 1 <= self.rate_bits <= 60 or not 1 <= self.rate_num <= 1 << self.rate_bits:
            raise LedgerError("A ledger event has a sampling rate that is not in (0, 1].")
        _check_plain(self.events)

    @property
    def rate(self) -> float:
        """Probability with which a round reads a row."""
        return self.rate_num / 2**self.rate_bits

    def group_rate(self, group: int) -> float:
        """Probability with which a round reads some row of a group of this many rows."""
        if group == 1 or self.rate == 1.0:
            return self.rate
        return -math.expm1(group * math.log1p(-self.rate))

    def to_json(self) -> dict[str, Any]:
        """The ledger's form of the event."""
        return {
            "mechanism": "poisson",
            "rate_num": self.rate_num,
            "rate_bits": self.rate_bits,
            "events": [e.to_json() for e in self.events],
            "count": self.count,
        }


@dataclass(frozen=True)
class ParallelEvent:
    """`count` ensembles of rounds that read disjoint parts of the rows.

    Which part a row belongs to is drawn for each ensemble without looking at the data, so that one
    row touches one round of an ensemble.

    Attributes:
        parts: Rounds of one ensemble, >= 1.
        events: What one round releases from its part, in release order.
        count: Number of ensembles, >= 0.
    """

    parts: int
    events: tuple[PlainEvent, ...]
    count: int

    def __post_init__(self) -> None:
        _check_int("parts", self.parts, 1)
        _check_int("count", self.count, 0)
        _check_plain(self.events)

    def touched(self, group: int) -> tuple[PlainEvent, ...]:
        """Releases that a group of this many rows takes part in, each with all of them at worst."""
        rounds = min(group, self.parts)
        return tuple(replace(e, count=e.count * self.count * rounds) for e in self.events)

    def to_json(self) -> dict[str, Any]:
        """The ledger's form of the event."""
        return {
            "mechanism": "parallel",
            "parts": self.parts,
            "events": [e.to_json() for e in self.events],
            "count": self.count,
        }


PlainEvent: TypeAlias = GaussianEvent | ExponentialEvent | LaplaceEvent
Event: TypeAlias = "PlainEvent | SampledEvent | ParallelEvent | SelectionEvent"


def _check_plain(events: tuple[Any, ...]) -> None:
    if not all(isinstance(e, GaussianEvent | ExponentialEvent | LaplaceEvent) for e in events):
        raise LedgerError("A round of the privacy ledger holds an unknown event.")


def check_mixture(events: Iterable[Any]) -> None:
    """Refuse what an accountant of Gaussians, selections and sampled rounds does not know.

    Raises:
        TypeError: An event of another kind, which would be spent for nothing.
    """
    if not all(isinstance(e, GaussianEvent | ExponentialEvent | SampledEvent) for e in events):
        raise TypeError(
            "`events` holds something that is not an event of this accountant: use "
            "`make_accountant`, which takes all of them."
        )


_FIELDS: dict[str, tuple[type[Event], frozenset[str]]] = {
    "gaussian": (
        GaussianEvent,
        frozenset({"release", "sensitivity2", "sigma2", "coordinates", "count"}),
    ),
    "exponential": (
        ExponentialEvent,
        frozenset({"release", "eps_num", "eps_bits", "count"}),
    ),
    "laplace": (LaplaceEvent, frozenset({"release", "sensitivity", "scale", "count"})),
    "poisson": (SampledEvent, frozenset({"rate_num", "rate_bits", "events", "count"})),
    "parallel": (ParallelEvent, frozenset({"parts", "events", "count"})),
}


def event_from_json(data: Mapping[str, Any]) -> Event:
    """Read one event; the inverse of ``to_json``.

    Args:
        data: One entry of a ledger's ``events``.

    Raises:
        LedgerError: The event is unknown or ill-formed. It is never skipped: an event that
            is not understood would be spent for nothing.
    """
    if isinstance(data, Mapping) and data.get("mechanism") == "selection":
        from .selection import SelectionEvent  # which holds events of all other kinds

        return SelectionEvent.from_json(data)
    name = data.get("mechanism") if isinstance(data, Mapping) else None
    if type(name) is not str or name not in _FIELDS:
        raise LedgerError("The privacy ledger holds an event of an unknown mechanism.")
    kind, fields = _FIELDS[name]
    if set(data) != fields | {"mechanism"}:
        raise LedgerError(
            f"A {name} event of the privacy ledger must have exactly the fields "
            f"{', '.join(sorted(fields))}."
        )
    values = {name: data[name] for name in fields}
    if "events" in fields:
        if not isinstance(values["events"], list):
            raise LedgerError("A round of the privacy ledger does not list its events.")
        values["events"] = tuple(event_from_json(e) for e in values["events"])
    return kind(**values)


def events_from_ledger(ledger: Mapping[str, Any]) -> list[Event]:
    """All events of all trainings of a model, in release order.

    Args:
        ledger: A whole ledger, see ``xgb_dp.ledger``.

    Raises:
        LedgerError: An event is unknown or ill-formed.
    """
    return [
        event_from_json(event) for training in ledger["trainings"] for event in training["events"]
    ]
