"""The fields of a ledger's JSON form, each read and checked by itself.

That the parts of a ledger fit each other is checked in ``form.py``.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Any

from ..accounting import ChoiceEvent, Event, SelectionEvent, Unit, event_from_json
from ..accounting.events import release_counts
from ..errors import LedgerError
from ..mechanisms.plan import Mechanisms

_MOST = 1 << 31  # rounds
_NEEDED = {"rounds", "group", "budget_shares", "num_parallel_tree"}
_ENTRY = re.compile(r"[0-9a-f]{16}")
_NAME = re.compile(r"[0-9a-f]{32}")
_DIGEST = re.compile(r"[0-9a-f]{64}")
_START = {"digest", "rounds", "trees"}
_RELEASED = "released"

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


def _is_number(value: Any, low: float = -math.inf, below: float = math.inf) -> bool:
    return type(value) in (int, float) and low <= value < below


def _is_name(value: Any) -> bool:
    """Whether this is the name of a tree, or of a training."""
    return type(value) is str and _NAME.fullmatch(value) is not None


def _is_entry(value: Any) -> bool:
    """Whether this is the name of an entry in a budget."""
    return type(value) is str and _ENTRY.fullmatch(value) is not None


def _is_digest(value: Any) -> bool:
    """Whether this is a SHA-256 in hexadecimal digits."""
    return type(value) is str and _DIGEST.fullmatch(value) is not None


def read_content(data: Any) -> dict[str, str]:
    """Digests of the parts of a model file besides its trees, by name."""
    if not isinstance(data, Mapping) or not all(map(_is_digest, data.values())):
        raise damaged("it does not name the parts of its model")
    return dict(data)


def _are_digests(value: Any) -> bool:
    """Whether it is a list of SHA-256, with at least one of them."""
    return isinstance(value, list) and bool(value) and all(map(_is_digest, value))


def _are_names(value: Any) -> bool:
    return isinstance(value, list) and all(map(_is_name, value))


def _are_shares(shares: Any) -> bool:
    return isinstance(shares, Mapping) and all(
        type(name) is str and _is_number(v) for name, v in shares.items()
    )


@dataclass(frozen=True)
class PublicStart:
    """The model that private trees stand on, which costs nothing more.

    It is public, made without a private row; or it follows from what the training itself has
    released. Its trees are named one by one, so that nobody takes one of them for a private tree.
    """

    digest: str  # SHA-256 of the names of its trees, which name all of its numbers
    rounds: int
    trees: tuple[str, ...]  # their names, in order
    released: bool = False  # it follows from sums that the training released, and is not public

    @classmethod
    def of(cls, trees: Sequence[str], rounds: int, *, released: bool = False) -> PublicStart:
        """The start with these trees."""
        digest = hashlib.sha256("\n".join(trees).encode()).hexdigest()
        return cls(digest, rounds, tuple(trees), released)

    def renamed(self, names: Mapping[str, str]) -> PublicStart:
        """The same model, named by the same digest, after its numbers were scaled with the rest."""
        return replace(self, trees=tuple(names.get(n, n) for n in self.trees))

    def shown(self) -> dict[str, Any]:
        """What a reader needs to know it by: digest, number of rounds and number of trees."""
        return {"digest": self.digest, "rounds": self.rounds, "trees": len(self.trees)}

    def to_json(self) -> dict[str, Any]:
        """As a ledger holds it."""
        out = {"digest": self.digest, "rounds": self.rounds, "trees": list(self.trees)}
        return out | {_RELEASED: True} if self.released else out

    @classmethod
    def from_json(cls, data: Any) -> PublicStart:
        """Read what :meth:`to_json` has written."""
        check_fields(data, "a public start", _START, {_RELEASED})
        digest, rounds, trees = data["digest"], data["rounds"], data["trees"]
        sound = (
            _is_digest(digest)
            and type(rounds) is int
            and rounds >= 1
            and _are_names(trees)
            and bool(trees)
            and len(trees) % rounds == 0
            and data.get(_RELEASED, True) is True
        )
        if not sound:
            raise damaged("a training does not name the trees of its public start")
        return cls(digest, rounds, tuple(trees), _RELEASED in data)


def _reader(
    is_sound: Callable[[Any], bool], lacks: str, kind: Callable[[Any], Any]
) -> Callable[[Any], Any]:
    """Takes what is sound as it is, and refuses a training that does not do the rest."""

    def read(data: Any) -> Any:
        if not is_sound(data):
            raise damaged(f"a training does not {lacks}")
        return kind(data)

    return read


def _read_events(data: Any) -> tuple[Event, ...]:
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


def _read_mechanisms(data: Any) -> tuple[Mechanisms, ...]:
    """The mechanisms of each plan that a training might have followed."""
    if not isinstance(data, list):
        raise damaged("a training does not list its mechanisms")
    return tuple(map(Mechanisms.from_json, data))


def _read_target(data: Any) -> tuple[float, float]:
    """(epsilon, delta) that a training was calibrated for."""
    check_fields(data, "a target", {"epsilon", "delta"})
    epsilon = math.inf if data["epsilon"] == "inf" else data["epsilon"]
    if not (_is_number(epsilon, 0) or epsilon == math.inf) or not _is_number(data["delta"], 0, 1):
        raise damaged("a training does not say what it was calibrated for")
    return epsilon, data["delta"]


def _write_target(target: tuple[float, float]) -> dict[str, Any]:
    """As :func:`_read_target` reads it."""
    epsilon, delta = target
    return {"epsilon": "inf" if math.isinf(epsilon) else epsilon, "delta": delta}


def _is_public(data: Any) -> bool:
    """Whether it says what was public, as far as the guarantee or the statement reads it."""
    settings = data.get("hyperparameters") if isinstance(data, Mapping) else None
    if not isinstance(settings, Mapping) or not set(settings) >= _NEEDED:
        return False
    try:
        Unit.of_record(data)
    except (ValueError, TypeError):
        return False
    masked = data.get("masked_sums")
    steps, evaluations = data.get("preprocessing", []), data.get("evaluations", [])
    n_public = data.get("n_public", 1)
    return (
        is_count(settings["rounds"])
        and _are_shares(settings["budget_shares"])
        and _is_number(data.get("rows_per_person", 1), 1)
        and type(n_public) is int
        and n_public >= 1
        and isinstance(steps, list)
        and all(isinstance(name, str) for name in steps)
        and (masked is None or _is_masked(masked))
        and isinstance(evaluations, list)
        and all(map(_is_evaluation, evaluations))
    )


def _is_masked(value: Any) -> bool:
    """Whether it says how many workers there are, and how many may be curious together."""
    return isinstance(value, Mapping) and all(
        type(value.get(name)) is int for name in ("workers", "colluders")
    )


def _is_evaluation(value: Any) -> bool:
    """Whether it says how many events it has, and which entry of a budget."""
    return (
        isinstance(value, Mapping)
        and is_count(value.get("events"))
        and ("entry" not in value or _is_entry(value["entry"]))
        and _is_number(value.get("delta", 0.0), 0, 1)
    )


def _to_json(values: Sequence[Event] | Sequence[Mechanisms]) -> list[dict[str, Any]]:
    return [value.to_json() for value in values]


TRAINING: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "id": (_reader(_is_name, "have an identifier", str), str),
    "plans": (_reader(_are_digests, "name its plans", tuple), list),
    "complete": (_reader(lambda v: type(v) is bool, "name its state", bool), bool),
    "events": (_read_events, _to_json),
    "mechanisms": (_read_mechanisms, _to_json),
    "drawn": (_read_events, _to_json),
    "rounds": (_reader(is_count, "say how many rounds it has", int), int),
    "target": (_read_target, _write_target),
    "public": (_reader(_is_public, "say what was public", lambda v: v), dict),
    "trees": (_reader(_are_names, "name its trees", tuple), list),
    "start": (PublicStart.from_json, PublicStart.to_json),
    "entry": (_reader(_is_entry, "name its entry in a budget", str), str),
}
"""The fields of a training in the order in which they are written: what reads and writes each."""


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
    """Whether this is what a ledger says of a choice; see ``planning.choice``."""
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
