"""Cells of the caller's tables as numbers, each by itself, with errors that show none of them.

Libraries that convert data quote what they cannot convert. Whatever this package converts goes
through :func:`read_data` or :func:`numbers`, so that neither a message nor the chain of exceptions
behind it holds a cell, a row number or a number of rows.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from ..errors import NativeLibraryError, PrivacyError, PrivacyParameterError, RowDomainError

__all__ = ["DATES", "MISSING", "numbers", "plain", "read_data", "without_missing"]

T = TypeVar("T")

MISSING = ("", "NA", "N/A", "NaN", "nan", "null", "NULL")
"""Texts that stand for a missing cell where nothing else is declared."""
DATES = (
    "Turn dates and durations into numbers by a public rule, for example days since a fixed date."
)
_UNREADABLE = (
    "The data cannot be read as a table of numbers, and the reason is not shown because it may "
    "quote a cell. Pass a two-dimensional array or a data frame whose columns are numbers or "
    "declared categories."
)
# What XGBoost says about cells when it makes a matrix, and what this package says instead.
_CELLS = (
    ("contains `inf`", "A row has an infinite feature. Features are finite or missing."),
    ("Label contains", "A row has a missing or infinite label. Drop or replace it row by row."),
    ("Weights must be", "A row has a negative, missing or infinite weight."),
)


def read_data(function: Callable[..., T], *args: Any, **kwargs: Any) -> T:
    """Call what converts data, and show nothing of the data if it fails.

    Errors of this package, of the machine and warnings that were turned into errors pass. All
    others are replaced, without a cause or context that could still hold a cell.

    Args:
        function: What is called.
        args: Its arguments.
        kwargs: Its arguments by name.

    Raises:
        RowDomainError: The data cannot be converted.
    """
    wrong = _UNREADABLE
    try:
        return function(*args, **kwargs)
    except (PrivacyError, NativeLibraryError, MemoryError, ImportError, Warning):
        raise
    except Exception as error:
        text = str(error)
        wrong = next((own for theirs, own in _CELLS if theirs in text), _UNREADABLE)
    # Outside of the handler: an error that is raised in there keeps the other one as its context.
    raise RowDomainError(wrong)


def plain(values: Any, what: str) -> np.ndarray:
    """An array of any type from whatever container.

    Args:
        values: Array, list, series or column of any library.
        what: "feature", "label", "weight" or "margin", for messages.

    Raises:
        RowDomainError: A row of a list has another number of entries than the others.
    """
    if isinstance(values, np.ndarray):
        return values
    if hasattr(values, "collect"):  # a polars LazyFrame
        values = read_data(values.collect)
    if not isinstance(values, (list, tuple)):
        return read_data(np.asarray, values)
    array, ragged = np.empty(0), False
    try:
        array = np.asarray(values)
    except ValueError:
        ragged = True
    except Exception:
        array = np.empty(0, dtype=object)
    if ragged or array.ndim > 2:
        raise RowDomainError(
            f"A row has another number of {what}s than the rest, or a {what} that is a list. Give "
            "every row one number for each column."
        )
    # Not by way of the type of all cells together, which one row changes for all. Numbers are all
    # rounded alike later on, but labels are compared with the declared ones as they are.
    alike = array.dtype.kind in "biuf" and what != "label"
    return array if alike else _objects(values, array.ndim)


def _objects(values: Any, dimensions: int) -> np.ndarray:
    """Nested lists as an array of what they hold."""
    array = read_data(np.array, values, dtype=object)
    return array if array.ndim == dimensions else array.reshape(array.shape[:dimensions])


def numbers(values: Any, what: str) -> npt.NDArray[Any]:
    """Cells as numbers, each by itself; missing ones are NaN.

    Args:
        values: Array, list, series or column of any library. Texts of numbers count as numbers.
        what: "feature", "label", "weight" or "margin", for messages.

    Returns:
        The array itself if it holds numbers already, else 64-bit floats.

    Raises:
        PrivacyParameterError: The array is of a type that is not of numbers, whatever it holds.
        RowDomainError: A cell is no number.
    """
    array = plain(values, what)
    kind = array.dtype.kind
    if kind in "biuf":
        # One fraction makes a list of whole numbers a list of floats: always the same rounding.
        return array.astype(np.float64) if isinstance(values, (list, tuple)) else array
    if kind in "mM":
        raise PrivacyParameterError(f"The {what}s are dates or durations. {DATES}")
    if kind not in "OUS":
        raise PrivacyParameterError(
            f"The {what}s are of type {array.dtype.name}; numbers were expected. Complex data not "
            "supported."
        )
    found: npt.NDArray[Any] | None = None
    with suppress(Exception):  # an object in a cell may do anything
        found = without_missing(array).astype(np.float64)
    if found is None:
        raise RowDomainError(
            f"A row has a {what} that is not a number: a text, a date, an object or a number "
            "beyond the range of floats. Turn it into a number row by row, or drop such rows."
        )
    return found


def without_missing(array: np.ndarray) -> np.ndarray:
    """None, NA and NaT as NaN."""
    if array.dtype.kind != "O":
        return array
    pandas = sys.modules.get("pandas")  # its missing values need it
    if pandas is None:
        return array
    return np.where(pandas.isna(array), np.nan, array)
