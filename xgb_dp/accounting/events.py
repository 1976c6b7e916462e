"""Events of a ledger: the releases of a training as plain data, in the integers of the sampler.

An event checks the ranges of its fields and has a JSON form. An unknown event is an error and is
never skipped. Accountants compute the privacy loss of events.

Proofs: docs/proofs/choice.md; docs/proofs/selection.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from pkgutil import resolve_name
from typing import Any, ClassVar, TypeVar

import numpy as np
import numpy.typing as npt
import scipy

from ..errors import LedgerError
from .units import PERSON, ROW, UNITS

SHAPE_BITS = 16
RATE_BITS = 32
_FAMILIES = ("negative_binomial", "poisson")
_UP = 1.0 + 1e-12
_RANKS = 1500

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Repetitions:
    """Distribution of the secret number of runs, K >= 1.

    Attributes:
        family: "negative_binomial", truncated to K >= 1: P(K = k) is proportional to
            (1 - gamma)^k (eta + 1) ... (eta + k - 1) / k!, which is logarithmic for eta = 0 and
            geometric for eta = 1; or "poisson", conditional on K >= 1.
        shape_num: eta in units of 2**-16, -1 < eta <= 1; 0 for Poisson.
        rate_num: gamma in (0, 1), or the Poisson rate, in units of 2**-32.

    Examples:
        >>> from xgb_dp.accounting import Repetitions
        >>> runs = Repetitions.of("logarithmic", mean=4.0)
        >>> round(runs.mean, 3)
        4.0
    """

    family: str
    shape_num: int
    rate_num: int

    def __post_init__(self) -> None:
        if self.family not in _FAMILIES:
            raise LedgerError(
                "The number of runs of a selection in the privacy ledger has an unknown `family`; "
                f"expected {' or '.join(_FAMILIES)}."
            )
        integers = type(self.shape_num) is int and type(self.rate_num) is int
        if self.family == "poisson":
            valid = integers and self.shape_num == 0 and 1 <= self.rate_num <= 10**6 << RATE_BITS
        else:
            valid = (
                integers
                and -1 << SHAPE_BITS < self.shape_num <= 1 << SHAPE_BITS
                and 1 <= self.rate_num < 1 << RATE_BITS
            )
        if not valid:
            raise LedgerError(
                "The number of runs of a selection in the privacy ledger has a distribution with "
                "parameters out of range."
            )

    @classmethod
    def of(cls, family: str, mean: float) -> Repetitions:
        """Create the named distribution with approximately this mean.

        Args:
            family: "logarithmic", "geometric", "negative_binomial" (eta = -1/2) or "poisson".
            mean: Expected number of runs, above 1 and at most 1000 ("negative_binomial": 100).

        Raises:
            ValueError: The name is unknown, or the mean is out of range.
        """
        shapes = {"logarithmic": 0.0, "geometric": 1.0, "negative_binomial": -0.5}
        if family != "poisson" and family not in shapes:
            raise ValueError(f"must be one of {', '.join(shapes)}, poisson.")
        most = 100 if family == "negative_binomial" else 1000  # the exact sampler is slow
        if not 1.0 < mean <= most:
            raise ValueError(f"must be a number above 1 and at most {most}.")
        units = 2.0**RATE_BITS
        if family == "poisson":
            rate = scipy.optimize.brentq(lambda r: -r / math.expm1(-r) - mean, 1e-9, mean + 1.0)
            return cls("poisson", 0, max(1, round(rate * units)))
        shape = shapes[family]

        def excess(log_gamma: float) -> float:
            return math.log(_mean(shape, math.exp(log_gamma))) - math.log(mean)

        gamma = math.exp(scipy.optimize.brentq(excess, math.log(2.0 / units), math.log1p(-1e-9)))
        num = min(max(1, round(gamma * units)), (1 << RATE_BITS) - 1)
        return cls("negative_binomial", round(shape * 2**SHAPE_BITS), num)

    @property
    def shape(self) -> float:
        """The shape eta of the negative binomial family."""
        return self.shape_num / 2.0**SHAPE_BITS

    @property
    def rate(self) -> float:
        """The parameter gamma of the negative binomial family, or the Poisson rate."""
        return self.rate_num / 2.0**RATE_BITS

    @property
    def mean(self) -> float:
        """Expected number of runs, rounded upwards."""
        if self.family == "poisson":
            return -self.rate / math.expm1(-self.rate) * _UP
        return _mean(self.shape, self.rate) * (1.0 + 1e-9)

    def weight(self, better: Array) -> Array:
        """f'(1 - better) / f'(1), where `better` = P(a run is better) and f(x) = E x^K."""
        if self.family == "poisson":
            return np.asarray(np.exp(-self.rate * better))
        grown = 1.0 + better * (1.0 - self.rate) / self.rate
        return np.asarray(grown ** -(1.0 + self.shape))

    @property
    def ranks(self) -> Array:
        """Grid of probabilities from 0 to 1, so fine that the weight changes little in a cell."""
        parts = np.linspace(0.0, 1.0, _RANKS)
        if self.family == "poisson":
            return parts
        ranks = np.expm1(parts * -math.log(self.rate)) * self.rate / (1.0 - self.rate)
        return np.asarray(np.clip(np.append(ranks[:-1], 1.0), 0.0, 1.0))


def _mean(shape: float, gamma: float) -> float:
    if shape == 0.0:
        return (1.0 / gamma - 1.0) / -math.log(gamma)
    return shape * (1.0 - gamma) / (gamma * -math.expm1(shape * math.log(gamma)))


_BITS = 200  # far above all numbers of real ledgers, and within the range of doubles
# Fields that contain lists of events, and the nesting depth of these lists.
LISTS = {"events": 1, "first": 1, "score": 1, "options": 2, "runs": 2}


class Event:
    """Noisy releases of one kind, with the parameters of the sampler.

    Each kind is a subclass. Ledgers identify it by its `mechanism`.

    Attributes:
        mechanism: Name of the kind in ledgers.
        count: Number of releases, >= 0.

    Examples:
        >>> from xgb_dp.accounting import GaussianEvent
        >>> event = GaussianEvent("leaves", sensitivity2=1, sigma2=400, coordinates=1, count=10)
        >>> event.label, event.mechanism, event.unit
        ('leaves', 'gaussian', 'row')
    """

    mechanism: ClassVar[str]
    count: int
    _several: ClassVar[str] = ""
    _least: ClassVar[Mapping[str, int]] = {}  # minima of integer fields other than 0
    # Fields in which the privacy loss is non-decreasing.
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
            raise LedgerError("A ledger event has no name of its release.")
        self._check()
        if self.unit not in UNITS:
            raise LedgerError(
                f"A ledger event has an unknown `unit`; expected {' or '.join(UNITS)}."
            )

    def _check(self) -> None:
        """Refuse inconsistent fields."""

    @property
    def label(self) -> str:
        """Name of the release; "rounds" or "plan" for an event that contains others."""
        return getattr(self, "release", self._several)

    @property
    def unit(self) -> str:
        """The privacy unit of the event, "row" or "person".

        For "person", statements about one row apply to all rows of one person together. An event
        that contains others has their unit.
        """
        return one_unit(plain_events(self))

    def to_json(self) -> dict[str, Any]:
        """The event in the ledger's JSON form. The unit is omitted if it is "row"."""
        content = {name: _written(getattr(self, name)) for name in self._names()}
        named = {} if self.unit == ROW else {"unit": self.unit}
        return {"mechanism": self.mechanism, **content, **named}

    @classmethod
    def _names(cls) -> list[str]:
        """Names of the JSON fields, in order."""
        names = [item.name for item in fields(cls) if item.name != "unit"]  # type: ignore[arg-type]
        return sorted(names, key=lambda name: name != "release")


@dataclass(frozen=True)
class PlainEvent(Event):
    """Releases of one mechanism. A round may contain such events."""

    release: str
    unit: str = field(default=ROW, kw_only=True)


@dataclass(frozen=True)
class GaussianEvent(PlainEvent):
    """`count` releases of integer sums with discrete Gaussian noise.

    Attributes:
        release: Name of the release: "intercept", "candidates", "leaves".
        sensitivity2: Squared L2 sensitivity: the squared norm of one row's contribution to the
            sums of one release, in grid units squared, >= 0.
        sigma2: Parameter of the noise, approximately its variance, in the same unit, >= 1; 0 means
            no noise and therefore no privacy.
        coordinates: Number of sums of one release that one row can touch, >= 0. It affects only
            the discreteness slack.
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
        release: Name of the selection: "splits".
        eps_num: eps0 in units of 2**-eps_bits nats, >= 0. With 0 the selection ignores the data.
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
        release: Name of the release.
        sensitivity: L1 sensitivity: the largest L1 norm of the change by one row in one release,
            in grid units, >= 0.
        scale: Scale of the noise in the same unit, >= 1; 0 means no noise and therefore no privacy.
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
    """Cells that are published only if their noisy count reaches a threshold.

    The event accounts for the publication of cells to which only one row (or person) contributes.
    The counts themselves are a separate Gaussian event.

    Attributes:
        release: Name of the release: "categories".
        sensitivity: Largest contribution of one row to a cell, in grid units, >= 1.
        sigma2: Parameter of the noise of the count, in the same unit squared, >= 1; 0 means no
            noise and therefore no privacy.
        threshold: Smallest published noisy count, in grid units, >= 0.
        count: Number of such cells that one row can create, >= 0; one in each column.

    Examples:
        >>> from xgb_dp.accounting import ThresholdEvent
        >>> event = ThresholdEvent("categories", sensitivity=1, sigma2=16, threshold=25, count=1)
        >>> from xgb_dp.accounting.gaussian import failure_of
        >>> failure_of(event, rows=1) < 1e-8  # probability that a single row's cell appears
        True
    """

    mechanism = "threshold"
    _least = {"sensitivity": 1}  # noqa: RUF012
    sensitivity: int
    sigma2: int
    threshold: int
    count: int


def _check_int(name: str, value: Any, low: int) -> None:
    """Refuse a value that is not an int in [low, 2**_BITS)."""
    if type(value) is not int or not low <= value < 1 << _BITS:
        shown = f"{value.bit_length()} bits" if type(value) is int and value > low else repr(value)
        raise LedgerError(
            f"A ledger event has `{name}` = {shown}; expected an integer of at least {low} and "
            f"below 2^{_BITS}."
        )


def plain_events(value: Any) -> Iterator[PlainEvent]:
    """Iterate over the plain events in an event or in nested lists, in release order."""
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
    """A copy of the event with another `count`."""
    return replace(event, count=count)  # type: ignore[type-var]


def with_unit(event: Kind, unit: str) -> Kind:
    """A copy of the event with another unit, for which the caller must have proved the bound."""
    if isinstance(event, PlainEvent):
        return replace(event, unit=unit)

    def changed(value: Any) -> Any:
        return tuple(map(changed, value)) if isinstance(value, tuple) else with_unit(value, unit)

    lists = {name: changed(getattr(event, name)) for name in LISTS if hasattr(event, name)}
    return replace(event, **lists)  # type: ignore[type-var]


def is_within(event: Event, limit: Event) -> bool:
    """Whether the event has the same noise as `limit` and at most its privacy loss."""
    same = [(e.mechanism, e.label, e.unit) for e in (event, limit)]
    if same[0] != same[1] or event.count > limit.count:
        return False
    return all(_is_covered(event, limit, name) for name in event._names() if name != "count")


def _is_covered(event: Event, limit: Event, name: str) -> bool:
    value, most = getattr(event, name), getattr(limit, name)
    if name in event._costly:
        return bool(value <= most)
    if name == "threshold":  # a lower threshold publishes more cells
        return bool(value >= most)
    if name == "events":
        return len(value) == len(most) and all(map(is_within, value, most))
    return bool(value == most)


def one_unit(events: Iterable[Event]) -> str:
    """The common unit of all events; "row" if there are no events.

    Raises:
        LedgerError: The units differ. Guarantees for different neighbours do not compose.

    Examples:
        >>> from xgb_dp.accounting import GaussianEvent, one_unit
        >>> event = GaussianEvent("leaves", sensitivity2=1, sigma2=400, coordinates=1, count=10)
        >>> one_unit([event, event])
        'row'
    """
    units = {event.unit for event in events} or {ROW}
    if len(units) > 1:
        raise LedgerError(
            'Some events have the privacy unit "row" and others "person". Their privacy losses '
            "cannot be added, because a guarantee for a row does not cover a person with several "
            "rows. Account for each unit separately."
        )
    return units.pop()


def release_counts(events: Iterable[Event]) -> dict[str, int]:
    """Number of releases by name, including releases within rounds."""
    out: dict[str, int] = {}
    for event in events:
        rounds: tuple[Event, ...] | None = getattr(event, "events", None)
        for release in (event,) if rounds is None else rounds:
            times = release.count * (1 if rounds is None else event.count)
            out[release.label] = out.get(release.label, 0) + times
    return out


def _written(value: Any) -> Any:
    """The JSON form of a field's value."""
    if isinstance(value, Event):
        return value.to_json()
    if isinstance(value, Repetitions):
        return asdict(value)
    return [_written(item) for item in value] if isinstance(value, tuple) else value


_MOST_OPTIONS = 64
_MOST_SELECTIONS = 1 << 16  # each has a curve of its own


class RoundsEvent(Event):
    """Rounds that each release the same `events`, in release order.

    A module that defines a subclass registers its privacy loss with :func:`pure.pure_of`,
    :func:`simplify.touched` and :func:`simplify.term_of`. Otherwise accountants refuse it.
    """

    def factor_of_mu2(self, mu2: float) -> float:
        """Estimate the ratio of the mu^2 of all rounds to `mu2`, the value of one round."""
        return float(self.count)

    _several = "rounds"
    events: tuple[PlainEvent, ...]

    def _check(self) -> None:
        valid = isinstance(self.events, tuple)
        if not valid or not all(isinstance(e, PlainEvent) for e in self.events):
            raise LedgerError("A round of the privacy ledger contains an unknown event.")


@dataclass(frozen=True)
class ChoiceEvent(Event):
    """A first release, followed by one of several plans that depends on the first release.

    The accounted privacy loss is the worst case over all ways to choose a plan from the first
    release and all earlier ones.
    """

    mechanism = "choice"
    _several = "plan"
    first: tuple[Event, ...]  # Gaussian releases before the choice
    # releases of each plan after the choice, in release order
    options: tuple[tuple[Event, ...], ...]
    count: int = 1  # number of choices, >= 0

    def _check(self) -> None:
        inner = [e for option in self.options for e in option] if _are_lists(self.options) else [0]
        valid = (
            1 <= len(self.options) <= _MOST_OPTIONS
            and self.count <= _MOST_OPTIONS
            and all(isinstance(e, GaussianEvent) for e in self.first)
            and all(isinstance(e, (PlainEvent, RoundsEvent)) for e in inner)
        )
        if not valid:
            raise LedgerError("A choice in the privacy ledger has no valid list of plans.")

    @property
    def ways(self) -> tuple[tuple[Event, ...], ...]:
        """All releases of each plan, including the first."""
        return tuple((*self.first, *option) for option in self.options)


@dataclass(frozen=True)
class SelectionEvent(Event):
    """Private selection: the run with the best noisy score among a secret number of runs.

    Each run draws one of the settings independently of the data, trains on one part of the rows and
    scores on the other part. The assignment of rows to parts is also independent of the data.

    Attributes:
        repetitions: Distribution of the number of runs.
        runs: Releases of the training of a run, in release order, for each distinct privacy loss
            among the settings.
        score: Releases of the score, from the other part of the rows.
        count: Number of selections, >= 0.

    Examples:
        >>> from xgb_dp.accounting import GaussianEvent, Repetitions, SelectionEvent
        >>> event = GaussianEvent("leaves", sensitivity2=1, sigma2=400, coordinates=1, count=10)
        >>> runs = Repetitions.of("geometric", mean=3.0)
        >>> best = SelectionEvent(runs, runs=((event,),), score=(event,), count=1)
        >>> once, chosen = (xgb_dp.accounting.make_accountant("exact", [e]) for e in (event, best))
        >>> chosen.get_epsilon(1e-6) > once.get_epsilon(1e-6)
        True
    """

    mechanism = "selection"
    repetitions: Repetitions
    runs: tuple[tuple[Event, ...], ...]
    score: tuple[Event, ...]
    count: int
    release: str = "selection"

    def _check(self) -> None:
        if self.count > _MOST_SELECTIONS:
            raise LedgerError(
                f"A selection in the privacy ledger has a `count` above {_MOST_SELECTIONS}."
            )
        lists = (*self.runs, self.score)
        inner = [e for run in lists for e in run] if _are_lists(lists) else [0]
        valid = isinstance(self.repetitions, Repetitions) and bool(self.runs)
        if not valid or not all(
            isinstance(e, Event) and not isinstance(e, SelectionEvent) for e in inner
        ):
            raise LedgerError("A selection in the privacy ledger has no valid list of runs.")


def _are_lists(values: tuple[Any, ...]) -> bool:
    return all(isinstance(value, tuple) for value in values)


def charged(rounds: int, events: Iterable[Event]) -> int:
    """Number of rounds that a row takes part in; rounds on disjoint parts count as one."""
    return -(-rounds // max((getattr(e, "parts", 1) for e in events), default=1))


def ways_of(events: Sequence[Event]) -> Iterable[Sequence[Event]]:
    """Possible releases of the published trees: the events, or one run of a selection."""
    for i, event in enumerate(events):
        if isinstance(event, ChoiceEvent):  # runs of a selection do not record the plan they used
            for way in event.ways:
                yield from ways_of([*events[:i], *way, *events[i + 1 :]])
            return
    others = [e for e in events if not isinstance(e, SelectionEvent)]
    yield others
    for event in events:
        for run in event.runs if isinstance(event, SelectionEvent) and event.count else ():
            yield from ways_of([*others, *run])


SAMPLED_EVENTS = {
    "poisson": "xgb_dp.accounting.sampled_rounds:SampledEvent",
    "parallel": "xgb_dp.accounting.sampled_rounds:ParallelEvent",
}
"""Events of rounds that read a part of the rows. Their module is imported on demand."""
_LEVELS = 4  # selection, choice of a plan, rounds, releases of a round


def event_from_json(data: Mapping[str, Any]) -> Event:
    """Read one event; the inverse of ``to_json``.

    Args:
        data: One entry of a ledger's ``events``.

    Raises:
        LedgerError: The event is unknown or ill-formed. It is never skipped, because the total
            would then miss its privacy loss.

    Examples:
        >>> from xgb_dp.accounting import GaussianEvent, event_from_json
        >>> event = GaussianEvent("leaves", sensitivity2=1, sigma2=400, coordinates=1, count=10)
        >>> event_from_json(event.to_json()) == event
        True
    """
    return _read(data, _LEVELS)


def _read(data: Any, levels: int) -> Event:
    """Read an event with at most this many levels of nested events, including itself."""
    name = data.get("mechanism") if isinstance(data, Mapping) else None
    if type(name) is str and name in SAMPLED_EVENTS:
        resolve_name(SAMPLED_EVENTS[name])  # registers it
    if type(name) is not str or name not in Event._kinds or not levels:
        raise LedgerError("The privacy ledger contains an event with an unknown mechanism.")
    kind, unit = Event._kinds[name], data.get("unit", ROW)
    if "unit" in data and unit != PERSON:
        raise LedgerError(
            "A ledger event has an unknown `unit`. The unit must be 'person', or omitted for rows."
        )
    names = kind._names()
    if set(data) - {"unit"} != {*names, "mechanism"}:
        raise LedgerError(
            f"A {name} event of the privacy ledger must have exactly the fields "
            f"{', '.join(sorted((*names, 'mechanism')))}."
        )
    values = {key: _read_field(key, data[key], levels) for key in names}
    if issubclass(kind, PlainEvent):
        values["unit"] = unit
    event = kind(**values)
    if event.unit != unit:
        raise LedgerError("A ledger event and its inner events have different values of `unit`.")
    return event


def _read_field(name: str, value: Any, levels: int) -> Any:
    if name == "repetitions":
        if not isinstance(value, Mapping) or set(value) != {f.name for f in fields(Repetitions)}:
            raise LedgerError(
                "A selection in the privacy ledger has no valid distribution of its number of runs."
            )
        return Repetitions(**value)

    def read_list(items: Any, depth: int) -> Any:
        if not depth:
            return _read(items, levels - 1)
        if not isinstance(items, list):
            raise LedgerError(f"An event of the privacy ledger has no list of `{name}`.")
        return tuple(read_list(item, depth - 1) for item in items)

    return read_list(value, LISTS[name]) if name in LISTS else value
