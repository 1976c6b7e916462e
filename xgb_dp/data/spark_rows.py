"""Rows of Spark by person: brought together, with ids that come along in batches."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ..engine import workers
from .ids import Persons, joined, persons_of
from .persons import attach, id_column

__all__ = ["spark_matrices", "spark_rows"]

_IDS, _VALID = "dp_privacy_id", "validationIndicator"  # the latter is XGBoost's own


def spark_rows(estimator: Any, rows: Any, columns: list[Any]) -> Any:
    """The rows by person: all of one person in one partition, of which each worker has one.

    Args:
        estimator: Its parameters may name the column of ids.
        rows: Data frame of Spark.
        columns: What is selected of it; the column of ids is added.

    Raises:
        PrivacyParameterError: The ids themselves stand among the parameters.
    """
    column = id_column(estimator.getOrDefault(estimator.arbitrary_params_dict))
    if column is None:
        return rows
    from pyspark.sql.functions import col

    columns.append(col(column).alias(_IDS))
    return rows.repartition(estimator.getOrDefault(estimator.num_workers), column)


def spark_matrices(params: Mapping[str, Any]) -> Callable[..., tuple[Any, Any]]:
    """What makes the matrices of a worker, for training and for validation, as XGBoost does.

    Args:
        params: Parameters of the training, which may name the column of ids.
    """
    column = id_column(params)

    def make(iterator: Iterator[Any], **kwargs: Any) -> tuple[Any, Any]:
        from xgboost.spark.data import create_dmatrix_from_partitions

        ids: list[Any] = []
        found = create_dmatrix_from_partitions(iterator=_without_ids(iterator, ids), **kwargs)
        if column is not None:
            attach(found[0], workers.check_together(lambda: _joined(ids, column)))
        return found[0], found[1]

    return make


def _without_ids(batches: Iterator[Any], ids: list[Any]) -> Iterator[Any]:
    """Batches of rows without their ids, of which those that are trained on are kept."""
    for batch in batches:
        if _IDS in batch.columns:
            trained = ~batch[_VALID].astype(bool) if _VALID in batch.columns else slice(None)
            ids.append(batch[_IDS][trained])
            batch = batch.drop(columns=[_IDS])
        yield batch


def _joined(ids: list[Any], column: str) -> Persons:
    """Who the rows belong to; read last, so that all workers hear of what is wrong."""
    parts = [persons_of(part, column=column) for part in ids]
    return joined([*parts, persons_of([], column=column)])
