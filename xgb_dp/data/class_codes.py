"""Labels of estimators: coded by declared classes, each row by itself."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import PrivacyParameterError, RowDomainError
from .arrays import cells_of
from .cells import Names

_MOST = 1 << 16  # classes


def declared(classes: Any) -> np.ndarray:
    """The declared classes, which are in increasing order, as scikit-learn keeps them."""
    if isinstance(classes, (int, np.integer)) and 2 <= classes <= _MOST:  # no truth value is
        return np.arange(classes)
    try:
        values = [] if isinstance(classes, (str, bytes)) else list(classes)
        kinds = {isinstance(v, str) for v in values}
        array = np.array(values)
        labels = np.unique(array)
        sound = array.ndim == 1 and 2 <= len(labels) == len(values) and len(kinds) == 1
    except (TypeError, ValueError):
        sound = False
    if not sound:
        raise PrivacyParameterError(
            "`classes` must be the number of classes K, 2 to 65536, for labels 0..K-1, or the "
            "list of at least two different labels, all texts or all numbers, e.g. ['no', 'yes']."
        )
    Names(values, "`classes`")
    return labels


def codes_of(y: Any, classes: np.ndarray) -> np.ndarray:
    """Positions of the labels in the declared classes; each row by itself."""
    labels = cells_of(y, "label")
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels.ravel()
    if labels.ndim > 2 or (labels.ndim == 2 and len(classes) != 2):
        raise PrivacyParameterError(
            "`y` must have one label for each row, or several columns of labels of two classes. "
            "Several labels of more classes are refused: train a model for each, and book them in "
            "one xgb_dp.Budget. Several numbers are targets of DPXGBRegressor."
        )
    codes = Names(classes.tolist(), "`classes`").codes(labels)
    if (codes < 0).any():
        raise RowDomainError(
            "Unknown label type: a row has a label outside the declared `classes`. Declare every "
            "class that may occur, or drop rows outside the domain by a rule that looks at one row "
            "at a time."
        )
    return codes


def label_array(y: Any) -> Any:
    """Labels as an array, from lists, series and columns of any library."""
    if y is None:
        raise PrivacyParameterError("requires y to be passed, but the target y is None")
    return cells_of(y, "label")
