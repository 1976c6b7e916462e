"""Checks of the training rows, each of which one row alone decides.

A check passes for a data set exactly when it passes for every one of its rows. So an error says
only that a row lies outside the declared domain, and for a data set of valid rows, which is what
the guarantee is about, no check ever fails. Messages hold neither values nor row numbers.
"""

from __future__ import annotations

import numpy as np

from ..errors import PrivacyError, PrivacyParameterError, RowDomainError, named
from .arrays import as_numbers


def check_labels(labels: np.ndarray, kind: str, classes: int) -> None:
    """Every label is finite, or a class; those beyond ``dp_target_bounds`` are clamped later."""
    if kind != "regression":
        check_class_labels(labels, classes)
    elif not np.isfinite(labels).all():
        raise RowDomainError(
            "A row has a missing or infinite label. Drop or replace such labels row by row."
        )


def check_class_labels(labels: np.ndarray, classes: int) -> None:
    """Every label is one of the declared classes 0..K-1."""
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
            "looks at one row at a time."
        )


def check_range(labels: np.ndarray, lowest: float, highest: float, *, above: bool) -> None:
    """Every label is one that the objective knows; `above`: the lowest number itself is none."""
    low = labels > lowest if above else labels >= lowest
    if not (low & (labels <= highest)).all():
        ends = [f"{'above' if above else 'at least'} {lowest:g}"]
        if highest < np.inf:
            ends.append(f"at most {highest:g}")
        raise RowDomainError(
            f"A row has a label that is not {' and '.join(ends)}, as the objective demands. Drop "
            "or replace such labels row by row."
        )


def check_base_margin(margin: np.ndarray, n: int, classes: int, *, declared: bool) -> None:
    """Every row brings its own finite margins if they are declared, and none otherwise.

    Whether rows have margins must be declared: a matrix without rows does not show it.
    """
    if margin.size and not declared:
        raise RowDomainError(
            "A row has a `base_margin`, which is not declared. Set dp_base_margin=True, or remove "
            "the margins from the DMatrix."
        )
    if declared and margin.size != n * classes:
        raise RowDomainError(
            f"A row has no `base_margin`. dp_base_margin=True declares {classes} for each row: "
            "give them, or leave dp_base_margin out."
        )
    if not np.isfinite(margin).all():
        raise RowDomainError(
            "A row has a `base_margin` that is missing or infinite. Every margin must be a "
            "finite number. Drop or replace such rows one by one."
        )


def check_intervals(lower: np.ndarray, upper: np.ndarray, n: int) -> None:
    """Every row has an interval of times: from 0 or later, to no earlier or never.

    Those beyond ``dp_target_bounds`` are clamped later.
    """
    if lower.size != n or upper.size != n:
        raise PrivacyParameterError(
            "`dtrain` must have a `label_lower_bound` and a `label_upper_bound` for each row, as "
            "survival:aft has them in place of `label`; where the end of the time was not seen, "
            "the upper one is infinite. Estimators have no argument for them: build an "
            "xgboost.DMatrix and call xgboost.train."
        )
    with np.errstate(invalid="ignore"):
        valid = (lower >= 0) & np.isfinite(lower) & (upper >= lower) & (upper > 0)
    if not valid.all():
        raise RowDomainError(
            "A row has no interval of times: its `label_lower_bound` must be finite and at least "
            "0, its `label_upper_bound` above 0 and not below it, or infinite. Drop or replace "
            "such rows one by one."
        )


def check_unused(lower: np.ndarray, upper: np.ndarray) -> None:
    """No row has bounds of its label, which the objective does not read."""
    if lower.size or upper.size:
        raise RowDomainError(
            "A row has a `label_lower_bound` or `label_upper_bound`, which are for survival "
            "objectives. Remove them from the DMatrix."
        )


def check_weights(weights: np.ndarray, n: int, kind: str, *, unit: str, declared: bool) -> None:
    """Every row weight lies in its declared domain."""
    if weights.size not in (0, n):
        raise RowDomainError("A row has no weight. Give one weight for each row, or none at all.")
    if not (np.isfinite(weights).all() and (weights >= 0).all()):
        raise RowDomainError(
            "A row has a negative, missing or infinite weight. Weights must be finite and >= 0. "
            "Drop or replace such weights row by row."
        )
    if unit and not (weights == 1).all():
        raise RowDomainError(
            f"A row has a weight other than 1, and {unit} is proved for unit weights only. Make "
            "another choice, or remove the weights."
        )
    if kind != "binary" and not declared and not (weights <= 1).all():
        raise RowDomainError(
            f"A row has a weight above 1, and for {kind} labels one row's influence grows with its "
            f"weight. Declare a public bound in {named.dp_max_weight}; heavier rows count as that."
        )
