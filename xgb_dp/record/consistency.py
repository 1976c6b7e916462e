"""Checks that the mechanisms and events of a ledger follow from its settings.

A ledger contains the settings of the calibration, so anyone with the file can repeat it (for the
exception, see :func:`_vague`). The checksum alone detects only damage: a forged file, or the output
of a faulty program, has a valid checksum. This module reads no rows.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..accounting import Event, SelectionEvent, make_accountant
from ..calibrate import calibrate, calibrate_family
from ..engine.saved_model import SavedModel
from ..mechanisms.plan import Mechanisms
from ..parameters.config import Config
from ..planning import draft
from ..request.guarantee import shares_of
from ..request.objectives import OBJECTIVES, OWN_PARAMETERS
from ..request.params import PARAMETERS, recorded
from ..request.schema import MOST_COLUMNS, Schema
from .ledger_model import Ledger, TrainingRecord

NOISE = frozenset({"sigma2", "scale", "eps_num"})
"""Fields of events that a calibration computes."""
SLACK = 0.998
"""Minimum share of the target that a search for noise usually reaches."""
_TOLERANCE = 0.02
"""Relative tolerance for noise, because of rounding and the stopping point of the search."""


@dataclass(frozen=True)
class RecordedPlans:
    """The possible plans that follow from recorded settings."""

    settings: tuple[Config, ...]
    mechanisms: tuple[Mechanisms, ...]
    chosen_plan: int | None  # index of the executed plan; None for a single plan

    def events(self) -> list[Event]:
        """Calibrate again and return the charged events of the training."""
        s = self.settings[self.chosen_plan or 0]
        target = s.epsilon, s.delta, s["dp_accountant"], s["dp_group_size"]
        if self.chosen_plan is None:
            return list(calibrate(self.mechanisms[0], shares_of(s), *target).events)
        shares = [shares_of(one, counts=True) for one in self.settings]
        return [calibrate_family(self.mechanisms, shares, *target).event]


def recorded_plans(
    public: Mapping[str, Any], target: tuple[float, float]
) -> Iterator[RecordedPlans]:
    """Yield the possible plans for the settings in a ledger, the most likely first."""
    choice = public.get("plan_choice")
    plans = [{}] if choice is None else choice["plans"]
    settings = tuple(settings_of_record(public, target, plan) for plan in plans)
    taken = None if choice is None else choice["taken"]
    if settings[taken or 0].private_features != public["private_candidates"]:
        raise ValueError("`private_candidates` does not match the columns")
    # The options can lack a sparse plan even though the number of cells was released.
    ways = {settings[-1].starts_from_columns, True} if choice else {False}
    for presence in sorted(ways):
        drafts = [draft(s, counts=taken is not None, presence=presence) for s in settings]
        yield RecordedPlans(settings, tuple(map(Mechanisms.from_plan, drafts)), taken)


def settings_of_record(
    public: Mapping[str, Any], target: tuple[float, float], plan: Mapping[str, Any]
) -> Config:
    """Rebuild the settings of a training from its ledger."""
    shown = {**public["hyperparameters"], **plan}
    names = {p.name: p.name.removeprefix("dp_") for p in PARAMETERS.values() if p.recorded}
    # A parameter missing from the ledger was unset: an earlier version did not have it.
    given = {name: shown[key] for name, key in names.items() if shown.get(key) is not None}
    score, unit = public["base_score"], public.get("unit")
    others = {
        "tree_method": "dp_hist",
        "dp_epsilon": target[0],
        "dp_delta": target[1],
        "objective": public["objective"],
        "dp_privacy_id": None if unit is None else public.get("unit_column") or True,
        "dp_max_rows_per_person": public.get("max_rows_per_person"),
        "dp_max_weight": public.get("max_weight"),
        "dp_weight_unit": shown.get("weight_unit", "declared"),
        "dp_exposure_bounds": public.get("exposure_bounds"),
        "dp_public_num_rows": public.get("public_num_rows"),
        "dp_target_bounds": public.get("target_bounds"),
        "dp_classes": public.get("classes"),
        "base_score": None if isinstance(score, str) else score,
        **{name: _numbers(public[name]) for name in OWN_PARAMETERS if name in public},
    }
    given |= {name: value for name, value in others.items() if value is not None}
    given |= _columns(public)
    known = {"dp_budget_shares": dict(given.pop("dp_budget_shares"))}
    if "own_objective" in public:
        known["dp_objective"] = public["own_objective"]
    width, bounds = public["columns"], public.get("target_bounds", [0])
    schema = Schema(
        names=[str(i) for i in range(width)],
        named=False,
        categorical=frozenset(given["dp_categories"]),
        labels=len(bounds) if isinstance(bounds[0], list) else 1,
    )
    return recorded(given, schema, shown["rounds"], score == "model", known)


def _columns(public: Mapping[str, Any]) -> dict[str, Any]:
    """Declare as many columns of each kind as recorded; their order does not matter."""
    place = itertools.count()
    sizes = public["categories"].values()
    return {
        "dp_categories": {next(place): size for size in sizes},
        "dp_feature_cuts": {next(place): [0.0] for _ in public["public_cuts"]},
        "dp_feature_bounds": {next(place): (0.0, 1.0) for _ in public["public_grids"]},
    }


def _numbers(value: Any) -> Any:
    """Convert real numbers, which ledgers store as strings; names stay strings."""
    if isinstance(value, list):
        return [_numbers(v) for v in value]
    try:
        return float(value)
    except ValueError:
        return value


def differences(
    recorded: Sequence[Event], expected: Sequence[Event], *, but: frozenset[str] = frozenset()
) -> list[str]:
    """Describe how the recorded events differ from the expected ones."""
    one, other = ([event.to_json() for event in events] for events in (recorded, expected))
    return list(_differ(one, other, "the training", but))


def _kind(event: Any) -> tuple[str, str]:
    """Names of the release and the mechanism, for sorting; empty for other values."""
    if not isinstance(event, dict):
        return "", ""
    return str(event.get("release", "")), str(event.get("mechanism"))


def _differ(one: Any, other: Any, where: str, but: frozenset[str]) -> Iterator[str]:
    if isinstance(one, dict) and isinstance(other, dict):
        name = str(other.get("release", other.get("mechanism", where)))
        kinds = [(v.get("mechanism"), v.get("release")) for v in (one, other)]
        if kinds[0] != kinds[1] or set(one) != set(other):
            yield f"{name}: different kind of release"
            return
        for key in one.keys() - but:
            if isinstance(other[key], (dict, list)):
                yield from _differ(one[key], other[key], name, but)
            elif not _same(key, one[key], other[key]):
                yield f"{name}: `{key}` is {one[key]!r}, expected {other[key]!r}"
    elif isinstance(one, list) and isinstance(other, list):
        if len(one) != len(other):
            yield f"{where}: {len(one)} kinds of releases, expected {len(other)}"
        # Sort both, because the trainer writes events in the order of its draws.
        if where != "choice":
            one, other = sorted(one, key=_kind), sorted(other, key=_kind)
        for a, b in zip(one, other, strict=False):
            yield from _differ(a, b, where, but)
    elif one != other:
        yield f"{where}: {one!r}, expected {other!r}"


def _same(key: str, one: Any, other: Any) -> bool:
    if key in NOISE and type(one) is int and type(other) is int:
        return abs(one - other) <= _TOLERANCE * other
    return bool(one == other)


def mechanism_differences(
    recorded: Mechanisms, expected: Mechanisms, *, but: frozenset[str] = frozenset()
) -> list[str]:
    """Describe differences between mechanisms in the fields that are fixed before calibration."""
    free = {"shift", "range", "grid_bits", *but}
    return list(_mechanisms_differ(recorded.to_json(), expected.to_json(), "the training", free))


def _mechanisms_differ(one: Any, other: Any, where: str, free: set[str]) -> Iterator[str]:
    for key in sorted({*one, *other} - free):
        if isinstance(one.get(key), dict) and isinstance(other.get(key), dict):
            yield from _mechanisms_differ(one[key], other[key], key, free)
        elif key not in one or key not in other or one[key] != other[key]:
            yield f"{where}: `{key}` differs from the settings"


_LEAST = 0.5
"""Minimum share of its target that a selection uses."""
_OF_GRIDS = frozenset({"sensitivity", "sensitivity2", *NOISE})


def contradictions(ledger: Ledger, model: SavedModel) -> list[str]:
    """Describe contradictions between a ledger, its settings and its model."""
    out = []
    for number, training in enumerate(ledger.trainings, 1):
        try:
            faults = [*_of_model(training, model), *_of_rounds(training), *_of_events(training)]
            if training.events:
                faults += _of_mechanisms(training)
            if training is ledger.trainings[-1]:  # XGBoost keeps only the last values
                faults += _of_parameters(training, model)
        # A forged ledger can have any content, so reading its settings can fail in many ways.
        except (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, MemoryError):
            faults = ["its settings do not determine a plan"]
        out += [f"training {number}: {text}" for text in faults]
    return out


def _of_model(training: TrainingRecord, model: SavedModel) -> Iterator[str]:
    public = training.public
    if model.columns != public["columns"]:
        yield "`columns` differs from the model"
    if model.objective != public["objective"] or public["objective"] not in OBJECTIVES:
        yield "`objective` differs from the model"


def _of_mechanisms(training: TrainingRecord) -> Iterator[str]:
    """Check the mechanisms of each possible plan against the settings."""
    but, faults = _vague(training, "cells"), []
    for plans in recorded_plans(training.public, training.target):
        if len(plans.mechanisms) != len(training.mechanisms):
            continue
        pairs = zip(training.mechanisms, plans.mechanisms, strict=True)
        faults.append([fault for pair in pairs for fault in mechanism_differences(*pair, but=but)])
        if not faults[-1]:
            return
    yield from min(faults, key=len, default=["its number of plans does not match its settings"])


def _vague(training: TrainingRecord, name: str) -> frozenset[str]:
    """Return {name} if the settings do not determine this field; otherwise an empty set.

    The ledger does not contain the number of cells of public columns, and a person, unlike a row,
    can contribute to all of them.
    """
    vague = training.unit.of_persons and training.hyperparameters["split"] == "histogram"
    return frozenset({name} if vague else ())


def parameters_of(training: TrainingRecord) -> dict[str, Any]:
    """Parameters of the objective of a training, by name."""
    objective = OBJECTIVES.get(str(training.public.get("objective")))
    if objective is None:
        return {}
    parameters = {name: training.public.get(name) for name in objective.parameters}
    if objective.kind == "binary":
        parameters["scale_pos_weight"] = training.hyperparameters.get("scale_pos_weight")
    return parameters


def _of_parameters(training: TrainingRecord, model: SavedModel) -> Iterator[str]:
    for name, value in parameters_of(training).items():
        if not model.has_parameter(name, value):
            yield f"`{name}` differs from the model"
    several = OBJECTIVES[training.public["objective"]].kind == "multiclass"
    if model.classes > 1 if not several else model.classes != training.public["classes"]:
        yield "`classes` differs from the model"
    if training.hyperparameters["num_parallel_tree"] != model.parallel_trees:
        yield "`num_parallel_tree` differs from the model"
    if not model.has_order:
        yield "the trees of the model are not in the order of its classes"


def _of_rounds(training: TrainingRecord) -> Iterator[str]:
    planned = training.hyperparameters["rounds"]
    if training.rounds > planned or (training.rounds < planned and not training.stopped):
        yield f"{training.rounds} rounds, expected {planned}"


def _of_events(training: TrainingRecord) -> Iterator[str]:
    events, public = training.releases[0].events, training.public
    if type(public["columns"]) is not int or not 0 < public["columns"] <= MOST_COLUMNS:
        raise ValueError
    but = _vague(training, "coordinates")
    if any(isinstance(event, SelectionEvent) for event in events):
        yield from _of_selection(training, but)
        return
    faults = []
    for plans in recorded_plans(public, training.target):
        faults.append(differences(events, plans.events(), but=but))
        if not faults[-1]:
            return
    yield from min(faults, key=len)


def _of_selection(training: TrainingRecord, but: frozenset[str]) -> Iterator[str]:
    """Check a selection. Its ledger has the settings of the best run, but not its target."""
    [event, *others] = training.releases[0].events
    if others or not isinstance(event, SelectionEvent) or event.count != 1:
        yield "a selection must be its only release"
        return
    epsilon, delta = training.target
    group_size = training.unit.group_size
    best = ["no run of the selection has the settings of the model"]
    for run in event.runs:
        ways = recorded_plans(training.public, training.target)
        if all(differences(run, plans.events(), but=_OF_GRIDS) for plans in ways):
            continue
        # The events of the run determine its target, up to the slack of the search.
        part = delta / event.repetitions.mean
        spent = make_accountant("exact", run).get_epsilon(part, group_size)
        faults = [
            differences(run, plans.events(), but=but)
            for target in (spent, spent / SLACK)
            for plans in recorded_plans(training.public, (target, part))
        ]
        best = min(faults, key=len)
        if not best:
            break
    yield from best
    spent = make_accountant("exact", [event]).get_epsilon(delta, group_size)
    if not _LEAST * epsilon <= spent <= epsilon * (1.0 + 1e-9):
        yield f"the selection costs epsilon {spent:.6g}, expected {epsilon:g}"
