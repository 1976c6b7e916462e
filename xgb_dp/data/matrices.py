"""Matrices that this package makes from rows for a private training: estimators, Dask, selection.

Whoever makes an ``xgboost.DMatrix`` by hand sees XGBoost's own messages, which quote cells.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np

from ..engine import workers
from ..errors import PrivacyParameterError, RowDomainError
from ..request.names import read_one
from .cells import read_data
from .columns import numbers
from .frames import check_names, columns_of, has_column, prepared, without_column
from .ids import Persons, joined, persons_of
from .persons import attach, id_column
from .sparse import check_sparse

__all__ = ["estimator_matrix", "matrix_maker", "private_matrix", "worker_matrix"]

_BOUND = "bound of its label"
_META = {
    "label": "label",
    "weight": "weight",
    "base_margin": "margin",
    "label_lower_bound": _BOUND,
    "label_upper_bound": _BOUND,
}


def private_matrix(
    data: Any,
    *,
    categories: Mapping[Any, Any] | None = None,
    persons: Persons | None = None,
    **kwargs: Any,
) -> Any:
    """An ``xgboost.DMatrix``; what is wrong with the data is told without showing any of it.

    Args:
        data: Table of features of any kind that ``xgboost.DMatrix`` takes.
        categories: ``dp_categories``, by which columns of data frames are coded.
        persons: Who the rows belong to.
        kwargs: Other arguments of ``xgboost.DMatrix``.

    Returns:
        xgboost.DMatrix: Private data; nothing was released.

    Raises:
        PrivacyParameterError: Names, types or shapes, which are public, are not as needed.
        RowDomainError: A row lies outside the domain by itself.
    """
    from xgboost import DMatrix

    meta = {name: kwargs.pop(name, None) for name in _META}
    coded = read_data(prepared, data, categories)
    _check_shape(coded)
    check_sparse(coded)
    names = kwargs.get("feature_names")
    if names is not None:
        if not all(isinstance(name, str) for name in names):
            raise PrivacyParameterError("`feature_names` must be texts.")
        check_names(names)
    matrix = read_data(DMatrix, coded, **kwargs)
    read_data(matrix.set_info, **_checked(meta, matrix.num_row()))
    if persons is not None:
        attach(matrix, persons_of(persons, matrix.num_row()))
    return matrix


def estimator_matrix(estimator: Any, ref: Any, *, data: Any, **kwargs: Any) -> Any:
    """A matrix of an estimator with the name that XGBoost has for it; see :func:`private_matrix`.

    Args:
        estimator: Its parameters may name the column of ids, which is taken out of the data.
        ref: The training data, of which nothing is read; None where these are the training data.
        data: Table of features.
        kwargs: Other arguments of ``xgboost.DMatrix``.
    """
    column, persons = id_column(estimator.get_xgb_params()), None
    if column is not None and (ref is None or has_column(data, column)):
        data, ids = without_column(data, column)
        persons = persons_of(ids, column=column) if ref is None else None
    categories = read_one(estimator.get_xgb_params(), "dp_categories")
    return private_matrix(data, categories=categories, persons=persons, **kwargs)


def _check_shape(table: Any) -> None:
    shape = getattr(table, "shape", None)
    if isinstance(shape, tuple) and len(shape) != 2:
        raise PrivacyParameterError(
            "`X` must have two dimensions, rows and columns. Please reshape it: X.reshape(-1, 1) "
            "for one column, X.reshape(1, -1) for one row, np.empty((0, columns)) for no row."
        )


def _checked(meta: Mapping[str, Any], n: int) -> dict[str, np.ndarray]:
    """Labels, weights and margins as finite numbers, one (or several margins) for each row.

    Upper bounds of labels may be infinite, which says that the end was not seen.
    """
    out: dict[str, np.ndarray] = {}
    for name, values in meta.items():
        if values is None:
            continue
        array = numbers(values, _META[name])
        with np.errstate(over="ignore"):
            finite = np.isfinite(array.astype(np.float32))
        if name == "label_upper_bound":
            finite |= array == np.inf
        if not finite.all():
            raise RowDomainError(
                f"A row has a missing or infinite {_META[name]}. Drop or replace it row by row."
            )
        if name == "weight" and not (array >= 0).all():
            raise RowDomainError(
                "A row has a negative weight. Weights must be finite and >= 0. Drop or replace "
                "such weights row by row."
            )
        if name != "base_margin" and (array.ndim == 0 or len(array) != n):
            raise PrivacyParameterError(f"`{name}` must have one entry for each row of the data.")
        out[name] = array
    return out


def matrix_maker(params: Mapping[str, Any]) -> Callable[..., Any]:
    """What ``xgboost.dask`` calls on each worker: :func:`worker_matrix` for these parameters."""
    return partial(worker_matrix, params)


def worker_matrix(
    params: Mapping[str, Any], *, parts: Any, model: Any, Xy_cats: Any, **given: Any
) -> Any:
    """The training matrix of one worker of a Dask cluster, however the rows lie on workers.

    XGBoost's own refuses data frames with categories if some worker has no rows. Which worker has
    rows can depend on a single row; declared categories need none.

    Args:
        params: Parameters of the training; ``dp_categories`` is read.
        parts: This worker's parts of the data, None without.
        model: An earlier model. Its categories are compared with the declared ones later on.
        Xy_cats: Not used: categories are the declared ones.
        given: Other arguments of ``xgboost.DMatrix``.

    Returns:
        xgboost.DMatrix: This worker's rows, with the columns that all workers have.

    Raises:
        PrivacyParameterError: As :func:`private_matrix`, on every worker.
        RowDomainError: As :func:`private_matrix`, on every worker.
    """
    from xgboost import config

    del model, Xy_cats
    categories = read_one(params, "dp_categories")
    rows: dict[str, Any] = {}
    workers.check_together(lambda: rows.update(read_data(_joined, parts, categories)))
    columns = workers.first_of_all(
        [*_columns(rows["data"]), _width_of_labels(rows.get("label"))] if rows else None
    )
    if not rows:
        *columns, labels = columns
        rows = {"data": prepared(_without_rows(columns), categories)}
        if labels > 1:
            rows["label"] = np.empty((0, labels), dtype=np.float32)
        if params.get("dp_privacy_id") is not None:
            rows["persons"] = joined([])
    made: list[Any] = []

    def make(settings: Mapping[str, Any]) -> Any:
        with config.config_context(**settings):
            return private_matrix(**rows, **given)

    def make_alone() -> None:
        # The thread is no member of the cluster, so that no matrix is compared with another one.
        with ThreadPoolExecutor(1) as alone:
            made.append(alone.submit(make, config.get_config()).result())

    workers.check_together(make_alone)
    return made[0]


def _joined(parts: Any, categories: Any) -> dict[str, Any]:
    """All parts of a worker, each coded by the declaration and then put together."""
    from xgboost.compat import concat

    if not parts:
        return {}
    out: dict[str, Any] = {}
    for name in ("data", *_META, "qid"):
        values = [part[name] for part in parts if part.get(name) is not None]
        if name == "data":
            values = [prepared(value, categories) for value in values]
        if values:
            out[name] = concat(values)
    persons = [part["persons"] for part in parts if "persons" in part]
    if persons:
        out["persons"] = joined(persons)
    return out


def _columns(table: Any) -> list[Any]:
    """Number of columns, and names and whether they are categories for a data frame; public.

    As other workers are told: names are texts, numbers, or lists of such for tuples.
    """
    if not hasattr(table, "columns"):
        return [table.shape[1], None]
    kinds = [kind.name == "category" for kind in table.dtypes]
    names = map(_told_name, columns_of(table))
    return [len(kinds), list(zip(names, kinds, strict=True))]


def _width_of_labels(labels: Any) -> int:
    """How many labels a row has: one, or one for each target; public."""
    shape: tuple[int, ...] = getattr(labels, "shape", ())
    return int(shape[1]) if len(shape) == 2 else 1


def _told_name(name: Any) -> Any:
    if isinstance(name, tuple):
        return [_told_name(part) for part in name]
    name = name.item() if isinstance(name, np.generic) else name
    return name if isinstance(name, (str, int, float)) else str(name)


def _without_rows(columns: Any) -> Any:
    """A table of these columns; categories stand in it only once they are declared.

    Args:
        columns: Result of :func:`_columns` on the first worker that has rows.
    """
    width, named = columns
    if named is None:
        return np.empty((0, width), dtype=np.float32)
    import pandas as pd

    kinds = ["category" if categorical else "float32" for _, categorical in named]
    table = pd.DataFrame({i: pd.Series([], dtype=kind) for i, kind in enumerate(kinds)})
    names = (tuple(name) if isinstance(name, list) else name for name, _ in named)
    table.columns = pd.Index(list(names))
    return table
