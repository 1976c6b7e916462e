"""Rows of Spark: batches of equal width, and persons brought together by ids that come along."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ..engine import workers
from ..errors import PrivacyParameterError, PrivacyRefusal
from .ids import Persons, joined, persons_of
from .persons import attach, id_column

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
        common = workers.first_of_all(next(iter(widths), None))
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
    parts = [persons_of(part, column=column) for part in ids]
    return joined([*parts, persons_of([], column=column)])
