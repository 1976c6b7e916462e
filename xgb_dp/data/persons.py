"""Who each row belongs to, where the unit of privacy is a person.

Ids are read here and nowhere else: what goes on from here are codes without a meaning, which live
beside the matrix for the time of one training. No model, ledger, log or error holds an id.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from ..engine import native, workers
from ..errors import PrivacyParameterError, PrivacyRefusal
from ..request.names import flatten

__all__ = ["assign", "factorise", "taken_out"]

_NAME = "dp_privacy_id"


def taken_out(
    params: Mapping[str, Any] | Iterable[tuple[str, Any]],
) -> tuple[dict[str, Any], Any]:
    """Parameters without the ids, which say only that there are some; and the ids.

    Args:
        params: What the user gave.

    Returns:
        Flat parameters, and one id for each row or None.

    Raises:
        PrivacyParameterError: As :func:`xgb_dp.request.names.flatten`.
    """
    flat = flatten(params)
    ids = flat.get(_NAME)
    if ids is not None:
        flat[_NAME] = True
    return flat, ids


def factorise(ids: Any) -> np.ndarray:
    """Codes 0, 1, ... of ids; two rows have the same code exactly if they have the same id.

    Args:
        ids: One id for each row, whole numbers or texts.

    Returns:
        numpy.ndarray: Codes as ``uint32``, in no particular order. They tell who has several rows,
        and are private.

    Raises:
        PrivacyParameterError: Not a column of whole numbers or texts.
    """
    column = np.asarray(ids)
    if column.ndim != 1 or column.dtype.kind not in "iuUS":
        raise PrivacyParameterError(
            f"`{_NAME}` must be a column of ids, whole numbers or texts, one for each row."
        )
    return np.unique(column, return_inverse=True)[1].astype(np.uint32)


def assign(dtrain: Any, ids: Any) -> None:
    """Set the persons of a matrix for the training that follows.

    Args:
        dtrain: The training data.
        ids: One id for each row; None for a training whose unit is a row, and at the end of one.

    Raises:
        PrivacyParameterError: As :func:`factorise`, or there are more or fewer ids than rows.
        PrivacyRefusal: Several workers train together.
    """
    if ids is None:
        native.set_persons(dtrain, None)
        return
    if workers.this_worker()[1] > 1:
        raise PrivacyRefusal(
            f"`{_NAME}` is refused on several workers: rows of one person may be on two of them."
        )
    codes = factorise(ids)
    if len(codes) != dtrain.num_row():
        raise PrivacyParameterError(f"`{_NAME}` must have one id for each row of the DMatrix.")
    native.set_persons(dtrain, codes)
