"""Ledgers as objects, with one reader and one writer of their JSON form.

A ledger that is not fully understood is refused: an unknown event would cost nothing, and a missing
one would make epsilon too small.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ..accounting import ChoiceEvent, Event, SelectionEvent, Unit, one_unit
from ..accounting.events import release_counts
from ..accounting.nested import charged, ways_of
from ..accounting.units import all_same
from ..errors import LedgerError
from ..mechanisms.plan import Mechanisms
from .fields import TRAINING, PublicStart, check_choice, check_fields, damaged, read_content

VERSION = 1
DISCOVERY = "discovery"
"""The method of an "evaluation" that was a look at the columns, before the training."""
_NOISE = ("os", "fixed", "none")
_OPTIONAL = {"mechanisms", "drawn", "trees", "start", "entry"}  # where they are as by default


@dataclass(frozen=True)
class Released:
    """What was released at once, fixed before the first of its events."""

    name: str  # what it is, in words
    events: tuple[Event, ...]  # in release order
    entry: str | None  # name of its entry in a budget; None where it was not booked


@dataclass(frozen=True)
class TrainingRecord:
    """One training of a model."""

    id: str  # random, 128 bits in hexadecimal digits: tells it from every other training
    plans: tuple[str, ...]  # SHA-256 of each plan that it might have followed
    complete: bool  # whether it came to its end; a training under way claims its whole plan
    events: tuple[Event, ...]  # what it is charged with, in release order
    rounds: int  # boosting rounds that it added; of a training under way those of its plan
    target: tuple[float, float]  # (epsilon, delta) that it was calibrated for
    public: Mapping[str, Any]  # what it took as public
    # the mechanisms of each plan that it might have followed, from which the sensitivities of its
    # events follow; empty for a training without a plan
    mechanisms: tuple[Mechanisms, ...] = ()
    drawn: tuple[Event, ...] | None = None  # what was drawn, where that is less than `events`
    trees: tuple[str, ...] | None = None  # names of its trees; None while they are not known
    # the model that its trees stand on, public or made of what this training has released; None
    # without, or after another training
    start: PublicStart | None = None
    # name of its entry in a budget, which is drawn and says nothing of a row; None where it was not
    # booked
    entry: str | None = None

    @property
    def hyperparameters(self) -> Any:
        """Those that the training took as public, by name."""
        return self.public["hyperparameters"]

    @property
    def unit(self) -> Unit:
        """Whom its target is about."""
        return Unit.of_record(self.public)

    @property
    def evaluations(self) -> Any:
        """What was made of evaluations of the model, in order; their events are the last ones."""
        return self.public.get("evaluations", ())

    @property
    def releases(self) -> tuple[Released, ...]:
        """The training itself and the evaluations after it."""
        sizes = [evaluation["events"] for evaluation in self.evaluations]
        ends = [len(self.events) - sum(sizes[i:]) for i in range(len(sizes) + 1)]
        out = [Released("training", self.events[: ends[0]], self.entry)]
        for number, evaluation in enumerate(self.evaluations):
            events = self.events[ends[number] : ends[number + 1]]
            what = DISCOVERY if evaluation.get("method") == DISCOVERY else "evaluation"
            out.append(Released(f"{what} {number + 1}", events, evaluation.get("entry")))
        return tuple(out)

    def booked(self, entries: Sequence[str | None]) -> TrainingRecord:
        """The same with the names of the entries of its :attr:`releases`."""
        entry, *later = entries
        evaluations = [
            {**old, "entry": name} if name else old
            for old, name in zip(self.evaluations, later, strict=True)
        ]
        public = {**self.public, "evaluations": evaluations} if evaluations else self.public
        return replace(self, entry=entry, public=public)

    @property
    def planned(self) -> tuple[Event, ...]:
        """What the plan that it followed releases; :attr:`events`, or one of the plans there."""
        if self.taken is None:
            return self.events
        out: list[Event] = []
        for event in self.events:
            out += event.ways[self.taken] if isinstance(event, ChoiceEvent) else [event]
        return tuple(out)

    @property
    def taken(self) -> int | None:
        """Position of the plan that was taken after a release; None where there was one only."""
        if not any(isinstance(event, ChoiceEvent) for event in self.events):
            return None
        return int(self.public["plan_choice"]["taken"])

    @property
    def stopped(self) -> bool:
        """Whether it released less than its plan."""
        if not self.complete:
            return True
        return self.drawn is not None and release_counts(self.drawn) != release_counts(self.planned)

    @property
    def released(self) -> tuple[Event, ...]:
        """What was really drawn."""
        return self.events if self.drawn is None else self.drawn

    def to_json(self) -> dict[str, Any]:
        """One entry of a ledger's ``trainings``; what is as by default is left out."""
        out = {}
        for name, (_, write) in TRAINING.items():
            value = getattr(self, name)
            if name not in _OPTIONAL or value != getattr(TrainingRecord, name):
                out[name] = write(value)
        return out

    @classmethod
    def from_json(cls, data: Any) -> TrainingRecord:
        """Read one entry of a ledger's ``trainings``."""
        check_fields(data, "a training", set(TRAINING) - _OPTIONAL, _OPTIONAL)
        record = cls(**{n: read(data[n]) for n, (read, _) in TRAINING.items() if n in data})
        events, public = record.events, record.public
        check_choice(events, public)
        if sum(evaluation["events"] for evaluation in record.evaluations) > len(events):
            raise damaged("a training has more evaluations than events")
        released = (*record.events, *(record.drawn or ()))
        if released and one_unit(released) != record.unit.name:
            raise damaged("a training names another unit of privacy than its events")
        return record

    def check_sensitivities(self) -> None:
        """The sensitivities of its events are those of its mechanisms."""
        for event in self.releases[0].events:
            if isinstance(event, SelectionEvent):
                continue  # the other runs had plans of their own
            if not isinstance(event, ChoiceEvent):
                self._check_each([event], self.taken or 0)
                continue
            if len(event.options) != len(self.mechanisms):
                raise damaged("a training does not list the mechanisms of each of its plans")
            for position, way in enumerate(event.ways):
                self._check_each(way, position)
        evaluated = sum(evaluation["events"] for evaluation in self.evaluations)
        drawn = self.drawn or ()
        self._check_each(drawn[: len(drawn) - evaluated], self.taken or 0)

    def _check_each(self, events: Iterable[Event], position: int) -> None:
        for event in events:
            if position >= len(self.mechanisms):
                raise damaged("a training does not list its mechanisms")
            self.mechanisms[position].check(event)

    def check_private(self) -> None:
        """The events account for the rounds and for everything that the plan gave a share."""
        self.check_sensitivities()
        choice = self.public.get("plan_choice")
        followed = 1 if choice is None else len(choice["plans"])
        if not len(self.plans) == len(self.mechanisms) == followed:
            raise damaged("a training names another number of plans than it might have followed")
        if self.trees is None and self.complete:
            raise damaged("a training does not name its trees")
        if self.complete and self.trees is not None:
            rounds, trees = self.rounds, len(self.trees)
            if (trees % rounds if rounds else trees) or (rounds and not trees):
                raise damaged("trees and rounds of a training do not fit each other")
        taken = self.taken or 0
        if self.rounds and not any(self._pays(way, taken) for way in ways_of(self.planned)):
            raise damaged("a training holds trees that its events do not pay for")
        for event in self.events:
            for position, way in enumerate(event.ways if isinstance(event, ChoiceEvent) else ()):
                if position != taken and not self._pays(way, position):
                    raise damaged("a plan that a training might have followed is not paid for")
        released = self.start is not None and self.start.released
        ways = map(release_counts, ways_of(self.planned))
        if released and not any(c.get("columns") for c in ways):
            raise damaged("a training starts from sums that it has not released")
        if self.drawn is not None:
            limit, drawn = release_counts(self.planned), release_counts(self.drawn)
            if any(count > limit.get(name, 0) for name, count in drawn.items()):
                raise damaged("a training has drawn more than it is charged with")

    def _pays(self, events: Sequence[Event], position: int) -> bool:
        """Whether events pay for all rounds, and for everything that a plan releases."""
        counts = release_counts(events)
        leaves = counts.get("leaves", 0) + counts.get("histograms", 0)
        rounds = self.hyperparameters["rounds"]
        if position == (self.taken or 0):
            rounds = max(rounds, self.rounds)
        else:  # the claim is that of all plans, also of those that were not taken
            rounds = self.public["plan_choice"]["plans"][position].get("rounds", rounds)
        planned = charged(rounds, events)
        known = position < len(self.mechanisms)
        if not known or not planned or leaves < planned or leaves % planned:
            return False
        return all(counts.get(name, 0) for name in self.mechanisms[position].labels)


@dataclass(frozen=True)
class Ledger:
    """All trainings of a model."""

    private: bool  # whether the trees were grown with noise that nobody knows
    noise: str  # "os", "fixed" (a key for tests) or "none"
    trainings: tuple[TrainingRecord, ...]  # in order
    # SHA-256 of the parts of the model file besides its trees, by name; empty while it is trained
    content: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def from_json(cls, data: Any) -> Ledger:
        """Read a ledger without its digest."""
        check_fields(data, "it", {"version", "private", "noise", "trainings"}, {"content"})
        if type(data["version"]) is not int or data["version"] != VERSION:
            raise LedgerError(
                "The privacy ledger has an unknown version; update xgb-dp to read it."
            )
        if data["noise"] not in _NOISE or type(data["private"]) is not bool:
            raise damaged("it does not say where its noise came from")
        if not isinstance(data["trainings"], list) or not data["trainings"]:
            raise damaged("it does not list its trainings")
        ledger = cls(
            private=data["private"],
            noise=data["noise"],
            trainings=tuple(TrainingRecord.from_json(t) for t in data["trainings"]),
            content=read_content(data.get("content", {})),
        )
        if len({t.id for t in ledger.trainings}) < len(ledger.trainings):
            raise damaged("two of its trainings are the same one")
        if not all_same(t.unit for t in ledger.trainings):
            raise damaged("its trainings have different units of privacy")
        if not all(t.complete for t in ledger.trainings[:-1]):
            raise damaged("a training follows one that was broken off")
        if any(t.start is not None for t in ledger.trainings[1:]):
            raise damaged("a training starts from a public model after another training")
        if ledger.private:
            for training in ledger.trainings:
                training.check_private()
        return ledger

    def to_json(self) -> dict[str, Any]:
        """The ledger as JSON holds it, without a digest."""
        return {
            "version": VERSION,
            "private": self.private,
            "noise": self.noise,
            "trainings": [t.to_json() for t in self.trainings],
            **({"content": dict(self.content)} if self.content else {}),
        }

    def starting_from(self, start: PublicStart) -> Ledger:
        """The ledger with a start of its last training, which is its only one."""
        [training] = self.trainings
        return replace(self, trainings=(replace(training, start=start),))

    @property
    def is_complete(self) -> bool:
        """Whether every training has ended, and named its trees, which a checkpoint does not."""
        return all(t.complete for t in self.trainings)

    @property
    def is_private(self) -> bool:
        """Whether its events bound the privacy loss of the model."""
        return self.private and self.noise == "os" and self.is_complete

    @property
    def releases(self) -> tuple[Released, ...]:
        """What was released at once, in order."""
        return tuple(
            replace(
                release,
                name=f"{release.name} {number}" if release.name == "training" else release.name,
            )
            for number, training in enumerate(self.trainings, 1)
            for release in training.releases
        )

    def booked(self, entries: Sequence[str | None]) -> Ledger:
        """The same with the names of the entries of its :attr:`releases`."""
        rest, trainings = list(entries), []
        for training in self.trainings:
            size = len(training.releases)
            trainings.append(training.booked(rest[:size]))
            rest = rest[size:]
        return replace(self, trainings=tuple(trainings))

    @property
    def events(self) -> list[Event]:
        """What all trainings are charged with, in release order."""
        return [event for training in self.trainings for event in training.events]

    @property
    def unit(self) -> Unit:
        """Whom the targets of its trainings are about."""
        units = [t.unit for t in self.trainings]
        return next((unit for unit in units if unit.column), units[0])

    @property
    def rounds(self) -> int:
        """Boosting rounds of its trainings; those of a public start are none of them."""
        return sum(t.rounds for t in self.trainings)

    @property
    def start(self) -> PublicStart | None:
        """The public model that the first training started from; None without."""
        return self.trainings[0].start

    @property
    def tree_names(self) -> list[str]:
        """Names of all trees that are known, in order, those of a public start first."""
        start = () if self.start is None else self.start.trees
        return [*start, *(name for t in self.trainings for name in t.trees or ())]
