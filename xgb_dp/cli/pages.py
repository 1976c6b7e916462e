"""Rows that stay on a disk: a matrix of the pieces of a file, which is larger than the memory."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import tempfile
import weakref
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import pandas as pd
import xgboost

from ..domain.csv_form import Csv
from ..domain.declared_cells import features
from ..domain.domain import Domain
from ..errors import PrivacyParameterError, RowDomainError
from .notes import part_of_file
from .table import Table, Wanted

_CELLS = 1 << 21  # of a page, at least
_BYTES = 8  # of a cell on the disk, and of the place where a row begins
_ROOM = 1 << 20  # bytes that must be free beside a page
_REMOVE = "import shutil, sys; sys.stdin.read(); shutil.rmtree(sys.argv[1], ignore_errors=True)"


class _Pieces(xgboost.DataIter):
    """Hands each piece of a file to XGBoost, which writes it to the disk, and keeps the ids."""

    def __init__(self, wanted: Wanted, folder: Path) -> None:
        self.wanted, self.folder = wanted, folder
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
                self._check_room(len(table.frame))
                input_data(data=table.frame, **table.meta)
                return True
        return False

    def _check_room(self, rows: int) -> None:
        """Refuse a page that the disk cannot hold: XGBoost would end the process."""
        needed = rows * (len(self.wanted.columns) + 1) * _BYTES + _ROOM
        if shutil.disk_usage(self.folder).free < needed:
            raise PrivacyParameterError(
                "The folder of --disk has no room for the rows, which take eight bytes for each "
                "cell. Nothing was released, and no row stays there. Name a folder on a larger "
                "disk."
            )

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


@contextmanager
def _folder(parent: Path) -> Iterator[Path]:
    """A folder that nobody else enters, and that goes even if the process is killed or aborts.

    A process of its own waits for the end of this one, which closes its input.
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


def paged_table(path: Path, domain: Domain, folder: Path, csv: Csv) -> Table:
    """The rows of a file for a training, which lie in a folder until the command ends."""
    wanted = Wanted(path, domain, csv=csv)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # an exit removes the folder
    with ExitStack() as stack:
        pieces = _Pieces(wanted, stack.enter_context(_folder(folder.resolve())))
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
