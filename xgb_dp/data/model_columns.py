"""Compare the columns of rows with those that a model was trained on, before it predicts them.

A column by another name or in another place, or a number instead of a named category, would be
scored as something else. Only names and types are read, which are public, and no cell.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..engine.saved_model import category_names
from ..errors import PrivacyParameterError
from .arrays import describe_column_type, find_library, is_table
from .frames import list_columns

_CODES = (
    "or codes of the categories from xgb_dp.Schema.from_model(model).encode(table), in an "
    "xgboost.DMatrix with feature_types=booster.feature_types."
)
_SHOWN = 5  # names of columns in a message


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
    shown = [repr(names[i] if names else i) for i in sorted(other)][:_SHOWN]
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
    missing = [repr(name) for name in names if name not in given][:_SHOWN]
    more = [repr(name) for name in given if name not in names][:_SHOWN]
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
