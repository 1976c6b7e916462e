"""What the workers of a distributed training agree on before anything is released.

Every worker runs :func:`xgb_dp.training.hook.before_train` on its own rows. All derive the same
plan from the same parameters; what they could differ in is what is checked or shared here. Sums of
rows are added up in C++: exact ones (``plugin_cpp/release/workers.h``,
``docs/proofs/distributed.md``), or noisy and masked ones (``plugin_cpp/release/``,
``docs/proofs/masked-sums.md``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np

from ..errors import PrivacyError, PrivacyParameterError, RowDomainError

if TYPE_CHECKING:
    from ..request.features import Schema

__all__ = [
    "check_agreement",
    "check_together",
    "common_schema",
    "first_of_all",
    "tell_all",
    "this_worker",
    "told_by",
]


T = TypeVar("T")


def _collective() -> Any:
    """The collective module, or None on one machine."""
    from xgboost import collective

    return collective if collective.is_distributed() else None


def this_worker() -> tuple[int, int]:
    """Rank of this worker and number of workers; 0 and 1 on one machine."""
    collective = _collective()
    return (0, 1) if collective is None else (collective.get_rank(), collective.get_world_size())


def tell_all(text: str) -> list[str]:
    """A text of every worker, by rank. It travels in the clear, and is public."""
    collective = _collective()
    if collective is None:
        return [text]
    rank, world = this_worker()
    return [str(collective.broadcast(text if root == rank else "", root)) for root in range(world)]


def told_by(root: int, mine: Any) -> Any:
    """What one worker tells all others.

    Args:
        root: Rank of that worker.
        mine: What it tells; None on the others.
    """
    collective = _collective()
    return mine if collective is None else collective.broadcast(mine, root)


def first_of_all(mine: Any) -> Any:
    """What the first worker with an answer says; it travels in the clear, and is public.

    Args:
        mine: This worker's answer, None for none.

    Returns:
        The same on every worker; None if none has an answer.
    """
    collective = _collective()
    if collective is None:
        return mine
    rank, world = this_worker()
    candidate = np.array([world if mine is None else rank], dtype=np.int64)
    root = int(collective.allreduce(candidate, collective.Op.MIN)[0])
    return None if root == world else collective.broadcast(mine, root)


def common_schema(schema: Schema) -> Schema:
    """The public schema, also for a worker whose matrix has neither rows nor columns.

    Args:
        schema: What this worker's matrix says. One without columns takes that of the first worker
            which has some.

    Returns:
        Schema: On one machine, and on workers with columns, the one given. Public.
    """
    # Names and types are public. The categories that a data frame comes with are data of its
    # worker, until they have been compared with the declared ones.
    common = first_of_all(replace(schema, dictionaries={}) if schema.width else None)
    return schema if schema.width or common is None else common


def check_together(check: Callable[[], T]) -> T:
    """Run a check of this worker's rows, and fail on all workers where it fails on one.

    Without this the others would wait for a worker that has gone.

    Args:
        check: Raises :class:`RowDomainError` for a row outside the declared domain.

    Returns:
        What the check returns on this worker.

    Raises:
        RowDomainError: On every worker, with the reason.
    """
    collective = _collective()
    if collective is None:
        return check()
    failure: Exception | None = None
    found: Any = None
    try:
        found = check()
    except Exception as error:
        failure = error
    rank, world = this_worker()
    candidate = np.array([world if failure is None else rank], dtype=np.int64)
    root = int(collective.allreduce(candidate, collective.Op.MIN)[0])
    if root < world:
        # Messages of this package hold no value and no row number, see rows.py; others might.
        known = isinstance(failure, PrivacyError)
        text = str(failure) if known else "Its checks failed. Nothing was released."
        reason = str(collective.broadcast(text, root))
        raise failure or RowDomainError(f"On another worker: {reason}")
    return cast(T, found)


def check_agreement(plan_text: str, schema: Schema) -> None:
    """All workers train by the same plan, on the same columns.

    Args:
        plan_text: This worker's plan; it holds every parameter that matters for privacy.
        schema: The public schema.

    Raises:
        PrivacyParameterError: Some worker was given other parameters, other columns or another
            version of xgb_dp. Nothing was released.
    """
    collective = _collective()
    if collective is None:
        return
    mine = f"{plan_text}\n{schema.names}"
    theirs = collective.broadcast(mine, 0)
    differs = collective.allreduce(np.array([mine != theirs], dtype=np.int32), collective.Op.MAX)
    if differs[0]:
        raise PrivacyParameterError(
            "The workers do not agree on the training: parameters, columns, or versions of xgb_dp "
            "differ. Give every worker the same ones. Nothing was released."
        )
