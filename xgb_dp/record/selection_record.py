"""Private selection: draws the secret number of runs and writes the ledger of the best run.

The number of runs is sampled with secret random bits from the operating system. All arithmetic uses
integers, so the sampled distributions are exact.

Proof: docs/proofs/selection.md
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from ..accounting.events import RATE_BITS, SHAPE_BITS, Event, Repetitions, SelectionEvent
from ..engine.native import draw_words
from ..errors import BudgetError
from . import ledger


@dataclass(frozen=True)
class Run:
    """One run of a selection: a private model and its noisy score."""

    booster: Any
    rank: float  # rank of the score; larger is better
    events: tuple[Event, ...]  # events of the score


AnyRun = TypeVar("AnyRun", bound=Run)


def best_of(event: SelectionEvent, run: Callable[[], AnyRun]) -> AnyRun:
    """Run a secret number of times and return the best run; discard the other models.

    The ledger of the best run is charged for the whole selection.

    Privacy: spends `event`. The caller must charge it to the budget first.
    """
    allowed = {_text(events) for events in event.runs}
    best: AnyRun | None = None
    for _ in range(repetitions(event.repetitions)):
        candidate = run()
        record = ledger.read_ledger(candidate.booster)
        alone = record.is_private and len(record.trainings) == 1
        if not alone or _text(record.events) not in allowed or candidate.events != event.score:
            raise BudgetError(
                "A run of the selection released something that was not accounted for. No model "
                "is returned. This is a bug in xgb_dp; please report it."
            )
        if best is None or candidate.rank > best.rank:
            best = candidate
    assert best is not None  # there is at least one run
    record = ledger.read_ledger(best.booster)
    charged = replace(record.trainings[0], events=(event,), drawn=None)
    ledger.store(best.booster, replace(record, trainings=(charged,)))
    return best


def complete(
    booster: Any, target: tuple[float, float], public: Mapping[str, Any], entry: str | None
) -> None:
    """Complete the ledger of the best run with the target of the selection."""
    record = ledger.read_ledger(booster)
    [last] = record.trainings
    whole = replace(last, target=target, public=public, entry=entry)
    ledger.store(booster, replace(record, trainings=(whole,)))


def _text(events: Iterable[Event]) -> str:
    """Serialize events in a canonical order; a ledger has them in the order of draws."""
    return "\n".join(sorted(json.dumps(e.to_json(), sort_keys=True) for e in events))


def _bernoulli(num: int, den: int) -> bool:
    """Return True with probability num / den."""
    return secrets.randbelow(den) < num


def repetitions(distribution: Repetitions) -> int:
    """Sample the number of runs, at least 1. It is secret: never store, print or log it."""
    if distribution.family == "poisson":
        while True:
            count = _poisson(distribution.rate_num, 1 << RATE_BITS)
            if count:
                return count
    while True:
        count = _geometric(distribution.rate_num)
        if _kept(count, distribution.shape_num, 1 << SHAPE_BITS):
            return count


def _geometric(num: int) -> int:
    """Sample k >= 1 with probability gamma (1 - gamma)^(k - 1), gamma = num / 2**32."""
    block = min(max(16, (1 << RATE_BITS) // num), 1 << 16)
    failed = 0
    while True:
        heads = draw_words(block) < np.uint64(num)
        if heads.any():
            return failed + int(np.argmax(heads)) + 1
        failed += block


def _kept(count: int, num: int, den: int) -> bool:
    """Accept with probability prod_{l=1}^{count-1} (l + eta) / (l + 1), eta = num / den <= 1."""
    return all(_bernoulli(step * den + num, (step + 1) * den) for step in range(1, count))


def _poisson(num: int, den: int) -> int:
    """Sample Poisson(num / den) as a sum of Poisson variables with rates of at most 1/2."""
    parts = -(-2 * num // den)
    return sum(_small_poisson(num, den * parts) for _ in range(parts))


def _small_poisson(num: int, den: int) -> int:
    """Sample Poisson(g) with g = num / den <= 1/2 by rejection.

    Trial k succeeds with probability g / (k + 1), so the first failure is at k with probability
    g^k / k! (1 - g / (k + 1)). Then k is accepted with probability (1 - g) / (1 - g / (k + 1)).
    """
    while True:
        count = 0
        while _bernoulli(num, (count + 1) * den):
            count += 1
        if _bernoulli((den - num) * (count + 1), (count + 1) * den - num):
            return count
