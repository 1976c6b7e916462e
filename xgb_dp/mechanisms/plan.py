"""Plans: the releases of a training, their noise and their ledger events.

Only ``Mechanisms.events`` converts a plan to events. Calibration evaluates it repeatedly, the claim
and the ledger of a training contain its result, and ``verify`` recomputes it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from typing import Any, TypeVar

from ..accounting.events import (
    ChoiceEvent,
    Event,
    PlainEvent,
    RoundsEvent,
    counted,
    event_from_json,
    plain_events,
    with_unit,
)
from ..accounting.sensitivity import LabelSumSizes, RowBound
from ..accounting.units import PERSON, ROW
from ..errors import LedgerError
from .candidates import Candidates
from .column_sums import ColumnSums
from .correction import Correction
from .histograms import Histograms
from .label_range import LabelRange
from .label_sums import LabelSums
from .leaves import LEAF_NOISES, Leaves
from .mechanism import Mechanism, Noise
from .splits import SCORES, Splits

MECHANISMS: tuple[type[Mechanism], ...] = (
    LabelRange,
    LabelSums,
    ColumnSums,
    Candidates,
    Correction,
    Splits,
    Histograms,
    Leaves,
)
"""All mechanisms in the order of the ledger: mechanisms before the rounds come first."""
SHARE_NAMES = tuple(dict.fromkeys(kind.share for kind in MECHANISMS))
"""Names in ``dp_budget_shares``."""
AnyMechanism = TypeVar("AnyMechanism", bound=Mechanism)
SAMPLE_BITS = 32  # precision of the probability with which a round reads a row
_NUMBERS = ("rounds", "grid_bits", "sampling_num", "ensemble")  # fields of a plan


@dataclass(frozen=True)
class Mechanisms:
    """The mechanisms of a plan without noise, and the rounds that draw them.

    Attributes:
        each: The mechanisms, in the order of the ledger.
        bound: Bound of one row, or of all rows of a person.
        rounds: Boosting rounds T >= 0.
        grid_bits: The gradient bound C is 2**grid_bits grid units.
        sampling_num: A round reads each row with probability sampling_num / 2**32.
        ensemble: Number of rounds in an ensemble, which read disjoint parts of the rows; 1 without
            ensembles.

    Examples:
        >>> from xgb_dp.accounting.sensitivity import RowBound
        >>> from xgb_dp.mechanisms.plan import Mechanisms, Noise
        >>> from xgb_dp.mechanisms.splits import Splits
        >>> bound = RowBound("row_weight", 0.5, 1.0)
        >>> one = Mechanisms((Splits(bound, 3),), bound, rounds=10)
        >>> [(event.label, event.count) for event in one.events({"splits": Noise(eps_num=1)})]
        [('splits', 30)]
    """

    each: tuple[Mechanism, ...]
    bound: RowBound
    rounds: int
    grid_bits: int = 18
    sampling_num: int = 1 << SAMPLE_BITS
    ensemble: int = 1

    @classmethod
    def from_plan(cls, plan: Mapping[str, Any]) -> Mechanisms:
        """The mechanisms of a plan (``plugin_cpp/plan/plan.h``)."""
        bound = RowBound.from_plan(plan)
        each = [kind.from_plan(plan, bound) for kind in MECHANISMS]
        used = tuple(mechanism for mechanism in each if mechanism is not None)
        return cls(used, bound, **{name: plan[name] for name in _NUMBERS})

    def find(self, kind: type[AnyMechanism]) -> AnyMechanism | None:
        """The mechanism of this class, or None."""
        return next((m for m in self.each if isinstance(m, kind)), None)

    @property
    def unit(self) -> str:
        """Privacy unit, "row" or "person"."""
        return PERSON if self.bound.of_person else ROW

    @property
    def labels(self) -> set[str]:
        """Names of the events of all mechanisms."""
        return {mechanism.label for mechanism in self.each}

    @property
    def deciding(self) -> int:
        """Number of events before a plan is chosen."""
        return sum(mechanism.decides for mechanism in self.each)

    @property
    def charged_rounds(self) -> int:
        """Number of rounds that a row takes part in: one round of each ensemble."""
        return -(-self.rounds // self.ensemble)

    @property
    def gaussian(self) -> bool:
        """Whether any noise is Gaussian, which has no finite pure epsilon."""
        return any(mechanism.gaussian for mechanism in self.each)

    def events(self, noise: Mapping[str, Noise]) -> tuple[Event, ...]:
        """All releases that the plan permits, in the order of the ledger.

        Args:
            noise: Noise parameters by name of the mechanism.
        """
        once: list[Event] = []
        of_round: list[PlainEvent] = []
        for mechanism in self.each:
            event = mechanism.event(noise[mechanism.name], self.grid_bits, mechanism.draws)
            (of_round if mechanism.of_rounds else once).append(event)
        events = (*once, *self._rounds_of(of_round))
        return tuple(with_unit(event, self.unit) for event in events)

    def _rounds_of(self, of_round: Sequence[PlainEvent]) -> Sequence[Event]:
        """The events of all rounds; each round releases `of_round` from the rows it reads."""
        if self.sampling_num < 1 << SAMPLE_BITS:
            rate = {"rate_num": self.sampling_num, "rate_bits": SAMPLE_BITS}
            rounds = {"mechanism": "poisson", **rate, "count": self.rounds}
        elif self.ensemble > 1:
            rounds = {"mechanism": "parallel", "parts": self.ensemble, "count": self.charged_rounds}
        else:
            return [counted(event, event.count * self.rounds) for event in of_round]
        return [event_from_json({**rounds, "events": [event.to_json() for event in of_round]})]

    def event_of_draw(self, draw: Mapping[str, Any]) -> Event:
        """The event of a draw that the library has recorded without a sensitivity."""
        if "events" in draw:
            inner = [self.event_of_draw(one).to_json() for one in draw["events"]]
            return event_from_json({**draw, "events": inner})
        recorded = dict(draw)
        if recorded.get("unit", ROW) != self.unit:
            raise LedgerError(
                "The library has drawn noise for a different privacy unit than its plan specifies."
            )
        mechanism = self._labelled(recorded["release"])
        if isinstance(mechanism, Splits) and recorded.pop("range", None) != mechanism.range:
            raise LedgerError("Splits were chosen with another range than the plan specifies.")
        event = self._event(mechanism, recorded)
        written = event.to_json()
        if any(written.get(name) != value for name, value in recorded.items()):
            raise LedgerError(f"The recorded noise of {event.label!r} differs from the plan.")
        return event

    def check(self, event: Event) -> None:
        """Refuse an event with a sensitivity that differs from its mechanism's."""
        for one in event.events if isinstance(event, RoundsEvent) else (event,):
            try:
                same = isinstance(one, PlainEvent) and self.with_sensitivity(one) == one
            except (ValueError, TypeError, ArithmeticError):
                same = False  # fields that no plan has
            if not same:
                raise LedgerError(
                    f"The sensitivity of {one.label!r} in the privacy ledger differs from the "
                    "sensitivity of its mechanism."
                )

    def check_all(self, events: Sequence[Event]) -> None:
        """Refuse events that differ from the releases of these mechanisms in more than noise."""
        drawn = {self._labelled(event.label).name: event for event in plain_events(tuple(events))}
        noise = {m.name: _noise_of(m, vars(drawn[m.name])) for m in self.each if m.name in drawn}
        if set(noise) != {m.name for m in self.each}:
            raise LedgerError("The privacy ledger omits a release of its plan.")
        for event in events:
            self.check(event)
        if sorted(map(_sortable, self.events(noise))) != sorted(map(_sortable, events)):
            raise LedgerError(
                "The number of releases in the privacy ledger, or the rows that its rounds read, "
                "differ from the plan."
            )

    def with_sensitivity(self, event: PlainEvent) -> PlainEvent:
        """Complete an event, read without its sensitivity, with the one of its mechanism."""
        return self._event(self._labelled(event.label), vars(event))

    def check_ranges(self) -> None:
        """Refuse a utility range below the range that follows from the bound."""
        splits = self.find(Splits)
        if splits is not None:
            splits.check_range(self.grid_bits)

    def _labelled(self, label: str) -> Mechanism:
        for mechanism in self.each:
            if mechanism.label == label:
                return mechanism
        raise LedgerError(f"A release is missing from the plan: {label!r}.")

    def _event(self, mechanism: Mechanism, drawn: Mapping[str, Any]) -> PlainEvent:
        """The event of recorded draws, from their noise and number."""
        event = mechanism.event(_noise_of(mechanism, drawn), self.grid_bits, drawn["count"])
        return with_unit(event, self.unit)

    def to_json(self) -> dict[str, Any]:
        """The mechanisms in the ledger's JSON form."""
        return {
            "bound": asdict(self.bound),
            "mechanisms": {mechanism.name: mechanism.to_json() for mechanism in self.each},
            **{name: getattr(self, name) for name in _NUMBERS},
        }

    @classmethod
    def from_json(cls, data: Any) -> Mechanisms:
        """The inverse of :meth:`to_json`."""
        try:
            numbers = {name: data[name] for name in _NUMBERS}
            if set(data) != {"bound", "mechanisms", *numbers}:
                raise ValueError
            bound = _read(RowBound, data["bound"])
            kinds = {kind.name: kind for kind in MECHANISMS}
            if any("bound" in written for written in data["mechanisms"].values()):
                raise ValueError
            each = [
                _read(kinds[name], {**written, "bound": bound})
                for name, written in data["mechanisms"].items()
            ]
            if [m.name for m in each] != [name for name in kinds if name in data["mechanisms"]]:
                raise ValueError
            for name, value in numbers.items():
                _check_int(name, value)
            if not 1 <= numbers["sampling_num"] <= 1 << SAMPLE_BITS or numbers["ensemble"] < 1:
                raise ValueError
            out = cls(tuple(each), bound, **numbers)
            out.check_ranges()
        except LedgerError:
            raise
        except (TypeError, ValueError, LookupError, ArithmeticError, AttributeError) as error:
            raise LedgerError(
                "The privacy ledger does not describe the mechanisms of the training."
            ) from error
        return out


# Fields that a request copies from its plan: unit, noise source and masking.
_SHARED = ("unit", "test_key", "noise_free", "masking")
_TYPES: Mapping[str, tuple[type, ...]] = {
    "str": (str,),
    "int": (int,),
    "float": (int, float),
    "bool": (bool,),
    "RowBound": (RowBound,),
}
_STRINGS = {"score": SCORES, "mechanism": LEAF_NOISES}
_MOST = {"grid_bits": 20, "depth": 10, "shift": 26}
_MOST_OF_ANY = 1 << 40


def _read(kind: type[Any], data: Mapping[str, Any]) -> Any:
    """Create an object from its fields, all of which are required, and check types and ranges."""
    if set(data) != {item.name for item in fields(kind)}:
        raise ValueError
    values = dict(data)
    for item in fields(kind):
        value = values[item.name]
        if item.type == "LabelSumSizes":
            values[item.name] = _read(LabelSumSizes, value)
        elif type(value) not in _TYPES[str(item.type)]:
            raise TypeError(item.name)
        elif type(value) is int:
            _check_int(item.name, value)
        elif item.name in _STRINGS and value not in _STRINGS[item.name]:
            raise ValueError(item.name)
    return kind(**values)


def _check_int(name: str, value: Any) -> None:
    if type(value) is not int or not 0 <= value <= _MOST.get(name, _MOST_OF_ANY):
        raise ValueError(name)


def _noise_of(mechanism: Mechanism, drawn: Mapping[str, Any]) -> Noise:
    """The noise of recorded draws."""
    integers = {name: drawn[name] for name in ("sigma2", "scale", "eps_num") if name in drawn}
    return Noise(**integers, shift=getattr(mechanism, "shift", 0))


def _sortable(event: Event) -> str:
    """An event as a string that does not depend on the order of events within a round."""
    content = event.to_json()
    if "events" in content:
        content["events"] = sorted(json.dumps(one, sort_keys=True) for one in content["events"])
    return json.dumps(content, sort_keys=True)


@dataclass(frozen=True)
class Plan:
    """The immutable plan of one training, as the library reads it.

    Attributes:
        text: The plan as JSON (``plugin_cpp/plan/plan.h``).
    """

    text: str

    @cached_property
    def body(self) -> Mapping[str, Any]:
        """The fields of the plan."""
        body: Mapping[str, Any] = json.loads(self.text)
        return body

    @property
    def digest(self) -> str:
        """SHA-256 that identifies the plan in the claim of a ledger."""
        return hashlib.sha256(self.text.encode()).hexdigest()

    @cached_property
    def mechanisms(self) -> Mechanisms:
        """The mechanisms of the plan."""
        mechanisms = Mechanisms.from_plan(self.body)
        mechanisms.check_ranges()
        return mechanisms

    @property
    def noise(self) -> dict[str, Noise]:
        """Noise parameters by name of the mechanism."""
        return {m.name: planned_noise(m, self.body) for m in self.mechanisms.each}

    @cached_property
    def events(self) -> tuple[Event, ...]:
        """All releases that the plan permits, in the order of the ledger."""
        return () if self.body["noise_free"] else self.mechanisms.events(self.noise)

    def request(self, name: str) -> dict[str, Any]:
        """Request to the C++ library for the sums `name`, released before the first tree."""
        shared = {key: self.body[key] for key in _SHARED if key in self.body}
        return {**self.body["before"][name], **shared, "plan_id": self.body["id"]}


def planned_noise(mechanism: Mechanism, plan: Mapping[str, Any]) -> Noise:
    """The noise of a mechanism in a plan."""
    place = plan
    for key in mechanism.section:
        place = place[key]
    return Noise(**{name: place[name] for name in mechanism.integers})


def charged_events(ways: Sequence[Sequence[Event]], before: int = 1) -> tuple[Event, ...]:
    """Events to charge for a training that follows one of several plans.

    Args:
        ways: The events of each plan.
        before: Number of common events before the plan is chosen.
    """
    return tuple(ways[0]) if len(ways) == 1 else (choice_event(ways, before),)


def choice_event(ways: Sequence[Sequence[Event]], before: int) -> ChoiceEvent:
    """The choice among plans after their common first events."""
    firsts = {tuple(way[:before]) for way in ways}
    if len(firsts) != 1:
        raise LedgerError("Alternative plans must begin with the same release.")
    return ChoiceEvent(firsts.pop(), tuple(tuple(way[before:]) for way in ways))
