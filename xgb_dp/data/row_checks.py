"""Checks of rows before they are trained on or predicted.

Training rows: each check depends on one row at a time. A data set passes it if and only if every
single row passes it. An error therefore reveals only that some row lies outside the declared
domain, and data sets of valid rows, to which the guarantee applies, never fail. Messages contain
neither values nor row numbers.

Predicted rows: their columns are compared with the model's. A column by another name or in another
place, or a number instead of a named category, would be scored as something else. Only names and
types are read, which are public, and no cell.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..engine.saved_model import category_names
from ..errors import PrivacyError, PrivacyParameterError, RowDomainError, named
from .arrays import as_numbers, describe_column_type, find_library, is_table
from .frames import list_columns


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


_CODES = (
    "or codes of the categories from xgb_dp.Schema.from_model(model).encode(table), in an "
    "xgboost.DMatrix with feature_types=booster.feature_types."
)
_MOST_SHOWN = 5  # names of columns in a message


def check_columns(booster: Any, rows: Any) -> None:
    """Check that a table, array or DMatrix has the columns of a model, of the same types.

    Args:
        booster: The model.
        rows: A table needs the names of all columns in their order. A column needs named
            categories if and only if the model stores names for it. An array has neither names nor
            types, so it is refused if the model stores names. A DMatrix may also have codes, if
            its feature type is "c".

    Raises:
        PrivacyParameterError: The columns differ.
    """
    names, stored = booster.feature_names, category_names(booster)
    if hasattr(rows, "feature_types"):
        check_names(names, rows.feature_names or [])
        types = rows.feature_types or [""] * rows.num_col()
        named = set(category_names(rows))
        other = {i for i, kind in enumerate(types) if (i in stored) > (kind == "c")}
        other |= named - set(stored)
    elif is_table(rows):
        given = list_columns(rows)
        check_names(names, list(map(as_text, given)))
        cells = (rows.iloc[:, i] if find_library(rows) == "pandas" else rows[n]
                 for i, n in enumerate(given))  # fmt: skip
        kinds = [describe_column_type(column) == "names" for column in cells]
        other = {i for i, kind in enumerate(kinds) if kind != (i in stored)}
    elif stored:
        raise PrivacyParameterError(
            "The model was trained on a table with named categories. Pass a data frame with the "
            f"columns {names}; {_CODES}"
        )
    else:
        return
    if not other:
        return
    shown = [repr(names[i] if names else i) for i in sorted(other)][:_MOST_SHOWN]
    if set(stored) >= other:
        raise PrivacyParameterError(
            f"The columns {', '.join(shown)} have named categories in the model, but not in the "
            "data, so their codes could mean other categories. Pass a table with the names; "
            f"{_CODES}"
        )
    raise PrivacyParameterError(
        f"The types of the columns {', '.join(shown)} differ from the model's, which stores "
        "no names for their categories. Pass numbers, or the codes used in training."
    )


def check_names(names: Sequence[str] | None, given: Sequence[str]) -> None:
    """Check that rows have the names of the columns of a model, if any, in their order."""
    if not names or list(names) == list(given):
        return
    missing = [repr(name) for name in names if name not in given][:_MOST_SHOWN]
    more = [repr(name) for name in given if name not in names][:_MOST_SHOWN]
    parts = {"lacks": missing, "also has": more}
    problems = [f"{what} {', '.join(shown)}" for what, shown in parts.items() if shown]
    raise PrivacyParameterError(
        "The columns of the data differ from the model's (feature_names mismatch): the data "
        f"{' and '.join(problems) or 'has them in another order'}. Select the columns of training, "
        "in their order: data[booster.feature_names]."
    )


def as_text(name: Any) -> str:
    """Return a column name as XGBoost stores it."""
    return " ".join(map(str, name)) if isinstance(name, tuple) else str(name)
