"""Checks of the training rows, each of which one row alone decides.

A check passes for a data set exactly when it passes for every one of its rows. So an error says
only that a row lies outside the declared domain, and for a data set of valid rows, which is what
the guarantee is about, no check ever fails. Messages hold neither values nor row numbers.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from . import native
from .errors import RowDomainError

__all__ = ["check_categories", "check_class_labels", "check_target", "check_weights"]


def check_class_labels(labels: np.ndarray, classes: int) -> None:
    """Every label is one of the declared classes 0..K-1.

    Args:
        labels: Labels of all rows, any shape and type.
        classes: K, declared.

    Raises:
        RowDomainError: Some row has another label.
    """
    try:
        values = labels.astype(np.float64).ravel()
    except (TypeError, ValueError):
        values = np.array([np.nan])
    with np.errstate(invalid="ignore"):
        valid = (values >= 0) & (values < classes) & (np.floor(values) == values)
    if not valid.all():
        raise RowDomainError(
            f"A row has a label outside the declared classes 0..{classes - 1} (`dp_classes`). "
            "Declare every class that may occur, or drop rows outside the domain by a rule that "
            "looks at one row at a time."
        )


def check_target(labels: np.ndarray) -> None:
    """Every regression label is finite; those beyond ``dp_target_bounds`` are clamped later."""
    if not np.isfinite(labels).all():
        raise RowDomainError(
            "A row has a missing or infinite label. Drop or replace such labels row by row."
        )


def check_weights(weights: np.ndarray) -> None:
    """Every row weight is finite and not negative."""
    if not (np.isfinite(weights).all() and (weights >= 0).all()):
        raise RowDomainError(
            "A row has a negative, missing or infinite weight. Weights must be finite and >= 0."
        )


def check_categories(dtrain: Any, plan_text: str) -> None:
    """Every category code is a whole number below the declared size of its feature.

    Args:
        dtrain: The training data.
        plan_text: The plan, which holds the declared sizes.

    Raises:
        RowDomainError: A row has an undeclared category.
    """
    from xgboost.core import XGBoostError

    try:
        native.check_rows(dtrain, plan_text)
    except XGBoostError:
        raise RowDomainError(
            "A row has a category outside the domain declared in `dp_categories`. Declare every "
            "category that may occur, with one for the unforeseen ones."
        ) from None
