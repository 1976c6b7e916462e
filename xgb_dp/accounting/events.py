"""Events of a ledger: every noisy release, with the integers that the sampler was given."""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, TypeVar

from ..errors import LedgerError

__all__ = [
    "Event",
    "ExponentialEvent",
    "GaussianEvent",
    "LaplaceEvent",
    "LaplacePair",
    "PlainEvent",
    "check_int",
    "check_release",
    "event_from_json",
    "events_from_ledger",
    "release_counts",
]

_BITS = 200  # no number of a ledger comes near; much larger ones are no doubles


def check_int(name: str, value: Any, low: int) -> int:
    """Refuse what is not an int from `low` on, of a size that a double can hold."""
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


class Event:
    """Noisy releases of one kind, as the sampler made them.

    Every kind answers for itself; what is asked of all of them is a method here. A new kind is a
    subclass, which ledgers then read and write under its `mechanism`.

    Attributes:
        mechanism: Name of the kind in ledgers.
        count: How often it happened, >= 0.
    """

    mechanism: ClassVar[str] = ""
    count: int
    _kinds: ClassVar[dict[str, type[Event]]] = {}

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if cls.mechanism:
            Event._kinds[cls.mechanism] = cls

    @property
    def label(self) -> str:
        """What is released; "rounds" where several things are."""
        return "rounds"

    @property
    def mu2(self) -> float:
        """Mu^2 of one of it, the currency of the budget (``noise.py``); about, bounds nothing."""
        raise NotImplementedError

    @property
    def noise(self) -> str:
        """The noise of one release in words."""
        raise NotImplementedError

    @property
    def inner(self) -> tuple[Event, ...]:
        """The releases that it is made of: itself, or those of one round."""
        return (self,)

    @property
    def repeats(self) -> int:
        """How often :attr:`inner` happens."""
        return 1

    @property
    def kept(self) -> float:
        """By what mu^2 of :attr:`inner`, with their counts, is multiplied; about."""
        return 1.0

    def pure(self) -> float:
        """Pure epsilon of all of it for one row, in nats; infinite if there is none."""
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
        """Whether it costs no more than another event, with the same noise.

        Args:
            limit: What was planned.
        """
        same_kind = (self.mechanism, self.label) == (limit.mechanism, limit.label)
        return same_kind and self.count <= limit.count and self._covered(limit)

    def _covered(self, limit: Any) -> bool:
        """The same for a single one of each, of this kind."""
        return bool(self.counted(0) == limit.counted(0))

    def counted(self: Kind, count: int) -> Kind:
        """The same event, so many times."""
        return replace(self, count=count)  # type: ignore[type-var]

    def only(self: Kind, kinds: Container[tuple[str, str]]) -> Kind | None:
        """The event without what is of other kinds; None if nothing is left.

        Args:
            kinds: (label, mechanism) of what stays.
        """
        return self if (self.label, self.mechanism) in kinds else None

    def to_json(self) -> dict[str, Any]:
        """The ledger's form of the event."""
        out: dict[str, Any] = {"mechanism": self.mechanism}
        for field in fields(self):  # type: ignore[arg-type]
            value = getattr(self, field.name)
            out[field.name] = [e.to_json() for e in value] if field.name == "events" else value
        return out

    @classmethod
    def from_json(cls: type[Kind], data: Mapping[str, Any]) -> Kind:
        """The inverse of :meth:`to_json`.

        Raises:
            LedgerError: The event is ill-formed.
        """
        names = [field.name for field in fields(cls)]  # type: ignore[arg-type]
        if set(data) != {*names, "mechanism"}:
            raise LedgerError(
                f"A {cls.mechanism} event of the privacy ledger must have exactly the fields "
                f"{', '.join(sorted(names))}."
            )
        values = {name: data[name] for name in names}
        if "events" in values:
            if not isinstance(values["events"], list):
                raise LedgerError("A round of the privacy ledger does not list its events.")
            values["events"] = tuple(event_from_json(e) for e in values["events"])
        return cls(**values)


Kind = TypeVar("Kind", bound=Event)


class PlainEvent(Event):
    """Releases of one mechanism, which may stand in a round.

    Attributes:
        release: What was released.
    """

    release: str

    @property
    def label(self) -> str:
        """What is released."""
        return self.release


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
    """

    mechanism = "gaussian"
    release: str
    sensitivity2: int
    sigma2: int
    coordinates: int
    count: int

    def __post_init__(self) -> None:
        check_release(self.release)
        for name in ("sensitivity2", "sigma2", "coordinates", "count"):
            check_int(name, getattr(self, name), 0)

    @property
    def mu2(self) -> float:
        """See :class:`Event`."""
        if not self.sensitivity2:
            return 0.0
        return self.sensitivity2 / self.sigma2 if self.sigma2 else math.inf

    @property
    def noise(self) -> str:
        """See :class:`Event`."""
        return f"noise multiplier {math.sqrt(1.0 / self.mu2) if self.mu2 else math.inf:.4g}"

    def pure(self) -> float:
        """See :class:`Event`."""
        return math.inf if self.count and self.sensitivity2 else 0.0

    def _covered(self, limit: GaussianEvent) -> bool:
        return (
            self.sigma2 == limit.sigma2
            and self.sensitivity2 <= limit.sensitivity2
            and self.coordinates <= limit.coordinates
        )


@dataclass(frozen=True)
class ExponentialEvent(PlainEvent):
    """`count` selections by the exponential mechanism, each of bounded range eps0.

    Attributes:
        release: What was selected: "splits".
        eps_num: eps0 in units of 2**-eps_bits nats, >= 0. 0 is a choice that ignores the data.
        eps_bits: 0 to 60.
        count: Number of selections that one row takes part in, >= 0; selections in disjoint
            nodes of one level are one.
    """

    mechanism = "exponential"
    release: str
    eps_num: int
    eps_bits: int
    count: int

    def __post_init__(self) -> None:
        check_release(self.release)
        for name in ("eps_num", "eps_bits", "count"):
            check_int(name, getattr(self, name), 0)
        if self.eps_bits > 60:
            raise LedgerError("A ledger event has `eps_bits` above 60.")

    @property
    def eps0(self) -> float:
        """Range of the privacy loss of one selection, in nats."""
        return self.eps_num / 2**self.eps_bits

    @property
    def mu2(self) -> float:
        """See :class:`Event`."""
        return self.eps0**2 / 4.0

    @property
    def noise(self) -> str:
        """See :class:`Event`."""
        return f"eps0 {self.eps0:.4g}"

    def pure(self) -> float:
        """See :class:`Event`."""
        return self.count * self.eps0

    def _covered(self, limit: ExponentialEvent) -> bool:
        return self.eps_bits == limit.eps_bits and self.eps_num <= limit.eps_num


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
    """

    mechanism = "laplace"
    release: str
    sensitivity: int
    scale: int
    count: int

    def __post_init__(self) -> None:
        check_release(self.release)
        for name in ("sensitivity", "scale", "count"):
            check_int(name, getattr(self, name), 0)

    @property
    def epsilon(self) -> float:
        """Pure epsilon of one release, in nats."""
        if not self.sensitivity:
            return 0.0
        return self.sensitivity / self.scale if self.scale else math.inf

    @property
    def mu2(self) -> float:
        """See :class:`Event`."""
        return self.epsilon**2

    @property
    def noise(self) -> str:
        """See :class:`Event`."""
        return f"scale {1.0 / self.epsilon if self.epsilon else math.inf:.4g} sensitivities"

    def pure(self) -> float:
        """See :class:`Event`."""
        return self.count * self.epsilon * (1.0 + 1e-15) if self.count else 0.0

    def _covered(self, limit: LaplaceEvent) -> bool:
        return self.scale == limit.scale and self.sensitivity <= limit.sensitivity

    def simplified(self, coins: int) -> tuple[list[Event], list[Event]]:
        """See :class:`Event`."""
        if self.sensitivity and not self.scale:
            return [GaussianEvent(self.release, 1, 0, 1, self.count)], []  # costs everything
        # A loss in [-epsilon, epsilon] has range 2 epsilon.
        num = -(-(2 * self.sensitivity << 60) // max(self.scale, 1))
        return [LaplacePair(self.release, num, 60, self.count, max(self.scale, 1))], []


@dataclass(frozen=True)
class LaplacePair(ExponentialEvent):
    """Laplace noise as accountants compose it, at the front of every order; in no ledger.

    It costs less than any selection of twice its epsilon, and may be charged as one.

    Attributes:
        scale: Scale of the noise in grid units, >= 1.
    """

    mechanism = ""
    scale: int

    def size(self, group: int) -> float:
        """Epsilon of continuous Laplace noise that costs at least as much, for so many rows.

        Proof: docs/proofs/accounting.md, "Laplace".
        """
        return (group * self.eps0 / 2.0 + 0.25 / self.scale**2) * (1.0 + 1e-15)

    def pure(self) -> float:
        """See :class:`Event`."""
        return self.count * self.eps0 / 2.0 * (1.0 + 1e-15)


def event_from_json(data: Mapping[str, Any]) -> Event:
    """Read one event; the inverse of ``to_json``.

    Args:
        data: One entry of a ledger's ``events``.

    Raises:
        LedgerError: The event is unknown or ill-formed. It is never skipped: an event that
            is not understood would be spent for nothing.
    """
    name = data.get("mechanism") if isinstance(data, Mapping) else None
    if type(name) is not str or name not in Event._kinds:
        raise LedgerError("The privacy ledger holds an event of an unknown mechanism.")
    return Event._kinds[name].from_json(data)


def release_counts(events: Iterable[Event]) -> dict[str, int]:
    """How often each release was made, by name; those of rounds included."""
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
    """
    return [
        event_from_json(event) for training in ledger["trainings"] for event in training["events"]
    ]
