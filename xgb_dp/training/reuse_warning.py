"""Warns about repeated trainings on the same rows that no budget counts.

Rows are identified by their object: a matrix, or the table that an estimator is fitted on. A copy
is another object, so trainings on copies are not counted together. Records live as long as the
object.
"""

from __future__ import annotations

import math
import os
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any, NamedTuple

from ..accounting import Unit
from ..accounting.gaussian import gaussian_epsilon, gaussian_mu
from ..accounting.units import all_same
from ..record.ledger_model import Ledger

_TABLE: ContextVar[Any] = ContextVar("xgb_dp_table", default=None)


class _Spent(NamedTuple):
    """The cost of a training, for the warning."""

    noisy: bool  # whether it is private, with noise from the operating system
    unit: Unit
    targets: tuple[tuple[float, float], ...]  # epsilon and delta of each training of the model
    last: str | None  # name of the last tree; None before the first tree

    @classmethod
    def of(cls, record: Ledger) -> _Spent:
        targets = tuple(t.target for t in record.trainings)
        trees = record.trainings[-1].trees or (None,)
        return cls(record.private and record.noise == "os", record.unit, targets, trees[-1])


_trained: dict[int, dict[object, _Spent]] = {}  # by id() of the object, then by training
_lock = threading.Lock()


@contextmanager
def made_of(table: Any) -> Iterator[None]:
    """Set the table that the matrix of a training is built from."""
    token = _TABLE.set(table)
    try:
        yield
    finally:
        _TABLE.reset(token)


def _rows(dtrain: Any) -> Any:
    return dtrain if _TABLE.get() is None else _TABLE.get()


def keep(dtrain: Any, training: object, record: Ledger) -> None:
    """Record the claim of a training, and replace it by the final ledger at the end."""
    rows = _rows(dtrain)
    with _lock:
        if id(rows) not in _trained:
            with suppress(TypeError):  # the object does not support weak references
                weakref.finalize(rows, _trained.pop, id(rows), None).atexit = False
                _trained[id(rows)] = {}
        _trained.get(id(rows), {})[training] = _Spent.of(record)


def of_total(dtrain: Any, claimed: Ledger) -> list[str]:
    """A warning before the second, fourth, eighth, ... training on the same rows."""
    with _lock:
        kept = list(_trained.get(id(_rows(dtrain)), {}).values())
    # The new model includes the model that it continues.
    records = [*(r for r in kept if r.last not in claimed.tree_names), _Spent.of(claimed)]
    count = len(records)
    if count < 2 or count & (count - 1) or not all(r.noisy for r in records):
        return []
    cost = "they are for different units, so nothing bounds what they cost together"
    if all_same(record.unit for record in records):
        targets = [target for record in records for target in record.targets]
        delta, total = max(d for _, d in targets), math.fsum(epsilon for epsilon, _ in targets)
        if all(d for _, d in targets):  # treat each as a Gaussian mechanism
            mu = math.hypot(*(gaussian_mu(*target) for target in targets))
            total = min(total, gaussian_epsilon(mu, delta))
        cost = f"together they cost about epsilon {total:.3g} at delta {delta:g}"
    return [
        f"These rows train private model number {count}, and no budget counts them: {cost}. Keep "
        "one book (`xgb_dp.Budget`) for all that is shown of them. "
        "`xgb_dp.privacy_report([first, second])` gives the exact total."
    ]


if hasattr(os, "register_at_fork"):  # a fork must not copy a lock that another thread holds
    os.register_at_fork(
        before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release
    )
