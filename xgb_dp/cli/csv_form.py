"""How files of rows are written, and the names of their columns.

Apart from what reads the rows, whose packages take long to load.
"""

from __future__ import annotations

import codecs
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ..errors import PrivacyParameterError

# Encodings whose decoders carry nothing from one line to the next, besides tables of single bytes.
_LINES_ALONE = {
    "ascii", "big5", "big5hkscs", "cp932", "cp949", "cp950", "euc_jis_2004", "euc_jisx0213",
    "euc_jp", "euc_kr", "gb18030", "gb2312", "gbk", "iso8859-1", "johab", "shift_jis",
    "shift_jis_2004", "shift_jisx0213", "utf-16", "utf-16-be", "utf-16-le", "utf-32", "utf-32-be",
    "utf-32-le", "utf-8", "utf-8-sig",
}  # fmt: skip


_TEXTS = (".csv", ".tsv", ".txt")
_LONGEST = 1 << 20  # characters of a line of names


def _reads_lines_alone(encoding: codecs.CodecInfo) -> bool:
    """Whether no line of text can change how another one is decoded."""
    module = sys.modules.get(getattr(encoding.incrementaldecoder, "__module__", ""))
    return encoding.name in _LINES_ALONE or hasattr(module, "decoding_table")


@dataclass(frozen=True)
class Csv:
    """How CSV files are written: what stands between cells, and the encoding of the text."""

    separator: str = ","
    encoding: str = "utf-8-sig"  # with or without a byte order mark

    def __post_init__(self) -> None:
        one = len(self.separator) == 1 and self.separator.isascii()  # others: another parser
        if not one or self.separator in '"\r\n\0':
            raise PrivacyParameterError(
                "--separator must be one ASCII character other than a quote or a line break, such "
                "as ; or a tab."
            )
        try:
            known = _reads_lines_alone(codecs.lookup(self.encoding))
        except (LookupError, ValueError):
            known = False
        if not known:
            raise PrivacyParameterError(
                "--encoding is not the name of an encoding of text that reads each line alone. "
                "Give for example utf-8, latin-1, cp1252, utf-16, shift_jis or gb18030. Encodings "
                "with shifts or escapes, such as iso2022_jp, hz and utf-7, are refused: there one "
                "row can change the text of the rows below it. Convert such files first."
            )


def is_parquet(path: Path) -> bool:
    """Whether a file is a Parquet file, by the ending of its name."""
    return path.suffix.lower() in (".parquet", ".pq")


def separator_of(path: Path, csv: Csv) -> str:
    """What stands between the cells of a file."""
    return "\t" if csv.separator == "," and ".tsv" in path.suffixes else csv.separator


def header_of(path: Path, csv: Csv | None = None) -> list[str]:
    """Names of the columns of a CSV or Parquet file; no row is read."""
    csv = csv or Csv()
    if not is_parquet(path) and not any(s.lower() in _TEXTS for s in path.suffixes):
        raise PrivacyParameterError(
            f"{path.name}: rows come as .csv (also compressed, e.g. .csv.gz), .tsv or .parquet."
        )
    line, separator = _first_line(path, csv), separator_of(path, csv)
    if not line.strip() or '"' in line or "\0" in line or separator == " ":
        from .files import parsed_header

        return parsed_header(path, csv)
    return [name.strip() for name in line.split(separator)]


def _first_line(path: Path, csv: Csv) -> str:
    """The first line of a text, without its end; nothing where it takes more than a look."""
    if path.suffix.lower() in _TEXTS:
        with suppress(UnicodeError), path.open(encoding=csv.encoding, newline="") as file:
            line = file.readline(_LONGEST)
            if line.endswith(("\n", "\r")):
                return line.rstrip("\r\n").removeprefix("\ufeff")
    return ""


def check_columns(names: Sequence[str], header: Sequence[str]) -> None:
    """Refuse names of columns that a file does not have."""
    for name in names:
        if name not in header:
            raise PrivacyParameterError(
                f"The file has no column {name!r}. `xgb-dp schema FILE` shows the names of its "
                "columns."
            )
