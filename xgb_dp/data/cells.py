"""Interpret a cell by itself as missing, a number or a string.

Every caller's container is read by these rules (:mod:`.arrays`). The type that a library assigns to
a whole column depends on all of its rows, so it never decides what a cell means. Numbers are read
as 64-bit floats, because in many containers a single missing cell turns a column of integers into
floats.

Libraries quote the values that they fail to convert. Conversions therefore run under
:func:`read_data`, so that neither an error message nor its exception chain contains a cell, a row
number or a row count.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from decimal import Decimal
from fractions import Fraction
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from ..errors import NativeLibraryError, PrivacyError, PrivacyParameterError, RowDomainError

T = TypeVar("T")
Ints = npt.NDArray[np.int64]

MISSING = ("", "NA", "N/A", "NaN", "nan", "null", "NULL")
"""Strings that mark a missing cell by default."""
DATES = "Convert dates and durations to numbers by a public rule, such as days since a fixed date."
ABSENT, UNKNOWN, UNREADABLE = -1, -2, -3
"""Codes of a missing cell, a cell with an undeclared name, and an object of an unknown type."""
_UNREADABLE_DATA = (
    "The data cannot be read as a table of numbers. The cause is hidden because it may quote a "
    "cell. Pass a two-dimensional array, or a data frame whose columns are numbers or declared "
    "categories."
)
_INFINITE = "A row has an infinite feature. Features must be finite or missing."


def read_data(
    function: Callable[..., T], *args: Any, wrong: str = _UNREADABLE_DATA, **kwargs: Any
) -> T:
    """Call a function that converts data, hiding the data if the call fails.

    This package's own errors, memory and import errors, and warnings raised as errors pass through.
    Any other exception is replaced by a ``RowDomainError`` with the message `wrong` and without a
    cause or context that could contain a cell.
    """
    try:
        return function(*args, **kwargs)
    except (PrivacyError, NativeLibraryError, MemoryError, ImportError, Warning):
        raise
    except Exception as error:
        if "contains `inf`" in str(error):  # XGBoost's message when it builds a matrix
            wrong = _INFINITE
    # Raised outside the handler, so that the original exception does not become the context.
    raise RowDomainError(wrong)


def _number(cell: Any) -> float | None:
    value = float(cell)
    return None if math.isnan(value) else value


def _no_time(cell: Any) -> None:
    if not np.isnat(cell):
        raise ValueError("a date or duration is not a cell")


_READERS: dict[type, Callable[[Any], float | str | None]] = {
    **{
        kind: _number
        for kind in np.sctypeDict.values()
        if issubclass(kind, (np.bool_, np.integer, np.floating))
    },
    **dict.fromkeys((bool, int, float, Decimal, Fraction), _number),
    **dict.fromkeys((str, np.str_), str),
    **dict.fromkeys((np.datetime64, np.timedelta64), _no_time),
    type(None): lambda _: None,
}
"""Readers by exact type; a subclass may define its own equality, so it is not accepted."""


def is_pandas_missing(kind: type) -> bool:
    """Return whether a type is one of pandas' types of missing cells; pandas is not imported."""
    named = kind.__name__ in ("NAType", "NaTType")
    return named and kind.__module__.partition(".")[0] == "pandas"


def read_value(cell: Any) -> float | str | None:
    """Return a number (1 or 0 for a boolean), a string, or None for a missing cell."""
    read = _READERS.get(type(cell))
    if read is None:
        if is_pandas_missing(type(cell)):
            return None
        raise ValueError("not a cell")
    try:
        return read(cell)
    except (OverflowError, TypeError, ArithmeticError):
        raise ValueError("not a cell") from None


def spellings(cell: Any) -> tuple[str, ...]:
    """Return the strings that a cell matches: integers as digits, booleans also as words."""
    value = read_value(cell)
    if isinstance(value, str):
        return (value.strip(),)
    if value is None:
        return ()
    digits = str(int(value)) if value.is_integer() else str(value)
    if isinstance(cell, (bool, np.bool_)):
        return (str(bool(value)), str(bool(value)).lower(), digits)
    return (digits,)


def read_number(cell: Any) -> float:
    """Convert a cell to a number; NaN if it is missing. Strings that spell numbers are accepted."""
    value = read_value(cell)
    if value is None:
        return math.nan
    if isinstance(value, str):
        if "_" in value:  # digit separators are Python syntax, not data
            raise ValueError("not a number")
        return float(value)
    return value


def read_cell_numbers(cells: Sequence[Any]) -> npt.NDArray[np.float64]:
    """Convert each cell to a number, independently of the other cells."""
    kinds = set(map(type, cells))
    plain = kinds <= {bool, int, float} or (kinds == {str} and "_" not in "".join(cells))
    read: Callable[[Any], float] = float if plain else read_number
    try:
        return np.fromiter(map(read, cells), dtype=np.float64, count=len(cells))
    except OverflowError:
        raise ValueError("not a number") from None


def numbers_among(strings: Iterable[str]) -> list[float]:
    """Return the numbers spelled by some of the strings, without NaN."""
    numbers = []
    for text in strings:
        with suppress(ValueError):
            numbers.append(read_number(text))
    return [number for number in numbers if not math.isnan(number)]


def is_sequence(values: Any) -> bool:
    """Return whether `values` is a list, a tuple or another sequence, but not a string or bytes."""
    return isinstance(values, Sequence) and not isinstance(values, (str, bytes, bytearray))


def is_unicode(text: str) -> bool:
    """Return whether a string is valid Unicode, that is, without unpaired surrogates."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


class Names:
    """Declared names: a string matches cells by spelling, a number by value.

    A string cell also matches after its surrounding spaces are removed, and matches a declared
    number that it spells. A numeric cell matches the strings that :func:`spellings` returns.
    """

    def __init__(
        self, names: Iterable[Any], what: str, *, missing: bool = False, absent: Sequence[str] = ()
    ) -> None:
        """Declare names.

        Args:
            names: Names in the order of their codes.
            what: Description of the names that starts every error message.
            missing: Whether None is allowed as a name.
            absent: Strings that mark missing cells. Strings that spell numbers also match by value
                if any of the names is a number.
        """
        self._codes: dict[float | str | None, int] = {}
        for code, name in enumerate(names):
            value = _declared(name, what)
            if value is None and not missing:
                raise PrivacyParameterError(
                    f"{what} contains a missing value, which is not a valid name. Remove it: "
                    "missing cells need no name."
                )
            if value in self._codes:
                raise PrivacyParameterError(
                    f"{what} contains the same value twice. Booleans are read as 0 and 1, and "
                    "numbers as 64-bit floats, which represent integers exactly only up to "
                    "2^53. Remove the duplicate, or use strings."
                )
            self._codes[value] = code
        self._absent = self._codes.get(None, ABSENT)
        self._numeric = any(isinstance(value, float) for value in self._codes)
        for text in absent:
            self._codes.setdefault(text.strip(), self._absent)
        for number in numbers_among(absent) if self._numeric else ():
            self._codes.setdefault(number, self._absent)

    def _code(self, cell: Any) -> int:
        try:
            value = read_value(cell)
        except ValueError:
            return UNREADABLE
        if value is None:
            return self._absent
        for name in (value, *spellings(cell)):
            if name in self._codes:
                return self._codes[name]
        if self._numeric and isinstance(value, str):
            with suppress(ValueError):
                number = read_number(value)
                return self._absent if math.isnan(number) else self._codes.get(number, UNKNOWN)
        return UNKNOWN

    def codes(self, cells: np.ndarray) -> Ints:
        """Return the code of each cell, or ABSENT, UNKNOWN or UNREADABLE."""
        if cells.dtype.kind in "mM":
            return np.where(np.isnat(cells), self._absent, UNREADABLE).astype(np.int64)
        if cells.dtype.kind in "biuf":
            distinct, places = np.unique(cells, return_inverse=True)
            codes = np.array([self._code(cell) for cell in distinct], dtype=np.int64)
            return codes[places].reshape(cells.shape)
        # Each distinct string is looked up once. Other cells may compare equal with different
        # spellings, such as 1 and True, or define their own equality.
        flat = cells.ravel().tolist()
        known = {text: self._code(text) for text in {cell for cell in flat if type(cell) is str}}
        each = (known[cell] if type(cell) is str else self._code(cell) for cell in flat)
        return np.fromiter(each, np.int64, len(flat)).reshape(cells.shape)


def _declared(name: Any, what: str) -> float | str | None:
    try:
        value = read_value(name)
    except ValueError:
        raise PrivacyParameterError(
            f"{what} contains a name of type {type(name).__name__}. Names must be strings or "
            "finite numbers."
        ) from None
    if isinstance(value, str) and not is_unicode(value):
        raise PrivacyParameterError(
            f"{what} contains a name with an unpaired surrogate, which is not valid Unicode. "
            "Rename it."
        )
    return value
