"""The audits that ``python -m xgb_dp.audit`` runs: trainings of the library that is installed.

The audits of each mechanism, and of trainers broken in many ways, are those of the developers, in
``tests/audit/``.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from .bounds import AuditResult
from .training import PreparedTraining, audit_neighbours, audit_one_run


@dataclass(frozen=True)
class Size:
    """Trainings on each of two neighbours, and canaries of one run."""

    trainings: int
    canaries: int


FULL = Size(trainings=4_000, canaries=2_000)
FAST = Size(trainings=300, canaries=500)

# No shrinkage, no clip of leaves and lambda=0: noisy leaf sums can be read from a model.
PLAIN: dict[str, Any] = {
    "tree_method": "dp_hist",
    "objective": "binary:logistic",
    "dp_delta": 1e-6,
    "dp_epsilon": 1.0,
    "dp_tree_shape": "per_node",
    "dp_shrinkage": False,
    "max_depth": 1,
    "max_delta_step": 0,
    "eta": 1.0,
    "lambda": 0.0,
    "base_score": 0.5,
    "disable_default_eval_metric": True,
    "nthread": 1,
    "verbosity": 0,
}


def neighbours(size: Size, name: str, epsilon: float) -> AuditResult:
    """Trainings of one tree on 80 rows, with one more row or without; what is predicted for it."""
    from xgboost import DMatrix

    X = np.array([[0.0], [1.0]] * 40 + [[0.0]], dtype=np.float32)
    y = np.array([1.0, 1.0, 0.0, 0.0] * 20 + [0.0], dtype=np.float32)

    def matrix(rows: slice) -> Any:
        return DMatrix(X[rows], y[rows], nthread=1)

    fewer, more, canary = matrix(slice(80)), matrix(slice(81)), matrix(slice(80, 81))
    params = PLAIN | {"dp_epsilon": epsilon, "dp_feature_cuts": {0: [0.5]}}
    train = PreparedTraining(params, fewer, rounds=1)
    return audit_neighbours(
        lambda rows: float(train(rows).predict(canary, output_margin=True)[0]),
        fewer,
        more,
        train.claim,
        trainings=size.trainings,
        name=name,
        statistic="margin of the canary",
    )


def one_run(size: Size, name: str, epsilon: float, *, noise_free: bool = False) -> AuditResult:
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
        "dp_feature_bounds": dict.fromkeys(range(columns), (-3.0, 3.0, "even")),
        "dp_tree_shape": "per_node",
        "max_depth": 8,
        "lambda": 0.1,
        "nthread": 1,
        "verbosity": 0,
    }
    rounds = 20
    claim = PreparedTraining(params, xgb.DMatrix(X, y), rounds).claim
    if noise_free:
        params["dp_epsilon"] = math.inf

    def train(included: npt.NDArray[np.bool_]) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return xgb.train(params, xgb.DMatrix(X[included], y[included]), rounds)

    def score(model: Any) -> npt.NDArray[np.float64]:
        margin = model.predict(xgb.DMatrix(X), output_margin=True).astype(np.float64)
        return np.asarray(np.where(y > 0, margin, -margin), dtype=np.float64)

    return audit_one_run(
        train, score, size.canaries, claim, delta=1e-6, name=name, statistic="margin of canaries"
    )


def cases(size: Size) -> Iterator[Callable[[], AuditResult]]:
    """Audits of this library; none may show a violation."""
    for epsilon in (1.0, 4.0):
        yield partial(neighbours, size, f"trainings of one tree, ε = {epsilon:g}", epsilon)
    for epsilon in (1.0, 8.0):
        yield partial(one_run, size, f"one training, ε = {epsilon:g}", epsilon)


def broken_cases(size: Size) -> Iterator[Callable[[], AuditResult]]:
    """The audit of a trainer without noise, which must show a violation."""
    yield partial(one_run, size, "no noise at all", 1.0, noise_free=True)
