"""Arrow and pandas read the same cells of a CSV file, and the same numbers of a text."""

import gzip

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from xgb_dp.cli import files, lines
from xgb_dp.cli.csv_form import Csv, header_of
from xgb_dp.cli.files import cells_of, pieces_of
from xgb_dp.cli.lines import OtherForm, batches_of_lines
from xgb_dp.domain.declared import Column
from xgb_dp.domain.declared_cells import features, numbers
from xgb_dp.errors import RowDomainError

FILES = {
    "plain": b"a,b,c\n1,x,2\n3,y,\n",
    "breaks": b"a,b,c\r\n1,x,2\r\n3,y,\r\n\r\n\n4,z,5",
    "mark": b"\xef\xbb\xbfa,b,c\n1,x,2\n",
    "spaces": b"a, b,c \n 1,  x ,2\n3,\ty, \n",
    "blank lines": b"a,b\n1,x\n  \n3,y\n",
    "short rows": b"a,b,c\n1\n3,y\n",
    "quotes": b'a,b,c\n"1,5",x,2\n3,"y""z",\n',
    "quoted names": b'"a","b",c\r\n1,x,2\r\n3,y,\r\n',
    "quoted separators": b'"a,b","c"\n1,x\n3,"y"\n',
    "quotes in names": b'"a""","b"",",c\n1,x,2\n',
    "quoted names and cells": b'"a","b","c"\n"1",x,2\n3,"y,z",\n',
    "twice": b"a,b,b\n1,x,2\n",
    "no rows": b"a,b,c\n",
    "one column": b"a\n1\n\n 2\n",
    "two returns": b"a,b,c\r\n1,x,2\r\r\n\n4,z,5",
    "returns": b"a,b,c\n\r,5,6\n\r1,2,3\r\n",
    "returns alone": b"a,b,c\r\r,5,6\r1,2,3\r",
    "letters": "a,b,c\n1,ü,2\n".encode(),
}
TEXTS = [
    "1", "-1", "+1", " 1", "1 ", "1.", ".5", "1e5", "1E-5", "1e400", "-0", "007", "1_0", "nan",
    "inf", "Infinity", "0x10", "", "NA", "1,5", "٣", "1e", "1" * 50, "0." + "3" * 60, "4.35",
    "1e23", "9007199254740993", "2.2250738585072011e-308", "5e-324", "abc", "-", ".", "-.5", "1\n",
    "\t1",
]  # fmt: skip


def other_form(*_):
    raise OtherForm


@pytest.mark.parametrize("name", FILES)
def test_the_two_parsers_read_the_same(name, tmp_path, monkeypatch):
    path = tmp_path / "rows.csv"
    path.write_bytes(FILES[name])
    header = header_of(path)
    wanted = list(dict.fromkeys(header))[::-1]
    fast = cells_of(path, wanted, header, Csv())
    monkeypatch.setattr(files, "batches_of_lines", other_form)
    slow = cells_of(path, wanted, header, Csv())
    for column in wanted:  # what reads cells takes the spaces around them away
        assert list(fast[column].str.strip()) == list(slow[column].str.strip())
    assert list(fast) == list(slow) == wanted


@pytest.mark.parametrize("separator", [",", ";", "\t", " ", "-", "a"])
def test_any_bytes_are_read_the_same(separator, tmp_path, monkeypatch):
    """So a quote in one row, which takes the other parser, changes no other row."""
    rng = np.random.default_rng(7)
    path, csv = tmp_path / "rows.csv", Csv(separator)
    header = ["x", "y", "z"]
    pieces = [separator, separator, "1", "5", " ", "\t", "b", "\n", "\r\n", "\r", "\n\r", "ü"]
    for i in range(150):
        first = separator.join(f'"{n}"' if i % 2 else n for n in header) + "\n"
        text = first + "".join(rng.choice(pieces, rng.integers(1, 25)))
        path.write_bytes(text.encode())
        read = []
        for fast in (batches_of_lines, other_form):
            monkeypatch.setattr(files, "batches_of_lines", fast)
            try:
                read.append(cells_of(path, header, header, csv).values.tolist())
            except RowDomainError:
                read.append(None)
        assert read[0] == read[1], text


READ = [t for t in TEXTS if "," not in t and "\n" not in t] + ["2", "nan(1)", " 7", "7\t", "7.0"]


@pytest.mark.parametrize(
    "missing", [("", "NA"), ("", "NA", "7", "nan"), ("", "NA "), ("", "NA", " 7")], ids=str
)
def test_pieces_are_read_like_all_cells(missing, tmp_path, monkeypatch):
    """Whatever makes one row slow to read, and wherever it lies, changes no other row."""
    monkeypatch.setattr(lines, "_BLOCK", 64)
    rng = np.random.default_rng(3)
    path, header, errors = tmp_path / "rows.csv", ["x", "y"], 0
    columns = {"x": Column(), "y": Column(categories=("a", "7", "1"), other="missing")}
    for i in range(200):
        usual = rng.choice(["1.5", "-3e2", "7", "NA", ""], (20, 2)).astype(object)
        usual[rng.integers(20), 0] = READ[i % len(READ)]
        usual[rng.integers(20), 1] = rng.choice(["a", " a", '"a"', "7.0", "\x00", "b"])
        path.write_text("x,y\n" + "".join(f"{x},{y}\n" for x, y in usual))
        read = []
        for fast in (batches_of_lines, other_form):
            monkeypatch.setattr(files, "batches_of_lines", fast)
            try:
                pieces = pieces_of(path, header, header, Csv(), ["x"], missing)
                table = features(pieces, columns, missing)
                read.append([np.asarray(table["x"]).tolist(), table["y"].codes.tolist()])
            except RowDomainError as error:
                read.append(str(error))
        np.testing.assert_equal(*read, err_msg=path.read_text())
        errors += isinstance(read[0], str)
    assert 20 < errors < 150


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view()], ids=str)
@pytest.mark.parametrize("missing", ["-9", "-9 ", " -9"])
def test_no_row_decides_how_a_missing_text_is_read(missing, kind):
    cells = ["-9", "-9 ", "1"]
    for more in ([], ["٥"], [" 2"]):
        read = numbers(pa.array([*cells, *more], kind), (missing,))
        np.testing.assert_array_equal(read[:3], [np.nan, np.nan, 1.0])


@pytest.mark.parametrize("name", ["plain", "quoted names", "breaks", "mark", "spaces", "letters"])
def test_arrow_reads_usual_files(name, tmp_path, monkeypatch):
    monkeypatch.setattr(files, "_texts", None)
    path = tmp_path / "rows.csv.gz"
    path.write_bytes(gzip.compress(FILES[name]))
    assert cells_of(path, ["c", "a"], ["a", "b", "c"], Csv())["c"].iloc[0] == "2"


@pytest.mark.parametrize(
    "damage",
    [b"1,2,3,4\n", b"1,\0,2\n", b"\xff,1,2\n", b'1,"2,3\n'],
    ids=["long", "NUL", "?", "open"],
)
def test_what_arrow_does_not_read_is_refused(damage, tmp_path):
    path = tmp_path / "rows.csv"
    path.write_bytes(b"a,b,c\n1,2,3\n" + damage)
    with pytest.raises(RowDomainError):
        cells_of(path, ["a"], ["a", "b", "c"], Csv())


def value_of(column: pd.Series) -> float | None:
    try:
        [value] = numbers(column, ("", "NA", "7"))
    except RowDomainError:
        return None
    return float(value)


@pytest.mark.parametrize("text", [*TEXTS, "7", " 7", "70"])
def test_texts_of_arrow_are_read_like_cells(text):
    values = [value_of(pd.Series([text], dtype=kind)) for kind in ("string[pyarrow]", "object")]
    np.testing.assert_equal(*values)


def test_each_text_is_read_alone():
    rng = np.random.default_rng(0)
    texts = [
        repr(float(v)) for v in (rng.normal(size=2000) * 10.0 ** rng.integers(-300, 300, 2000))
    ]
    texts += ["", "1e5", "7", "-3", " 2"]
    column = pd.Series(texts, dtype="string[pyarrow]")
    with np.errstate(over="ignore"):
        one_by_one = [float("nan") if t in ("", "7") else np.float32(float(t)) for t in texts]
    np.testing.assert_array_equal(numbers(column, ("", "NA", "7")), one_by_one)
