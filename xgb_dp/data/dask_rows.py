"""Rows of a Dask cluster, brought together by person before matrices are made of them.

The bound of a person is enforced by the worker that has all of their rows. Which worker that is
follows from a hash with a key of this training alone. Exact sums do not depend on where rows lie,
so nothing of it is released.
"""

from __future__ import annotations

import copy
import secrets
from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from ..errors import PrivacyError, PrivacyParameterError, RowDomainError
from .frames import without_column
from .ids import column_of, persons_of
from .sparse import check_sparse

_NAME = "dp_privacy_id"
_EXPECTED = (
    f"With Dask `{_NAME}` is the name of a column of the data frame, or a Dask series or array "
    "with the partitions of the data"
)


async def bring_together(
    client: Any, params: Mapping[str, Any], dtrain: Any
) -> tuple[Mapping[str, Any], Any]:
    """The same rows, laid out so that each person has theirs on one worker."""
    given = dict(params).get(_NAME)
    if given is None:
        return params, dtrain
    ids = None if isinstance(given, str) else _parts_of(client, given, dtrain)
    column = given if isinstance(given, str) else column_of(given)
    key, addresses = secrets.token_bytes(32), sorted(dtrain.worker_map)
    divided: list[Any] = []
    for address, parts in dtrain.worker_map.items():
        for part in parts:
            ids_of_part = None if ids is None else ids[dtrain.partition_order[part.key]]
            more = (ids_of_part, column, key, len(addresses))
            divided += _each(client, _divided, [part], *more, workers=[address])
    failures = [f for f in await client.gather(_each(client, _failure, divided)) if f is not None]
    if failures:
        raise failures[0]
    rows = copy.copy(dtrain)
    rows.worker_map = defaultdict(list)
    for number, address in enumerate(addresses):
        pieces = _each(client, _piece, divided, number)
        rows.worker_map[address] = _each(client, _moved, pieces, workers=[address])
    moved = [part for parts in rows.worker_map.values() for part in parts]
    await client.gather(_each(client, _failure, moved))  # until all have arrived
    return {**dict(params), _NAME: column or True}, rows


def _each(client: Any, function: Any, futures: list[Any], *more: Any, **kwargs: Any) -> list[Any]:
    """A task for each future; without `workers` where its data are."""
    return [client.submit(function, future, *more, pure=False, **kwargs) for future in futures]


def _parts_of(client: Any, given: Any, dtrain: Any) -> list[Any]:
    """Futures of the ids of each partition."""
    if not hasattr(given, "dask") or not hasattr(given, "partitions"):
        raise PrivacyParameterError(f"{_EXPECTED}; it is a {type(given).__name__}.")
    parts = client.futures_of(client.persist(given))
    if len(parts) != len(dtrain.partition_order):
        raise PrivacyParameterError(
            f"{_EXPECTED}; it has another number of partitions. Repartition it like the data."
        )
    return list(parts)


def _divided(
    part: Mapping[str, Any], ids: Any, column: str | None, key: bytes, world: int
) -> list[dict[str, Any]] | PrivacyError:
    """One part of the rows for each worker, or what is wrong.

    An error that a task raises is logged together with what the task was given.
    """
    try:
        rows = dict(part)
        if ids is None and column is not None:
            rows["data"], ids = without_column(rows["data"], column)
        check_sparse(rows["data"])  # before it is divided
        persons = persons_of(ids, rows["data"].shape[0], column)
        places = persons.places(key, world)[persons.codes]
        pieces = []
        for here in (places == number for number in range(world)):
            piece = {name: values[here] for name, values in rows.items()}
            pieces.append({**piece, "persons": persons.some(here)})
        return pieces
    except PrivacyError as error:
        return type(error)(str(error))
    except Exception:
        return RowDomainError(
            "The rows cannot be brought together by `dp_privacy_id`, and the reason is not shown "
            "because it may quote a cell."
        )


def _failure(result: Any) -> PrivacyError | None:
    return result if isinstance(result, PrivacyError) else None


def _piece(divided: list[dict[str, Any]], number: int) -> dict[str, Any]:
    return divided[number]


def _moved(piece: dict[str, Any]) -> dict[str, Any]:
    return piece
