"""Every audit of this library that ``python -m tests.audit`` runs; none may show a violation."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from xgb_dp.audit import AuditResult
from xgb_dp.audit import __main__ as library_audits
from xgb_dp.calibrate import calibrate

from . import discovery, evaluation, mechanisms, persons, scenarios


@dataclass(frozen=True)
class Size(library_audits.AuditSize):
    """How much is drawn."""

    draws: int
    broken: int
    few: int


FULL = Size(**vars(library_audits.FULL), draws=1_000_000, broken=8_000, few=1_000)
FAST = Size(**vars(library_audits.FAST), draws=100_000, broken=1_500, few=120)


def seeded(rows: scenarios.Rows, seed: int) -> scenarios.Outcome:
    """What an attacker gets who repeats a training of this library with a guessed `seed`."""
    scenario = scenarios.exact_sum()
    scenario.training.params["seed"] = seed
    return scenario.real(rows)


def of_mechanisms(size: Size) -> Iterator[Callable[[], AuditResult]]:
    for epsilon, mode in ((1.0, "row_weight"), (4.0, "clip")):
        requested, shares = mechanisms.small_training(mode)
        plan = calibrate(requested, shares, epsilon, 1e-6)
        for build in mechanisms.BUILDERS:
            mechanism = build(requested, plan)
            name = f"{mechanism.name}, ε = {epsilon:g}"
            yield partial(mechanisms.audit, mechanism, size.draws, name=name)
    for epsilon in (0.5, 4.0):
        mechanism = evaluation.evaluation(epsilon, 1e-6)
        name = f"{mechanism.name}, ε = {epsilon:g}"
        yield partial(mechanisms.audit, mechanism, size.draws, name=name)
    for kind in list(evaluation.KINDS)[1:]:
        mechanism = evaluation.evaluation(4.0, 1e-6, kind=kind)
        yield partial(mechanisms.audit, mechanism, size.draws // 8, name=f"{mechanism.name}, ε = 4")


def of_trainings(size: Size) -> Iterator[Callable[[], AuditResult]]:
    many = {
        "trainings, ε = 4": scenarios.leaf_and_split(),
        "trainings, ε = 4, leaves only": scenarios.leaf_and_split(leaves=0.98),
        "trainings, ε = 4, splits mostly": scenarios.root_split(epsilon=4.0),
        "trainings, ε = 4, two levels in one selection": scenarios.root_split(4.0, levels=2),
        "trainings, ε = 4, intercept mostly": scenarios.label_sum(),
        "trainings for persons, ε = 4, rows in one leaf": persons.in_one_leaf(),
        "trainings for persons, ε = 4, rows in all leaves": persons.in_all_leaves(),
    }
    few = {
        "trainings, min_child_weight": scenarios.min_child_weight(),
        "trainings, best cut of a feature": scenarios.split_winner(),
        "trainings of two trees": scenarios.reused_noise(),
        "trainings, seeds": scenarios.guessed_seed(seeded),
        "trainings, node statistics": scenarios.exact_sum(),
    }
    for scenarios_of_size, trainings in ((many, size.trainings), (few, size.few)):
        for name, scenario in scenarios_of_size.items():
            yield partial(scenario.audit, name, None, trainings)


def cases(size: Size) -> Iterator[Callable[[], AuditResult]]:
    yield from of_mechanisms(size)
    yield from of_trainings(size)
    yield partial(discovery.audit_strings, "discovery, strings", size.draws // 20)
    yield partial(discovery.audit_numbers, "discovery, numbers", size.draws // 40)
    yield from library_audits.cases(size)
