"""What a training claims before it draws, and what it has drawn: the events of its ledger.

Clients choose plans and noise. The events that a ledger is charged with are made here, of the very
plans that the library is told and of the draws that it records.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from ..accounting import Event
from ..accounting.enforced import Enforced
from ..accounting.events import counted, is_within, release_counts
from ..accounting.nested import charged
from ..accounting.planned import claimed_events, planned_events
from ..accounting.sensitivity import release_of
from ..accounting.units import PERSON
from ..engine import native
from ..engine.model_json import ModelJson
from ..errors import BudgetError, LedgerError
from .form import Ledger, TrainingRecord
from .ledger import ATTRIBUTE

_SHARED = ("unit", "test_key", "noise_free", "masking")
"""Whose noise and pads are meant: fields of a request, and of the plan."""
_FIGURES = {"range": "label_range", "rows": "labels", "intercept": "labels",
            "columns": "by_column"}  # fmt: skip


def _defect(what: str) -> BudgetError:
    return BudgetError(
        f"{what}. Nothing was released. This is a defect of xgb_dp: please report it."
    )


@dataclass(frozen=True)
class Told:
    """What the library is told of one plan."""

    text: str  # the plan as JSON
    # what it is asked for before the first tree, in order
    requests: tuple[Mapping[str, Any], ...] = ()

    def check_request(self, request: Mapping[str, Any]) -> None:
        """Refuse a request for noise, or for pads, that are not those of the plan.

        Noise that is absent, or that somebody knows, would release labels under a private ledger.
        """
        same = all(request.get(name) == self.plan.get(name) for name in _SHARED)
        if not same or request.get("plan_id") != self.plan.get("id"):
            raise _defect("A request is for other noise than its plan")

    @cached_property
    def plan(self) -> Mapping[str, Any]:
        """The plan itself; that of a wide table is long."""
        plan: Mapping[str, Any] = json.loads(self.text)
        return plan

    @property
    def digest(self) -> str:
        """Its SHA-256, by which a ledger claims it and the library knows the claim."""
        return hashlib.sha256(self.text.encode()).hexdigest()

    @cached_property
    def enforced(self) -> Enforced:
        """What the library enforces."""
        return Enforced.of_plan(self.plan, self.requests)

    @cached_property
    def events(self) -> tuple[Event, ...]:
        """What it releases at most."""
        return planned_events(self.plan, self.enforced, self.requests)


class Draws:
    """The draws of one training."""

    def __init__(self, ways: Sequence[Told]) -> None:
        self._ways = tuple(ways)
        for way in ways:
            for request in way.requests:
                way.check_request(request)
        self.enforced = tuple(way.enforced for way in ways)  # by plan that may be taken
        self.plans = tuple(way.digest for way in ways)
        before = {release_of(r) for r in ways[0].requests} & {"range", "rows", "intercept"}
        # What the training is charged with before it starts, whichever plan it takes.
        self.claimed = claimed_events([way.events for way in ways], len(before))
        self._before: list[Event] = []

    def release(self, dtrain: Any, request: Mapping[str, Any], position: int = 0) -> list[Any]:
        """Draw what is released before the first tree, and record it.

        Privacy: spends what the plan says of it. The request is for sums of the same sensitivity as
        the plan claims, or nothing is drawn.
        """
        enforced = self.enforced[position]
        way = self._ways[position]
        way.check_request(request)
        asked, name = Enforced.of_plan(way.plan, (request,)), _FIGURES[release_of(request)]
        if getattr(asked, name) != getattr(enforced, name):
            raise _defect("A request is for other sums than its plan")
        self._check_noise(request, way, enforced)
        answer = native.release_intercept(dtrain, dict(request))
        if "event" in answer:
            event = enforced.event(answer["event"])
            last = self._before[-1] if self._before else None
            if last is not None and counted(last, event.count) == event:
                event = counted(event, last.count + event.count)
                self._before.pop()
            self._before.append(event)
        return list(answer["sums"])

    def _check_noise(self, request: Mapping[str, Any], way: Told, enforced: Enforced) -> None:
        """Refuse a draw with less noise, or one more often, than was claimed."""
        if request["noise_free"]:
            return
        name = release_of(request)
        draw = {"mechanism": "gaussian", "release": name, "sigma2": request["sigma2"], "count": 1}
        if enforced.unit == PERSON:
            draw["unit"] = PERSON
        event = enforced.event(draw)
        already = sum(before.count for before in self._before if before.label == name)
        limits = [e for e in way.events if e.label == name]
        if not limits or not is_within(counted(event, already + 1), limits[0]):
            raise _defect("A request is for less noise than was claimed, or for one more release")

    def complete(self, claim: Ledger, booster: Any, rounds: int) -> Ledger:
        """The whole ledger of a model."""
        grown = drawn(booster, self._ways[claim.trainings[-1].taken or 0])
        return completed(claim, replace(grown, events=(*self._before, *grown.events)), rounds)


@dataclass(frozen=True)
class Drawn:
    """What the library has recorded of a training."""

    private: bool
    noise: str
    events: tuple[Event, ...]
    trees: tuple[str, ...]  # names of the trees, each recorded when it was grown


def completed(claim: Ledger, grown: Drawn, rounds: int) -> Ledger:
    """The ledger of a training that has drawn what it claimed, or less.

    A training that released less than planned (a callback stopped it, or "no split" won somewhere)
    counts as the whole plan: when it ended is itself an outcome of the mechanisms, and the
    composition is proved for releases fixed in advance. ``drawn`` then holds what was drawn.
    """
    *earlier, plan = claim.trainings
    events = grown.events
    _check_drawn(events, plan, rounds)
    # A choice among plans is charged as a whole, too.
    short = plan.taken is not None or _counts(events) != _counts(plan.events)
    last = replace(
        plan,
        complete=True,
        events=plan.events if short else events,
        drawn=events if short else None,
        rounds=rounds,
        trees=grown.trees,
    )
    noise = claim.noise if grown.noise == "os" else grown.noise
    return Ledger(claim.private and grown.private, noise, (*earlier, last))


def drawn(booster: Any, claimed: Told | None = None) -> Drawn:
    """The draws and trees of the updater of this booster; a copy of a booster has made none.

    Args:
        booster: xgboost.Booster.
        claimed: The plan that the ledger claims; None for the one that the booster has followed.
    """
    for updater in ModelJson.config_of(booster).updaters:
        if updater.get(ATTRIBUTE) and updater["dp_live"]:
            record = json.loads(updater[ATTRIBUTE])
            text = updater["dp_train_param"]["dp_plan"]
            way = Told(text) if claimed is None else claimed
            if way.text != text:
                raise LedgerError(
                    "The library has followed another plan than the ledger claims. The model must "
                    "not be published. Please report this."
                )
            last = record["trainings"][-1]
            events = tuple(map(way.enforced.event, last["events"]))
            return Drawn(record["private"], record["noise"], events, tuple(last["trees"]))
    raise LedgerError(
        "The booster is not the one that has grown the private trees: nothing was trained, or a "
        "callback has loaded or copied a model. Do not publish it, and train again without."
    )


def _key(event: Event) -> tuple[str, str]:
    return event.mechanism, event.label


def _counts(events: Sequence[Event]) -> dict[tuple[str, str], int]:
    return {_key(e): e.count for e in events if e.count}


def _check_drawn(events: Sequence[Event], plan: TrainingRecord, rounds: int) -> None:
    """Everything drawn was planned, with at least as much noise, and every round was drawn."""
    limits = {_key(e): e for e in plan.planned}
    for event in events:
        limit = limits.pop(_key(event), None)  # a second entry of a kind has no limit left
        if limit is None or not is_within(event, limit):
            raise LedgerError(
                f"The trainer released more than was calibrated ({event.label}). The model must "
                "not be published. Please report this."
            )
    limit_counts = release_counts(plan.planned)
    name = "histograms" if "histograms" in limit_counts else "leaves"
    releases = release_counts(events).get(name, 0)
    each = limit_counts.get(name, 0) // max(charged(plan.rounds, plan.planned), 1)
    if plan.events and releases != charged(rounds, plan.planned) * each:
        raise LedgerError(
            f"The booster has grown {rounds} rounds, but the trainer has recorded {releases} "
            f"releases of {name}: "
            "something has changed the booster during training. The model must not be published."
        )
