"""Matrices that this package makes from rows for a private training: estimators and selection.

Whoever makes an ``xgboost.DMatrix`` by hand sees XGBoost's own messages, which quote cells.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from .cells import numbers, read_data
from .errors import PrivacyParameterError, RowDomainError
from .frames import check_names, prepared

__all__ = ["private_matrix"]

_META = {"label": "label", "weight": "weight", "base_margin": "margin"}


def private_matrix(data: Any, *, categories: Mapping[Any, Any] | None = None, **kwargs: Any) -> Any:
    """An ``xgboost.DMatrix``; what is wrong with the data is told without showing any of it.

    Args:
        data: Table of features of any kind that ``xgboost.DMatrix`` takes.
        categories: ``dp_categories``, by which columns of data frames are coded.
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
    names = kwargs.get("feature_names")
    if names is not None:
        if not all(isinstance(name, str) for name in names):
            raise PrivacyParameterError("`feature_names` must be texts.")
        check_names(names)
    matrix = read_data(DMatrix, coded, **kwargs)
    read_data(matrix.set_info, **_checked(meta, matrix.num_row()))
    return matrix


def _check_shape(table: Any) -> None:
    shape = getattr(table, "shape", None)
    if isinstance(shape, tuple) and len(shape) != 2:
        raise PrivacyParameterError(
            "`X` must have two dimensions, rows and columns. Please reshape it: X.reshape(-1, 1) "
            "for one column, X.reshape(1, -1) for one row, np.empty((0, columns)) for no row."
        )


def _checked(meta: Mapping[str, Any], n: int) -> dict[str, np.ndarray]:
    """Labels, weights and margins as finite numbers, one (or several margins) for each row."""
    out: dict[str, np.ndarray] = {}
    for name, values in meta.items():
        if values is None:
            continue
        array = numbers(values, _META[name])
        with np.errstate(over="ignore"):
            finite = np.isfinite(array.astype(np.float32))
        if not finite.all():
            raise RowDomainError(
                f"A row has a missing or infinite {_META[name]}. Drop or replace it row by row."
            )
        if name == "weight" and not (array >= 0).all():
            raise RowDomainError("A row has a negative weight. Weights must be finite and >= 0.")
        if name != "base_margin" and (array.ndim == 0 or len(array) != n):
            raise PrivacyParameterError(f"`{name}` must have one entry for each row of the data.")
        out[name] = array
    return out
