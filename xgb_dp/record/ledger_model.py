"""Ledgers as Python objects, with a parser and a writer for their JSON form.

The parser checks each field and then the consistency between fields. It refuses a ledger with
unknown content: an unknown event would be ignored, and epsilon would be too small.
"""

from __future__ import annotations

import hashlib
import math
import re
import sys
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from typing import Any

from ..accounting import ChoiceEvent, Event, SelectionEvent, Unit, event_from_json, one_unit
from ..accounting.events import charged, release_counts, ways_of
from ..accounting.units import all_same
from ..errors import LedgerError
from ..mechanisms.plan import Mechanisms

_MOST = 1 << 31  # rounds
_LARGEST = sys.float_info.max
_NEEDED = {"rounds", "group_size", "budget_shares", "num_parallel_tree"}
_START = {"digest", "rounds", "trees"}
_RELEASED = "released"

_FIX = "The privacy cost is unknown. Use an undamaged copy of the model, or train a new one."


def damaged(what: str) -> LedgerError:
    """Create the error for a ledger that cannot be fully parsed."""
    return LedgerError(f"The privacy ledger is damaged or incomplete: {what}. {_FIX}")


def check_fields(data: Any, what: str, needed: Set[str], optional: Set[str] = frozenset()) -> None:
    """Refuse a value that is not an object, lacks a field or has an unknown field."""
    if not isinstance(data, Mapping) or not needed <= set(data) <= needed | optional:
        raise damaged(f"{what} must have the fields {', '.join(sorted(needed))}")


def is_count(value: Any) -> bool:
    """Whether a value is a valid number of rounds or index of a plan."""
    return type(value) is int and 0 <= value < _MOST


def _is_number(value: Any, low: float = -math.inf, below: float = math.inf) -> bool:
    return type(value) in (int, float) and low <= value < below and abs(value) <= _LARGEST


def _hexadecimal(digits: int) -> Callable[[Any], bool]:
    """Create a test for strings of this many hexadecimal digits."""
    pattern = re.compile(f"[0-9a-f]{{{digits}}}")
    return lambda value: type(value) is str and pattern.fullmatch(value) is not None


_is_name = _hexadecimal(32)  # of a tree or a training
_is_entry = _hexadecimal(16)  # name of a budget entry
_is_digest = _hexadecimal(64)  # SHA-256


def read_content(data: Any) -> dict[str, str]:
    """Parse the digests of the parts of a model file other than its trees, by name."""
    if not isinstance(data, Mapping) or not data or not all(map(_is_digest, data.values())):
        raise damaged("it does not list the parts of its model")
    return dict(data)


def _are_digests(value: Any) -> bool:
    """Whether a value is a non-empty list of SHA-256 digests."""
    return isinstance(value, list) and bool(value) and all(map(_is_digest, value))


def _are_names(value: Any) -> bool:
    return isinstance(value, list) and all(map(_is_name, value))


def _are_shares(shares: Any) -> bool:
    return isinstance(shares, Mapping) and all(
        type(name) is str and _is_number(v) for name, v in shares.items()
    )


@dataclass(frozen=True)
class PublicStart:
    """The model that the private trees were added to, at no further privacy cost.

    It is public (made without private rows) or computed from releases of the training itself. The
    ledger lists its trees, so that they are not mistaken for private trees.
    """

    digest: str  # SHA-256 of the tree names, which digest all numbers
    rounds: int
    trees: tuple[str, ...]  # tree names, in order
    released: bool = False  # whether it was computed from released sums, instead of being public

    @classmethod
    def of(cls, trees: Sequence[str], rounds: int, *, released: bool = False) -> PublicStart:
        """Create a start from tree names in order."""
        digest = hashlib.sha256("\n".join(trees).encode()).hexdigest()
        return cls(digest, rounds, tuple(trees), released)

    def renamed(self, names: Mapping[str, str]) -> PublicStart:
        """Return the start with new tree names and the old digest, after its trees were scaled."""
        return replace(self, trees=tuple(names.get(n, n) for n in self.trees))

    def summary(self) -> dict[str, Any]:
        """Summary for reports: digest, number of rounds and number of trees."""
        return {"digest": self.digest, "rounds": self.rounds, "trees": len(self.trees)}

    def to_json(self) -> dict[str, Any]:
        """The JSON form in a ledger."""
        out = {"digest": self.digest, "rounds": self.rounds, "trees": list(self.trees)}
        return out | {_RELEASED: True} if self.released else out

    @classmethod
    def from_json(cls, data: Any) -> PublicStart:
        """Parse the result of :meth:`to_json`."""
        check_fields(data, "a public start", _START, {_RELEASED})
        digest, rounds, trees = data["digest"], data["rounds"], data["trees"]
        valid = (
            _is_digest(digest)
            and type(rounds) is int
            and rounds >= 1
            and _are_names(trees)
            and bool(trees)
            and len(trees) % rounds == 0
            and data.get(_RELEASED, True) is True
        )
        if not valid:
            raise damaged("a training does not list the trees of its public start")
        return cls(digest, rounds, tuple(trees), _RELEASED in data)


def _reader(
    is_valid: Callable[[Any], bool], field: str, kind: Callable[[Any], Any]
) -> Callable[[Any], Any]:
    """Create a parser for a field of a training that accepts only valid values."""

    def read(data: Any) -> Any:
        if not is_valid(data):
            raise damaged(f"a training has no valid {field}")
        return kind(data)

    return read


def _read_events(data: Any) -> tuple[Event, ...]:
    """Parse the released or claimed events of a training."""
    if not isinstance(data, list):
        raise damaged("a training does not list its events")
    try:
        events = tuple(event_from_json(e) for e in data)
    except LedgerError as error:
        raise LedgerError(f"{error} {_FIX}") from None
    if not all(name.isprintable() for name in release_counts(events)):
        raise damaged("an event has no valid release name")
    return events


def _read_mechanisms(data: Any) -> tuple[Mechanisms, ...]:
    """Parse the mechanisms of each possible plan of a training."""
    if not isinstance(data, list):
        raise damaged("a training does not list its mechanisms")
    return tuple(map(Mechanisms.from_json, data))


def _read_target(data: Any) -> tuple[float, float]:
    """Parse the calibration target (epsilon, delta) of a training."""
    check_fields(data, "a target", {"epsilon", "delta"})
    epsilon = math.inf if data["epsilon"] == "inf" else data["epsilon"]
    if not (_is_number(epsilon, 0) or epsilon == math.inf) or not _is_number(data["delta"], 0, 1):
        raise damaged("a training has no valid target")
    return epsilon, data["delta"]


def _write_target(target: tuple[float, float]) -> dict[str, Any]:
    """The inverse of :func:`_read_target`."""
    epsilon, delta = target
    return {"epsilon": "inf" if math.isinf(epsilon) else epsilon, "delta": delta}


def _is_public(data: Any) -> bool:
    """Whether the public inputs that the guarantee and the statement use are valid."""
    settings = data.get("hyperparameters") if isinstance(data, Mapping) else None
    if not isinstance(settings, Mapping) or not set(settings) >= _NEEDED:
        return False
    try:
        Unit.of_record(data)
    except (ValueError, TypeError):
        return False
    masked = data.get("masked_sums")
    steps, evaluations = data.get("preprocessing", []), data.get("evaluations", [])
    public_num_rows = data.get("public_num_rows", 1)
    return (
        is_count(settings["rounds"])
        and is_count(settings["num_parallel_tree"] or None)
        and _are_shares(settings["budget_shares"])
        and _is_number(data.get("max_rows_per_person", 1), 1)
        and type(public_num_rows) is int
        and public_num_rows >= 1
        and isinstance(steps, list)
        and all(isinstance(name, str) for name in steps)
        and (masked is None or _is_masked(masked))
        and isinstance(evaluations, list)
        and all(map(_is_evaluation, evaluations))
    )


def _is_masked(value: Any) -> bool:
    """Whether a value gives the numbers of workers and colluders."""
    return isinstance(value, Mapping) and all(
        type(value.get(name)) is int for name in ("workers", "colluders")
    )


def _is_evaluation(value: Any) -> bool:
    """Whether a value has a number of events, and optionally a budget entry and a digest."""
    return (
        isinstance(value, Mapping)
        and is_count(value.get("events"))
        and ("entry" not in value or _is_entry(value["entry"]))
        and ("evaluated" not in value or _is_digest(value["evaluated"]))
        and _is_number(value.get("delta", 0.0), 0, 1)
    )


def _to_json(values: Sequence[Event] | Sequence[Mechanisms]) -> list[dict[str, Any]]:
    return [value.to_json() for value in values]


TRAINING: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "id": (_reader(_is_name, "id", str), str),
    "plans": (_reader(_are_digests, "digests of plans", tuple), list),
    "complete": (_reader(lambda v: type(v) is bool, "state", bool), bool),
    "events": (_read_events, _to_json),
    "mechanisms": (_read_mechanisms, _to_json),
    "drawn": (_read_events, _to_json),
    "rounds": (_reader(is_count, "number of rounds", int), int),
    "target": (_read_target, _write_target),
    "public": (_reader(_is_public, "public inputs", lambda v: v), dict),
    "trees": (_reader(_are_names, "tree names", tuple), list),
    "start": (PublicStart.from_json, PublicStart.to_json),
    "entry": (_reader(_is_entry, "name of a budget entry", str), str),
}
"""Fields of a training in the order of writing, each with its parser and writer."""


def check_choice(events: Sequence[Event], public: Mapping[str, Any]) -> None:
    """Check that a choice among plans lists all plans and the executed one."""
    chosen = [e for e in events if isinstance(e, ChoiceEvent)]
    runs = [run for e in events if isinstance(e, SelectionEvent) for run in e.runs]
    inner = [e for run in runs for e in run if isinstance(e, ChoiceEvent)]
    choice = public.get("plan_choice")
    if not chosen and not inner and choice is None:
        return
    if len(chosen) > 1 or any(e.count != 1 for e in (*chosen, *inner)):
        raise damaged("a training chooses its plan more than once")
    if not all(sum(release_counts(e.first).values()) for e in (*chosen, *inner)):
        raise damaged("a training chooses its plan without a release")
    if inner and not chosen and choice is None:
        return  # the selected run had a single plan
    if choice is None or not _is_choice(choice) or not (chosen or inner):
        raise damaged("a training does not identify the plan that it followed")
    sizes = {len(e.options) for e in chosen or inner}
    followed = public["hyperparameters"]
    same = all(
        followed.get(name) == value for name, value in choice["plans"][choice["taken"]].items()
    )
    if len(choice["plans"]) not in sizes or not same:
        raise damaged("a training does not list its possible plans correctly")


def _is_choice(value: Any) -> bool:
    """Whether a value describes a choice among plans; see ``planning.choice``."""
    if not isinstance(value, Mapping) or set(value) != {"plans", "taken", "rows"}:
        return False
    plans, taken, rows = value["plans"], value["taken"], value["rows"]
    return (
        isinstance(plans, list)
        and all(isinstance(plan, Mapping) for plan in plans)
        and all(is_count(plan["rounds"] or None) for plan in plans if "rounds" in plan)
        and all(_are_shares(plan.get("budget_shares", {})) for plan in plans)
        and is_count(taken)
        and taken < len(plans)
        and (rows is None or (type(rows) is int and rows >= 0))
    )


VERSION = 1
DISCOVERY = "discovery"
"""Method of an "evaluation" entry that records a column discovery before the training."""
_NOISE = ("os", "fixed", "none")
_OPTIONAL = {"mechanisms", "drawn", "trees", "start", "entry"}  # omitted if default


@dataclass(frozen=True)
class RecordedRelease:
    """Events that were released together and fixed before the first of these events."""

    name: str  # description
    events: tuple[Event, ...]  # in release order
    entry: str | None  # name of its budget entry; None if no budget recorded it


@dataclass(frozen=True)
class TrainingRecord:
    """One training of a model."""

    id: str  # 128 random bits in hexadecimal, unique to this training
    plans: tuple[str, ...]  # SHA-256 of each possible plan
    complete: bool  # whether it has finished; an unfinished training claims its whole plan
    events: tuple[Event, ...]  # charged events, in release order
    rounds: int  # boosting rounds added; planned rounds during training
    target: tuple[float, float]  # calibration target (epsilon, delta)
    public: Mapping[str, Any]  # public inputs
    # Mechanisms of each possible plan, which determine the sensitivities of its events; empty
    # without a plan.
    mechanisms: tuple[Mechanisms, ...] = ()
    drawn: tuple[Event, ...] | None = None  # actual draws, if fewer than `events`
    trees: tuple[str, ...] | None = None  # names of its trees; None if unknown
    # The model that its trees were added to, public or from releases of this training; always None
    # after another training.
    start: PublicStart | None = None
    # Random name of its budget entry, independent of the rows; None if no budget recorded it.
    entry: str | None = None

    @property
    def hyperparameters(self) -> Any:
        """Public hyperparameters by name."""
        return self.public["hyperparameters"]

    @property
    def unit(self) -> Unit:
        """The privacy unit of the target."""
        return Unit.of_record(self.public)

    @property
    def evaluations(self) -> Any:
        """Evaluations of the model in order; their events are the last events of the training."""
        return self.public.get("evaluations", ())

    @property
    def releases(self) -> tuple[RecordedRelease, ...]:
        """The training itself and the evaluations after it."""
        sizes = [evaluation["events"] for evaluation in self.evaluations]
        ends = [len(self.events) - sum(sizes[i:]) for i in range(len(sizes) + 1)]
        out = [RecordedRelease("training", self.events[: ends[0]], self.entry)]
        for number, evaluation in enumerate(self.evaluations):
            events = self.events[ends[number] : ends[number + 1]]
            what = DISCOVERY if evaluation.get("method") == DISCOVERY else "evaluation"
            out.append(RecordedRelease(f"{what} {number + 1}", events, evaluation.get("entry")))
        return tuple(out)

    def with_entries(self, entries: Sequence[str | None]) -> TrainingRecord:
        """Return the record with the budget entry of each of its :attr:`releases`."""
        entry, *later = entries
        evaluations = [
            {**old, "entry": name} if name else old
            for old, name in zip(self.evaluations, later, strict=True)
        ]
        public = {**self.public, "evaluations": evaluations} if evaluations else self.public
        return replace(self, entry=entry, public=public)

    @property
    def planned(self) -> tuple[Event, ...]:
        """Events of the executed plan: :attr:`events` with the choice of a plan resolved."""
        if self.chosen_plan is None:
            return self.events
        out: list[Event] = []
        for event in self.events:
            out += event.ways[self.chosen_plan] if isinstance(event, ChoiceEvent) else [event]
        return tuple(out)

    @property
    def chosen_plan(self) -> int | None:
        """Index of the plan that was chosen after a release; None for a single plan."""
        if not any(isinstance(event, ChoiceEvent) for event in self.events):
            return None
        return int(self.public["plan_choice"]["taken"])

    @property
    def stopped(self) -> bool:
        """Whether the training released less than its plan."""
        if not self.complete:
            return True
        return self.drawn is not None and release_counts(self.drawn) != release_counts(self.planned)

    @property
    def released(self) -> tuple[Event, ...]:
        """Events of the actual draws."""
        return self.events if self.drawn is None else self.drawn

    def to_json(self) -> dict[str, Any]:
        """An entry of ``trainings`` in a ledger, without fields at their defaults."""
        out = {}
        for name, (_, write) in TRAINING.items():
            value = getattr(self, name)
            if name not in _OPTIONAL or value != getattr(TrainingRecord, name):
                out[name] = write(value)
        return out

    @classmethod
    def from_json(cls, data: Any) -> TrainingRecord:
        """Parse an entry of ``trainings`` in a ledger."""
        check_fields(data, "a training", set(TRAINING) - _OPTIONAL, _OPTIONAL)
        record = cls(**{n: read(data[n]) for n, (read, _) in TRAINING.items() if n in data})
        events, public = record.events, record.public
        check_choice(events, public)
        if sum(evaluation["events"] for evaluation in record.evaluations) > len(events):
            raise damaged("a training has more evaluations than events")
        released = (*record.events, *(record.drawn or ()))
        if released and one_unit(released) != record.unit.name:
            raise damaged("the privacy unit of a training differs from the unit of its events")
        return record

    def check_sensitivities(self) -> None:
        """Check that the mechanisms explain all events and their sensitivities."""
        events = self.releases[0].events
        runs = [run for event in events if isinstance(event, SelectionEvent) for run in event.runs]
        if not runs:
            self._check_run(events)
        elif not any(map(self._is_run, runs)):  # other runs can have other plans
            raise damaged("no run of a selection has the mechanisms of the model")
        evaluated = sum(evaluation["events"] for evaluation in self.evaluations)
        drawn = self.drawn or ()
        for event in drawn[: len(drawn) - evaluated]:
            self._mechanisms_at(self.chosen_plan or 0).check(event)

    def _check_run(self, events: Sequence[Event]) -> None:
        """Refuse a run if its events do not match its plan or plans."""
        choice = events[0] if len(events) == 1 else None
        if not isinstance(choice, ChoiceEvent):
            self._mechanisms_at(0).check_all(events)
            return
        if len(choice.options) != len(self.mechanisms):
            raise damaged("a training does not list the mechanisms of each of its plans")
        for position, way in enumerate(choice.ways):
            self._mechanisms_at(position).check_all(way)

    def _is_run(self, events: Sequence[Event]) -> bool:
        try:
            self._check_run(events)
        except LedgerError:
            return False
        return True

    def _mechanisms_at(self, position: int) -> Mechanisms:
        if position >= len(self.mechanisms):
            raise damaged("a training does not list its mechanisms")
        return self.mechanisms[position]

    def check_private(self) -> None:
        """Check that the events account for all rounds and all planned releases."""
        self.check_sensitivities()
        choice = self.public.get("plan_choice")
        followed = 1 if choice is None else len(choice["plans"])
        if not len(self.plans) == len(self.mechanisms) == followed:
            raise damaged("the number of plans of a training is inconsistent")
        if self.trees is None and self.complete:
            raise damaged("a training does not list its trees")
        if self.complete and self.trees is not None:
            rounds, trees = self.rounds, len(self.trees)
            if (trees % rounds if rounds else trees) or (rounds and not trees):
                raise damaged("the numbers of trees and rounds of a training are inconsistent")
        taken = self.chosen_plan or 0
        if self.rounds and not any(self._pays(way, taken) for way in ways_of(self.planned)):
            raise damaged("a training has trees that its events do not account for")
        for event in self.events:
            for position, way in enumerate(event.ways if isinstance(event, ChoiceEvent) else ()):
                if position != taken and not self._pays(way, position):
                    raise damaged("the events of a training do not cover one of its possible plans")
        released = self.start is not None and self.start.released
        ways = map(release_counts, ways_of(self.planned))
        if released and not any(c.get("columns") for c in ways):
            raise damaged("a training starts from sums that it did not release")
        if self.drawn is not None:
            limit, drawn = release_counts(self.planned), release_counts(self.drawn)
            if any(count > limit.get(name, 0) for name, count in drawn.items()):
                raise damaged("a training released more than it is charged for")

    def _pays(self, events: Sequence[Event], position: int) -> bool:
        """Whether events account for all rounds and all releases of a plan."""
        counts = release_counts(events)
        leaves = counts.get("leaves", 0) + counts.get("histograms", 0)
        rounds = self.hyperparameters["rounds"]
        if position == (self.chosen_plan or 0):
            rounds = max(rounds, self.rounds)
        else:  # the claim covers every plan, executed or not
            rounds = self.public["plan_choice"]["plans"][position].get("rounds", rounds)
        planned = charged(rounds, events)
        known = position < len(self.mechanisms)
        if not known or not planned or leaves < planned or leaves % planned:
            return False
        return all(counts.get(name, 0) for name in self.mechanisms[position].labels)


@dataclass(frozen=True)
class Ledger:
    """All trainings of a model."""

    private: bool  # whether the noise of all trees is secret
    noise: str  # "os", "fixed" (a key for tests) or "none"
    trainings: tuple[TrainingRecord, ...]  # in order
    # SHA-256 of the parts of the model file other than its trees, by name; empty during training
    content: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def from_json(cls, data: Any) -> Ledger:
        """Parse a ledger without its digest."""
        check_fields(data, "it", {"version", "private", "noise", "trainings"}, {"content"})
        if type(data["version"]) is not int or data["version"] != VERSION:
            raise LedgerError(
                "The version of the privacy ledger is not supported. Update xgb-dp to read it."
            )
        if data["noise"] not in _NOISE or type(data["private"]) is not bool:
            raise damaged("it does not state the source of its noise")
        if not isinstance(data["trainings"], list) or not data["trainings"]:
            raise damaged("it does not list its trainings")
        ledger = cls(
            private=data["private"],
            noise=data["noise"],
            trainings=tuple(TrainingRecord.from_json(t) for t in data["trainings"]),
            content=read_content(data["content"]) if "content" in data else {},
        )
        if len({t.id for t in ledger.trainings}) < len(ledger.trainings):
            raise damaged("two of its trainings have the same id")
        if not all_same(t.unit for t in ledger.trainings):
            raise damaged("its trainings have different privacy units")
        if not all(t.complete for t in ledger.trainings[:-1]):
            raise damaged("a training follows an unfinished training")
        if any(t.start is not None for t in ledger.trainings[1:]):
            raise damaged("a training starts from a public model after another training")
        if ledger.private:
            for training in ledger.trainings:
                training.check_private()
        return ledger

    def to_json(self) -> dict[str, Any]:
        """The JSON form of the ledger, without a digest."""
        return {
            "version": VERSION,
            "private": self.private,
            "noise": self.noise,
            "trainings": [t.to_json() for t in self.trainings],
            **({"content": dict(self.content)} if self.content else {}),
        }

    @property
    def is_complete(self) -> bool:
        """Whether every training has finished and lists its trees; False for a checkpoint."""
        return all(t.complete for t in self.trainings)

    @property
    def is_private(self) -> bool:
        """Whether the events bound the privacy loss of the model."""
        return self.private and self.noise == "os" and self.is_complete

    @property
    def releases(self) -> tuple[RecordedRelease, ...]:
        """All releases, in order."""
        return tuple(
            replace(
                release,
                name=f"{release.name} {number}" if release.name == "training" else release.name,
            )
            for number, training in enumerate(self.trainings, 1)
            for release in training.releases
        )

    def with_entries(self, entries: Sequence[str | None]) -> Ledger:
        """Return the ledger with the budget entry of each of its :attr:`releases`."""
        rest, trainings = list(entries), []
        for training in self.trainings:
            size = len(training.releases)
            trainings.append(training.with_entries(rest[:size]))
            rest = rest[size:]
        return replace(self, trainings=tuple(trainings))

    @property
    def events(self) -> list[Event]:
        """Charged events of all trainings, in release order."""
        return [event for training in self.trainings for event in training.events]

    @property
    def unit(self) -> Unit:
        """The privacy unit of all trainings."""
        units = [t.unit for t in self.trainings]
        return next((unit for unit in units if unit.column), units[0])

    @property
    def rounds(self) -> int:
        """Boosting rounds of all trainings, without the rounds of a public start."""
        return sum(t.rounds for t in self.trainings)

    @property
    def start(self) -> PublicStart | None:
        """The start of the first training, if any."""
        return self.trainings[0].start

    @property
    def tree_names(self) -> list[str]:
        """Names of all known trees in order; trees of the start come first."""
        start = () if self.start is None else self.start.trees
        return [*start, *(name for t in self.trainings for name in t.trees or ())]
