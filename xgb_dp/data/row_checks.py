"""Checks of the training rows that depend on one row at a time.

A data set passes a check if and only if every single row passes it. An error therefore reveals only
that some row lies outside the declared domain, and data sets of valid rows, to which the guarantee
applies, never fail. Messages contain neither values nor row numbers.
"""

from __future__ import annotations

import numpy as np

from ..errors import PrivacyError, PrivacyParameterError, RowDomainError, named
from .arrays import as_numbers


def check_labels(labels: np.ndarray, kind: str, classes: int) -> None:
    """Check that labels are declared classes, or finite numbers (clamped to their bounds later)."""
    if kind != "regression":
        check_class_labels(labels, classes)
    elif not np.isfinite(labels).all():
        raise RowDomainError(
            "A row has a missing or infinite label. Drop or replace such labels row by row."
        )


def check_class_labels(labels: np.ndarray, classes: int) -> None:
    """Check that every label is one of the declared classes 0..K-1."""
    try:
        values = as_numbers(labels, "label").astype(np.float64).ravel()
    except PrivacyError:
        values = np.array([np.nan])
    with np.errstate(invalid="ignore"):
        valid = (values >= 0) & (values < classes) & (np.floor(values) == values)
    if not valid.all():
        raise RowDomainError(
            f"A row has a label outside the declared classes 0..{classes - 1} "
            f"({named.dp_classes}). "
            "Declare every class that may occur, or drop rows outside the domain by a rule that "
            "reads one row at a time."
        )


def check_range(labels: np.ndarray, lowest: float, highest: float, *, above: bool) -> None:
    """Check that labels are in the objective's range; `above` excludes the lower end itself."""
    low = labels > lowest if above else labels >= lowest
    if not (low & (labels <= highest)).all():
        ends = [f"{'above' if above else 'at least'} {lowest:g}"]
        if highest < np.inf:
            ends.append(f"at most {highest:g}")
        raise RowDomainError(
            f"A row has a label that is not {' and '.join(ends)}, as the objective requires. Drop "
            "or replace such labels row by row."
        )


def check_base_margin(margin: np.ndarray, n: int, classes: int, *, declared: bool) -> None:
    """Check that every row has finite base margins if they are declared, and no margins otherwise.

    Base margins must be declared, because a matrix without rows does not show if there are any.
    """
    if margin.size and not declared:
        raise RowDomainError(
            "A row has an undeclared `base_margin`. Set dp_base_margin=True, or remove the margins "
            "from the DMatrix."
        )
    if declared and margin.size != n * classes:
        raise RowDomainError(
            f"A row has no `base_margin`, but dp_base_margin=True declares {classes} per row. Set "
            "the margins, or remove dp_base_margin."
        )
    if not np.isfinite(margin).all():
        raise RowDomainError(
            "A row has a missing or infinite `base_margin`. Margins must be finite numbers. Drop "
            "or replace such rows one by one."
        )


def check_intervals(lower: np.ndarray, upper: np.ndarray, n: int) -> None:
    """Check that every row has a valid time interval, possibly right-censored.

    Times outside ``dp_target_bounds`` are clamped later.
    """
    if lower.size != n or upper.size != n:
        raise PrivacyParameterError(
            "`dtrain` must have a `label_lower_bound` and a `label_upper_bound` per row, which "
            "survival:aft uses in place of `label`. Set the upper bound of a censored row to "
            "infinity. Estimators have no argument for these bounds: build an xgboost.DMatrix and "
            "call xgboost.train."
        )
    with np.errstate(invalid="ignore"):
        valid = (lower >= 0) & np.isfinite(lower) & (upper >= lower) & (upper > 0)
    if not valid.all():
        raise RowDomainError(
            "A row has no valid time interval: `label_lower_bound` must be finite and at least 0; "
            "`label_upper_bound` must be above 0 and at least the lower bound, or infinite. Drop "
            "or replace such rows one by one."
        )


def check_unused(lower: np.ndarray, upper: np.ndarray) -> None:
    """Check that no row has label bounds, for objectives that do not use them."""
    if lower.size or upper.size:
        raise RowDomainError(
            "A row has a `label_lower_bound` or `label_upper_bound`, which only survival "
            "objectives use. Remove them from the DMatrix."
        )


def check_weights(weights: np.ndarray, n: int, kind: str, *, unit: str, declared: bool) -> None:
    """Check that every row weight is in its declared domain."""
    if weights.size not in (0, n):
        raise RowDomainError("A row has no weight. Pass one weight per row, or no weights.")
    if not (np.isfinite(weights).all() and (weights >= 0).all()):
        raise RowDomainError(
            "A row has a negative, missing or infinite weight. Weights must be finite and >= 0. "
            "Drop or replace such weights row by row."
        )
    if unit and not (weights == 1).all():
        raise RowDomainError(
            f"A row has a weight other than 1, but {unit} is proved only for unit weights. Choose "
            "another option, or remove the weights."
        )
    if kind != "binary" and not declared and not (weights <= 1).all():
        raise RowDomainError(
            f"A row has a weight above 1. The influence of a row with {kind} labels grows with its "
            f"weight: declare a public bound in {named.dp_max_weight}, to which larger weights are "
            "clipped."
        )
