"""Files of rows, read the way they are declared: no type, category or class is taken from them.

Every cell is read by itself. A cell outside its declaration raises, and that there is one is all
that the error says; see "Errors" in ``docs/guarantee.md``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pandas as pd

from ..data.arrays import cells_of
from ..data.cells import number_of, numbers_of, read_data, value_of
from ..data.dates import EPOCH, parts_of_dates
from ..data.parts import Part, mark
from ..domain.domain import Domain
from ..errors import RowDomainError
from .files import Csv, check_columns, header_of, ids_of
from .files import cells_of as cells_of_file
from .part_file import part_of_file

T = TypeVar("T")
Floats = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Table:
    """Rows in the form that XGBoost takes."""

    frame: pd.DataFrame  # features: 32-bit floats, and categories with their declared names
    labels: Floats | None  # numbers of classes or values; None where they were not asked for
    weights: Floats | None
    ids: pd.Series | None
    domain: Domain  # with its columns spelt out
    kept: pd.DataFrame  # columns that were asked for as they are
    part: Part | None  # of `xgb-dp split`; None for all rows
    upper: Floats | None  # the latest times where labels are times, infinite where none is known
    exposure: Floats | None

    @property
    def plain(self) -> bool:
        """Whether features and labels are all that there is of a row."""
        return self.weights is None and self.upper is None and self.exposure is None

    def matrix(self) -> Any:
        """As an xgboost.DMatrix, whose margins are the logarithms of exposures."""
        from xgboost import DMatrix

        times = self.upper is not None
        matrix = DMatrix(
            self.frame,
            None if times else self.labels,
            weight=self.weights,
            enable_categorical=True,
            label_lower_bound=self.labels if times else None,
            label_upper_bound=self.upper,
            base_margin=None if self.exposure is None else np.log(self.exposure),
        )
        if self.part is not None:
            mark(matrix, self.part)
        return matrix


def read_table(
    path: Path,
    domain: Domain,
    *,
    training: bool,
    labels: bool = True,
    exposure: bool = True,
    keep: Sequence[str] = (),
    csv: Csv | None = None,
) -> Table:
    """Read the rows of a file."""
    header = header_of(path, csv)
    domain = domain.resolved(header, training=training)
    assert domain.columns is not None
    target = domain.target if labels else None
    exposed = domain.exposure if exposure else None
    weight, ids = (domain.weight, domain.privacy_id) if training else (None, None)
    ends = domain.ends if target is not None else ()
    special = [name for name in (target, *ends, exposed, weight, ids) if name is not None]
    wanted = list(dict.fromkeys([*domain.columns, *keep, *special]))
    check_columns(wanted, header)
    cells = cells_of_file(path, wanted, header, csv or Csv())
    frame = pd.DataFrame(_features(cells, domain), index=range(len(cells)))
    lower = None if target is None else _labels(cells[target], domain)
    table = Table(
        frame=frame,
        labels=lower,
        upper=None if lower is None else _upper(cells, lower, domain),
        exposure=None if exposed is None else _exposures(cells[exposed], domain),
        weights=None if weight is None else _weights(cells[weight], domain),
        ids=None if ids is None else ids_of(cells[ids], domain.missing),
        domain=domain,
        kept=cells[list(keep)],
        part=part_of_file(path),
    )
    if table.part is not None:
        # Not the ids: the name of their column says whether they are those of the division.
        for rows in (frame, lower):
            mark(rows, table.part)
    return table


def _features(cells: pd.DataFrame, domain: Domain) -> dict[str, Any]:
    """Every feature in the form that XGBoost takes; one error for all that are outside."""
    out: dict[str, Any] = {}
    errors: dict[str, list[str]] = {}
    for name, column in (domain.columns or {}).items():
        try:
            if column.date is not None:
                since = column.since or EPOCH
                parts = parts_of_dates(cells[name], column.date, since, domain.missing)
                out |= {f"{name}_{part}": v.astype(np.float32) for part, v in parts.items()}
            elif column.categories is None:
                out[name] = _finite(_numbers(cells[name], domain.missing))
            else:
                codes = _codes(cells[name], column.categories, domain.missing, column.other)
                out[name] = pd.Categorical.from_codes(codes, list(column.categories))
        except RowDomainError as error:
            errors.setdefault(str(error), []).append(name)
    if errors:
        raise RowDomainError(
            " ".join(f"{', '.join(map(repr, names))}: {e}" for e, names in errors.items())
        )
    return out


def _numbers(cells: pd.Series, missing: Sequence[str]) -> Floats:
    array = read_data(cells_of, cells, "number")
    values: npt.NDArray[Any] | None = array if array.dtype.kind in "biuf" else None
    if array.dtype.kind == "O":
        listed = [
            None if isinstance(cell, str) and cell.strip() in missing else cell
            for cell in array.tolist()
        ]
        with suppress(ValueError):
            values = numbers_of(listed)
    if values is None:
        raise RowDomainError(
            "a row holds something that is not a number. If the column holds categories, declare "
            "them (`--categories COLUMN=a,b,c`, or in a schema file); if it is not a feature, such "
            "as a key, leave it out (`--drop COLUMN`, or no line for it in the schema file); if "
            "such texts stand for missing cells, list them under `missing` in a schema file."
        )
    with np.errstate(over="ignore"):
        return values.astype(np.float64).astype(np.float32)


def _finite(values: Floats) -> Floats:
    if np.isinf(values).any():
        raise RowDomainError(
            "a row holds an infinite number, or one beyond 32-bit floats. Features are finite or "
            "missing. Drop or replace such cells by a rule that looks at one row at a time."
        )
    return values


def _number(text: str) -> float | None:
    with suppress(ValueError):
        return number_of(text)
    return None


def _codes(
    cells: pd.Series, declared: Sequence[str], missing: Sequence[str], other: str
) -> npt.NDArray[np.int64]:
    """Code of each cell, -1 for missing; numbers match as numbers, so that 1.0 is 1."""
    code: dict[str, int] = {text: i for i, text in enumerate(declared)}
    values = [(_number(text), i) for i, text in enumerate(declared)]
    by_value = {value: i for value, i in reversed(values) if value is not None}
    lowest = {"error": -2, "missing": -1}.get(other, code.get(other, -2))

    def of(cell: Any) -> int:
        try:
            value = value_of(cell)
        except ValueError:
            return lowest
        if value is None:
            return -1
        if isinstance(value, str):
            text = value.strip()
            if text in code or text in missing:
                return code.get(text, -1)
            number = _number(text)
            return lowest if number is None else by_value.get(number, lowest)
        # Only the value of a number counts: one missing cell makes 1 a 1.0 in whole columns.
        truth = isinstance(cell, (bool, np.bool_))
        names = [str(bool(value)), str(bool(value)).lower()] if truth else []
        names.append(str(int(value)) if value.is_integer() else str(value))
        exact = next((code[name] for name in names if name in code), None)
        return by_value.get(value, lowest) if exact is None else exact

    array = read_data(cells_of, cells, "category")
    listed = list(array) if array.dtype.kind in "mM" else array.tolist()
    of_texts = {text: of(text) for text in {cell for cell in listed if type(cell) is str}}
    codes = np.array([of_texts[c] if type(c) is str else of(c) for c in listed], dtype=np.int64)
    if (codes == -2).any():
        raise RowDomainError(
            "a row holds something that is not declared. Declare all that may occur, or say in a "
            "schema file what others are (`other: missing` or `other: NAME`)."
        )
    return codes


def _or_none(read: Callable[..., T], *arguments: Any) -> T | None:
    """What a reader makes of cells; None if one of them is outside its declaration."""
    try:
        return read(*arguments)
    except RowDomainError:
        return None


def _labels(cells: pd.Series, domain: Domain) -> Floats:
    if domain.classes is None:
        kind, values = "a number", _or_none(_numbers, cells, domain.missing)
    else:
        kind = "a declared class"
        codes = _or_none(_codes, cells, domain.classes, domain.missing, "error")
        values = None if codes is None or (codes < 0).any() else codes.astype(np.float32)
    if values is None:
        raise RowDomainError(
            f"The target {domain.target!r} of a row is not {kind}. Drop or replace such rows by a "
            "rule that looks at one row at a time, or declare every class that may occur."
        )
    return values


def _weights(cells: pd.Series, domain: Domain) -> Floats:
    weights = _or_none(_numbers, cells, domain.missing)
    if weights is None:
        raise RowDomainError(
            f"The weight {domain.weight!r} of a row is not a number. Drop such rows, or replace "
            "it, by a rule that looks at one row at a time."
        )
    return weights


def _upper(cells: pd.DataFrame, lower: Floats, domain: Domain) -> Floats | None:
    """The latest times, of an objective of times."""
    upper, event = domain.target_upper, domain.event
    if upper is not None:
        latest = _or_none(_numbers, cells[upper], domain.missing)
        if latest is None:
            raise RowDomainError(
                f"The latest time {upper!r} of a row is not a number. Leave the cell empty where "
                "none is known."
            )
        return np.where(np.isnan(latest), np.float32(np.inf), latest)
    if event is None:
        return None
    seen = _or_none(_codes, cells[event], ("0", "1", "false", "true"), (), "error")
    if seen is None or (seen < 0).any():
        raise RowDomainError(
            f"The event {event!r} of a row is neither 1 (or true), where the end of the time was "
            "seen, nor 0 (or false), where it was not. Write it as one of these."
        )
    return np.where(seen % 2 == 1, lower, np.float32(np.inf))


def _exposures(cells: pd.Series, domain: Domain) -> Floats:
    exposures = _or_none(_numbers, cells, domain.missing)
    if exposures is None or not (exposures > 0).all() or np.isinf(exposures).any():
        raise RowDomainError(
            f"The exposure {domain.exposure!r} of a row is not a number above 0. Drop "
            "such rows, or replace it, by a rule that looks at one row at a time."
        )
    return exposures
