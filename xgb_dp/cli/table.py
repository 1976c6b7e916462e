"""Files of rows, read the way they are declared: no type, category or class is taken from them.

Every cell is read by itself. A cell outside its declaration raises, and that there is one is all
that the error says; see "Errors" in ``docs/guarantee.md``.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from ..data.cells import number_of, numbers_of, read_data, value_of
from ..data.columns import cells_of
from ..data.dates import EPOCH, parts_of_dates
from ..data.parts import Part, mark
from ..errors import PrivacyParameterError, RowDomainError
from .column import Column
from .domain import Domain
from .files import Csv, header_of, ids_of
from .files import cells_of as cells_of_file
from .part_file import part_of_file

__all__ = ["Table", "read_table"]


@dataclass(frozen=True)
class Table:
    """Rows in the form that XGBoost takes.

    Attributes:
        frame: Features: 32-bit floats, and categories with their declared dictionary.
        labels: Class numbers or target values; None where they were not asked for.
        upper: Where labels are times: the latest ones, infinite where none is known; else None.
        exposure: What each row was exposed to, or None.
        weights: Row weights, or None.
        ids: Whose row each row is, or None.
        domain: The domain, with its columns spelt out.
        kept: Columns that were asked for as they are.
        part: The part of `xgb-dp split` that the file holds; None for all rows.
    """

    frame: pd.DataFrame
    labels: npt.NDArray[np.float32] | None
    weights: npt.NDArray[np.float32] | None
    ids: pd.Series | None
    domain: Domain
    kept: pd.DataFrame
    part: Part | None = None
    upper: npt.NDArray[np.float32] | None = None
    exposure: npt.NDArray[np.float32] | None = None

    @property
    def plain(self) -> bool:
        """Whether features and labels are all that there is of a row."""
        return self.weights is None and self.upper is None and self.exposure is None

    def matrix(self) -> Any:
        """As an xgboost.DMatrix, whose margins are the logarithms of exposures."""
        from xgboost import DMatrix

        times = self.upper is not None
        made = DMatrix(
            self.frame,
            None if times else self.labels,
            weight=self.weights,
            enable_categorical=True,
            label_lower_bound=self.labels if times else None,
            label_upper_bound=self.upper,
            base_margin=None if self.exposure is None else np.log(self.exposure),
        )
        if self.part is not None:
            mark(made, self.part)
        return made


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
    wanted = [*domain.columns, *keep]
    outcome = domain.outcome
    if labels and domain.target is not None:
        wanted += [domain.target, *outcome.columns]
    if exposure and outcome.exposure is not None:
        wanted.append(outcome.exposure)
    if training:
        wanted += [name for name in (domain.weight, domain.privacy_id) if name is not None]
    missing = [name for name in wanted if name not in header]
    if missing:
        raise PrivacyParameterError(
            f"The file has no column {missing[0]!r}. `xgb-dp schema FILE` shows the names of its "
            "columns."
        )
    cells = cells_of_file(path, list(dict.fromkeys(wanted)), header, csv or Csv())
    features = _features(cells, domain)
    target = upper = exposures = weights = ids = None
    if labels and domain.target is not None:
        target = _labels(cells[domain.target], domain)
        upper = _upper(cells, target, domain)
    if exposure and outcome.exposure is not None:
        exposures = _exposures(cells[outcome.exposure], domain)
    if training and domain.weight is not None:
        weights = _weights(cells[domain.weight], domain)
    if training and domain.privacy_id is not None:
        ids = ids_of(cells[domain.privacy_id], domain.missing)
    frame = pd.DataFrame(features, index=range(len(cells)))
    part = part_of_file(path)
    if part is not None:
        # Not the ids: whether they are those of the division is told by the name of their column.
        for held in (frame, target):
            mark(held, part)
    return Table(frame, target, weights, ids, domain, cells[list(keep)], part, upper, exposures)


def _features(cells: pd.DataFrame, domain: Domain) -> dict[str, Any]:
    """Every feature in the form that XGBoost takes; one error for all that are outside."""
    out: dict[str, Any] = {}
    errors: dict[str, list[str]] = {}
    for name, column in (domain.columns or {}).items():
        try:
            if column.date is not None:
                parts = _dates(cells[name], column, domain.missing)
                out |= {f"{name}_{part}": values for part, values in parts.items()}
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


def _dates(
    cells: pd.Series, column: Column, missing: Sequence[str]
) -> dict[str, npt.NDArray[np.float32]]:
    assert column.date is not None
    found = parts_of_dates(cells, column.date, column.since or EPOCH, missing)
    return {part: values.astype(np.float32) for part, values in found.items()}


def _numbers(cells: pd.Series, missing: Sequence[str]) -> npt.NDArray[np.float32]:
    array = read_data(cells_of, cells, "number")
    values: npt.NDArray[Any] | None = None
    if array.dtype.kind in "biuf":
        values = array
    elif array.dtype.kind == "O":
        listed = [None if _is_missing(cell, missing) else cell for cell in array.tolist()]
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


def _finite(values: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    if np.isinf(values).any():
        raise RowDomainError(
            "a row holds an infinite number, or one beyond 32-bit floats. Features are finite or "
            "missing. Drop or replace such cells by a rule that looks at one row at a time."
        )
    return values


def _is_missing(cell: Any, missing: Sequence[str]) -> bool:
    return isinstance(cell, str) and cell.strip() in missing


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
        # A number is told by its value alone: one missing cell makes 1 a 1.0 in whole columns.
        names = [str(bool(value)), str(bool(value)).lower()] if _is_truth(cell) else []
        names.append(str(int(value)) if value.is_integer() else str(value))
        found = next((code[name] for name in names if name in code), None)
        return by_value.get(value, lowest) if found is None else found

    array = read_data(cells_of, cells, "category")
    texts: dict[str, int] = {}
    codes = np.empty(len(array), dtype=np.int64)
    for i, cell in enumerate(array if array.dtype.kind in "mM" else array.tolist()):
        if type(cell) is not str:
            codes[i] = of(cell)
        else:
            place = texts.get(cell)
            codes[i] = texts[cell] = of(cell) if place is None else place
    if (codes == -2).any():
        raise RowDomainError(
            "a row holds something that is not declared. Declare all that may occur, or say in a "
            "schema file what others are (`other: missing` or `other: NAME`)."
        )
    return codes


def _is_truth(cell: Any) -> bool:
    return isinstance(cell, (bool, np.bool_))


def _labels(cells: pd.Series, domain: Domain) -> npt.NDArray[np.float32]:
    try:
        if domain.classes is None:
            return _numbers(cells, domain.missing)
        codes = _codes(cells, domain.classes, domain.missing, "error")
    except RowDomainError:
        codes = np.array([-1])
    if (codes < 0).any():
        kind = "a number" if domain.classes is None else "a declared class"
        raise RowDomainError(
            f"The target {domain.target!r} of a row is not {kind}. Drop or replace such rows by a "
            "rule that looks at one row at a time, or declare every class that may occur."
        )
    return codes.astype(np.float32)


def _weights(cells: pd.Series, domain: Domain) -> npt.NDArray[np.float32]:
    try:
        return _numbers(cells, domain.missing)
    except RowDomainError:
        raise RowDomainError(
            f"The weight {domain.weight!r} of a row is not a number. Drop such rows, or replace "
            "it, by a rule that looks at one row at a time."
        ) from None


def _upper(
    cells: pd.DataFrame, lower: npt.NDArray[np.float32], domain: Domain
) -> npt.NDArray[np.float32] | None:
    """The latest times, of an objective of times."""
    outcome = domain.outcome
    if outcome.target_upper is not None:
        try:
            found = _numbers(cells[outcome.target_upper], domain.missing)
        except RowDomainError:
            raise RowDomainError(
                f"The latest time {outcome.target_upper!r} of a row is not a number. Leave the "
                "cell empty where none is known."
            ) from None
        return np.where(np.isnan(found), np.float32(np.inf), found)
    if outcome.event is None:
        return None
    try:
        seen = _codes(cells[outcome.event], ("0", "1", "false", "true"), (), "error")
    except RowDomainError:
        seen = np.array([-1])
    if (seen < 0).any():
        raise RowDomainError(
            f"The event {outcome.event!r} of a row is neither 1 (or true), where the end of the "
            "time was seen, nor 0 (or false), where it was not. Write it as one of these."
        )
    return np.where(seen % 2 == 1, lower, np.float32(np.inf))


def _exposures(cells: pd.Series, domain: Domain) -> npt.NDArray[np.float32]:
    try:
        found = _numbers(cells, domain.missing)
    except RowDomainError:
        found = np.full(1, np.nan, np.float32)
    if not (found > 0).all() or np.isinf(found).any():
        raise RowDomainError(
            f"The exposure {domain.outcome.exposure!r} of a row is not a number above 0. Drop "
            "such rows, or replace it, by a rule that looks at one row at a time."
        )
    return found
