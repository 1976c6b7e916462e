"""Agreement between the workers of a distributed training before anything is released.

Every worker runs :func:`xgb_dp.training.hook.before_train` on its own rows. All workers derive the
same plan from the same parameters; anything that could differ between them is checked or exchanged
here. Sums over rows are computed in C++: exact sums (``plugin_cpp/release/workers.h``,
``docs/proofs/distributed.md``), or noisy and masked ones (``plugin_cpp/release/``,
``docs/proofs/masked-sums.md``).

Messages are JSON or plain bytes, never pickles: loading a pickle can run arbitrary code of the
sender, and workers that keep their rows private need not trust each other that much.
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
"""Error types that are raised as the same type on all workers."""
_LONGEST = 1 << 33
"""Maximum size of a message in bytes; xgb_dp never sends a longer one."""


def _collective() -> Any:
    """Return xgboost's collective module, or None if there is only one worker."""
    from xgboost import collective

    return collective if collective.is_distributed() else None


def this_worker() -> tuple[int, int]:
    """Return the rank of this worker and the number of workers; (0, 1) without a cluster."""
    collective = _collective()
    return (0, 1) if collective is None else (collective.get_rank(), collective.get_world_size())


def _collective_broadcast(data: bytes, root: int) -> bytes:
    """Broadcast bytes from `root` to all other workers."""
    from xgboost.core import _LIB, _check_call

    rank, _ = this_worker()
    length = ctypes.c_uint64(len(data) if rank == root else 0)
    _check_call(_LIB.XGCommunicatorBroadcast(ctypes.byref(length), ctypes.sizeof(length), root))
    if length.value > _LONGEST:
        raise invalid_message_error()
    if length.value == 0:
        return b""
    buffer = (ctypes.c_char * length.value)()
    if rank == root:
        buffer.raw = data
    _check_call(_LIB.XGCommunicatorBroadcast(buffer, ctypes.c_uint64(length.value), root))
    return buffer.raw


def _broadcast_json(value: Any, root: int) -> Any:
    """Broadcast a JSON value from `root`; `value` is ignored on the other workers."""
    is_root = this_worker()[0] == root
    received = _collective_broadcast(json.dumps(value).encode() if is_root else b"", root)
    try:
        return json.loads(received)
    except (ValueError, RecursionError):
        raise invalid_message_error() from None


def invalid_message_error() -> PrivacyRefusal:
    """Return the error for data that is not a message of xgb_dp."""
    return PrivacyRefusal(
        "A worker sent data that is not a message of xgb_dp. Use the same version on all workers, "
        "and make sure that no other process joins them. Nothing was released."
    )


def all_gather(text: str) -> list[str]:
    """Gather a string from every worker, by rank; it is sent unencrypted and must be public."""
    if _collective() is None:
        return [text]
    _, world = this_worker()
    return [str(_broadcast_json(text, root)) for root in range(world)]


def broadcast(root: int, data: bytes) -> bytes:
    """Broadcast bytes from worker `root` to all workers."""
    return data if _collective() is None else _collective_broadcast(data, root)


def broadcast_first(value: Any) -> Any:
    """Return the value of the first worker that has one; sent unencrypted, so it must be public."""
    collective = _collective()
    if collective is None:
        return value
    rank, world = this_worker()
    candidate = np.array([world if value is None else rank], dtype=np.int64)
    root = int(collective.allreduce(candidate, collective.Op.MIN)[0])
    return None if root == world else _broadcast_json(value, root)


def check_together(check: Callable[[], T]) -> T:
    """Run a check of this worker's rows, and fail on all workers if it fails on one.

    Otherwise the remaining workers would wait for the failed one.
    """
    collective = _collective()
    if collective is None:
        return check()
    failure: Exception | None = None
    try:
        result = check()
    except Exception as error:
        failure = error
    # Messages of this package contain no values or row numbers; other messages might.
    known = isinstance(failure, PrivacyError)
    text = str(failure) if known else "Its checks failed. Nothing was released."
    received = broadcast_first(None if failure is None else [type(failure).__name__, text])
    if failure is not None:  # even if another worker claims that no check failed
        raise failure
    if received is not None:
        pair = isinstance(received, list) and len(received) == 2
        name, reason = received if pair else ("", received)
        kind = next((e for e in _SHARED if e.__name__ == name), RowDomainError)
        raise kind(f"On another worker: {reason}")
    return result


def check_agreement(text: str) -> None:
    """Check that all workers train by the same plan on the same columns."""
    collective = _collective()
    if collective is None:
        return
    differs = _broadcast_json(text, 0) != text
    some_differ = collective.allreduce(np.array([differs], dtype=np.int32), collective.Op.MAX)
    if some_differ[0] or differs:  # `differs` holds whatever another worker claims
        raise PrivacyParameterError(
            "The workers do not agree on the training: their parameters, columns or versions of "
            "xgb_dp differ. Use the same ones on every worker. Nothing was released."
        )
