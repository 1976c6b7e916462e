"""Files of rows as they are: cells of CSV files as texts, those of Parquet files with their types.

Errors show nothing of what is in a file.
"""

from __future__ import annotations

import lzma
import tarfile
import warnings
import zipfile
import zlib
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
from pandas.io.common import get_handle
from pyarrow import parquet

from ..errors import RowDomainError
from .csv_form import Csv, header_of, is_parquet, separator_of
from .lines import OtherForm, batches_of_lines


class _Text:
    """The text of a CSV file. A NUL could cut a cell off before the check of its line breaks."""

    def __init__(self, handle: Any) -> None:
        self._handle, self.quotes = handle, False

    def __iter__(self) -> Iterator[str]:  # by which pandas knows an open file
        return iter(self._handle)

    def read(self, size: int = -1) -> str:
        text: str = self._handle.read(size)
        if "\0" in text:
            raise pd.errors.ParserError
        self.quotes = self.quotes or '"' in text
        return text


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    """Turn what parsers raise into errors that show nothing of the file."""
    wrong, damaged = "", "is damaged, or is not what its name says"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)
            yield
    except pd.errors.EmptyDataError:
        wrong = "is empty: the first line must hold the names of the columns"
    except (pd.errors.ParserError, pd.errors.ParserWarning):
        wrong = (
            "cannot be read as CSV: a row has more cells than there are names, open quotes or a "
            "NUL character"
        )
    except (UnicodeError, LookupError):
        wrong = "is not text in this encoding: give --encoding, for example --encoding latin-1"
    except (pa.ArrowException, EOFError, zlib.error, lzma.LZMAError, zipfile.BadZipFile,
            tarfile.TarError):  # fmt: skip
        wrong = damaged
    except ImportError:
        wrong = "needs a package that is not installed to be unpacked: unpack it first"
    except OSError as error:
        if error.errno is not None:  # of the file system; others quote bytes of the file
            raise
        wrong = damaged
    except ValueError:  # an archive of several files, or of none
        wrong = damaged
    if wrong:
        raise RowDomainError(f"{path.name} {wrong}.")


def parsed_header(path: Path, csv: Csv) -> list[str]:
    """Names of the columns of a CSV file of any form, or of a Parquet file."""
    if is_parquet(path):
        with _reading(path):
            return list(parquet.read_schema(path).names)
    return [str(name).strip() for name in _parsed(path, csv, nrows=1).iloc[0]]


def types_of(path: Path) -> pa.Table:
    """The columns of a Parquet file with their types, by its schema; no row is read.

    The types of a data frame may follow from one cell: a missing one makes truth values objects.
    """
    with _reading(path):
        return parquet.read_schema(path).empty_table()


def _parsed(path: Path, csv: Csv, **options: Any) -> pd.DataFrame:
    """Lines of a CSV file, the header among them.

    A row is a line, so that no row changes how another is read. A quote that one row leaves open
    swallows the rows below it up to the next quote, in any column, into a cell with line breaks.
    The header is read like a row: pandas counts the cells of the first line with other rules.
    """
    how = {"encoding": csv.encoding, "compression": "infer"}
    with _reading(path), get_handle(path, "r", **how) as file:
        text = _Text(file.handle)
        cells = pd.read_csv(
            text, sep=separator_of(path, csv), header=None, index_col=False, dtype=str, engine="c",
            keep_default_na=False, na_filter=False, skipinitialspace=True, **options,
        )  # fmt: skip
    if text.quotes and any(cells[name].str.contains("[\r\n]").any() for name in cells):
        raise RowDomainError(
            f"{path.name}: a cell holds a line break, or a quote is open at the end of a line. A "
            "row must be one line: take line breaks out of the cells, also of columns that are "
            "not used, or give the rows as Parquet."
        )
    return cells


def read_whole(
    path: Path, ids: str | None, missing: Sequence[str], csv: Csv
) -> tuple[Any, pd.Series | None]:
    """All cells of a file as they are, and the ids among them."""
    if is_parquet(path):
        with _reading(path):
            cells = parquet.read_table(path)
            column = None if ids is None else cells.column(ids).to_pandas().rename(ids)
    else:
        header = header_of(path, csv)
        cells = cells_of(path, header, header, csv)
        column = None if ids is None else cells[ids]
    return cells, None if column is None else ids_of(column, missing)


def write_whole(table: Any, path: Path, csv: Csv) -> None:
    """Write what :func:`read_whole` has read, in the same form."""
    if is_parquet(path):
        parquet.write_table(table, path)
        return
    encoding = "utf-8" if csv.encoding == "utf-8-sig" else csv.encoding
    table.to_csv(path, index=False, sep=separator_of(path, csv), encoding=encoding)


def cells_of(path: Path, wanted: list[str], header: list[str], csv: Csv) -> pd.DataFrame:
    """The cells of some columns; those of CSV files are texts."""
    if is_parquet(path):
        with _reading(path):
            return pd.read_parquet(path, columns=wanted).reset_index(drop=True)[wanted]
    if csv.encoding in ("utf-8", "utf-8-sig"):
        with suppress(OtherForm):
            lines = list(batches_of_lines(path, separator_of(path, csv), header, wanted))
            if lines:
                return pa.Table.from_batches(lines).to_pandas()
    return _texts(path, wanted, header, csv)


def _texts(path: Path, wanted: list[str], header: list[str], csv: Csv) -> pd.DataFrame:
    cells = _parsed(path, csv, names=range(len(header))).iloc[1:].reset_index(drop=True)
    cells = cells[[header.index(name) for name in wanted]]
    cells.columns = wanted
    return cells


def pieces_of(
    path: Path,
    wanted: list[str],
    header: list[str],
    csv: Csv,
    numbers: Collection[str],
    missing: Sequence[str],
) -> Iterator[pd.DataFrame | pa.RecordBatch]:
    """The same, piece by piece; texts of ``numbers`` may be read as numbers, one as good as all."""
    if is_parquet(path):
        yield from _typed_pieces(path, wanted)
        return
    done = 0
    if csv.encoding in ("utf-8", "utf-8-sig"):
        with suppress(OtherForm):
            separator = separator_of(path, csv)
            for batch in batches_of_lines(path, separator, header, wanted, numbers, missing):
                done += batch.num_rows
                yield batch
            if done:
                return
    yield _texts(path, wanted, header, csv).iloc[done:]


def _typed_pieces(path: Path, wanted: list[str]) -> Iterator[pd.DataFrame]:
    with _reading(path):
        file = parquet.ParquetFile(path, buffer_size=1 << 20, pre_buffer=False)
    with file:
        batches = file.iter_batches(columns=wanted)
        piece: pd.DataFrame | None = file.schema_arrow.empty_table().to_pandas()
        while piece is not None:
            yield piece[wanted]
            with _reading(path):
                batch = next(batches, None)
                piece = None if batch is None else batch.to_pandas(ignore_metadata=True)


def ids_of(cells: pd.Series, missing: Sequence[str]) -> pd.Series:
    """Ids as they are; those of text files without spaces around them, as all of their cells."""
    types, categorical = pd.api.types, isinstance(cells.dtype, pd.CategoricalDtype)
    if categorical or types.is_numeric_dtype(cells) or types.is_bool_dtype(cells):
        return cells
    texts = [cell.strip() if isinstance(cell, str) else cell for cell in cells.astype("object")]
    ids = [None if isinstance(text, str) and text in missing else text for text in texts]
    return pd.Series(ids, index=cells.index, name=cells.name, dtype="object")


def write_table(frame: pd.DataFrame, path: Path) -> None:
    """Write rows as CSV or Parquet, by the ending of the path."""
    if is_parquet(path):
        frame.to_parquet(path, index=False)
    else:
        frame.to_csv(path, index=False, sep="\t" if path.suffix.lower() == ".tsv" else ",")
