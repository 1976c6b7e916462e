"""Dates as numbers, by a public rule that looks at one cell at a time.

A date is the one that is written: an offset from UTC is read and not applied. Texts are ISO 8601,
such as 2024-02-29, 2024-02-29T13:45 or 2024-02-29 13:45:07.5+01:00.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from datetime import date, datetime
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import RowDomainError
from .arrays import cells_of
from .cells import spellings, value_of

EPOCH = "1970-01-01"
"""The day that days are counted from where nothing else is declared."""
PARTS = ("days", "month", "weekday", "hour")
"""Days since a day that is declared; month 1 to 12; weekday 0 (Monday) to 6; hour 0 to 23."""
_TEXT = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)"
    r"(?:[T ](\d\d):(\d\d)(?::(\d\d)(?:[.,]\d+)?)?\s?(?:Z|[+-]\d\d(?::?\d\d)?)?)?"
)
_NO_DATE = (
    "a row has a cell that is not a date. Dates are written as in ISO 8601, such as 2024-02-29 or "
    "2024-02-29T13:45; texts that stand for missing cells are listed under `missing` in a schema "
    "file."
)


def parts_of_dates(
    cells: Any, parts: Sequence[str], since: str = EPOCH, missing: Sequence[str] = ()
) -> dict[str, npt.NDArray[np.float64]]:
    """Dates as columns of numbers."""
    seconds = _seconds(cells, missing)
    absent = np.isnat(seconds)
    days = seconds.astype("datetime64[D]")
    number = days.astype(np.int64)  # since 1970-01-01, a Thursday
    months = seconds.astype("datetime64[M]").astype(np.int64)
    first = np.datetime64(since, "D").astype(np.int64)
    values = {
        "days": number - first,
        "month": months % 12 + 1,
        "weekday": (number + 3) % 7,
        "hour": (seconds - days).astype("timedelta64[h]").astype(np.int64),
    }
    return {part: np.where(absent, np.nan, values[part].astype(np.float64)) for part in parts}


def _seconds(cells: Any, missing: Sequence[str]) -> npt.NDArray[np.datetime64]:
    """Date and time of each cell as they are written."""
    array = cells_of(cells, "date")
    if array.ndim != 1:
        raise RowDomainError(_NO_DATE)
    if array.dtype.kind == "M":
        return array.astype("datetime64[s]")
    cells = list(array) if array.dtype.kind == "m" else array.tolist()
    # Texts are read once; of other cells, equal ones may be different times.
    known = {cell: _second(cell, missing) for cell in {c for c in cells if type(c) is str}}
    seconds = [known[c] if type(c) is str else _second(c, missing) for c in cells]
    return np.array(seconds, dtype="datetime64[s]")


def _second(cell: Any, missing: Sequence[str]) -> np.datetime64:
    if type(cell) is np.datetime64:
        return cell.astype("datetime64[s]")
    text: Any = None
    with suppress(ValueError):
        text = value_of(cell)
        if text is None or not {*missing, "NaT"}.isdisjoint(spellings(cell)):
            return np.datetime64("NaT", "s")
    if isinstance(cell, date):  # a Timestamp of pandas is one, too
        text = cell.isoformat(sep=" ") if isinstance(cell, datetime) else cell.isoformat()
    match = _TEXT.fullmatch(text.strip()) if isinstance(text, str) else None
    if match is not None:
        clock = ":".join(part or "00" for part in match.groups()[3:])
        with suppress(ValueError):
            return np.datetime64(f"{match[1]}-{match[2]}-{match[3]}T{clock}", "s")
    raise RowDomainError(_NO_DATE)
