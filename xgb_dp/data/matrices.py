"""Matrices that this package makes of rows: for estimators, Dask, public samples and evaluation.

Whoever makes an ``xgboost.DMatrix`` by hand sees XGBoost's own messages, which quote cells.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..errors import PrivacyParameterError, RowDomainError
from .arrays import numbers
from .cells import read_data
from .frames import check_names, prepared
from .ids import Persons, persons_of
from .persons import attach
from .sparse import check_sparse

_BOUND = "bound of its label"
META = {
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
    """An ``xgboost.DMatrix``; what is wrong with the data is told without showing any of it."""
    from xgboost import DMatrix

    meta = {name: kwargs.pop(name, None) for name in META}
    coded = read_data(prepared, data, categories)
    check_shape(coded)
    if getattr(coded, "shape", (0, 1))[1] == 0:
        raise PrivacyParameterError("The data has no columns. Give at least one feature.")
    check_sparse(coded)
    names = kwargs.get("feature_names")
    if names is not None:
        if not all(isinstance(name, str) for name in names):
            raise PrivacyParameterError("`feature_names` must be texts.")
        check_names(names)
    matrix = read_data(DMatrix, coded, **kwargs)
    info = checked(meta, matrix.num_row())
    read_data(lambda: matrix.set_info(**info))
    if persons is not None:
        attach(matrix, persons_of(persons, matrix.num_row()))
    return matrix


def check_shape(table: Any) -> None:
    """Refuse a table whose dimensions, which are public, are not rows and columns."""
    shape = getattr(table, "shape", None)
    if isinstance(shape, tuple) and len(shape) != 2:
        raise PrivacyParameterError(
            f"Expected 2D array, got {len(shape)}D array instead: `X` must have rows and columns. "
            "Reshape your data: X.reshape(-1, 1) for one column, X.reshape(1, -1) for one row, "
            "np.empty((0, columns)) for no row."
        )


def checked(meta: Mapping[str, Any], n: int) -> dict[str, np.ndarray]:
    """Finite numbers for each row; an upper bound of a label is infinite where no end was seen."""
    out: dict[str, np.ndarray] = {}
    for name, values in meta.items():
        if values is None:
            continue
        array = numbers(values, META[name])
        with np.errstate(over="ignore"):
            finite = np.isfinite(array.astype(np.float32))
        if name == "label_upper_bound":
            finite |= array == np.inf
        if not finite.all():
            raise RowDomainError(
                f"A row has a missing or infinite {META[name]} (`{name}`). Drop or replace it "
                "row by row."
            )
        if name == "weight" and not (array >= 0).all():
            raise RowDomainError(
                "A row has a negative weight (`weight`). Drop or replace it row by row."
            )
        if name != "base_margin" and (array.ndim == 0 or len(array) != n):
            raise PrivacyParameterError(f"`{name}` must have one entry for each row of the data.")
        out[name] = array
    return out
