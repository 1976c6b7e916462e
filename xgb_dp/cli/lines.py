"""CSV files without quotes below the header, each line of which is a row, read by Arrow.

A file that has anything else in it is left to the parser of ``files.py``, which reads it as slowly
as Python makes texts. Both read each cell of such a file as the same text, or the same number.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pandas.io.common import get_handle
from pyarrow import csv

from ..data.cells import number_of

_BLOCK = 1 << 21  # bytes of a file that become one batch


class OtherForm(Exception):
    """The rows have a quote, a NUL character or a carriage return within a line."""


class _Bytes:
    """The bytes of a file below its header, as long as both parsers see the same cells in them."""

    closed = False

    def __init__(self, handle: Any, separator: str, header: Sequence[str]) -> None:
        self._handle, self._open = handle, False  # whether a carriage return came last
        self._separator, self._header = separator, header
        self._below = self.spaces = False  # whether the header was read; whether there are spaces

    def read(self, size: int = -1) -> bytes:
        data: bytes = self._handle.read(size)
        alone = b"\r" in data and (data.count(b"\r") - data.count(b"\r\n") - data.endswith(b"\r"))
        if alone or b"\0" in data or (self._open and data[:1] != b"\n"):
            raise OtherForm
        self._open = data.endswith(b"\r")
        if not self._below:
            line, _, data = data.lstrip(b"\r\n").partition(b"\n")
            self._below = True
            if self._names(line) != list(self._header):
                raise OtherForm
        if b'"' in data:
            raise OtherForm
        self.spaces = self.spaces or b" " in data
        return data

    def _names(self, line: bytes) -> list[str]:
        """The names in the first line, if quotes stand around whole names alone."""
        names = [name.strip() for name in line.decode("utf-8-sig").split(self._separator)]
        return [n[1:-1].strip() if n.count('"') == 2 and n[0] == n[-1] else n for n in names]


def batches_of_lines(
    path: Path,
    separator: str,
    header: Sequence[str],
    wanted: Sequence[str],
    numbers: Collection[str] = (),
    missing: Sequence[str] = (),
) -> Iterator[pa.RecordBatch]:
    """Some columns of the rows of a UTF-8 file; raises :class:`OtherForm` below the last of them.

    Cells are texts. Those of ``numbers`` are 64-bit floats as long as all of them are plain.
    """
    # An empty line would be a row, or spaces before the first cell would be cells.
    if len(header) < 2 or separator == " ":
        raise OtherForm
    done = 0
    typed = () if any(map(_is_number, missing)) else numbers  # " 7" would not be missing, as 7 is
    for floats in (typed, ()) if typed else ((),):
        at = 0
        try:
            for batch in _batches(path, separator, header, wanted, floats, missing):
                new = batch.slice(min(max(done - at, 0), batch.num_rows))
                at += batch.num_rows
                done = max(done, at)
                if len(new):
                    yield new
            return
        except (OtherForm, UnicodeError, pa.ArrowException):
            continue
    raise OtherForm  # the other parser says what is wrong, if anything is


def _is_number(text: str) -> bool:
    try:
        return number_of(text) == number_of(text)
    except ValueError:
        return False


def _batches(
    path: Path,
    separator: str,
    header: Sequence[str],
    wanted: Sequence[str],
    floats: Collection[str],
    missing: Sequence[str],
) -> Iterator[pa.RecordBatch]:
    """The rows as Arrow reads them."""
    names = [str(i) for i in range(len(header))]
    columns = [names[header.index(name)] for name in wanted]
    kinds = [pa.float64() if name in floats else pa.large_string() for name in header]
    with get_handle(path, "rb", compression="infer", is_text=False) as file:
        source = _Bytes(file.handle, separator, header)
        for batch in csv.open_csv(
            pa.PythonFile(source, mode="r"),
            csv.ReadOptions(column_names=names, block_size=_BLOCK),
            csv.ParseOptions(delimiter=separator, quote_char=False),
            csv.ConvertOptions(
                column_types=dict(zip(names, kinds, strict=True)),
                include_columns=list(dict.fromkeys(columns)),
                null_values=list(missing),
                strings_can_be_null=False,
            ),
        ):
            cells = [_read(batch[name], trim=source.spaces) for name in columns]
            yield pa.RecordBatch.from_arrays(cells, names=list(wanted))


def _read(cells: pa.Array, *, trim: bool) -> pa.Array:
    if not pa.types.is_floating(cells.type):
        return pc.utf8_ltrim(cells, characters=" ") if trim else cells
    if pc.any(pc.is_nan(cells)).as_py():  # Arrow reads "nan(1)", which is no number
        raise OtherForm
    return cells
