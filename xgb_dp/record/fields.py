"""The fields of a ledger's JSON form, each read and checked by itself.

That the parts of a ledger fit each other is checked in ``form.py``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence, Set
from typing import Any

from ..accounting import ChoiceEvent, Event, SelectionEvent, Unit, event_from_json
from ..accounting.enforced import Enforced
from ..accounting.events import release_counts
from ..errors import LedgerError
from .base_model import PublicStart

_MOST = 1 << 31  # rounds
_NEEDED = {"rounds", "group", "budget_shares", "num_parallel_tree"}
_ENTRY = re.compile(r"[0-9a-f]{16}")

_MEND = "What the model has cost is not known. Take a sound copy of the model, or train it again."


def damaged(what: str) -> LedgerError:
    """The error of a ledger that is not fully understood."""
    return LedgerError(f"The privacy ledger is damaged or incomplete: {what}. {_MEND}")


def check_fields(data: Any, what: str, needed: Set[str], optional: Set[str] = frozenset()) -> None:
    """Refuse what is no object, lacks a field or has one that is not known."""
    if not isinstance(data, Mapping) or not needed <= set(data) <= needed | optional:
        raise damaged(f"{what} must have the fields {', '.join(sorted(needed))}")


def is_count(value: Any) -> bool:
    """Whether this is a number of rounds, or a position among plans."""
    return type(value) is int and 0 <= value < _MOST


def is_entry(value: Any) -> bool:
    """Whether this is the name of an entry in a budget."""
    return type(value) is str and _ENTRY.fullmatch(value) is not None


def read_events(data: Any) -> tuple[Event, ...]:
    """What a training has released, or claims."""
    if not isinstance(data, list):
        raise damaged("a training does not list its events")
    try:
        events = tuple(event_from_json(e) for e in data)
    except LedgerError as error:
        raise LedgerError(f"{error} {_MEND}") from None
    if not all(name.isprintable() for name in release_counts(events)):
        raise damaged("an event does not name its release")
    return events


def read_enforced(data: Any) -> tuple[Enforced, ...]:
    """What was enforced by each plan that a training might have followed."""
    if not isinstance(data, list):
        raise damaged("a training does not list what it enforced")
    return tuple(map(Enforced.from_json, data))


def read_start(data: Any) -> PublicStart:
    """The public model below the trees of a training."""
    try:
        return PublicStart.from_json(data)
    except ValueError as error:
        raise damaged(f"a training does not name its public start: {error}") from None


def read_target(data: Any) -> tuple[float, float]:
    """(epsilon, delta) that a training was calibrated for."""
    check_fields(data, "a target", {"epsilon", "delta"})
    epsilon = math.inf if data["epsilon"] == "inf" else data["epsilon"]
    numbers = all(type(v) in (int, float) for v in (epsilon, data["delta"]))
    if not numbers or not epsilon >= 0 or not 0 <= data["delta"] < 1:
        raise damaged("a training does not say what it was calibrated for")
    return epsilon, data["delta"]


def read_public(data: Any) -> Mapping[str, Any]:
    """What a training took as public, as far as the guarantee or the statement reads it."""
    settings = data.get("hyperparameters") if isinstance(data, Mapping) else None
    if not isinstance(settings, Mapping) or not set(settings) >= _NEEDED:
        raise damaged("a training does not say what was public")
    sound = is_count(settings["rounds"]) and _are_shares(settings["budget_shares"])
    try:
        Unit.of_record(data)
    except (ValueError, TypeError):
        sound = False
    per_person = data.get("rows_per_person", 1)
    sound = sound and type(per_person) in (int, float) and 1 <= per_person < math.inf
    if "n_public" in data:
        sound = sound and type(data["n_public"]) is int and data["n_public"] >= 1
    steps = data.get("preprocessing", [])
    sound = sound and isinstance(steps, list) and all(isinstance(name, str) for name in steps)
    masked = data.get("masked_sums")
    if masked is not None:
        sound = sound and isinstance(masked, Mapping)
        sound = sound and all(type(masked.get(k)) is int for k in ("workers", "colluders"))
    sound = sound and _are_evaluations(data.get("evaluations", []))
    if not sound:
        raise damaged("a training does not say what was public")
    return data


def _are_evaluations(value: Any) -> bool:
    """Whether each says how many events it has, and which entry of a budget."""
    return isinstance(value, list) and all(
        isinstance(one, Mapping)
        and is_count(one.get("events"))
        and ("entry" not in one or is_entry(one["entry"]))
        and type(one.get("delta", 0.0)) in (int, float)
        and 0 <= one.get("delta", 0.0) < 1
        for one in value
    )


def _are_shares(shares: Any) -> bool:
    return isinstance(shares, Mapping) and all(
        type(name) is str and type(v) in (int, float) for name, v in shares.items()
    )


def check_choice(events: Sequence[Event], public: Mapping[str, Any]) -> None:
    """A choice among plans says which ones there were, and which one was taken."""
    chosen = [e for e in events if isinstance(e, ChoiceEvent)]
    runs = [run for e in events if isinstance(e, SelectionEvent) for run in e.runs]
    inner = [e for run in runs for e in run if isinstance(e, ChoiceEvent)]
    choice = public.get("plan_choice")
    if not chosen and not inner and choice is None:
        return
    if len(chosen) > 1 or any(e.count != 1 for e in (*chosen, *inner)):
        raise damaged("a training has chosen its plan more or less than once")
    if not all(sum(release_counts(e.first).values()) for e in (*chosen, *inner)):
        raise damaged("a training has chosen its plan after no release")
    if inner and not chosen and choice is None:
        return  # the run that was selected had one plan only
    if choice is None or not _is_choice(choice) or not (chosen or inner):
        raise damaged("a training does not say which of its plans it followed")
    sizes = {len(e.options) for e in chosen or inner}
    followed = public["hyperparameters"]
    same = all(
        followed.get(name) == value for name, value in choice["plans"][choice["taken"]].items()
    )
    if len(choice["plans"]) not in sizes or not same:
        raise damaged("a training does not list the plans of which it followed one")


def _is_choice(value: Any) -> bool:
    """Whether this is what a ledger says of a choice; see ``training.plan.choice``."""
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
