"""Data files of a table: their paths, and CSV text in blocks of complete lines.

A table is one file, several files, or folders with hive partitions. Names of files and folders are
public.

Every row of a CSV file is one line, and no line affects how another line is read. Text that Arrow's
reader could interpret in two ways is refused with its line number. The libraries that parse the
text into cells are slow to import and therefore not imported here.
"""

from __future__ import annotations

import codecs
import csv
import importlib
import os
import re
import sys
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn, TypeAlias
from urllib.parse import unquote

from ..errors import PrivacyError, PrivacyParameterError, RowDomainError

Source: TypeAlias = "Path | tuple[Path, ...]"
"""The path of a table, or several paths: CSV or Parquet files, or folders of such files."""
Parts: TypeAlias = "dict[str, str | None]"
"""Partition columns of a file: the cell that all its rows have, by column."""

_TYPED = (".parquet", ".pq")
_DATA = re.compile(r".+\.(parquet|pq|(csv|tsv)(\.(gz|bz2|xz))?)", re.IGNORECASE)
_NULL_PART = "__HIVE_DEFAULT_PARTITION__"


def is_parquet(source: Source) -> bool:
    """Return whether a table is in Parquet files, by their extension."""
    return _is_typed(find_files(source)[0][0])


def _is_typed(path: Path) -> bool:
    return path.suffix.lower() in _TYPED


def name_of(source: Source) -> str:
    """Return a short name for messages."""
    if isinstance(source, Path):
        return source.name
    return f"{source[0].name} and {len(source) - 1} more"


def find_files(source: Source) -> list[tuple[Path, Parts]]:
    """Return the files of a table, each with the partition columns of its path.

    The folders below the given folder, or below the common folder of several paths, can be
    partitions such as ``town=Rome``. A file that occurs twice is refused, because its rows would
    count twice.
    """
    if isinstance(source, Path) and not source.is_dir():
        return [(source, {})]
    paths = [path.absolute() for path in ([source] if isinstance(source, Path) else source)]
    base = paths[0] if len(paths) == 1 else Path(os.path.commonpath([p.parent for p in paths]))
    files = [file for path in paths for file in (_in_folder(path) if path.is_dir() else [path])]
    if len({_is_typed(file) for file in files}) > 1:
        raise PrivacyParameterError(
            f"{name_of(source)}: the files have different formats. Pass either Parquet files or "
            "CSV files."
        )
    if len({(s.st_dev, s.st_ino) for s in (file.stat() for file in files)}) < len(files):
        raise PrivacyParameterError(
            f"{name_of(source)}: a file occurs twice, so its rows would count twice. Pass each "
            "file once."
        )
    parts = [_parts(file.relative_to(base)) for file in files]
    if len({tuple(sorted(names)) for names in parts}) > 1:
        raise PrivacyParameterError(
            f"The files in {name_of(source)} are partitioned by different columns. Partition all "
            "files by the same columns."
        )
    return list(zip(files, parts, strict=True))


def _in_folder(folder: Path) -> list[Path]:
    """Return the data files below a folder, without hidden ones."""
    files = [
        file
        for file in sorted(folder.rglob("*"))
        if not any(name[0] in "._" for name in file.relative_to(folder).parts)
        and _DATA.fullmatch(file.name)
        and file.is_file()
    ]
    if not files:
        raise PrivacyParameterError(
            f"{folder.name} is a folder without .parquet or .csv files. Pass a data file, or a "
            "folder of such files."
        )
    return files


def _parts(path: Path) -> Parts:
    pairs = [name.partition("=") for name in path.parts[:-1] if "=" in name]
    return {key: None if value == _NULL_PART else unquote(value) for key, _, value in pairs}


# Encodings whose decoders keep no state across lines. Single-byte code pages are also allowed.
_LINES_ALONE = {
    "ascii", "big5", "big5hkscs", "cp932", "cp949", "cp950", "euc_jis_2004", "euc_jisx0213",
    "euc_jp", "euc_kr", "gb18030", "gb2312", "gbk", "iso8859-1", "johab", "shift_jis",
    "shift_jis_2004", "shift_jisx0213", "utf-16", "utf-16-be", "utf-16-le", "utf-32", "utf-32-be",
    "utf-32-le", "utf-8", "utf-8-sig",
}  # fmt: skip
_STRINGS = (".csv", ".tsv", ".txt")
_PACKED = {".gz": "gzip", ".bz2": "bz2", ".xz": "lzma"}
_MARK = b"\xef\xbb\xbf"  # U+FEFF
BLOCK = 1 << 21  # bytes per read
_LONGEST = 1 << 26  # maximum bytes per line


def _reads_lines_alone(encoding: codecs.CodecInfo) -> bool:
    """Return whether every line is decoded independently of the others."""
    module = sys.modules.get(getattr(encoding.incrementaldecoder, "__module__", ""))
    return encoding.name in _LINES_ALONE or hasattr(module, "decoding_table")


@dataclass(frozen=True)
class Csv:
    """Format of CSV files: separator, encoding and number format."""

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
                "--thousands must be a point, a comma, an apostrophe or a space, and must differ "
                "from --decimal. Remove it if the numbers have no thousands separator."
            )
        try:
            known = _reads_lines_alone(codecs.lookup(self.encoding))
        except (LookupError, ValueError):
            known = False
        if not known:
            raise PrivacyParameterError(
                "--encoding must be a text encoding that decodes each line independently, such as "
                "utf-8, latin-1, cp1252, utf-16, shift_jis or gb18030. Encodings with shift states "
                "or escapes, such as iso2022_jp, hz and utf-7, are not supported, because one row "
                "could change how later rows are read. Convert such files first."
            )

    @classmethod
    def from_mapping(cls, content: Mapping[str, Any]) -> Csv:
        """Build the format from the `csv` section of a policy."""
        if not set(content) <= set(cls.__dataclass_fields__) or not all(
            isinstance(value, str) for value in content.values()
        ):
            raise PrivacyParameterError(
                f"`csv` must have only the keys {', '.join(cls.__dataclass_fields__)}, with "
                "strings as values."
            )
        return cls(**content)

    @property
    def is_utf8(self) -> bool:
        """Whether files are already in UTF-8, the encoding that Arrow reads."""
        return codecs.lookup(self.encoding).name in ("utf-8", "utf-8-sig")


def find_separator(path: Path, form: Csv) -> str:
    """Return the separator of a file: a tab for .tsv files unless another one is set."""
    return "\t" if form.separator == "," and ".tsv" in path.suffixes else form.separator


def check_columns(names: Sequence[str], header: Sequence[str]) -> None:
    """Refuse column names that are missing from the header or duplicated in it."""
    for name in names:
        if header.count(name) > 1:
            raise PrivacyParameterError(
                f"Column {name!r} occurs more than once in the file. Rename or remove duplicates."
            )
        if name not in header:
            # Names in the file are not shown: without a header line they would be cells of a row.
            if len(header) == 1:
                hint = "If another character separates the columns, pass it as --separator."
            elif "," in name:
                hint = "If these are several columns, repeat the option for each of them."
            else:
                hint = "Run `xgb-dp schema FILE` to list them."
            raise PrivacyParameterError(
                f"The file has no column {name!r} among its {len(header)} columns. The first line "
                f"of a CSV file must contain the column names. {hint}"
            )


@contextmanager
def reading_errors(path: Path) -> Iterator[None]:
    """Replace library exceptions by an error that shows no content of the file."""
    try:
        yield
        return
    except PrivacyError:
        raise
    except ImportError:
        wrong = "cannot be decompressed: a required package is missing. Decompress it first"
    except Exception as error:
        damaged = isinstance(error, (EOFError, zlib.error, ValueError, RuntimeError))
        damaged |= isinstance(error, OSError) and error.errno is None  # not of the file system
        damaged |= type(error).__name__ == "LZMAError"  # lzma may not be importable
        if not damaged:
            raise
        wrong = "is damaged, or does not have the format of its file extension"
    raise RowDomainError(f"{path.name} {wrong}.")


def refuse_line(path: Path, line: int, wrong: str) -> NoReturn:
    """Raise RowDomainError for a line of a file."""
    raise RowDomainError(f"{path.name}, line {line}: {wrong}")


def parse_header(path: Path, form: Csv, block: bytes) -> tuple[list[str], int, bytes]:
    """Return the names in the first non-empty line, the number of the next line, and the rest."""
    text = block.lstrip(b"\r\n")
    first, _, rest = text.partition(b"\n")
    if not first.strip():
        raise RowDomainError(f"{path.name} is empty. The first line must contain the column names.")
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
    """Describe what is wrong with a decoded line; return an empty string if nothing is."""
    if b"\0" in line:
        return "contains a NUL character. Remove it; for a UTF-16 file, pass --encoding utf-16."
    if _MARK in line:
        return "contains a byte order mark (U+FEFF), as in concatenated files. Remove the mark."
    if b"\r" in line.removesuffix(b"\r"):
        return "contains a carriage return. End lines with a line feed."
    if b'"' in line and not _quoted(separator).fullmatch(line):
        return (
            "a quote is not closed on this line, or is inside an unquoted cell. Every row must be "
            'on one line. Quote the whole cell and double each quote in it ("a ""b"" c"); remove '
            "line breaks from cells, also in unused columns, or convert the rows to Parquet."
        )
    cells = re.sub(rb'"(?:[^"]|"")*"', b"", line).count(separator.encode()) + 1
    if columns and line.strip(b"\r") and cells != columns:
        return (
            f"has {cells} cells, but the header has {columns} names. Write every cell of each "
            "row; leave missing cells empty."
        )
    return ""


def refuse_lines(path: Path, form: Csv, columns: int, line: int, block: bytes) -> None:
    """Raise RowDomainError for the first invalid line of a block, if there is one."""
    separator = find_separator(path, form)
    for number, text in enumerate(block.split(b"\n"), line):
        if wrong := find_fault(text, separator, columns):
            refuse_line(path, number, wrong)


def check_extension(path: Path) -> str | None:
    """Refuse unsupported types of data files; return the module that decompresses this file."""
    kinds = [suffix.lower() for suffix in path.suffixes]
    packed = _PACKED.get(kinds[-1]) if kinds else None
    is_csv = kinds and kinds[-1 if packed is None else -2 :][0] in _STRINGS
    if not (is_csv or kinds[-1:] in ([".parquet"], [".pq"])):
        raise PrivacyParameterError(
            f"{path.name}: unsupported file type. Use .csv, .tsv or .txt, optionally compressed "
            "(.csv.gz, .csv.bz2, .csv.xz), .parquet, or a folder of such files."
        )
    return packed


def read_blocks(path: Path, form: Csv) -> Iterator[tuple[int, bytes]]:
    """Yield blocks of complete lines in UTF-8, each with the number of its first line."""
    packed = check_extension(path)
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
                refuse_line(path, line, f"longer than {_LONGEST >> 20} MiB. Check the line breaks.")
            if block:
                yield line, block
                line += block.count(b"\n")
            if last:
                return


def _refuse_text(path: Path, line: int, error: UnicodeError, before: bytes) -> NoReturn:
    """Raise RowDomainError at the line of the first byte that cannot be decoded."""
    if isinstance(error, UnicodeDecodeError):
        decoded = error.object[: error.start].decode(error.encoding, errors="ignore")
        line += before.count(b"\n") + decoded.count("\n")
    refuse_line(
        path,
        line,
        "the text has a different encoding. Pass --encoding, for example --encoding latin-1, or "
        "convert the file to UTF-8.",
    )
