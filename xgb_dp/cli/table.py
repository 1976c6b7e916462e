"""Files of rows, read the way they are declared: no type, category or class is taken from them.

Every cell is read by itself. A cell outside its declaration raises, and that there is one is all
that the error says; see "Errors" in ``docs/guarantee.md``.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from ..data.ids import Persons, persons_of
from ..data.parts import Part
from ..data.split_rows import SplitTable, split_matrix
from ..domain.csv_form import Csv, check_columns, header_of
from ..domain.declared_cells import codes, features, numbers
from ..domain.domain import Domain
from ..domain.reader import frame_of, ids_of, joined, pieces_of
from ..errors import PrivacyWarning, RowDomainError
from ..record import policy
from .notes import part_of_file

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
    upper: Floats | None  # the latest times where labels are times, infinite where none is known
    exposure: Floats | None
    paged: Any = None  # the matrix, where the rows are on a disk
    part: Part | None = None  # of `xgb-dp split`; None for all rows
    split_by: str | None = None  # the column of ids by which that split was made

    @property
    def meta(self) -> dict[str, Floats | None]:
        """What a matrix holds beside the features."""
        times = self.upper is not None
        return {
            "label": None if times else self.labels,
            "weight": self.weights,
            "label_lower_bound": self.labels if times else None,
            "label_upper_bound": self.upper,
            "base_margin": None if self.exposure is None else np.log(self.exposure),
        }

    def matrix(self) -> Any:
        """As an xgboost.DMatrix, whose margins are the logarithms of exposures."""
        from xgboost import DMatrix

        matrix = self.paged
        if matrix is None:
            matrix = DMatrix(self.frame, enable_categorical=True, **self.meta)
        return split_matrix(matrix, self.part)

    def rows(self) -> Any:
        """The table of features and its labels if there is nothing else; otherwise a matrix."""
        if self.weights is not None or self.upper is not None or self.exposure is not None:
            return self.matrix()
        rows = self.frame, self.labels
        return rows if self.part is None else SplitTable(rows, self.part)

    @property
    def persons(self) -> Persons | None:
        """Whose the rows are; None where each row counts for itself."""
        if self.ids is None:
            return None
        persons = persons_of(self.ids)
        return replace(persons, part=self.part) if self.split_by == persons.column else persons


def read_table(path: Path, domain: Domain, **asked: Any) -> Table:
    """Read the rows of a file; for what can be asked see :class:`Wanted`."""
    wanted = Wanted(path, domain, **asked)
    kept: list[pa.RecordBatch] = []

    def pieces() -> Iterator[pa.RecordBatch]:
        for piece in wanted.pieces():
            kept.append(piece.select(wanted.others))
            yield piece

    read = features(pieces(), wanted.columns, wanted.domain.missing)
    part, column = part_of_file(path)
    table = replace(wanted.table(read, kept), part=part, split_by=column)
    if not len(table.frame) and policy.in_force() is None:
        warnings.warn(
            f"{path.name} has no rows below the names of its columns.", PrivacyWarning, stacklevel=2
        )
    return table


@dataclass
class Wanted:
    """Which columns of a file are read, and as what."""

    path: Path
    domain: Domain  # with its columns spelt out, once those of the file are known
    training: bool = True
    labels: bool = True
    exposure: bool = True
    keep: Sequence[str] = ()
    csv: Csv | None = None

    def __post_init__(self) -> None:
        header = header_of(self.path, self.csv)
        self.domain = domain = self.domain.resolved(header, training=self.training)
        self.columns = domain.columns or {}
        self.target = domain.target if self.labels else None
        self.exposed = domain.exposure if self.exposure else None
        self.weight = domain.weight if self.training else None
        self.ids = domain.privacy_id if self.training else None
        ends = domain.ends if self.target is not None else ()
        special = (self.target, *ends, self.exposed, self.weight, self.ids)
        self.others = list(dict.fromkeys([*self.keep, *(n for n in special if n is not None)]))
        check_columns([*self.columns, *self.others], header)

    def pieces(self) -> Iterator[pa.RecordBatch]:
        """The cells of the columns, piece by piece."""
        domain = self.domain
        numbers = {n for n, column in self.columns.items() if column.is_number}
        numbers |= {n for n in (self.exposed, self.weight, domain.target_upper) if n is not None}
        if self.target is not None and domain.classes is None:
            numbers.add(self.target)
        names = list(dict.fromkeys([*self.columns, *self.others]))
        return pieces_of(self.path, names, self.csv, numbers - {*self.keep}, domain.missing)

    def table(self, read: dict[str, Any], others: list[pa.RecordBatch]) -> Table:
        """The features and the other columns of some rows."""
        cells, domain, missing = joined(self.path, others), self.domain, self.domain.missing
        lower = None if self.target is None else _labels(cells[self.target], domain)
        return Table(
            frame=pd.DataFrame(read, index=range(len(cells)), copy=False),
            labels=lower,
            upper=None if lower is None else _upper(cells, lower, domain),
            exposure=None if self.exposed is None else _exposures(cells[self.exposed], domain),
            weights=None if self.weight is None else _weights(cells[self.weight], domain),
            ids=None if self.ids is None else ids_of(cells[self.ids], self.ids, missing),
            domain=domain,
            kept=frame_of(cells.select(list(self.keep))),
        )


def _or_none(read: Callable[..., T], *arguments: Any) -> T | None:
    """What a reader makes of cells; None if one of them is outside its declaration."""
    try:
        return read(*arguments)
    except RowDomainError:
        return None


def _labels(cells: Any, domain: Domain) -> Floats:
    if domain.classes is None:
        kind, values = "a number", _or_none(numbers, cells, domain.missing)
    else:
        kind = "a declared class"
        coded = _or_none(codes, cells, domain.classes, domain.missing, "error")
        values = None if coded is None or (coded < 0).any() else coded.astype(np.float32)
    if values is None:
        raise RowDomainError(
            f"The target {domain.target!r} of a row is not {kind}. Drop or replace such rows by a "
            "rule that looks at one row at a time, or declare every class that may occur."
        )
    return values


def _weights(cells: Any, domain: Domain) -> Floats:
    weights = _or_none(numbers, cells, domain.missing)
    if weights is None or not (np.isfinite(weights).all() and (weights >= 0).all()):
        raise RowDomainError(
            f"The weight {domain.weight!r} of a row is not a finite number of at least 0. Drop "
            "such rows, or replace it, by a rule that looks at one row at a time."
        )
    return weights


def _upper(cells: pa.Table, lower: Floats, domain: Domain) -> Floats | None:
    """The latest times, of an objective of times."""
    upper, event = domain.target_upper, domain.event
    if upper is not None:
        latest = _or_none(numbers, cells[upper], domain.missing)
        if latest is None:
            raise RowDomainError(
                f"The latest time {upper!r} of a row is not a number. Leave the cell empty where "
                "none is known."
            )
        return np.where(np.isnan(latest), np.float32(np.inf), latest)
    if event is None:
        return None
    seen = _or_none(codes, cells[event], (0, 1, "false", "true", "False", "True"), (), "error")
    if seen is None or (seen < 0).any():
        raise RowDomainError(
            f"The event {event!r} of a row is neither 1 (or true), where the end of the time was "
            "seen, nor 0 (or false), where it was not. Write it as one of these."
        )
    return np.where(seen % 2 == 1, lower, np.float32(np.inf))


def _exposures(cells: Any, domain: Domain) -> Floats:
    exposures = _or_none(numbers, cells, domain.missing)
    if exposures is None or not (exposures > 0).all() or np.isinf(exposures).any():
        raise RowDomainError(
            f"The exposure {domain.exposure!r} of a row is not a number above 0. Drop "
            "such rows, or replace it, by a rule that looks at one row at a time."
        )
    return exposures
