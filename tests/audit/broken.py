"""Trainers broken on purpose, one for each fault that audits must find.

No C++ is rebuilt. A fault in the noise is put into the plan that the C++ trainer or the C++
samplers are given; a fault in the algorithm is put into the reference trainer in tests/reference;
a leak is put into the saved model. ``cases`` is what ``python -m tests.audit`` calls.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from types import ModuleType
from typing import Any
from unittest import mock

import numpy as np
import numpy.typing as npt

from tests.reference import grow
from tests.reference import trainer as reference
from tests.reference.draws import Noise
from tests.reference.splits import left_sides
from xgb_dp.audit import AuditResult
from xgb_dp.audit import __main__ as library_audits
from xgb_dp.calibrate import Calibration, calibrate
from xgb_dp.discovery.discover import plan_discovery
from xgb_dp.engine.saved_model import LEAF, StoredTree
from xgb_dp.testing import train_with_plan

from . import discovery, evaluation, mechanisms, persons, scenarios
from .cases import Size
from .scenarios import Outcome, Rows, Scenario

Plan = dict[str, Any]
Ints = npt.NDArray[np.int64]
NEVER = -(1 << 60)  # a utility that the exponential mechanism does not choose


def random_key() -> str:
    return os.urandom(32).hex()


# ---------------------------------------------------------------- the plan differs from the claim
def trained_with(scenario: Scenario, change: Callable[[Plan], None]) -> scenarios.Trainer:
    """The C++ trainer with a changed plan and a fresh random key."""

    def train(rows: Rows) -> Outcome:
        plan = scenario.training.plan(random_key())
        change(plan)
        booster = train_with_plan(plan, scenario.matrix(rows), nthread=1, verbosity=0)
        return scenarios.outcome_of(booster)

    return train


def less_leaf_noise(plan: Plan) -> None:
    """Leaf noise of 70% of the standard deviation that is accounted."""
    plan["leaf"]["sigma2"] = round(0.49 * plan["leaf"]["sigma2"])


def unclipped_pair(plan: Plan) -> None:
    """G and H are bounded one by one, but the noise is that of a joint bound."""
    plan["row_bound"] |= {"mode": "clip", "hessian_bound": "0.25"}


def changed(plan: Calibration, changes: Mapping[str, Mapping[str, int]]) -> Calibration:
    """Other noise of some releases, which the events say nothing of."""
    other = {name: replace(plan[name], **fields) for name, fields in changes.items()}
    return replace(plan, noise={**plan.noise, **other})


def less_noise(plan: Calibration) -> Calibration:
    """All Gaussian noise at 70%."""
    return changed(
        plan, {name: {"sigma2": round(0.49 * noise.sigma2)} for name, noise in plan.noise.items()}
    )


def half_range(plan: Calibration) -> Calibration:
    """Range B of the utilities where 2 B is right: the exponent doubles."""
    return changed(plan, {"splits": {"eps_num": 2 * plan["splits"].eps_num}})


# ------------------------------------------------------------------- the algorithm is another one
def reference_outcome(model: reference.Model) -> Outcome:
    trees = [
        StoredTree(
            left=t["left"],
            right=t["right"],
            features=t["split_index"],
            conditions=np.where(np.equal(t["left"], LEAF), t["leaf"], t["split_condition"]),
            default_left=t["default_left"],
            covers=t["sum_hess"],
            right_categories={},
        )
        for t in model.trees
    ]
    return Outcome(trees, 0.5)


def by_reference(
    scenario: Scenario, module: ModuleType = reference, **faults: Any
) -> scenarios.Trainer:
    """The reference trainer with parts of one of its modules replaced, and a fresh random key."""

    def train(rows: Rows) -> Outcome:
        plan = scenario.training.plan(random_key())
        with mock.patch.multiple(module, **faults) if faults else mock.MagicMock():
            return reference_outcome(reference.train(plan, rows.X, rows.y, base_score=0.5))

    return train


def uncut(scenario: persons.PersonScenario) -> scenarios.Trainer:
    """The reference trainer, in which the factor alone bounds what a person adds to leaves."""

    def train(rows: Rows) -> Outcome:
        plan = scenario.training.plan(random_key())
        with mock.patch("tests.reference.persons.within", lambda bound, vector: vector):
            ids = scenario.ids(rows)
            return reference_outcome(
                reference.train(plan, rows.X, rows.y, base_score=0.5, persons=ids)
            )

    return train


right_utilities = reference.utilities


def _per_feature(features: list[Any], pairs: Ints, rows: Ints) -> Iterator[Ints]:
    """Sums (G, H, rows) of the left side of every candidate, feature by feature."""
    for feature in features:
        bins = feature.bins[rows]
        histogram = np.zeros((feature.size, pairs.shape[1]), dtype=np.int64)
        np.add.at(histogram, bins[bins >= 0], pairs[rows][bins >= 0])
        yield left_sides(histogram, pairs[rows].sum(axis=0), feature.cuts is None)


def only_heavy_children(*given: Any) -> Ints:
    """Candidates with a child of an exact Hessian below 0.9 are dropped."""
    _, features, _, pairs, rows, score = given
    left = np.concatenate(list(_per_feature(features, pairs, rows)))
    total = pairs[rows].sum(axis=0)
    unit = score.bound.h_unit
    heavy = np.minimum(left[:, 1], (total - left)[:, 1]) * unit >= 0.9
    return np.where(heavy, right_utilities(*given), NEVER)


def only_winners(*given: Any) -> Ints:
    """The best candidate of each feature is picked without noise; only these are offered."""
    _, features, _, pairs, rows, _ = given
    u = right_utilities(*given)
    kept = np.full_like(u, NEVER)
    start = 0
    for left in _per_feature(features, pairs, rows):
        best = start + int(np.argmax(u[start : start + len(left)]))
        kept[best] = u[best]
        start += len(left)
    return kept


class ReusedNoise(Noise):
    """Every tree gets the leaf noise of the first one."""

    def __init__(self, plan: Plan) -> None:
        super().__init__(plan)
        self.tape: list[int] = []
        self.next = 0

    def choose(self, utilities: Ints, eps_num: int, range_int: int) -> int:
        self.next = 0  # a new tree: trees of the scenario have one selection
        return super().choose(utilities, eps_num, range_int)

    def gaussian(self, sigma2: int) -> int:
        if self.next == len(self.tape):
            self.tape.append(super().gaussian(sigma2))
        self.next += 1
        return self.tape[self.next - 1]


# -------------------------------------------------------------------------- the noise or the file
SEEDED = scenarios.exact_sum()  # the parameters of the scenario with guessed seeds


def with_seed(rows: Rows, seed: int) -> Outcome:
    """The C++ trainer with a key that is a small number, e.g. a clock."""
    plan = SEEDED.training.plan(seed.to_bytes(32, "little").hex())
    booster = train_with_plan(plan, SEEDED.matrix(rows), nthread=1, verbosity=0)
    return scenarios.outcome_of(booster)


def clock_seeded(seeds: int) -> scenarios.Trainer:
    clock = np.random.default_rng()
    return lambda rows: with_seed(rows, int(clock.integers(seeds)))


def exact_cover(scenario: Scenario) -> scenarios.Trainer:
    """This library, but the saved model holds the exact Hessian sum of the root."""

    def train(rows: Rows) -> Outcome:
        trees, base_score = scenario.real(rows)
        covers = [0.25 * len(rows.y), *trees[0].covers[1:]]
        return Outcome([replace(trees[0], covers=covers)], base_score)

    return train


# ---------------------------------------------------------------------------------------- the list
def of_mechanisms(size: Size) -> Iterator[Callable[[], AuditResult]]:
    """The noise of a mechanism is not the one of its claim."""
    requested, shares = mechanisms.small_training()
    plan = calibrate(requested, shares, 4.0, 1e-6)
    b = 1 << plan.grid_bits
    reduced, half = less_noise(plan), half_range(plan)
    faults = {
        "noise at 70%: leaf sums": mechanisms.leaves(requested, plan, reduced),
        "noise at 70%: all releases": mechanisms.whole_training(requested, plan, reduced),
        "sensitivity too small: leaf sums": mechanisms.leaves(requested, plan, row=(b, b)),
        "sensitivity too small: range of the score": mechanisms.selections(requested, plan, half),
    }
    for name, mechanism in faults.items():
        yield partial(mechanisms.audit, mechanism, size.draws, name=name)
    for kind in evaluation.KINDS:
        halved = evaluation.evaluation(4.0, 1e-6, 2, kind)
        name = f"half the variance of an evaluation of {kind}"
        yield partial(mechanisms.audit, halved, size.draws // 4, name=name)


def of_discoveries(size: Size) -> Iterator[Callable[[], AuditResult]]:
    """The plan of a look at columns is not the one of its claim."""
    plan = plan_discovery(1, 0, 1.0, 0.04)
    low = replace(plan, threshold=2 * plan.threshold // 3)
    yield partial(discovery.audit_strings, "texts shown too early", size.draws // 20, low)
    plan = plan_discovery(0, 1, 4.0, 1e-6)
    reduced = replace(plan, number_sigma2=plan.number_sigma2 // 49)
    yield partial(discovery.audit_numbers, "thin noise of a discovery", size.draws // 20, reduced)


def of_trainings(size: Size) -> Iterator[Callable[[], AuditResult]]:
    """The trainer is another one than the claim is for."""
    scenario = scenarios.leaf_and_split(epsilon=8.0, leaves=0.98)
    train = trained_with(scenario, less_leaf_noise)
    yield partial(scenario.audit, "noise at 70%: leaves of trainings", train, size.broken)
    scenario = scenarios.leaf_and_split(leaves=0.98, hessian_weight=16.0, joint_bound=False)
    train = trained_with(scenario, unclipped_pair)
    name = "sensitivity too small: row bound of trainings"
    yield partial(scenario.audit, name, train, size.broken)

    scenario = scenarios.min_child_weight()
    train = by_reference(scenario, grow, utilities=only_heavy_children)
    yield partial(scenario.audit, "exact min_child_weight test", train, size.few)
    scenario = scenarios.split_winner()
    train = by_reference(scenario, grow, utilities=only_winners)
    yield partial(scenario.audit, "winners of features picked without noise", train, size.few)
    scenario = scenarios.reused_noise()
    train = by_reference(scenario, Noise=ReusedNoise)
    yield partial(scenario.audit, "one noise draw reused in two trees", train, size.few)
    scenario, train = scenarios.guessed_seed(with_seed), clock_seeded(64)
    yield partial(scenario.audit, "noise from a seed that can be guessed", train, size.few)
    scenario = scenarios.exact_sum()
    train = exact_cover(scenario)
    yield partial(scenario.audit, "exact sum in the saved model", train, size.few)

    sold = "a bound for rows sold as one for persons: rows in"
    for where, many in (
        ("one leaf", persons.in_one_leaf()),
        ("all leaves", persons.in_all_leaves()),
    ):
        yield partial(many.audit, f"{sold} {where}", many.for_rows, size.few)
    scenario = persons.in_one_leaf()
    name = "rows of a person scaled by predictions, and not cut"
    yield partial(scenario.audit, name, uncut(scenario), size.few)


def cases(size: Size) -> Iterator[Callable[[], AuditResult]]:
    """One audit, or two, for each fault; every one of them must show a violation."""
    yield from of_mechanisms(size)
    yield from of_discoveries(size)
    yield from of_trainings(size)
    yield from library_audits.broken_cases(size)
