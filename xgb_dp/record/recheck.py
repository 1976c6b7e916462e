"""Whether the numbers of a ledger follow from each other: its events from its settings.

A digest finds damage. What is written on purpose, or by a program with a fault, has a right digest;
here its events are calibrated once more. It costs nothing, and reads the ledger alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..accounting import SelectionEvent, make_accountant
from ..engine.saved_model import SavedModel
from ..request.objectives import OBJECTIVES
from ..request.schema import MOST_COLUMNS
from .form import Ledger, TrainingRecord
from .recorded import NOISE, SLACK, differences, mechanism_differences, recorded_plans

_LEAST = 0.5
"""Share of its target that a selection uses at least."""
_OF_GRIDS = frozenset({"sensitivity", "sensitivity2", *NOISE})


def contradictions(ledger: Ledger, model: SavedModel) -> list[str]:
    """What in a ledger does not follow from the settings that it names, in words."""
    out = []
    for number, training in enumerate(ledger.trainings, 1):
        try:
            faults = [*_of_model(training, model), *_of_rounds(training), *_of_events(training)]
            if training.events:
                faults += _of_mechanisms(training)
            if training is ledger.trainings[-1]:  # XGBoost keeps what was set last
                faults += _of_parameters(training, model)
        # Whoever writes a ledger may write anything, and every reader of a setting may meet it.
        except (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, MemoryError):
            faults = ["its settings lead to no plan"]
        out += [f"training {number}: {text}" for text in faults]
    return out


def _of_model(training: TrainingRecord, model: SavedModel) -> Iterator[str]:
    public = training.public
    if model.columns != public["columns"]:
        yield "`columns` are not those of the model"
    if model.objective != public["objective"] or public["objective"] not in OBJECTIVES:
        yield "`objective` is not that of the model"


def _of_mechanisms(training: TrainingRecord) -> Iterator[str]:
    """The mechanisms of the plan that was followed, against the settings."""
    followed, faults = training.mechanisms[training.taken or 0], []
    for plans in recorded_plans(training.public, training.target):
        expected = plans.mechanisms[plans.taken or 0]
        faults.append(mechanism_differences(followed, expected, but=_vague(training, "cells")))
        if not faults[-1]:
            return
    yield from min(faults, key=len)


def _vague(training: TrainingRecord, name: str) -> frozenset[str]:
    """A figure that does not follow from the settings of a training.

    How many cells public columns have is not in the ledger; only persons may be in all of them.
    """
    vague = training.unit.of_persons and training.hyperparameters["split"] == "histogram"
    return frozenset({name} if vague else ())


def parameters_of(training: TrainingRecord) -> dict[str, Any]:
    """Parameters of the objective that a training was given, by name."""
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
            yield f"`{name}` is not that of the model"
    several = OBJECTIVES[training.public["objective"]].kind == "multiclass"
    if model.classes > 1 if not several else model.classes != training.public["classes"]:
        yield "`classes` are not those of the model"
    if training.hyperparameters["num_parallel_tree"] != model.parallel_trees:
        yield "`num_parallel_tree` is not that of the model"
    if not model.has_order:
        yield "the trees of the model are not those of its classes in turn"


def _of_rounds(training: TrainingRecord) -> Iterator[str]:
    planned = training.hyperparameters["rounds"]
    if training.rounds > planned or (training.rounds < planned and not training.stopped):
        yield f"{training.rounds} rounds instead of {planned}"


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
    """A ledger names the settings of the run that was selected, and not what it was given."""
    [event, *others] = training.releases[0].events
    if others or not isinstance(event, SelectionEvent) or event.count != 1:
        yield "a selection is not all that it has released"
        return
    epsilon, delta = training.target
    group = training.unit.group
    best = ["no run of the selection has the settings of the model"]
    for run in event.runs:
        ways = recorded_plans(training.public, training.target)
        if all(differences(run, plans.events(), but=_OF_GRIDS) for plans in ways):
            continue
        # What the run was given follows from its own events, up to the slack of the search.
        part = delta / event.repetitions.mean
        spent = make_accountant("exact", run).get_epsilon(part, group)
        faults = [
            differences(run, plans.events(), but=but)
            for target in (spent, spent / SLACK)
            for plans in recorded_plans(training.public, (target, part))
        ]
        best = min(faults, key=len)
        if not best:
            break
    yield from best
    spent = make_accountant("exact", [event]).get_epsilon(delta, group)
    if not _LEAST * epsilon <= spent <= epsilon * (1.0 + 1e-9):
        yield f"the selection costs epsilon {spent:.6g} instead of {epsilon:g}"
