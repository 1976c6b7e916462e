"""Rows of Dask and Spark, brought together by person, and a Dask training that begins once.

The bound of a person is enforced by the worker that has all of their rows. Which worker that is
follows from a hash with a key of this training alone. Exact sums do not depend on where rows are,
so nothing of it is released. Batches of Spark must have equal width.

Dask runs the tasks of a dead worker again, and those that failed if retries are set. For a training
that would be new noise on the same rows, and only the ledger of the last run would come back. A
worker is known by the name that Dask draws for it when it starts: a restarted worker has another
name, whatever its address is.

Proof: docs/proofs/distributed.md
"""

from __future__ import annotations

import copy
import secrets
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from xgboost.collective import Config

from .data.arrays import check_sparse
from .data.frames import without_column
from .data.ids import Persons, encode_persons, join_persons, read_id_column
from .data.matrices import attach, id_column
from .data.worker_rows import worker_matrix
from .engine import workers
from .errors import PrivacyError, PrivacyParameterError, PrivacyRefusal, RowDomainError, named
from .request.names import read_one
from .training.input_checks import check_dask

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
    ids = None if isinstance(given, str) else _worker_parts(client, given, dtrain)
    column = given if isinstance(given, str) else read_id_column(given)
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


def _worker_parts(client: Any, given: Any, dtrain: Any) -> list[Any]:
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
        persons = encode_persons(ids, rows["data"].shape[0], column)
        places = persons.places(key, world)[persons.codes]
        pieces = []
        for here in (places == number for number in range(world)):
            piece = {name: values[here] for name, values in rows.items()}
            pieces.append({**piece, "persons": persons.select(here)})
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


_IDS, _VALID = "dp_privacy_id", "validationIndicator"  # the latter is XGBoost's own, as these are
_DATA, _SIZES, _VALUES = "values", "featureVectorSize", "featureVectorValues"


def spark_rows(estimator: Any, rows: Any, columns: list[Any]) -> Any:
    """The rows by person: all of one person in one partition, of which each worker has one."""
    if type(rows).__module__.startswith("pyspark.sql.connect."):
        raise PrivacyRefusal(
            "Spark Connect is refused with dp_* parameters: a client that loses its server may "
            "send the training again, which would draw new noise for the same rows. Train in a "
            "session of the cluster itself, for example by spark-submit."
        )
    column = id_column(estimator.getOrDefault(estimator.arbitrary_params_dict))
    if column is None:
        return rows
    from pyspark.sql.functions import col

    columns.append(col(column).alias(_IDS))
    return rows.repartition(estimator.getOrDefault(estimator.num_workers), column)


def spark_matrices(params: Mapping[str, Any]) -> Callable[..., tuple[Any, Any]]:
    """What makes the matrices of a worker, for training and for validation, as XGBoost does."""
    column = id_column(params)

    def make(iterator: Iterator[Any], **kwargs: Any) -> tuple[Any, Any]:
        from xgboost.spark.data import create_dmatrix_from_partitions

        ids: list[Any] = []
        widths: set[int] = set()
        names = kwargs["feature_cols"]
        seen = None if names else widths
        # All are read before XGBoost joins them, so that all workers hear of what is wrong.
        batches = workers.check_together(lambda: list(_read(iterator, ids, seen)))
        common = workers.broadcast_first(next(iter(widths), None))
        workers.check_together(lambda: _check_widths(widths, common))
        each = (batches.pop(0) for _ in range(len(batches)))  # lets go of what has been taken
        train, valid = create_dmatrix_from_partitions(iterator=each, **kwargs)
        for matrix in (train, valid):
            _name(matrix, names, kwargs["kwargs"])
        if column is not None:
            attach(train, workers.check_together(lambda: _joined(ids, column)))
        return train, valid

    return make


def _read(batches: Iterator[Any], ids: list[Any], widths: set[int] | None) -> Iterator[Any]:
    """Batches of rows without their ids; keeps the ids trained on, and the lengths of vectors."""
    for batch in batches:
        if _IDS in batch.columns:
            trained = ~batch[_VALID].astype(bool) if _VALID in batch.columns else slice(None)
            ids.append(batch[_IDS][trained])
            batch = batch.drop(columns=[_IDS])
        if widths is not None:
            widths.update(_widths(batch))
        elif _DATA not in batch.columns:
            # XGBoost looks for it where no row of a batch is trained on, or none is for validation.
            batch = batch.assign(**{_DATA: None})
        yield batch


def _widths(batch: Any) -> Iterator[int]:
    """How many features each row of arrays or vectors has, -1 where it has none."""
    dense = _DATA in batch.columns
    cells = batch[_DATA if dense else _VALUES]
    sizes = [None] * len(batch) if dense else batch[_SIZES]
    for row, size in zip(cells, sizes, strict=True):  # only sparse vectors have a size
        yield int(size) if size is not None and size > 0 else -1 if row is None else len(row)


def _check_widths(widths: set[int], common: int | None) -> None:
    """XGBoost would fill in what the vectors of one worker lack, whichever rows it has."""
    if -1 in widths or widths - {common}:
        raise PrivacyParameterError(
            "The arrays or vectors of features differ in length, or are missing. Give all rows "
            "the same number of features."
        )


def _name(matrix: Any, names: Any, given: Mapping[str, Any]) -> None:
    """Name the columns of a matrix without rows, since a single row would do so."""
    if matrix is not None and names and matrix.num_row() == 0 < matrix.num_col():
        matrix.feature_names = given.get("feature_names", list(names))
        matrix.feature_types = given.get("feature_types", ["float"] * len(names))


def _joined(ids: list[Any], column: str) -> Persons:
    """Who the rows belong to; read last, so that all workers hear of what is wrong."""
    parts = [encode_persons(part, column=column) for part in ids]
    return join_persons([*parts, encode_persons([], column=column)])


_BEGUN: set[tuple[str, str]] = set()  # training and worker, for the life of this process


@dataclass(frozen=True)
class SingleRun:
    """A training that each of the workers of a cluster may begin once."""

    workers: frozenset[str]  # names of those that were there when it was started
    name: str = field(default_factory=secrets.token_hex)

    @classmethod
    async def start(cls, client: Any) -> SingleRun:
        """A training on the workers that run now."""

        # Defined here, it travels as it is, so that the scheduler needs no package of this name.
        def names(dask_scheduler: Any) -> list[str]:
            return [worker.server_id for worker in dask_scheduler.workers.values()]

        return cls(frozenset(await client.run_on_scheduler(names)))

    def begin(self) -> None:
        """Called by a worker before it joins the others, so that nobody waits for it."""
        from distributed import get_worker

        worker = get_worker().id
        if worker not in self.workers or (self.name, worker) in _BEGUN:
            raise PrivacyRefusal(
                "The cluster was about to begin this training again, because a worker was lost or "
                "a task failed. The first run may have released noisy results, and a second one "
                f"would draw new noise for the same rows. Count {named.dp_epsilon} and "
                f"{named.dp_delta} as "
                "spent, find out what ended the first run, and start another training yourself."
            )
        _BEGUN.add((self.name, worker))


async def before_dask(
    client: Any,
    params: Mapping[str, Any],
    dtrain: Any,
    evals: Sequence[Any] | None,
    config: Config | None,
) -> tuple[Mapping[str, Any], Any, Config, Callable[[], Callable[..., Any]]]:
    """Check the data of ``xgboost.dask``, and move the rows of each person to one worker."""
    check_dask(dtrain, evals)
    config = _on_network_of_cluster(client, config or Config())
    params, dtrain = await bring_together(client, params, dtrain)
    return params, dtrain, config, partial(_begin, params, await SingleRun.start(client))


def _on_network_of_cluster(client: Any, config: Config) -> Config:
    """Let the tracker listen on the scheduler's address, unless the user sets another one.

    XGBoost guesses an address of the scheduler's host, possibly a public one. Workers listen on the
    interface that reaches the tracker.
    """
    import dask
    from distributed.comm import get_address_host

    if config.tracker_host_ip or dask.config.get("xgboost.scheduler_address", None):
        return config
    return replace(config, tracker_host_ip=get_address_host(client.scheduler_info()["address"]))


def _begin(params: Mapping[str, Any], once: SingleRun) -> Callable[..., Any]:
    """Start the training on a worker, and return the function that builds its matrix."""
    once.begin()
    return partial(worker_matrix, read_one(params, "dp_categories"))
