"""What a cell means: missing, a number or a text, told by the cell alone.

Everything that callers hand in is read by this rule, whatever contains it (:mod:`.columns`). A type
that a library gives to a whole column depends on all of its rows, so it never decides what a cell
means. Numbers count as their 64-bit floats: one missing cell makes whole numbers such floats in
many containers.

Libraries that convert data quote what they cannot convert. So conversions run under
:func:`read_data`, and neither a message nor the chain of exceptions behind it shows a cell, a row
number or a number of rows.
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
"""Texts that stand for a missing cell where nothing else is declared."""
DATES = (
    "Turn dates and durations into numbers by a public rule, for example days since a fixed date."
)
ABSENT, UNKNOWN, UNREADABLE = -1, -2, -3
"""Codes of a missing cell, of one with no declared name, and of what is not a cell."""
_UNREADABLE_DATA = (
    "The data cannot be read as a table of numbers, and the reason is not shown because it may "
    "quote a cell. Pass a two-dimensional array or a data frame whose columns are numbers or "
    "declared categories."
)
_INFINITE = "A row has an infinite feature. Features are finite or missing."


def read_data(
    function: Callable[..., T], *args: Any, wrong: str = _UNREADABLE_DATA, **kwargs: Any
) -> T:
    """Call what converts data, and show nothing of the data if it fails.

    Errors of this package, of the machine and warnings that were turned into errors pass. All
    others are replaced, without a cause or context that could still hold a cell.
    """
    try:
        return function(*args, **kwargs)
    except (PrivacyError, NativeLibraryError, MemoryError, ImportError, Warning):
        raise
    except Exception as error:
        if "contains `inf`" in str(error):  # what XGBoost says when it makes a matrix
            wrong = _INFINITE
    # Outside of the handler: an error that is raised in there keeps the other one as its context.
    raise RowDomainError(wrong)


def _number(cell: Any) -> float | None:
    value = float(cell)
    return None if math.isnan(value) else value


def _nothing(cell: Any) -> None:
    del cell


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
    type(None): _nothing,
}
"""How cells are read, by their exact type: a derived class may have an equality of its own."""


def _reader(kind: type) -> Callable[[Any], float | str | None] | None:
    known = _READERS.get(kind)
    if known is None and kind.__module__.partition(".")[0] == "pandas":
        return _nothing if kind.__name__ in ("NAType", "NaTType") else None
    return known


def read_value(cell: Any) -> float | str | None:
    """What a cell means: a number (truth values are 0 and 1), a text, or None for a missing one."""
    read = _reader(type(cell))
    if read is None:
        raise ValueError("not a cell")
    try:
        return read(cell)
    except (OverflowError, TypeError, ArithmeticError):
        raise ValueError("not a cell") from None


def spellings(cell: Any) -> tuple[str, ...]:
    """The texts that a cell counts as: whole numbers in digits, truth values also as words."""
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
    """A cell as a number; NaN where it is missing. Texts of numbers count as numbers."""
    value = read_value(cell)
    if value is None:
        return math.nan
    if isinstance(value, str):
        if "_" in value:  # Python's own notation
            raise ValueError("not a number")
        return float(value)
    return value


def read_cell_numbers(cells: Sequence[Any]) -> npt.NDArray[np.float64]:
    """Cells as numbers, each by itself."""
    kinds = set(map(type, cells))
    plain = kinds <= {bool, int, float} or (kinds == {str} and "_" not in "".join(cells))
    read: Callable[[Any], float] = float if plain else read_number
    try:
        return np.fromiter(map(read, cells), dtype=np.float64, count=len(cells))
    except OverflowError:
        raise ValueError("not a number") from None


def numbers_among(strings: Iterable[str]) -> list[float]:
    """The numbers that some of the texts spell."""
    numbers = []
    for text in strings:
        with suppress(ValueError):
            numbers.append(read_number(text))
    return [number for number in numbers if not math.isnan(number)]


def is_sequence(values: Any) -> bool:
    """Whether cells are read one by one: of a list, a tuple, or any other sequence but a text."""
    return isinstance(values, Sequence) and not isinstance(values, (str, bytes, bytearray))


def is_unicode(text: str) -> bool:
    """Whether a text is valid Unicode: one half of a surrogate pair is not."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


class Names:
    """Declared names: a text matches cells by its spelling, a number matches them by value.

    A cell that is a text also matches without the spaces around it, and a declared number if it
    spells one. A cell that is a number is spelled as :func:`spellings` says.
    """

    def __init__(
        self, names: Iterable[Any], what: str, *, missing: bool = False, absent: Sequence[str] = ()
    ) -> None:
        """Declare names.

        Args:
            names: In the order of their codes.
            what: Begins the messages.
            missing: Whether None is a name.
            absent: Texts of missing cells, by value where they are numbers and the names are.
        """
        self._codes: dict[float | str | None, int] = {}
        for code, name in enumerate(names):
            value = _declared(name, what)
            if value is None and not missing:
                raise PrivacyParameterError(
                    f"{what} has a missing value, which is not a name: missing cells need none. "
                    "Leave it out."
                )
            if value in self._codes:
                raise PrivacyParameterError(
                    f"{what} names the same value twice: truth values count as 0 and 1, and "
                    "numbers as 64-bit floats, which hold whole numbers exactly up to 2^53. Keep "
                    "one of them, or use texts."
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
        """The code of each cell, or :data:`ABSENT`, :data:`UNKNOWN` or :data:`UNREADABLE`."""
        if cells.dtype.kind in "mM":
            return np.where(np.isnat(cells), self._absent, UNREADABLE).astype(np.int64)
        if cells.dtype.kind in "biuf":
            distinct, places = np.unique(cells, return_inverse=True)
            codes = np.array([self._code(cell) for cell in distinct], dtype=np.int64)
            return codes[places].reshape(cells.shape)
        # Each text is looked up once; other cells may be equal and differ in spelling, as 1 and
        # True, or have an equality of their own.
        flat = cells.ravel().tolist()
        known = {text: self._code(text) for text in {cell for cell in flat if type(cell) is str}}
        each = (known[cell] if type(cell) is str else self._code(cell) for cell in flat)
        return np.fromiter(each, np.int64, len(flat)).reshape(cells.shape)


def _declared(name: Any, what: str) -> float | str | None:
    try:
        value = read_value(name)
    except ValueError:
        raise PrivacyParameterError(
            f"{what} has a {type(name).__name__}, which is not a name. Names are texts or finite "
            "numbers."
        ) from None
    if isinstance(value, str) and not is_unicode(value):
        raise PrivacyParameterError(
            f"{what} has a name that is not valid Unicode: it contains half of a surrogate pair. "
            "Spell the name in whole characters."
        )
    return value
