"""CSV files without quotes below the header, each line of which is a row, read by Arrow.

A file that has anything else in it is left to the parser of ``files.py``, which reads it as slowly
as Python makes texts. Both read each cell of such a file as the same text.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from pandas.io.common import get_handle
from pyarrow import csv


class _OtherForm(Exception):
    """The rows have a quote, a NUL character or a carriage return within a line."""


class _Bytes:
    """The bytes of a file, as long as both parsers see the same lines and cells in them."""

    closed = False

    def __init__(self, handle: Any, separator: bytes) -> None:
        self._handle, self._open = handle, False  # whether a carriage return came last
        self._separator: bytes | None = separator  # until the header was read

    def read(self, size: int = -1) -> bytes:
        data: bytes = self._handle.read(size)
        if self._separator is not None:
            data = _unquoted(data, self._separator)
            self._separator = None
        alone = data.count(b"\r") - data.count(b"\r\n") - data.endswith(b"\r")
        if alone or b'"' in data or b"\0" in data or (self._open and data[:1] != b"\n"):
            raise _OtherForm
        self._open = data.endswith(b"\r")
        return data


def _unquoted(data: bytes, separator: bytes) -> bytes:
    """The start of a file with other names, as they are known, for names that are each quoted."""
    header, line_break, rest = data.partition(b"\n")
    names = header.rstrip(b"\r").split(separator)
    if all(n.count(b'"') == 2 and n[:1] == n[-1:] == b'"' for n in names if b'"' in n):
        header = header.replace(b'"', b"'")
    return header + line_break + rest


def cells_of_lines(
    path: Path, separator: str, header: list[str], wanted: list[str]
) -> pd.DataFrame | None:
    """The texts of some columns of a UTF-8 file; None for a file of another form."""
    # An empty line would be a row, or spaces before the first cell would be cells.
    if len(header) < 2 or separator == " ":
        return None
    names = [str(i) for i in range(len(header))]
    columns = [names[header.index(name)] for name in wanted]
    try:
        with get_handle(path, "rb", compression="infer", is_text=False) as file:
            cells = csv.read_csv(
                pa.PythonFile(_Bytes(file.handle, separator.encode()), mode="r"),
                csv.ReadOptions(column_names=names),
                csv.ParseOptions(delimiter=separator, quote_char=False),
                csv.ConvertOptions(
                    column_types=dict.fromkeys(names, pa.large_string()),
                    include_columns=list(dict.fromkeys(columns)),
                    strings_can_be_null=False,
                ),
            )
    except (_OtherForm, pa.ArrowException):
        return None  # the other parser says what is wrong, if anything is
    texts = [pc.utf8_ltrim(cells[name], characters=" ") for name in columns]
    return pa.table(texts, names=wanted).slice(1).to_pandas()
