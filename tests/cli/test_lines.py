"""A row of a CSV file is a line: what one row holds changes no other row."""

import codecs
import encodings
import itertools
import pkgutil
from pathlib import Path

import pyarrow as pa
import pytest

from xgb_dp.errors import PrivacyParameterError, RowDomainError

pytest.importorskip("click")

from xgb_dp.domain.data_files import Csv
from xgb_dp.domain.domain import read_header
from xgb_dp.domain.row_files import read_cells

from .calls import fails

PLAIN = "7,8,9"
ROWS = [
    PLAIN, "", " ", '"a",1,2', '"a""b",1,2', 'a"b,1,2', '""",1,2', '"""a""",1,2', '"a"b,1,2',
    '"zed,1,1', 'al",0,0', '1,"2,3', '1,2"', '1,2", 3', '1,2,"3', '1,2,3"', '1, "2,3', '1,2", "3',
    '1,2,3,"', '","', '"', '""', ' "', "1", "1,2", "1,2,3,", "1,2,3,4", "1,2,3,4,5", "1\r2,3,4",
    '"\r",1,2', "1,2,3\r", '1,2,"3\r', '"\0', "1\0,2,3", '1,2,3,"\0', "'1,2,3", "#1,2,3",
    "\t1, 2 ,\t3", " 1,2,3", " \t 1,2,3", '\\",1,2',
]  # fmt: skip
STATEFUL = [
    "iso2022_jp", "iso2022_jp_1", "iso2022_jp_2", "iso2022_jp_2004", "iso2022_jp_3",
    "iso2022_jp_ext", "iso2022_kr", "csISO2022JP", "hz", "utf-7", "punycode", "idna",
    "unicode_escape", "raw_unicode_escape", "rot13", "undefined", "base64", "nothing", "\0", "",
]  # fmt: skip
SOUND = [
    "utf-8", "UTF8", "utf-8-sig", "utf-16", "utf-16-le", "utf-32", "ascii", "latin-1", "cp1252",
    "cp037", "iso8859-15", "koi8-r", "mac-roman", "gbk", "gb18030", "big5", "shift_jis", "euc-jp",
    "euc-kr", "cp932",
]  # fmt: skip


def rows_of(table: pa.Table) -> list[list[str]]:
    return [list(row.values()) for row in table.to_pylist()]


def cells(path: Path, content: str, columns: str = "abc") -> list[list[str]] | None:
    """The cells of a file; None if it is refused."""
    path.write_bytes(content.encode())
    try:
        return rows_of(read_cells(path, list(columns)))
    except RowDomainError:
        return None


@pytest.mark.parametrize(("columns", "end"), [("abc", "\n"), ("c", "\r\n")])
def test_rows_together_are_what_they_are_alone(tmp_path, columns, end):
    path = tmp_path / "rows.csv"
    alone = {row: cells(path, f"a,b,c{end}{row}{end}", columns) for row in ROWS}
    assert alone[PLAIN] == [["7", "8", "9"][-len(columns) :]]
    for first, last in itertools.product(ROWS, ROWS if columns == "abc" else ROWS[::3]):
        parts = [alone[first], alone[PLAIN], alone[last]]
        expected = None if None in parts else [row for part in parts for row in part or []]
        text = end.join(["a,b,c", first, PLAIN, last, ""])
        assert cells(path, text, columns) == expected, (first, last)


def test_quotes_in_a_header(tmp_path):
    path = tmp_path / "rows.csv"
    for header in ('a,b,"c', 'a,"b,c', '"a\nb",b,c'):
        for below in ("1,2,3\n", '1,2,3\nal",0,0\n', '1,2,3"\n'):
            path.write_text(f"{header}\n{below}")
            with pytest.raises(RowDomainError):
                read_header(path)
    path.write_text('"a","b"" x","c,d"\n1,2,3\n')
    assert read_header(path) == ["a", 'b" x', "c,d"]


def test_separators(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("a(b\n1(2\n")
    assert read_header(path, Csv("(")) == ["a", "b"]
    for separator in ("§", "é", "\u2028", "", ";;", '"', "\n", "\0"):
        with pytest.raises(PrivacyParameterError, match="ASCII"):
            Csv(separator=separator)


@pytest.mark.parametrize("encoding", STATEFUL)
def test_encodings_with_state_are_refused(folder, encoding):
    with pytest.raises(PrivacyParameterError):
        Csv(encoding=encoding)
    output = fails("schema", "rows.csv", "--encoding", encoding)
    assert "--encoding" in output and "utf-8" in output and "each line independently" in output


@pytest.mark.parametrize("encoding", SOUND)
def test_encodings_of_lines_are_read(tmp_path, encoding):
    path = tmp_path / "rows.csv"
    path.write_bytes("a,b\n1,2\n".encode(encoding))
    csv = Csv(encoding=encoding)
    assert rows_of(read_cells(path, ["a", "b"], csv)) == [["1", "2"]]


def test_no_encoding_that_is_read_carries_state():
    """Of all that Python has: each byte, and pair of a high byte, before the end of a line."""
    lines = [bytes([b]) for b in range(256)]
    lines += [bytes([a, b]) for a in range(128, 256) for b in range(0, 256, 5)]
    lines += [b"\x1b$B", b"\x1b(J", b"\x1b$)C\x0e", b"~{", b"~", b"+", b"+AAAA", b"\\"]
    read = 0
    for _, name, _ in pkgutil.iter_modules(encodings.__path__):
        try:
            Csv(encoding=name)
            new, below = (text.encode(codecs.lookup(name).name) for text in ("\n", "\n35\n"))
        except (PrivacyParameterError, LookupError):
            continue
        if name.startswith(("utf_16", "utf_32", "utf_8_sig")):  # units of fixed width, or a mark
            continue
        read += 1
        for line in lines:
            try:
                alone = (line + new).decode(name)
            except UnicodeDecodeError:
                with pytest.raises(UnicodeDecodeError):
                    (line + below).decode(name)
            else:
                assert (line + below).decode(name) == alone + "35\n", (name, line)
    assert read > 60
