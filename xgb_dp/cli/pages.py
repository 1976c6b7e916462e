"""Rows that stay on a disk: a matrix of the pieces of a file, which is larger than the memory."""

from __future__ import annotations

import signal
import sys
import tempfile
import weakref
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import pandas as pd
import xgboost

from ..domain.csv_form import Csv
from ..domain.declared_cells import features
from ..domain.domain import Domain
from ..errors import RowDomainError
from .notes import part_of_file
from .table import Table, Wanted

_CELLS = 1 << 21  # of a page, at least; XGBoost keeps them in eight bytes each


class _Pieces(xgboost.DataIter):
    """Hands each piece of a file to XGBoost, which writes it to the disk, and keeps the ids."""

    def __init__(self, wanted: Wanted, folder: Path) -> None:
        self.wanted = wanted
        self.ids: list[pd.Series | None] = []
        super().__init__(cache_prefix=str(folder / "rows"))

    def reset(self) -> None:
        """Called by XGBoost before and after it reads the rows."""
        self._pieces: Any = None

    def next(self, input_data: Callable[..., None]) -> bool:
        """Called by XGBoost."""
        wanted = self.wanted
        if self._pieces is None:
            self._pieces, self.ids = _joined(wanted.pieces(), len(wanted.columns)), []
        for pieces in self._pieces:
            try:
                read = features(pieces, wanted.columns, wanted.domain.missing)
                table = wanted.table(read, [piece.select(wanted.others) for piece in pieces])
            except RowDomainError:
                self._raise_as_in_memory(pieces)
                raise
            if len(table.frame) or not self.ids:
                self.ids.append(table.ids)
                self.table = table
                input_data(data=table.frame, **table.meta)
                return True
        return False

    def _raise_as_in_memory(self, bad: list[Any]) -> None:
        """The error of all rows: which of them lies in which page must not decide about it."""
        wanted, rest = self.wanted, chain([bad], self._pieces)
        for pieces in rest:
            try:
                features(pieces, wanted.columns, wanted.domain.missing)
            except RowDomainError:  # nothing is kept of the rows that follow
                below = chain(pieces, chain.from_iterable(rest))
                features(below, wanted.columns, wanted.domain.missing)
        wanted.table({}, [piece.select(wanted.others) for piece in wanted.pieces()])


def _joined(pieces: Iterator[Any], columns: int) -> Iterator[list[Any]]:
    """Some pieces at a time: each page of a matrix takes time of its own."""
    some: list[Any] = []
    for piece in pieces:
        some.append(piece)
        if sum(map(len, some)) * columns >= _CELLS:
            yield some
            some = []
    if some:
        yield some


def paged_table(path: Path, domain: Domain, folder: Path, csv: Csv) -> Table:
    """The rows of a file for a training, which lie in a folder until the command ends."""
    wanted = Wanted(path, domain, csv=csv)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # an exit removes the folder
    with ExitStack() as stack:
        pages = tempfile.TemporaryDirectory(prefix="xgb-dp-", dir=folder)  # nobody else enters it
        pieces = _Pieces(wanted, Path(stack.enter_context(pages)))
        matrix = xgboost.DMatrix(pieces, enable_categorical=True)
        weakref.finalize(matrix, stack.pop_all().close)
    ids = [one for one in pieces.ids if one is not None]
    part, column = part_of_file(path)
    return replace(
        pieces.table,
        ids=pd.concat(ids, ignore_index=True) if ids else None,
        part=part,
        split_by=column,
        paged=matrix,
    )
