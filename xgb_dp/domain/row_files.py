"""Read data files with Arrow: CSV cells as strings, Parquet cells with their types.

All cells of a format are read in the same way. CSV lines are checked before Arrow reads them, and
each block of complete lines is parsed separately, so that memory is bounded and no row affects how
another one is read. Pandas metadata in Parquet files is ignored. Errors show no cell.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv as arrow_csv
from pyarrow import parquet

from ..data.cells import numbers_among
from ..errors import PrivacyParameterError, RowDomainError
from .data_files import (
    Csv,
    Source,
    check_columns,
    find_files,
    find_separator,
    is_parquet,
    name_of,
    parse_header,
    read_blocks,
    reading_errors,
    refuse_lines,
)

_INDEX = re.compile(r"__index_level_\d+__")  # pandas stores an unnamed index under this name


def read_batches(
    source: Source,
    selected: Sequence[str],
    form: Csv | None = None,
    numbers: Collection[str] = (),
    missing: Sequence[str] = (),
) -> Iterator[pa.RecordBatch]:
    """Read some columns of one or more files in batches; yields at least one batch.

    Args:
        source: The files; all have the selected columns, in any order.
        selected: Names of the columns to read.
        form: Format of a CSV file.
        numbers: Numeric columns, which are converted to the number format of :func:`float`.
        missing: Strings that mark missing cells; they are not changed.
    """
    for path, parts in find_files(source):
        names = [name for name in selected if name not in parts]
        if is_parquet(path):
            batches = _typed(path, names)
        else:
            batches = _strings(path, names, form or Csv(), numbers, missing)
        for batch in batches:
            columns = [
                batch.column(name) if name not in parts
                else pa.array([parts[name]] * len(batch), pa.string())
                for name in selected
            ]  # fmt: skip
            yield pa.record_batch(columns, list(selected))


def read_cells(source: Source, selected: Sequence[str], *how: Any) -> pa.Table:
    """Read some columns into one table; see :func:`read_batches`."""
    batches = read_batches(source, selected, *how)
    return pa.Table.from_batches(list(of_one_type(source, batches, selected)))


def of_one_type(
    source: Source, batches: Iterable[pa.RecordBatch], names: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    """Yield the batches; raise if a column among these has different types in two files.

    Ids and copied cells are never converted: two ids could become equal.
    """
    first = None
    for batch in batches:
        schema = batch.select(names).schema
        if schema != (first := first or schema):
            raise PrivacyParameterError(
                f"A column has different types in the Parquet files of {name_of(source)}. Write "
                "all files with one schema."
            )
        yield batch


def _strings(
    path: Path, selected: Sequence[str], form: Csv, numbers: Collection[str], missing: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    blocks = read_blocks(path, form)
    header, second, rest = parse_header(path, form, next(blocks, (1, b""))[1])
    check_columns(selected, header)
    selected = selected or header[:1]  # a batch without columns has no length
    places = [header.index(name) for name in selected]
    marked = set(numbers) if form.decimal != "." or form.thousands else set()
    yield pa.record_batch([pa.array([], pa.string()) for _ in selected], list(selected))
    for line, block in chain([(second, rest)], blocks):
        if block[:1] not in b"\r\n" or block.strip(b"\r\n"):
            cells = _parsed(path, form, block, line, len(header), places)
            columns = [
                _unmarked(column, form, missing) if name in marked else column
                for name, column in zip(selected, cells, strict=True)
            ]
            yield pa.record_batch(columns, list(selected))


def _parsed(
    path: Path, form: Csv, block: bytes, line: int, columns: int, places: Sequence[int]
) -> list[pa.Array]:
    """Parse some columns of a block of lines."""
    names = [str(i) for i in range(columns)]
    separator = find_separator(path, form)
    try:
        if not _is_plain(block, separator):
            raise pa.ArrowInvalid
        table = arrow_csv.read_csv(
            pa.BufferReader(block),
            arrow_csv.ReadOptions(column_names=names, block_size=len(block) + 1),
            arrow_csv.ParseOptions(delimiter=separator),
            arrow_csv.ConvertOptions(
                column_types=dict.fromkeys(names, pa.string()),
                include_columns=[names[i] for i in dict.fromkeys(places)],
                null_values=[],
                strings_can_be_null=False,
                check_utf8=False,  # already decoded
            ),
        )
        [batch] = table.to_batches()
        return [batch.column(names[i]) for i in places]
    except pa.ArrowException:
        refuse_lines(path, form, columns, line, block)
    raise RowDomainError(
        f"{path.name} cannot be read as CSV. Write the file again, or convert it to Parquet."
    )


def _is_plain(block: bytes, separator: str) -> bool:
    """Return whether lines are independent and quotes occur only around whole cells."""
    if b"\0" in block or (not block.isascii() and b"\xef\xbb\xbf" in block):
        return False
    if b"\r" in block and block.count(b"\r") != block.count(b"\r\n"):
        return False
    if b'"' not in block:
        return True
    text = np.frombuffer(b"\n" + block + b"\n", dtype=np.uint8)
    quotes = np.flatnonzero(text == ord('"'))
    if len(quotes) % 2:
        return False
    ends = np.flatnonzero(text == ord("\n"))
    first, last = quotes[::2], quotes[1::2]
    borders = np.zeros(256, dtype=bool)
    borders[[*b'\r\n"', ord(separator)]] = True
    closed = (np.searchsorted(ends, first) == np.searchsorted(ends, last)).all()
    return bool(closed and borders[text[first - 1]].all() and borders[text[last + 1]].all())


def _unmarked(strings: pa.Array, form: Csv, missing: Sequence[str]) -> pa.Array:
    """Convert numbers to Python's format; mark numbers in other formats with a leading "?"."""
    digits, point, between = "[0-9]", re.escape(form.decimal), re.escape(form.thousands)
    grouped = f"{digits}{{1,3}}({between}{digits}{{3}})+|" if form.thousands else ""
    number = rf"^\s*[+-]?({grouped}{digits}*)({point}{digits}*)?([eE][+-]?{digits}+)?\s*$"
    plain = pc.replace_substring(strings, form.thousands, "") if form.thousands else strings
    plain = pc.replace_substring(plain, form.decimal, ".")
    known = pc.is_in(pc.utf8_trim_whitespace(strings), pa.array([*missing, ""], strings.type))
    other = pc.or_(known, pc.invert(pc.match_substring_regex(strings, digits)))
    kept = pc.if_else(other, strings, pc.binary_join_element_wise("?", strings, ""))
    return pc.if_else(pc.and_not(pc.match_substring_regex(strings, number), other), plain, kept)


def read_types(source: Source) -> pa.Table:
    """Return an empty table with the columns and types of Parquet files; no row is read."""
    path, parts = find_files(source)[0]
    with reading_errors(path):
        schema = parquet.read_schema(path)
    columns = [field for field in schema.remove_metadata() if not _INDEX.fullmatch(field.name)]
    return pa.schema([*columns, *(pa.field(name, pa.string()) for name in parts)]).empty_table()


def _typed(path: Path, selected: Sequence[str]) -> Iterator[pa.RecordBatch]:
    schema = read_types(path).schema
    check_columns(selected, schema.names)
    empty = [pa.array([], schema.field(name).type) for name in selected]
    yield pa.record_batch(empty, list(selected))
    with reading_errors(path):
        file = parquet.ParquetFile(path, buffer_size=1 << 20, pre_buffer=False)
    with file:
        batches = file.iter_batches(columns=list(selected))
        while True:
            with reading_errors(path):
                batch = next(batches, None)
            if batch is None:
                return
            yield batch


def read_ids(cells: Any, name: str, missing: Sequence[str]) -> pd.Series:
    """Return a column of ids; like other string cells, string ids lose surrounding spaces."""
    if pa.types.is_dictionary(cells.type):
        cells = cells.cast(cells.type.value_type)
    kind, known = cells.type, None
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        cells = pc.utf8_trim_whitespace(cells)
        known = pc.is_in(cells, pa.array(missing, kind))
    elif pa.types.is_integer(kind) or pa.types.is_floating(kind):
        absent = pa.array(numbers_among(missing), pa.float64())
        known = pc.is_in(cells.cast(pa.float64(), safe=False), absent)
    if known is not None:
        cells = pc.if_else(known, pa.scalar(None, kind), cells)
    return pd.Series(pd.arrays.ArrowExtensionArray(cells), name=name)


def to_frame(table: pa.Table) -> pd.DataFrame:
    """Convert to a data frame with Arrow types, so that large integers stay exact."""
    return table.to_pandas(types_mapper=pd.ArrowDtype, ignore_metadata=True)


def write_rows(rows: pa.Table | pd.DataFrame, path: Path, form: Csv | None = None) -> None:
    """Write rows as CSV or Parquet, depending on the extension of the path."""
    if is_parquet(path):
        if isinstance(rows, pd.DataFrame):
            rows = pa.Table.from_pandas(rows, preserve_index=False)
        parquet.write_table(rows.replace_schema_metadata(), path)
        return
    form, frame = form or Csv(), rows if isinstance(rows, pd.DataFrame) else to_frame(rows)
    encoding = "utf-8" if form.is_utf8 else form.encoding
    frame.to_csv(path, index=False, sep=find_separator(path, form), encoding=encoding)
