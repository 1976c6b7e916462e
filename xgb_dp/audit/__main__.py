"""Command ``python -m xgb_dp.audit``: attack trainings of this library and print lower bounds.

The exit status is 0 if no audit of this library finds a violation and the audit of a trainer
without noise finds one. For developers, ``tests/audit/`` has audits of each mechanism and of many
deliberately broken trainers.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from ..engine import native
from ..engine.progress import progress
from ..errors import PrivacyWarning
from .bounds import AuditResult
from .training import PreparedTraining, audit_neighbours, audit_one_run


@dataclass(frozen=True)
class AuditSize:
    """Number of trainings on each of two neighbouring data sets, and of canaries in one run."""

    trainings: int
    canaries: int


FULL = AuditSize(trainings=4_000, canaries=2_000)
FAST = AuditSize(trainings=300, canaries=500)

# Without shrinkage, leaf clipping and L2 penalty, a model reveals its noisy leaf sums.
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


def neighbours(size: AuditSize, name: str, epsilon: float) -> AuditResult:
    """Audit the prediction for one row by one-tree trainings with and without this row."""
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


def one_run(size: AuditSize, name: str, epsilon: float, *, noise_free: bool = False) -> AuditResult:
    """Audit one training on canaries with random labels, each included with probability 1/2."""
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


def cases(size: AuditSize) -> Iterator[Callable[[], AuditResult]]:
    """Yield audits of this library, which must not find a violation."""
    for epsilon in (1.0, 4.0):
        yield partial(neighbours, size, f"trainings of one tree, ε = {epsilon:g}", epsilon)
    for epsilon in (1.0, 8.0):
        yield partial(one_run, size, f"one training, ε = {epsilon:g}", epsilon)


def broken_cases(size: AuditSize) -> Iterator[Callable[[], AuditResult]]:
    """Yield the audit of a trainer without noise, which must find a violation."""
    yield partial(one_run, size, "no noise at all", 1.0, noise_free=True)


Audits = Iterable[Callable[[], AuditResult]]


def parser(program: str, description: str | None) -> argparse.ArgumentParser:
    """Create a parser with the options for selecting audits."""
    options = argparse.ArgumentParser(prog=program, description=description)
    options.add_argument(
        "--fast", action="store_true", help="use fewer draws; takes less than a minute"
    )
    options.add_argument(
        "--only",
        action="append",
        default=[],
        metavar="TEXT",
        help="run only audits with TEXT in their name; repeatable",
    )
    return options


def audit_all(intact: Audits, broken: Audits, only: list[str]) -> tuple[str, bool]:
    """Run all audits; return the results as Markdown, and whether they are as expected."""
    native.lib()
    start = time.perf_counter()
    of_intact, of_broken = _run(intact, only), _run(broken, only)
    parts = ["### This library", table(of_intact), "### Trainers broken on purpose"]
    text = "\n\n".join([*parts, table(of_broken)])
    good = not any(result.violated for result in of_intact)
    good &= all(result.violated for result in of_broken)
    print(text)
    print(f"{time.perf_counter() - start:.0f} s; {'as expected' if good else 'NOT AS EXPECTED'}")
    return text, good


def table(results: list[AuditResult]) -> str:
    """Results as a Markdown table; negative bounds are shown as 0."""
    lines = [
        "| audited | statistic | draws | δ | claimed ε(δ) | lower bound | verdict |",
        "|---|---|--:|--:|--:|--:|---|",
    ]
    for r in results:
        figures = f"{r.draws:,} | {r.delta:g} | {r.claimed_epsilon:.3f}"
        bound = f"{max(r.lower_bound, 0.0):.3f}"
        lines.append(f"| {r.name} | {r.statistic} | {figures} | {bound} | {r.verdict} |")
    return "\n".join(lines)


def _run(audits: Audits, only: list[str]) -> list[AuditResult]:
    chosen = [a for a in audits if not only or any(text in audit_name(a) for text in only)]
    results = []
    with warnings.catch_warnings(), progress("audit", len(chosen)) as step:
        warnings.simplefilter("ignore", PrivacyWarning)  # nobody keeps the models
        for number, audit in enumerate(chosen, 1):
            step(f"{number} of {len(chosen)}")
            start = time.perf_counter()
            result = audit()
            seconds = time.perf_counter() - start
            print(f"{seconds:6.1f} s  {result.verdict:12}  {result.name}", file=sys.stderr)
            results.append(result)
    return results


def audit_name(audit: Callable[[], AuditResult]) -> str:
    """The name of a case: its first string argument, or an empty string."""
    if not isinstance(audit, partial):
        return ""
    arguments = [*audit.keywords.values(), *audit.args]
    return next((value for value in arguments if isinstance(value, str)), "")


def main(arguments: list[str] | None = None) -> int:
    """Run the audits."""
    options = parser("python -m xgb_dp.audit", __doc__).parse_args(arguments)
    size = FAST if options.fast else FULL
    _, good = audit_all(cases(size), broken_cases(size), options.only)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
