"""The noise of a training once more, from what its ledger says of it.

A ledger names every setting that the calibration reads. So anybody who holds the file can calibrate
again, and compare what was charged with what follows from the settings. Nothing here reads a row.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..accounting import Event
from ..calibrate import calibrate, calibrate_family
from ..mechanisms.plan import Mechanisms
from ..planning import draft
from ..request.objectives import OWN_PARAMETERS
from ..request.params import PARAMETERS
from ..request.schema import Schema
from ..request.settings import Settings
from ..request.shares import shares_of

NOISE = frozenset({"sigma2", "scale", "eps_num"})
"""Fields of events that a calibration finds."""
SLACK = 0.998
"""Share of its target that a search uses at least, as a rule."""
_TOLERANCE = 0.02
"""Of noise: other machines round otherwise, and the search ends within so much of its target."""


@dataclass(frozen=True)
class RecordedPlans:
    """The plans of which a training may have followed one, as its settings lead to them."""

    settings: tuple[Settings, ...]
    mechanisms: tuple[Mechanisms, ...]
    taken: int | None  # position of the plan that was followed; None where there was one only

    def events(self) -> list[Event]:
        """The events with which the training is charged, calibrated again."""
        s = self.settings[self.taken or 0]
        target = s.epsilon, s.delta, s["dp_accountant"], s["dp_group"]
        if self.taken is None:
            return list(calibrate(self.mechanisms[0], shares_of(s), *target).events)
        shares = [shares_of(one, counts=True) for one in self.settings]
        return [calibrate_family(self.mechanisms, shares, *target).event]


def recorded_plans(
    public: Mapping[str, Any], target: tuple[float, float]
) -> Iterator[RecordedPlans]:
    """What the settings in a ledger may lead to; likely first."""
    choice = public.get("plan_choice")
    plans = [{}] if choice is None else choice["plans"]
    settings = tuple(settings_of_record(public, target, plan) for plan in plans)
    taken = None if choice is None else choice["taken"]
    if settings[taken or 0].private_features != public["private_candidates"]:
        raise ValueError("`private_candidates` are not those of the columns")
    # A plan of sparse tables that has no noise is left out, but its number of cells is released.
    ways = {settings[-1].starts_from_columns, True} if choice else {False}
    for presence in sorted(ways):
        drafts = [draft(s, counts=taken is not None, presence=presence) for s in settings]
        yield RecordedPlans(settings, tuple(map(Mechanisms.from_plan, drafts)), taken)


def settings_of_record(
    public: Mapping[str, Any], target: tuple[float, float], plan: Mapping[str, Any]
) -> Settings:
    """The settings that a ledger names."""
    recorded = {**public["hyperparameters"], **plan}
    names = {p.name: p.name.removeprefix("dp_") for p in PARAMETERS.values() if p.recorded}
    given = {name: recorded[key] for name, key in names.items() if recorded[key] is not None}
    score, unit = public["base_score"], public.get("unit")
    others = {
        "tree_method": "dp_hist",
        "dp_epsilon": target[0],
        "dp_delta": target[1],
        "objective": public["objective"],
        "dp_privacy_id": None if unit is None else public.get("unit_column") or True,
        "dp_rows_per_person": public.get("rows_per_person"),
        "dp_max_weight": public.get("max_weight"),
        "dp_weight_unit": recorded.get("weight_unit", "declared"),
        "dp_exposure_bounds": public.get("exposure_bounds"),
        "dp_n_public": public.get("n_public"),
        "dp_target_bounds": _ranges(public.get("target_bounds")),
        "dp_classes": public.get("classes"),
        "base_score": None if isinstance(score, str) else score,
        **{name: _numbers(public[name]) for name in OWN_PARAMETERS if name in public},
    }
    given |= {name: value for name, value in others.items() if value is not None}
    given |= _columns(public, recorded)
    values = {"dp_budget_shares": dict(given.pop("dp_budget_shares"))}
    if "own_objective" in public:
        values["dp_objective"] = public["own_objective"]
    width, bounds = public["columns"], public.get("target_bounds", [0])
    schema = Schema(
        names=[str(i) for i in range(width)],
        named=False,
        categorical=frozenset(given["dp_categories"]),
        dictionaries={},
        labels=len(bounds) if isinstance(bounds[0], list) else 1,
    )
    return Settings(given, schema, recorded["rounds"], score == "model", values)


def _columns(public: Mapping[str, Any], recorded: Mapping[str, Any]) -> dict[str, Any]:
    """Declarations of so many columns of each kind: which ones they are does not matter."""
    place = itertools.count()
    sizes = public["categories"].values()
    return {
        "dp_categories": {next(place): size for size in sizes},
        "dp_feature_cuts": {next(place): [0.0] for _ in public["public_cuts"]},
        "dp_feature_bounds": {next(place): (0.0, 1.0) for _ in public["public_grids"]},
    }


def _ranges(bounds: Any) -> Any:
    if bounds is None or not isinstance(bounds[0], list):
        return bounds
    return [tuple(one) for one in bounds]


def _numbers(value: Any) -> Any:
    """Reals, which ledgers have as texts; names stay."""
    if isinstance(value, list):
        return [_numbers(v) for v in value]
    try:
        return float(value)
    except ValueError:
        return value


def differences(
    recorded: Sequence[Event], expected: Sequence[Event], *, but: frozenset[str] = frozenset()
) -> list[str]:
    """What is otherwise in the events of a ledger than follows from its settings, in words."""
    one, other = ([event.to_json() for event in events] for events in (recorded, expected))
    return list(_differ(one, other, "the training", but))


def _kind(event: Any) -> tuple[str, str]:
    """Name of what is released, and of the mechanism; of no event none."""
    if not isinstance(event, dict):
        return "", ""
    return str(event.get("release", "")), str(event.get("mechanism"))


def _differ(one: Any, other: Any, where: str, but: frozenset[str]) -> Iterator[str]:
    if isinstance(one, dict) and isinstance(other, dict):
        name = str(other.get("release", other.get("mechanism", where)))
        kinds = [(v.get("mechanism"), v.get("release")) for v in (one, other)]
        if kinds[0] != kinds[1] or set(one) != set(other):
            yield f"{name}: another kind of release"
            return
        for key in one.keys() - but:
            if isinstance(other[key], (dict, list)):
                yield from _differ(one[key], other[key], name, but)
            elif not _same(key, one[key], other[key]):
                yield f"{name}: `{key}` is {one[key]!r} instead of {other[key]!r}"
    elif isinstance(one, list) and isinstance(other, list):
        if len(one) != len(other):
            yield f"{where}: {len(one)} kinds of releases instead of {len(other)}"
        # In one order: the trainer writes events as it draws them.
        if where != "choice":
            one, other = sorted(one, key=_kind), sorted(other, key=_kind)
        for a, b in zip(one, other, strict=False):
            yield from _differ(a, b, where, but)
    elif one != other:
        yield f"{where}: {one!r} instead of {other!r}"


def _same(key: str, one: Any, other: Any) -> bool:
    if key in NOISE and type(one) is int and type(other) is int:
        return abs(one - other) <= _TOLERANCE * other
    return bool(one == other)


def mechanism_differences(
    recorded: Mechanisms, expected: Mechanisms, *, but: frozenset[str] = frozenset()
) -> list[str]:
    """How recorded mechanisms differ from expected ones, in what is fixed before calibration."""
    free = {"shift", "range", "grid_bits", *but}
    return list(_mechanisms_differ(recorded.to_json(), expected.to_json(), "the training", free))


def _mechanisms_differ(one: Any, other: Any, where: str, free: set[str]) -> Iterator[str]:
    for key in sorted({*one, *other} - free):
        if isinstance(one.get(key), dict) and isinstance(other.get(key), dict):
            yield from _mechanisms_differ(one[key], other[key], key, free)
        elif key not in one or key not in other or one[key] != other[key]:
            yield f"{where}: `{key}` is not that of the settings"
