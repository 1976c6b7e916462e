"""Files of rows, read the way they are declared: no type, category or class is taken from them.

Every cell is read by itself. A cell outside its declaration raises, and that there is one is all
that the error says; see "Errors" in ``docs/guarantee.md``.
"""

from __future__ import annotations

import lzma
import tarfile
import warnings
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from ..data.dates import EPOCH, parts_of_dates
from ..errors import PrivacyParameterError, RowDomainError
from .column import Column
from .domain import Domain

__all__ = ["Csv", "Table", "header_of", "read_cells", "read_table", "truths_of", "write_table"]

PARQUET = (".parquet", ".pq")


@dataclass(frozen=True)
class Csv:
    """How CSV files are written: what stands between cells, and the encoding of the text."""

    separator: str = ","
    encoding: str = "utf-8-sig"  # with or without a byte order mark

    def __post_init__(self) -> None:
        if len(self.separator) != 1 or self.separator in '"\r\n\0':
            raise PrivacyParameterError("--separator must be one character, such as ; or a tab.")


@dataclass(frozen=True)
class Table:
    """Rows in the form that XGBoost takes.

    Attributes:
        frame: Features: 32-bit floats, and categories with their declared dictionary.
        labels: Class numbers or target values; None where they were not asked for.
        weights: Row weights, or None.
        ids: Whose row each row is, or None.
        domain: The domain, with its columns spelt out.
        kept: Columns that were asked for as they are.
    """

    frame: pd.DataFrame
    labels: npt.NDArray[np.float32] | None
    weights: npt.NDArray[np.float32] | None
    ids: pd.Series | None
    domain: Domain
    kept: pd.DataFrame

    def matrix(self) -> Any:
        """As an xgboost.DMatrix."""
        from xgboost import DMatrix

        return DMatrix(self.frame, self.labels, weight=self.weights, enable_categorical=True)


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    """Turn what parsers raise into errors that show nothing of the file."""
    import pyarrow

    wrong, damaged = "", "is damaged, or is not what its name says"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)
            yield
    except pd.errors.EmptyDataError:
        wrong = "is empty: the first line must hold the names of the columns"
    except (pd.errors.ParserError, pd.errors.ParserWarning):
        wrong = "cannot be read as CSV: a row has more cells than there are names, or open quotes"
    except (UnicodeError, LookupError):
        wrong = "is not text in this encoding: give --encoding, for example --encoding latin-1"
    except (pyarrow.ArrowException, EOFError, zlib.error, lzma.LZMAError, zipfile.BadZipFile,
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


def header_of(path: Path, csv: Csv | None = None) -> list[str]:
    """Names of the columns of a CSV or Parquet file; no row is read.

    Args:
        path: The file.
        csv: How it is written, if it is a CSV file.

    Raises:
        PrivacyParameterError: The file is neither.
        RowDomainError: The file is empty, damaged or in another encoding.
    """
    if path.suffix.lower() in PARQUET:
        import pyarrow.parquet

        with _reading(path):
            return list(pyarrow.parquet.read_schema(path).names)
    if not any(s.lower() in (".csv", ".tsv", ".txt") for s in path.suffixes):
        raise PrivacyParameterError(
            f"{path.name}: rows come as .csv (also compressed, e.g. .csv.gz), .tsv or .parquet."
        )
    with _reading(path):
        line = pd.read_csv(path, header=None, nrows=1, **_options(path, csv or Csv()))
    return [str(name).strip() for name in line.iloc[0]]


def truths_of(path: Path) -> list[str]:
    """Names of the columns of truth values of a Parquet file, by its schema; no row is read.

    One missing cell makes such a column one of objects in a data frame.
    """
    import pyarrow
    import pyarrow.parquet

    with _reading(path):
        columns = pyarrow.parquet.read_schema(path)
    return [column.name for column in columns if pyarrow.types.is_boolean(column.type)]


def _options(path: Path, csv: Csv) -> dict[str, Any]:
    tabs = csv.separator == "," and ".tsv" in path.suffixes
    return {
        "sep": "\t" if tabs else csv.separator, "encoding": csv.encoding, "dtype": str,
        "keep_default_na": False, "na_filter": False, "skipinitialspace": True,
    }  # fmt: skip


def read_table(
    path: Path,
    domain: Domain,
    *,
    training: bool,
    labels: bool = True,
    keep: Sequence[str] = (),
    csv: Csv | None = None,
) -> Table:
    """Read the rows of a file.

    Args:
        path: CSV or Parquet.
        domain: What it is declared to hold.
        training: Whether this is for training: labels, weights and ids must be there.
        labels: Whether labels are wanted.
        keep: Further columns to hand back unchanged.
        csv: How the file is written, if it is a CSV file.

    Raises:
        PrivacyParameterError: A declared column is not there.
        RowDomainError: A cell is outside its declaration, or the file cannot be read.
    """
    header = header_of(path, csv)
    domain = domain.resolved(header, training=training)
    assert domain.columns is not None
    wanted = [*domain.columns, *keep]
    if labels and domain.target is not None:
        wanted.append(domain.target)
    if training:
        wanted += [name for name in (domain.weight, domain.privacy_id) if name is not None]
    missing = [name for name in wanted if name not in header]
    if missing:
        raise PrivacyParameterError(f"The file has no column {missing[0]!r}.")
    cells = _cells(path, list(dict.fromkeys(wanted)), header, csv or Csv())
    features = _features(cells, domain)
    target = weights = ids = None
    if labels and domain.target is not None:
        target = _labels(cells[domain.target], domain)
    if training and domain.weight is not None:
        weights = _weights(cells[domain.weight], domain)
    if training and domain.privacy_id is not None:
        ids = _ids(cells[domain.privacy_id], domain.missing)
    frame = pd.DataFrame(features, index=range(len(cells)))
    return Table(frame, target, weights, ids, domain, cells[list(keep)])


def read_cells(
    path: Path, names: Sequence[str], missing: Sequence[str], ids: str | None, csv: Csv | None
) -> pd.DataFrame:
    """The cells of some columns as they are, those of CSV files as texts.

    Args:
        path: CSV or Parquet.
        names: Columns that the file has.
        missing: Texts that stand for a missing id.
        ids: The column of ids among them.
        csv: How the file is written, if it is a CSV file.

    Raises:
        RowDomainError: The file cannot be read.
    """
    cells = _cells(path, list(names), header_of(path, csv), csv or Csv())
    return cells if ids is None else cells.assign(**{ids: _ids(cells[ids], missing)})


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
                out[name] = _numbers(cells[name], domain.missing)
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


def _cells(path: Path, wanted: list[str], header: list[str], csv: Csv) -> pd.DataFrame:
    if path.suffix.lower() in PARQUET:
        with _reading(path):
            return pd.read_parquet(path, columns=wanted).reset_index(drop=True)[wanted]
    with _reading(path):
        cells = pd.read_csv(
            path, header=0, names=range(len(header)), index_col=False, **_options(path, csv)
        )
    cells = cells[[header.index(name) for name in wanted]]
    cells.columns = wanted
    return cells


def _dates(
    cells: pd.Series, column: Column, missing: Sequence[str]
) -> dict[str, npt.NDArray[np.float32]]:
    assert column.date is not None
    found = parts_of_dates(cells, column.date, column.since or EPOCH, missing)
    return {part: values.astype(np.float32) for part, values in found.items()}


def _is_text(cells: pd.Series) -> bool:
    return not (pd.api.types.is_numeric_dtype(cells) or pd.api.types.is_bool_dtype(cells))


def _numbers(cells: pd.Series, missing: Sequence[str]) -> npt.NDArray[np.float32]:
    if not _is_text(cells):
        return cells.to_numpy(dtype=np.float64, na_value=np.nan).astype(np.float32)
    text = cells.astype("object")
    absent = text.isna() | text.astype(str).str.strip().isin(missing)
    values = pd.to_numeric(text.where(~absent, None), errors="coerce")
    if (values.isna() & ~absent).any():
        raise RowDomainError(
            "a row holds something that is not a number. If the column holds categories, declare "
            "them (`--categories COLUMN=a,b,c`, or in a schema file); if it is not a feature, such "
            "as a key, leave it out (`--drop COLUMN`, or no line for it in the schema file); if "
            "such texts stand for missing cells, list them under `missing` in a schema file."
        )
    with np.errstate(over="ignore"):
        return values.to_numpy(dtype=np.float64, na_value=np.nan).astype(np.float32)


def _number(text: Any) -> float | None:
    try:
        return float(text)
    except (TypeError, ValueError):
        return None


def _codes(
    cells: pd.Series, declared: Sequence[str], missing: Sequence[str], other: str
) -> npt.NDArray[np.int64]:
    """Code of each cell, -1 for missing; numbers match as numbers, so that 1.0 is 1."""
    code: dict[Any, int] = {text: i for i, text in enumerate(declared)}
    by_value = {v: i for i, text in enumerate(declared) if (v := _number(text)) is not None}
    lowest = {"error": -2, "missing": -1}.get(other, code.get(other, -2))

    def of(cell: Any) -> int:
        text = str(cell).strip()
        if text in code:
            return code[text]
        if cell is None or cell is pd.NA or cell != cell or text in missing:
            return -1
        if isinstance(cell, (bool, np.bool_)) and text.lower() in code:
            return code[text.lower()]
        value = _number(cell)
        return lowest if value is None else by_value.get(value, lowest)

    found = cells.astype("object")
    table = {cell: of(cell) for cell in pd.unique(found)}
    codes = np.fromiter((table.get(cell, -1) for cell in found), dtype=np.int64, count=len(found))
    if (codes == -2).any():
        raise RowDomainError(
            "a row holds something that is not declared. Declare all that may occur, or say in a "
            "schema file what others are (`other: missing` or `other: NAME`)."
        )
    return codes


def _labels(cells: pd.Series, domain: Domain) -> npt.NDArray[np.float32]:
    try:
        if domain.classes is None:
            return _numbers(cells, domain.missing)
        codes = _codes(cells, domain.classes, domain.missing, "error")
    except RowDomainError:
        codes = np.array([-1])
    if (codes < 0).any():
        kind = "number" if domain.classes is None else "declared class"
        raise RowDomainError(
            f"The target {domain.target!r} of a row is no {kind}. Drop or replace such rows by a "
            "rule that looks at one row at a time, or declare every class that may occur."
        )
    return codes.astype(np.float32)


def _weights(cells: pd.Series, domain: Domain) -> npt.NDArray[np.float32]:
    try:
        return _numbers(cells, domain.missing)
    except RowDomainError:
        raise RowDomainError(f"The weight {domain.weight!r} of a row is not a number.") from None


def _ids(cells: pd.Series, missing: Sequence[str]) -> pd.Series:
    """Ids as they are; those of text files without spaces around them, as all of their cells."""
    if not _is_text(cells) or isinstance(cells.dtype, pd.CategoricalDtype):
        return cells
    text = cells.astype("object")
    text = text.map(lambda cell: cell.strip() if isinstance(cell, str) else cell)
    return text.where(~text.isin(missing), None)


def write_table(frame: pd.DataFrame, path: Path | None) -> str | None:
    """Write rows as CSV or Parquet, by the ending of the path; without one, return them as CSV."""
    if path is None:
        return str(frame.to_csv(index=False))
    if path.suffix.lower() in PARQUET:
        frame.to_parquet(path, index=False)
    else:
        frame.to_csv(path, index=False, sep="\t" if path.suffix.lower() == ".tsv" else ",")
    return None
