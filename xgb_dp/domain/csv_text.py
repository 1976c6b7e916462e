"""The form of CSV files, and their text in blocks of whole lines.

A row is a line, and no line changes how another one is read. Text that Arrow's reader could take in
two ways is refused here, with the number of the line. The modules that make cells of the text take
long to load, so they are not imported here.
"""

from __future__ import annotations

import codecs
import csv
import importlib
import re
import sys
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from ..errors import PrivacyError, PrivacyParameterError, RowDomainError

# Encodings whose decoders carry nothing from one line to the next, besides tables of single bytes.
_LINES_ALONE = {
    "ascii", "big5", "big5hkscs", "cp932", "cp949", "cp950", "euc_jis_2004", "euc_jisx0213",
    "euc_jp", "euc_kr", "gb18030", "gb2312", "gbk", "iso8859-1", "johab", "shift_jis",
    "shift_jis_2004", "shift_jisx0213", "utf-16", "utf-16-be", "utf-16-le", "utf-32", "utf-32-be",
    "utf-32-le", "utf-8", "utf-8-sig",
}  # fmt: skip
_STRINGS = (".csv", ".tsv", ".txt")
_PACKED = {".gz": "gzip", ".bz2": "bz2", ".xz": "lzma"}
_MARK = b"\xef\xbb\xbf"  # U+FEFF
BLOCK = 1 << 21  # bytes that are read at a time
_LONGEST = 1 << 26  # bytes of a line


def _reads_lines_alone(encoding: codecs.CodecInfo) -> bool:
    """Whether no line of text can change how another one is decoded."""
    module = sys.modules.get(getattr(encoding.incrementaldecoder, "__module__", ""))
    return encoding.name in _LINES_ALONE or hasattr(module, "decoding_table")


@dataclass(frozen=True)
class Csv:
    """How CSV files are written: separator, encoding, and the marks within numbers."""

    separator: str = ","
    encoding: str = "utf-8-sig"  # with or without a byte order mark
    decimal: str = "."
    thousands: str = ""

    def __post_init__(self) -> None:
        one = len(self.separator) == 1 and self.separator.isascii()
        if not one or self.separator in '"\r\n\0':
            raise PrivacyParameterError(
                "--separator must be one ASCII character other than a quote or a line break, such "
                "as ; or a tab."
            )
        if self.decimal not in (".", ","):
            raise PrivacyParameterError("--decimal must be a point or a comma.")
        if self.thousands not in ("", ".", ",", "'", " ") or self.thousands == self.decimal:
            raise PrivacyParameterError(
                "--thousands must be a point, a comma, an apostrophe or a space, and another mark "
                "than --decimal. Leave it out if digits are not separated."
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

    @classmethod
    def from_mapping(cls, content: Mapping[str, Any]) -> Csv:
        """The form that a policy declares."""
        if not set(content) <= set(cls.__dataclass_fields__) or not all(
            isinstance(value, str) for value in content.values()
        ):
            raise PrivacyParameterError(
                f"`csv` has some of the keys {', '.join(cls.__dataclass_fields__)}, each a text."
            )
        return cls(**content)

    @property
    def is_utf8(self) -> bool:
        """Whether the bytes of a file are those that Arrow reads."""
        return codecs.lookup(self.encoding).name in ("utf-8", "utf-8-sig")


def is_parquet(path: Path) -> bool:
    """Whether rows come as Parquet: a file by the ending of its name, or a folder."""
    return path.suffix.lower() in (".parquet", ".pq") or path.is_dir()


def find_separator(path: Path, form: Csv) -> str:
    """What stands between the cells of a file."""
    return "\t" if form.separator == "," and ".tsv" in path.suffixes else form.separator


def check_columns(names: Sequence[str], header: Sequence[str]) -> None:
    """Refuse names of columns that a file does not have, or has twice."""
    for name in names:
        if header.count(name) > 1:
            raise PrivacyParameterError(
                f"Column {name!r} is in the file more than once. Rename or remove the others."
            )
        if name not in header:
            raise PrivacyParameterError(
                f"The file has no column {name!r}. `xgb-dp schema FILE` shows the names of its "
                "columns."
            )


@contextmanager
def reading_errors(path: Path) -> Iterator[None]:
    """Turn what libraries raise into an error that shows nothing of the file."""
    try:
        yield
        return
    except PrivacyError:
        raise
    except ImportError:
        wrong = "needs a package that is not installed to be unpacked: unpack it first"
    except (OSError, EOFError, zlib.error, ValueError, RuntimeError, NotImplementedError) as error:
        if isinstance(error, OSError) and error.errno is not None:  # of the file system
            raise
        wrong = "is damaged, or is not what its name says"
    except Exception as error:
        if type(error).__name__ != "LZMAError":  # of a module that may be absent
            raise
        wrong = "is damaged, or is not what its name says"
    raise RowDomainError(f"{path.name} {wrong}.")


def refuse_line(path: Path, line: int, wrong: str) -> NoReturn:
    """Refuse a line of a file."""
    raise RowDomainError(f"{path.name}, line {line}: {wrong}")


def parse_header(path: Path, form: Csv, block: bytes) -> tuple[list[str], int, bytes]:
    """Names in the first line that is not empty, the number of the next line, and the rest."""
    text = block.lstrip(b"\r\n")
    first, _, rest = text.partition(b"\n")
    if not first.strip():
        raise RowDomainError(
            f"{path.name} is empty: the first line must hold the names of the columns."
        )
    line = block[: len(block) - len(text)].count(b"\n") + 1
    separator = find_separator(path, form)
    wrong = find_fault(first, separator)
    if wrong:
        refuse_line(path, line, wrong)
    [names] = csv.reader([first.rstrip(b"\r").decode()], delimiter=separator)
    return [name.strip() for name in names], line + 1, rest


def _quoted(separator: str) -> re.Pattern[bytes]:
    cell = rb'(?:"(?:[^"]|"")*"|[^"%s]*)' % re.escape(separator.encode())
    return re.compile(rb"%s(?:%s%s)*\r?" % (cell, re.escape(separator.encode()), cell))


def find_fault(line: bytes, separator: str, columns: int = 0) -> str:
    """What is wrong with one line below the encoding; empty if nothing is."""
    if b"\0" in line:
        return "a NUL character. Remove it; in a file of UTF-16, give --encoding utf-16."
    if _MARK in line:
        return "a byte order mark (U+FEFF) within the text. Files were joined: remove it."
    if b"\r" in line.removesuffix(b"\r"):
        return "a carriage return within the line. End lines with a line feed."
    if b'"' in line and not _quoted(separator).fullmatch(line):
        return (
            "a quote is open at the end of the line, or stands within a cell. A row is one line: "
            'put the whole cell in quotes, with each quote in it written twice ("a ""b"" c"), and '
            "take line breaks out of the cells, also of columns that are not used, or give the "
            "rows as Parquet."
        )
    cells = re.sub(rb'"(?:[^"]|"")*"', b"", line).count(separator.encode()) + 1
    if columns and line.strip(b"\r") and cells != columns:
        return (
            f"{cells} cells, where the header has {columns} names. Give each row every cell; an "
            "empty cell is missing."
        )
    return ""


def refuse_lines(path: Path, form: Csv, columns: int, line: int, block: bytes) -> None:
    """Refuse the first line of a block that has a fault."""
    separator = find_separator(path, form)
    for number, text in enumerate(block.split(b"\n"), line):
        if wrong := find_fault(text, separator, columns):
            refuse_line(path, number, wrong)


def read_blocks(path: Path, form: Csv) -> Iterator[tuple[int, bytes]]:
    """The text of a file in UTF-8, some whole lines at a time, and the number of the first."""
    kinds = [suffix.lower() for suffix in path.suffixes]
    packed = _PACKED.get(kinds[-1]) if kinds else None
    if not kinds or kinds[-1 if packed is None else -2 :][0] not in _STRINGS:
        raise PrivacyParameterError(
            f"{path.name}: rows come as .csv, .tsv or .txt, also packed (.csv.gz, .csv.bz2, "
            ".csv.xz), as .parquet, or as a folder of .parquet files."
        )
    with reading_errors(path):
        module = None if packed is None else importlib.import_module(packed)
    decoder = None if form.is_utf8 else codecs.getincrementaldecoder(form.encoding)()
    line, rest = 1, b""
    with path.open("rb") if module is None else module.open(path, "rb") as file:
        start = True
        while True:
            with reading_errors(path):
                data = file.read(BLOCK)
            last = not data
            try:
                text = data if decoder is None else decoder.decode(data, final=last).encode()
                if start and text:
                    text, start = text.removeprefix(_MARK), False
                cut = len(text) if last else text.rfind(b"\n") + 1
                block, rest = (rest + text[:cut], text[cut:]) if cut or last else (b"", rest + text)
                if decoder is None and not block.isascii():
                    block.decode()
            except UnicodeError as error:
                _refuse_text(path, line, error, b"" if decoder is None else rest)
            if len(rest) > _LONGEST:
                refuse_line(
                    path, line, f"longer than {_LONGEST >> 20} MiB. End rows by line breaks."
                )
            if block:
                yield line, block
                line += block.count(b"\n")
            if last:
                return


def _refuse_text(path: Path, line: int, error: UnicodeError, before: bytes) -> NoReturn:
    """Refuse text of another encoding, with the line of the first byte that does not fit."""
    if isinstance(error, UnicodeDecodeError):
        sound = error.object[: error.start].decode(error.encoding, errors="ignore")
        line += before.count(b"\n") + sound.count("\n")
    refuse_line(
        path,
        line,
        "the text is of another encoding. Give --encoding, for example --encoding latin-1, or "
        "convert the file to UTF-8.",
    )
