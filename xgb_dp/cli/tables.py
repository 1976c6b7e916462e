"""Read data files as declared: no type, category or class is inferred from the rows.

Every cell is parsed independently of the others. A cell outside its declaration raises an error
that reveals nothing else about it; see "Errors" in ``docs/guarantee.md``. Rows that do not fit into
memory are written to disk as a matrix that XGBoost reads page by page.
"""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import tempfile
import warnings
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import xgboost

from .. import policy
from ..data.ids import Persons, SplitPart, encode_persons
from ..data.matrices import SplitTable, split_matrix
from ..domain.columns import read_codes, read_features, read_numbers
from ..domain.data_files import Csv, Source, check_columns, name_of
from ..domain.domain import Domain, read_header
from ..domain.row_files import of_one_type, read_batches, read_ids, to_frame
from ..errors import PrivacyParameterError, PrivacyWarning, RowDomainError
from .files import part_of_file

T = TypeVar("T")
Floats = npt.NDArray[np.float32]


@dataclass(frozen=True)
class FileRows:
    """Rows of a data file in the form that XGBoost accepts."""

    frame: pd.DataFrame  # features: 32-bit floats, and categoricals with the declared names
    labels: Floats | None  # class indices or values; None if labels were not requested
    weights: Floats | None
    ids: pd.Series | None
    domain: Domain  # resolved: every column is listed
    kept: pd.DataFrame  # columns to copy unchanged to the output
    upper: Floats | None  # upper bounds of survival times, infinite if censored
    margins: Floats | None  # base margins, or logs of exposures
    paged: Any = None  # the external-memory matrix, if the rows are on disk
    part: SplitPart | None = None  # part of an `xgb-dp split`; None for all rows
    split_by: str | None = None  # privacy id column of that split

    @property
    def meta(self) -> dict[str, Floats | None]:
        """Labels, weights and margins of the matrix."""
        times = self.upper is not None
        return {
            "label": None if times else self.labels,
            "weight": self.weights,
            "label_lower_bound": self.labels if times else None,
            "label_upper_bound": self.upper,
            "base_margin": self.margins,
        }

    def matrix(self) -> Any:
        """Return the rows as an xgboost.DMatrix."""
        from xgboost import DMatrix

        matrix = self.paged
        if matrix is None:
            matrix = DMatrix(self.frame, enable_categorical=True, **self.meta)
        return split_matrix(matrix, self.part)

    def rows(self) -> Any:
        """Return features and labels as a pair, or a matrix if there are other columns."""
        if self.weights is not None or self.upper is not None or self.margins is not None:
            return self.matrix()
        rows = self.frame, self.labels
        return rows if self.part is None else SplitTable(rows, self.part)

    @property
    def persons(self) -> Persons | None:
        """Privacy ids of the rows; None if every row is its own privacy unit."""
        if self.ids is None:
            return None
        persons = encode_persons(self.ids)
        return replace(persons, part=self.part) if self.split_by == persons.column else persons


def read_table(source: Source, domain: Domain, **options: Any) -> FileRows:
    """Read the rows of one or more files; `options` are fields of :class:`FileColumns`."""
    columns = FileColumns(source, domain, **options)
    kept: list[pa.RecordBatch] = []

    def pieces() -> Iterator[pa.RecordBatch]:
        for piece in columns.pieces():
            kept.append(piece.select(columns.others))
            yield piece

    read = read_features(pieces(), columns.columns, columns.domain.missing)
    part, column = part_of_file(source)
    table = replace(columns.table(read, kept), part=part, split_by=column)
    if not len(table.frame) and policy.in_force() is None:
        warnings.warn(f"{name_of(source)} has a header but no rows.", PrivacyWarning, stacklevel=2)
    return table


@dataclass
class FileColumns:
    """Columns to read from a table in files, and their roles."""

    source: Source
    domain: Domain  # resolved against the columns of the file
    training: bool = True
    exposure: bool = True
    keep: Sequence[str] = ()
    csv: Csv | None = None

    def __post_init__(self) -> None:
        header = read_header(self.source, self.csv)
        self.domain = domain = self.domain.resolve(header, training=self.training)
        self.columns = domain.columns or {}
        self.target = domain.target if self.training else None
        self.margins = domain.margins if self.exposure else None
        self.weight = domain.weight if self.training else None
        self.ids = domain.privacy_id if self.training else None
        ends = domain.ends if self.target is not None else ()
        special = (self.target, *ends, self.margins, self.weight, self.ids)
        self.others = list(dict.fromkeys([*self.keep, *(n for n in special if n is not None)]))
        check_columns([*self.columns, *self.others], header)

    def pieces(self) -> Iterator[pa.RecordBatch]:
        """Yield the cells of the columns in record batches."""
        domain = self.domain
        numbers = {n for n, column in self.columns.items() if column.is_number}
        numbers |= {n for n in (self.margins, self.weight, domain.target_upper) if n is not None}
        if self.target is not None and domain.classes is None:
            numbers.add(self.target)
        names = list(dict.fromkeys([*self.columns, *self.others]))
        numbers -= {*self.keep}
        batches = read_batches(self.source, names, self.csv, numbers, domain.missing)
        return of_one_type(self.source, batches, self.others)

    def table(self, read: dict[str, Any], others: list[pa.RecordBatch]) -> FileRows:
        """Combine features that were already read with the other columns of the same rows."""
        cells, domain, missing = pa.Table.from_batches(others), self.domain, self.domain.missing
        lower = None if self.target is None else _labels(cells[self.target], domain)
        return FileRows(
            frame=pd.DataFrame(read, index=range(len(cells)), copy=False),
            labels=lower,
            upper=None if lower is None else _upper(cells, lower, domain),
            margins=None if self.margins is None else _margins(cells[self.margins], domain),
            weights=None if self.weight is None else _weights(cells[self.weight], domain),
            ids=None if self.ids is None else read_ids(cells[self.ids], self.ids, missing),
            domain=domain,
            kept=to_frame(cells.select(list(self.keep))),
        )


def _parse_or_none(read: Callable[..., T], *arguments: Any) -> T | None:
    """Return the parsed cells, or None if one of them is outside its declaration."""
    try:
        return read(*arguments)
    except RowDomainError:
        return None


def _labels(cells: Any, domain: Domain) -> Floats:
    if domain.classes is None:
        kind, values = "a number", _parse_or_none(read_numbers, cells, domain.missing)
    else:
        kind = "a declared class"
        coded = _parse_or_none(read_codes, cells, domain.classes, domain.missing, "error")
        values = None if coded is None or (coded < 0).any() else coded.astype(np.float32)
    if values is None:
        raise RowDomainError(
            f"The target {domain.target!r} of a row is not {kind}. Drop or replace such rows with "
            "a rule that uses one row at a time, or declare every possible class."
        )
    return values


def _weights(cells: Any, domain: Domain) -> Floats:
    weights = _parse_or_none(read_numbers, cells, domain.missing)
    if weights is None or not (np.isfinite(weights).all() and (weights >= 0).all()):
        raise RowDomainError(
            f"The weight {domain.weight!r} of a row is not a finite number >= 0. Drop such rows "
            "or replace their weight, with a rule that uses one row at a time."
        )
    return weights


def _upper(cells: pa.Table, lower: Floats, domain: Domain) -> Floats | None:
    """Return the upper bounds of survival times, or None if the file has none."""
    upper, event = domain.target_upper, domain.event
    if upper is not None:
        latest = _parse_or_none(read_numbers, cells[upper], domain.missing)
        if latest is None:
            raise RowDomainError(
                f"The upper time bound {upper!r} of a row is not a number. Leave the cell empty "
                "if the bound is unknown."
            )
        return np.where(np.isnan(latest), np.float32(np.inf), latest)
    if event is None:
        return None
    seen = _parse_or_none(
        read_codes, cells[event], (0, 1, "false", "true", "False", "True"), (), "error"
    )
    if seen is None or (seen < 0).any():
        raise RowDomainError(
            f"The event {event!r} of a row is neither 1 nor 0. Write 1 (or true) if the event was "
            "observed, and 0 (or false) if the row is censored."
        )
    return np.where(seen % 2 == 1, lower, np.float32(np.inf))


def _margins(cells: Any, domain: Domain) -> Floats:
    values = _parse_or_none(read_numbers, cells, domain.missing)
    if values is None or not np.isfinite(values).all() or (domain.exposure and (values <= 0).any()):
        kind = "exposure" if domain.exposure else "base margin"
        raise RowDomainError(
            f"The {kind} {domain.margins!r} of a row is not a finite number"
            f"{' > 0' if domain.exposure else ''}. Drop such rows or replace their {kind}, with a "
            "rule that uses one row at a time."
        )
    return np.log(values) if domain.exposure else values


_CELLS = 1 << 21  # minimum number of cells in a page
_BYTES = 8  # size on disk of a cell, and of a row offset
_ROOM = 1 << 20  # bytes that must stay free in addition to a page
_REMOVE = "import shutil, sys; sys.stdin.read(); shutil.rmtree(sys.argv[1], ignore_errors=True)"


class _Pieces(xgboost.DataIter):
    """Data iterator that passes a file to XGBoost in pages, and collects the privacy ids."""

    def __init__(self, source: FileColumns, folder: Path) -> None:
        self.source, self.folder = source, folder
        self.ids: list[pd.Series | None] = []
        super().__init__(cache_prefix=str(folder / "rows"))

    def reset(self) -> None:
        """Restart the iteration; called by XGBoost."""
        self._pieces: Any = None

    def next(self, input_data: Callable[..., None]) -> bool:
        """Pass the next page to XGBoost; return False after the last page."""
        source = self.source
        if self._pieces is None:
            self._pieces, self.ids = _group_pieces(source.pieces(), len(source.columns)), []
        for pieces in self._pieces:
            try:
                read = read_features(pieces, source.columns, source.domain.missing)
                table = source.table(read, [piece.select(source.others) for piece in pieces])
            except RowDomainError:
                self._raise_as_in_memory(pieces)
                raise
            if len(table.frame) or not self.ids:
                self.ids.append(table.ids)
                self.table = table
                self._check_room(len(table.frame))
                input_data(data=table.frame, **table.meta)
                return True
        return False

    def _check_room(self, rows: int) -> None:
        """Raise an error if the disk is too full for a page, because XGBoost would abort."""
        needed = rows * (len(self.source.columns) + 1) * _BYTES + _ROOM
        if shutil.disk_usage(self.folder).free < needed:
            raise PrivacyParameterError(
                "The folder of --disk has too little free space: the rows need eight bytes per "
                "cell. Nothing was released, and no rows are left in the folder. Pass a folder on "
                "a larger disk."
            )

    def _raise_as_in_memory(self, bad: list[Any]) -> None:
        """Raise the error that reading all rows at once would raise.

        The division into pages must not influence which error is raised.
        """
        source, rest = self.source, chain([bad], self._pieces)
        for pieces in rest:
            try:
                read_features(pieces, source.columns, source.domain.missing)
            except RowDomainError:  # read the remaining rows as one table
                below = chain(pieces, chain.from_iterable(rest))
                read_features(below, source.columns, source.domain.missing)
        source.table({}, [piece.select(source.others) for piece in source.pieces()])


def _group_pieces(pieces: Iterator[Any], columns: int) -> Iterator[list[Any]]:
    """Group small batches into pages, because each page has a fixed overhead."""
    some: list[Any] = []
    for piece in pieces:
        some.append(piece)
        if sum(map(len, some)) * columns >= _CELLS:
            yield some
            some = []
    if some:
        yield some


@contextmanager
def _temporary_folder(parent: Path) -> Iterator[Path]:
    """Create a private temporary folder that is removed even if this process is killed.

    A separate process waits until its standard input is closed, which happens when this process
    ends, and then removes the folder.
    """
    folder = tempfile.mkdtemp(prefix="xgb-dp-", dir=parent)
    with subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", _REMOVE, folder],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd="/",
        start_new_session=True,
    ):
        yield Path(folder)


def paged_table(rows: Source, domain: Domain, folder: Path, csv: Csv) -> FileRows:
    """Read training rows into pages on disk, which are removed when the command ends."""
    source = FileColumns(rows, domain, csv=csv)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # a regular exit removes the folder
    with ExitStack() as stack:
        pieces = _Pieces(source, stack.enter_context(_temporary_folder(folder.resolve())))
        matrix = xgboost.DMatrix(pieces, enable_categorical=True)
        weakref.finalize(matrix, stack.pop_all().close)
    ids = [one for one in pieces.ids if one is not None]
    part, column = part_of_file(rows)
    return replace(
        pieces.table,
        ids=pd.concat(ids, ignore_index=True) if ids else None,
        part=part,
        split_by=column,
        paged=matrix,
    )
