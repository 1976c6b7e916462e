"""Dask and Spark support: partition rows by person, and run each Dask training only once.

A person's contribution is bounded by the worker that has all rows of that person. The worker is
chosen by a hash with a fresh random key for each training. Exact sums do not depend on the
placement of rows, so the placement is not released. Spark batches must have equal width.

Dask reruns the tasks of a dead worker, and failed tasks if retries are set. A rerun of a training
would draw new noise for the same rows, and only the ledger of the last run would be returned, so
reruns are refused. A worker is identified by the random id that Dask assigns when it starts; a
restarted worker has a new id, even at the same address.

Proof: docs/proofs/distributed.md
"""

from __future__ import annotations

import copy
import operator
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
    f"With Dask, `{_NAME}` must be the name of a column of the data frame, or a Dask series or "
    "array with the same partitions as the data"
)


async def bring_together(
    client: Any, params: Mapping[str, Any], dtrain: Any
) -> tuple[Mapping[str, Any], Any]:
    """Repartition the rows so that all rows of a person are on one worker."""
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
        pieces = _each(client, operator.getitem, divided, number)
        rows.worker_map[address] = _each(client, _identity, pieces, workers=[address])
    moved = [part for parts in rows.worker_map.values() for part in parts]
    await client.gather(_each(client, _failure, moved))  # wait until all parts have arrived
    return {**dict(params), _NAME: column or True}, rows


def _each(client: Any, function: Any, futures: list[Any], *more: Any, **kwargs: Any) -> list[Any]:
    """Submit a task for each future; without `workers`, it runs where its data is."""
    return [client.submit(function, future, *more, pure=False, **kwargs) for future in futures]


def _worker_parts(client: Any, given: Any, dtrain: Any) -> list[Any]:
    """Return futures of the ids of each partition."""
    if not hasattr(given, "dask") or not hasattr(given, "partitions"):
        raise PrivacyParameterError(f"{_EXPECTED}; got a {type(given).__name__}.")
    parts = client.futures_of(client.persist(given))
    if len(parts) != len(dtrain.partition_order):
        raise PrivacyParameterError(
            f"{_EXPECTED}; it has a different number of partitions. Repartition it like the data."
        )
    return list(parts)


def _divided(
    part: Mapping[str, Any], ids: Any, column: str | None, key: bytes, world: int
) -> list[dict[str, Any]] | PrivacyError:
    """Divide a partition into one piece per worker; return an error instead of raising it.

    Dask logs an error raised by a task together with the arguments of the task, which are rows.
    """
    try:
        rows = dict(part)
        if ids is None and column is not None:
            rows["data"], ids = without_column(rows["data"], column)
        check_sparse(rows["data"])  # check before dividing
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
            "The rows cannot be partitioned by `dp_privacy_id`. The cause is hidden because it "
            "could quote a cell. Check the types of the ids and of the data."
        )


def _failure(result: Any) -> PrivacyError | None:
    return result if isinstance(result, PrivacyError) else None


def _identity(piece: dict[str, Any]) -> dict[str, Any]:
    return piece


_IDS, _VALID = "dp_privacy_id", "validationIndicator"  # all but the first are XGBoost's names
_DATA, _SIZES, _VALUES = "values", "featureVectorSize", "featureVectorValues"


def spark_rows(estimator: Any, rows: Any, columns: list[Any]) -> Any:
    """Repartition rows by person, with one partition per worker."""
    if type(rows).__module__.startswith("pyspark.sql.connect."):
        raise PrivacyRefusal(
            "Spark Connect is refused with dp_* parameters: after losing its connection, a client "
            "can submit the training again, which would draw new noise for the same rows. Train "
            "in a session on the cluster itself, for example with spark-submit."
        )
    column = id_column(estimator.getOrDefault(estimator.arbitrary_params_dict))
    if column is None:
        return rows
    from pyspark.sql.functions import col

    columns.append(col(column).alias(_IDS))
    return rows.repartition(estimator.getOrDefault(estimator.num_workers), column)


def spark_matrices(params: Mapping[str, Any]) -> Callable[..., tuple[Any, Any]]:
    """Return a function that builds the training and validation matrix of a worker."""
    column = id_column(params)

    def make(iterator: Iterator[Any], **kwargs: Any) -> tuple[Any, Any]:
        from xgboost.spark.data import create_dmatrix_from_partitions

        ids: list[Any] = []
        widths: set[int] = set()
        names = kwargs["feature_cols"]
        seen = None if names else widths
        # Read all batches before XGBoost concatenates them, so that all workers learn of an error.
        batches = workers.check_together(lambda: list(_read(iterator, ids, seen)))
        common = workers.broadcast_first(next(iter(widths), None))
        workers.check_together(lambda: _check_widths(widths, common))
        each = (batches.pop(0) for _ in range(len(batches)))  # frees each batch after use
        train, valid = create_dmatrix_from_partitions(iterator=each, **kwargs)
        for matrix in (train, valid):
            _name(matrix, names, kwargs["kwargs"])
        if column is not None:
            attach(train, workers.check_together(lambda: _join_ids(ids, column)))
        return train, valid

    return make


def _read(batches: Iterator[Any], ids: list[Any], widths: set[int] | None) -> Iterator[Any]:
    """Yield batches without privacy ids; collect the ids of training rows and vector lengths."""
    for batch in batches:
        if _IDS in batch.columns:
            trained = ~batch[_VALID].astype(bool) if _VALID in batch.columns else slice(None)
            ids.append(batch[_IDS][trained])
            batch = batch.drop(columns=[_IDS])
        if widths is not None:
            widths.update(_widths(batch))
        elif _DATA not in batch.columns:
            # XGBoost expects this column if a batch has no training or no validation rows.
            batch = batch.assign(**{_DATA: None})
        yield batch


def _widths(batch: Any) -> Iterator[int]:
    """Yield the number of features of each array or vector; -1 if it is missing."""
    dense = _DATA in batch.columns
    cells = batch[_DATA if dense else _VALUES]
    sizes = [None] * len(batch) if dense else batch[_SIZES]
    for row, size in zip(cells, sizes, strict=True):  # only sparse vectors have a size
        yield int(size) if size is not None and size > 0 else -1 if row is None else len(row)


def _check_widths(widths: set[int], common: int | None) -> None:
    """Require vectors of equal length, because XGBoost would pad shorter ones on a worker."""
    if -1 in widths or widths - {common}:
        raise PrivacyParameterError(
            "The feature arrays or vectors are missing or differ in length. Use the same number of "
            "features for all rows."
        )


def _name(matrix: Any, names: Any, given: Mapping[str, Any]) -> None:
    """Set the column names of an empty matrix, as XGBoost does for a non-empty one."""
    if matrix is not None and names and matrix.num_row() == 0 < matrix.num_col():
        matrix.feature_names = given.get("feature_names", list(names))
        matrix.feature_types = given.get("feature_types", ["float"] * len(names))


def _join_ids(ids: list[Any], column: str) -> Persons:
    """Encode and join the privacy ids of all batches."""
    parts = [encode_persons(part, column=column) for part in ids]
    return join_persons([*parts, encode_persons([], column=column)])


_BEGUN: set[tuple[str, str]] = set()  # (training, worker) pairs started in this process


@dataclass(frozen=True)
class SingleRun:
    """A training that each worker of a cluster can start only once."""

    workers: frozenset[str]  # ids of the workers when the training was submitted
    name: str = field(default_factory=secrets.token_hex)

    @classmethod
    async def start(cls, client: Any) -> SingleRun:
        """Create a training on the workers that are running now."""

        # A local function is pickled by value, so the scheduler does not need this package.
        def names(dask_scheduler: Any) -> list[str]:
            return [worker.server_id for worker in dask_scheduler.workers.values()]

        return cls(frozenset(await client.run_on_scheduler(names)))

    def begin(self) -> None:
        """Record the start on this worker.

        Must be called before the worker joins the others; otherwise they would wait for a worker
        that is refused.

        Raises:
            PrivacyRefusal: The worker has already started this training, or is a new worker.
        """
        from distributed import get_worker

        worker = get_worker().id
        if worker not in self.workers or (self.name, worker) in _BEGUN:
            raise PrivacyRefusal(
                "The cluster tried to run this training again, because a worker was lost or a "
                "task failed. The first run may have released noisy results, and a second run "
                f"would draw new noise for the same rows. Count {named.dp_epsilon} and "
                f"{named.dp_delta} as spent, find out why the first run failed, and start a new "
                "training."
            )
        _BEGUN.add((self.name, worker))


async def before_dask(
    client: Any,
    params: Mapping[str, Any],
    dtrain: Any,
    evals: Sequence[Any] | None,
    config: Config | None,
) -> tuple[Mapping[str, Any], Any, Config, Callable[[], Callable[..., Any]]]:
    """Check the data passed to ``xgboost.dask``, and move all rows of a person to one worker."""
    check_dask(dtrain, evals)
    config = _set_tracker_host(client, config or Config())
    params, dtrain = await bring_together(client, params, dtrain)
    return params, dtrain, config, partial(_begin, params, await SingleRun.start(client))


def _set_tracker_host(client: Any, config: Config) -> Config:
    """Make the tracker listen on the scheduler's address, unless the user sets another one.

    By default XGBoost guesses an address of the scheduler's host, possibly a public one. Workers
    listen on the interface that reaches the tracker.
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
