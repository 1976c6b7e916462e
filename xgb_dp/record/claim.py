"""The events of a training's ledger: its claim before any draw, and its actual draws.

Clients choose plans and noise. This module derives the charged events from the plans that the
library receives and from the draws that it records.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..accounting import Event
from ..accounting.events import charged, counted, is_within, release_counts
from ..engine import native
from ..engine.model_json import ModelJson
from ..errors import BudgetError, LedgerError
from ..mechanisms.plan import Plan, charged_events
from .ledger import ATTRIBUTE
from .ledger_model import Ledger, TrainingRecord

_STATE = frozenset({"target_lower", "target_upper"})
"""Fields of a request that earlier releases can set: the range to which labels are clipped."""


class ReleaseRecorder:
    """Draws and records the releases of one training."""

    def __init__(self, plans: Sequence[Plan]) -> None:
        self._plans = tuple(plans)
        self.mechanisms = tuple(plan.mechanisms for plan in plans)  # one for each possible plan
        self.plans = tuple(plan.digest for plan in plans)
        # Charged before the training starts; covers every possible plan.
        self.claimed = charged_events([plan.events for plan in plans], plans[0].mechanisms.deciding)
        self._before: list[Event] = []
        self._times: Counter[str] = Counter()

    def release(
        self,
        dtrain: Any,
        name: str,
        state: Mapping[str, Any] | None = None,
        position: int = 0,
    ) -> list[Any]:
        """Release noisy sums before the first tree, and record the draw.

        Privacy: spends the plan's share for this mechanism. The plan fixes noise and sensitivity;
        `state` changes only the range to which labels are clipped.

        Args:
            dtrain: ``xgboost.DMatrix`` of the training.
            name: Name of the mechanism.
            state: Values from earlier releases.
            position: Index of the plan.
        """
        plan, state = self._plans[position], state or {}
        mechanism = next((m for m in plan.mechanisms.each if m.name == name), None)
        if (
            mechanism is None
            or name not in plan.body["before"]
            or self._times[name] >= mechanism.draws
            or not set(state) <= _STATE
        ):
            raise BudgetError(
                "A request asks for more releases than were claimed, or for other sums. Nothing "
                "was released. This is a bug in xgb_dp; please report it."
            )
        request = {**plan.request(name), **state, "again": bool(self._times)}
        self._times[name] += 1
        answer = native.release_before_trees(dtrain, request)
        if "event" in answer:
            event = plan.mechanisms.event_of_draw(answer["event"])
            last = self._before[-1] if self._before else None
            if last is not None and counted(last, event.count) == event:
                event = counted(event, last.count + event.count)
                self._before.pop()
            self._before.append(event)
        return list(answer["sums"])

    def complete(self, claim: Ledger, booster: Any, rounds: int) -> Ledger:
        """Build the complete ledger of a trained model."""
        grown = read_draws(booster, self._plans[claim.trainings[-1].chosen_plan or 0])
        return completed(claim, replace(grown, events=(*self._before, *grown.events)), rounds)


@dataclass(frozen=True)
class Drawn:
    """The C++ library's record of a training."""

    private: bool
    noise: str
    events: tuple[Event, ...]
    trees: tuple[str, ...]  # tree names, recorded during training


def completed(claim: Ledger, grown: Drawn, rounds: int) -> Ledger:
    """Build the ledger of a training that has drawn its claim or less.

    A training that released less than planned (a callback stopped it, or "no split" was selected)
    is charged for the whole plan: its stopping time is itself an outcome of the mechanisms, and
    composition is proved for releases fixed in advance. ``drawn`` then contains the actual draws.
    """
    *earlier, plan = claim.trainings
    events = grown.events
    _check_drawn(events, plan, rounds)
    # A choice among plans is also charged as a whole.
    short = plan.chosen_plan is not None or _counts(events) != _counts(plan.events)
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


def read_draws(booster: Any, claimed: Plan | None = None) -> Drawn:
    """Read the draws and trees that a booster's updater has recorded.

    Args:
        booster: The trained xgboost.Booster itself; a copy has no draws and raises LedgerError.
        claimed: The plan in the ledger's claim; None to use the booster's own plan.
    """
    for updater in ModelJson.from_config(booster).updaters:
        if updater.get(ATTRIBUTE) and updater["dp_live"]:
            record = json.loads(updater[ATTRIBUTE])
            text = updater["dp_train_param"]["dp_plan"]
            plan = Plan(text) if claimed is None else claimed
            if plan.text != text:
                raise LedgerError(
                    "The library followed a different plan than the ledger claims. Do not publish "
                    "the model, and please report this."
                )
            last = record["trainings"][-1]
            events = tuple(map(plan.mechanisms.event_of_draw, last["events"]))
            return Drawn(record["private"], record["noise"], events, tuple(last["trees"]))
    raise LedgerError(
        "This booster did not grow the private trees: nothing was trained, or a callback loaded or "
        "copied a model. Do not publish the model; train again without that callback."
    )


def _key(event: Event) -> tuple[str, str]:
    return event.mechanism, event.label


def _counts(events: Sequence[Event]) -> dict[tuple[str, str], int]:
    return {_key(e): e.count for e in events if e.count}


def _check_drawn(events: Sequence[Event], plan: TrainingRecord, rounds: int) -> None:
    """Check that every draw was planned, with at least the planned noise, in every round."""
    limits = {_key(e): e for e in plan.planned}
    for event in events:
        limit = limits.pop(_key(event), None)  # None also for a second event of the same kind
        if limit is None or not is_within(event, limit):
            raise LedgerError(
                f"The trainer released more than was calibrated ({event.label}). Do not publish "
                "the model, and please report this."
            )
    limit_counts = release_counts(plan.planned)
    name = "histograms" if "histograms" in limit_counts else "leaves"
    releases = release_counts(events).get(name, 0)
    each = limit_counts.get(name, 0) // max(charged(plan.rounds, plan.planned), 1)
    if plan.events and releases != charged(rounds, plan.planned) * each:
        raise LedgerError(
            f"The booster has {rounds} new rounds, but the trainer recorded {releases} releases of "
            f"{name}: the booster was changed during training. Do not publish the model."
        )
