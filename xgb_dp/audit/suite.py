"""The audits of this library that ``python -m xgb_dp.audit`` runs."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from ..calibrate.search import calibrate
from . import discovery, evaluation, mechanisms, persons, scenarios
from .result import AuditResult
from .training import PreparedTraining, audit_one_run

__all__ = ["FAST", "FULL", "Size", "cases", "one_run_case"]


@dataclass(frozen=True)
class Size:
    """How much is drawn.

    Attributes:
        draws: Draws of a mechanism under each neighbour.
        trainings: Trainings on each neighbour where the effect is of the size of the noise.
        broken: The same for broken trainers.
        few: Trainings on each neighbour where the effect is gross.
        canaries: Canaries of one run.
    """

    draws: int
    trainings: int
    broken: int
    few: int
    canaries: int


FULL = Size(draws=1_000_000, trainings=4_000, broken=8_000, few=1_000, canaries=2_000)
FAST = Size(draws=100_000, trainings=300, broken=1_500, few=120, canaries=500)


def one_run_case(size: Size, name: str, epsilon: float, *, noise_free: bool = False) -> AuditResult:
    """One training on canaries with random labels, of which each is included by a fair coin."""
    import xgboost as xgb

    columns, rng = 6, np.random.default_rng()
    X = rng.normal(size=(size.canaries, columns)).astype(np.float32)
    y = (rng.random(size.canaries) < 0.5).astype(np.float32)
    params: dict[str, Any] = {
        "tree_method": "dp_hist",
        "objective": "binary:logistic",
        "dp_epsilon": epsilon,
        "dp_delta": 1e-6,
        "dp_feature_bounds": dict.fromkeys(range(columns), (-3.0, 3.0)),
        "dp_tree_shape": "per_node",
        "max_depth": 8,
        "lambda": 0.1,
        "nthread": 1,
        "verbosity": 0,
    }
    rounds = 20
    claim = PreparedTraining(params, xgb.DMatrix(X, y), rounds).claim

    def train(included: npt.NDArray[np.bool_]) -> Any:
        used = params | ({"dp_epsilon": float("inf")} if noise_free else {})
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return xgb.train(used, xgb.DMatrix(X[included], y[included]), rounds)

    def score(model: Any) -> npt.NDArray[np.float64]:
        margin = model.predict(xgb.DMatrix(X), output_margin=True).astype(np.float64)
        return np.asarray(np.where(y > 0, margin, -margin), dtype=np.float64)

    return audit_one_run(
        train, score, size.canaries, claim, delta=1e-6, name=name, statistic="margin of canaries"
    )


def _seeded(rows: scenarios.Rows, seed: int) -> scenarios.Outcome:
    """What an attacker gets who repeats a training of this library with a guessed `seed`."""
    from xgboost import DMatrix

    training = scenarios.exact_sum().training
    training.params["seed"] = seed
    return scenarios.outcome_of(training(DMatrix(rows.X, rows.y, nthread=1)), 1)


def cases(size: Size) -> Iterator[Callable[[], AuditResult]]:
    """Every audit of this library; none may show a violation."""
    builders = (
        mechanisms.leaves,
        mechanisms.candidates,
        mechanisms.intercept,
        mechanisms.selections,
        mechanisms.whole_training,
    )
    for epsilon, mode in ((1.0, "row_weight"), (4.0, "clip")):
        asked = mechanisms.small_training(mode)
        plan = calibrate(asked, epsilon, 1e-6)
        for build in builders:
            made = build(asked, plan)
            label = f"{made.name}, ε = {epsilon:g}"
            yield partial(mechanisms.audit, made, size.draws, name=label)
    for epsilon in (0.5, 4.0):
        made = evaluation.evaluation(epsilon, 1e-6)
        label = f"{made.name}, ε = {epsilon:g}"
        yield partial(mechanisms.audit, made, size.draws, name=label)
    for kind in list(evaluation.KINDS)[1:]:
        made = evaluation.evaluation(4.0, 1e-6, kind=kind)
        label = f"{made.name}, ε = 4"
        yield partial(mechanisms.audit, made, size.draws // 8, name=label)
    made_of: dict[str, scenarios.Scenario] = {
        "trainings, ε = 4": scenarios.leaf_and_split(),
        "trainings, ε = 4, leaves only": scenarios.leaf_and_split(leaves=0.98),
        "trainings, ε = 4, splits mostly": scenarios.root_split(epsilon=4.0),
        "trainings, ε = 4, two levels in one selection": scenarios.root_split(4.0, levels=2),
        "trainings, ε = 4, intercept mostly": scenarios.label_sum(),
        "trainings for persons, ε = 4, rows in one leaf": persons.in_one_leaf(),
        "trainings for persons, ε = 4, rows in all leaves": persons.in_all_leaves(),
    }
    for name, scenario in made_of.items():
        yield partial(scenario.audit, name, None, size.trainings)
    made_of = {
        "trainings, min_child_weight": scenarios.min_child_weight(),
        "trainings, best cut of a feature": scenarios.split_winner(),
        "trainings of two trees": scenarios.reused_noise(),
        "trainings, seeds": scenarios.guessed_seed(_seeded),
        "trainings, node statistics": scenarios.exact_sum(),
    }
    for name, scenario in made_of.items():
        yield partial(scenario.audit, name, None, size.few)
    yield partial(discovery.audit_texts, "discovery, texts", size.draws // 20)
    yield partial(discovery.audit_numbers, "discovery, numbers", size.draws // 40)
    yield partial(one_run_case, size, "one training, ε = 1", epsilon=1.0)
    yield partial(one_run_case, size, "one training, ε = 8", epsilon=8.0)
