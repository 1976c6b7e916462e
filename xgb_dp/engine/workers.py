"""Agreement of the workers of a distributed training, before anything is released.

Every worker runs :func:`xgb_dp.training.hook.before_train` on its own rows. All derive the same
plan from the same parameters; whatever could differ between them is checked or shared here. Sums of
rows are added up in C++: exact ones (``plugin_cpp/release/workers.h``,
``docs/proofs/distributed.md``), or noisy and masked ones (``plugin_cpp/release/``,
``docs/proofs/masked-sums.md``).

Messages are JSON or plain bytes, never pickles: reading a pickle runs whatever its sender likes,
and workers that keep their rows to themselves need not trust each other that far.
"""

from __future__ import annotations

import ctypes
import json
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from ..errors import PrivacyError, PrivacyParameterError, PrivacyRefusal, RowDomainError

T = TypeVar("T")

_SHARED: tuple[type[PrivacyError], ...] = (PrivacyParameterError, PrivacyRefusal, RowDomainError)
"""Errors that are raised on all workers where one has them."""
_LONGEST = 1 << 33
"""Bytes of a message; who says that a longer one comes is no worker of ours."""


def _collective() -> Any:
    """The collective module, or None on one machine."""
    from xgboost import collective

    return collective if collective.is_distributed() else None


def this_worker() -> tuple[int, int]:
    """Rank of this worker and number of workers; 0 and 1 on one machine."""
    collective = _collective()
    return (0, 1) if collective is None else (collective.get_rank(), collective.get_world_size())


def _collective_broadcast(data: bytes, root: int) -> bytes:
    """What one worker sends to all others, as bytes."""
    from xgboost.core import _LIB, _check_call

    rank, _ = this_worker()
    length = ctypes.c_uint64(len(data) if rank == root else 0)
    _check_call(_LIB.XGCommunicatorBroadcast(ctypes.byref(length), ctypes.sizeof(length), root))
    if length.value > _LONGEST:
        raise no_message()
    if length.value == 0:
        return b""
    buffer = (ctypes.c_char * length.value)()
    if rank == root:
        buffer.raw = data
    _check_call(_LIB.XGCommunicatorBroadcast(buffer, ctypes.c_uint64(length.value), root))
    return buffer.raw


def _echo(value: Any, root: int) -> Any:
    """What one worker says to all others, as JSON; `value` is not read on the others."""
    mine = this_worker()[0] == root
    said = _collective_broadcast(json.dumps(value).encode() if mine else b"", root)
    try:
        return json.loads(said)
    except (ValueError, RecursionError):
        raise no_message() from None


def no_message() -> PrivacyRefusal:
    """The error about what is not a message of ours."""
    return PrivacyRefusal(
        "A worker has sent something that is not a message of xgb_dp. Start all workers with the "
        "same version, and let nobody else join them. Nothing was released."
    )


def all_gather(text: str) -> list[str]:
    """A text of every worker, by rank. It travels in the clear, and is public."""
    if _collective() is None:
        return [text]
    _, world = this_worker()
    return [str(_echo(text, root)) for root in range(world)]


def broadcast(root: int, mine: bytes) -> bytes:
    """What one worker tells all others."""
    return mine if _collective() is None else _collective_broadcast(mine, root)


def first_of_all(mine: Any) -> Any:
    """What the first worker with an answer says; it travels in the clear, and is public."""
    collective = _collective()
    if collective is None:
        return mine
    rank, world = this_worker()
    candidate = np.array([world if mine is None else rank], dtype=np.int64)
    root = int(collective.allreduce(candidate, collective.Op.MIN)[0])
    return None if root == world else _echo(mine, root)


def check_together(check: Callable[[], T]) -> T:
    """Run a check of this worker's rows, and fail on all workers where it fails on one.

    Without this the others would wait for a worker that has gone.
    """
    collective = _collective()
    if collective is None:
        return check()
    failure: Exception | None = None
    try:
        result = check()
    except Exception as error:
        failure = error
    # Messages of this package hold no value and no row number; others might.
    known = isinstance(failure, PrivacyError)
    text = str(failure) if known else "Its checks failed. Nothing was released."
    said = first_of_all(None if failure is None else [type(failure).__name__, text])
    if failure is not None:  # also where somebody on the network says that none has failed
        raise failure
    if said is not None:
        name, reason = said if isinstance(said, list) and len(said) == 2 else ("", said)
        kind = next((e for e in _SHARED if e.__name__ == name), RowDomainError)
        raise kind(f"On another worker: {reason}")
    return result


def check_agreement(text: str) -> None:
    """All workers train by the same plan, on the same columns."""
    collective = _collective()
    if collective is None:
        return
    differs = _echo(text, 0) != text
    some_differ = collective.allreduce(np.array([differs], dtype=np.int32), collective.Op.MAX)
    if some_differ[0] or differs:  # whatever somebody on the network says of it
        raise PrivacyParameterError(
            "The workers do not agree on the training: parameters, columns, or versions of xgb_dp "
            "differ. Give every worker the same ones. Nothing was released."
        )
