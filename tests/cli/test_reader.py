"""Files of rows: a cell means the same in every container, whatever lies beside it."""

import bz2
import csv
import gzip
import io
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

from xgb_dp.cli.tables import read_table
from xgb_dp.domain import data_files
from xgb_dp.domain.columns import Column, read_features, read_numbers
from xgb_dp.domain.data_files import Csv
from xgb_dp.domain.domain import Domain, from_mapping, read_header
from xgb_dp.domain.row_files import read_batches, read_cells
from xgb_dp.errors import PrivacyParameterError, RowDomainError

from .calls import SPENT, fails, run

STRINGS = [
    "1", "-1", "+1", " 1", "1 ", "1.", ".5", "1e5", "1E-5", "1e400", "-0", "007", "1_0", "nan",
    "inf", "Infinity", "0x10", "", "NA", "٣", "1e", "1" * 50, "0." + "3" * 60, "4.35", "1e23",
    "9007199254740993", "2.2250738585072011e-308", "5e-324", "abc", "-", ".", "-.5", "\t1", "a",
    " a", "b", "7", "7.0", "-999", "-999.0", " -9.99e2 ", "nan(1)", "2024-02-29", "2024-02-30",
    "2024-02-29T13:45", "a,b", 'a"b', "wé", "True",
]  # fmt: skip
COLUMNS = {
    "number": Column(),
    "text": Column(("a", "7", "007", "a,b", 'a"b', "wé"), "missing"),
    "value": Column((7, 1, 100000), "missing"),
    "strict": Column(("1", "a"), "error"),
    "date": Column(date=("days", "hour"), since="2000-01-01"),
}
MISSING = ("", "NA", "-999")


def in_csv(
    cells, path, encoding="utf-8", pack=bytes, name="rows.csv", quoting=csv.QUOTE_MINIMAL, mark=","
):
    path, text = path / name, io.StringIO()
    csv.writer(text, delimiter=mark, quoting=quoting, lineterminator="\n").writerows(
        [["x", "y"], *([cell, "1"] for cell in cells)]
    )
    path.write_bytes(pack(text.getvalue().encode(encoding)))
    separator = "," if name.endswith(".tsv") else mark
    return read_batches(path, ["x"], Csv(separator, encoding=encoding))


def in_parquet(cells, path, kind=None):
    path = path / "rows.parquet"
    parquet.write_table(pa.table({"x": pa.array(cells, kind)}), path)
    return read_batches(path, ["x"])


def in_folder(cells, path):
    for i, cell in enumerate(cells):
        (path / f"part={i:03}").mkdir()
        in_parquet([cell], path / f"part={i:03}")
    return read_batches(path, ["x"])


CONTAINERS = {
    "csv": in_csv,
    "every cell quoted": lambda c, p: in_csv(c, p, quoting=csv.QUOTE_ALL),
    "utf-16": lambda c, p: in_csv(c, p, "utf-16"),
    "semicolons": lambda c, p: in_csv(c, p, mark=";"),
    "tsv": lambda c, p: in_csv(c, p, name="rows.tsv", mark="\t"),
    "gzip": lambda c, p: in_csv(c, p, pack=gzip.compress, name="rows.csv.gz"),
    "bz2": lambda c, p: in_csv(c, p, pack=bz2.compress, name="rows.csv.bz2"),
    "parquet": in_parquet,
    "large parquet": lambda c, p: in_parquet(c, p, pa.large_string()),
    "parquet dictionary": lambda c, p: in_parquet(c, p, pa.dictionary(pa.int32(), pa.string())),
    "folder": in_folder,
    "arrow": lambda c, _: [pa.table({"x": c})],
    "pandas": lambda c, _: [pd.DataFrame({"x": np.array(c, dtype=object)})],
    "pandas on arrow": lambda c, _: [pd.DataFrame({"x": c}, dtype="string[pyarrow]")],
    "numpy": lambda c, _: [{"x": np.array(c, dtype=object)}],
    "list": lambda c, _: [{"x": c}],
}


def read(pieces, kind) -> dict[str, list] | str:
    """What a column becomes, or the error."""
    try:
        table = read_features(pieces, {"x": COLUMNS[kind]}, MISSING)
    except RowDomainError as error:
        return str(error)
    return {name: pd.Series(values).astype(object).tolist() for name, values in table.items()}


def same(first, second) -> None:
    assert type(first) is type(second), (first, second)
    if isinstance(first, str):
        assert first == second
    else:
        pd.testing.assert_frame_equal(pd.DataFrame(first), pd.DataFrame(second))


@pytest.mark.parametrize("kind", COLUMNS)
@pytest.mark.parametrize("container", CONTAINERS)
def test_a_cell_is_the_same_in_every_container(container, kind, tmp_path):
    """And in the company of any other: a file is read as its rows are, one by one."""
    alone = {}
    for i, text in enumerate(STRINGS):
        (tmp_path / str(i)).mkdir()
        given = CONTAINERS[container]([text], tmp_path / str(i))
        alone[text] = read(given, kind)
        same(alone[text], read([{"x": [text]}], kind))
    sound = [text for text in STRINGS if not isinstance(alone[text], str)]
    assert len(sound) > 4
    (tmp_path / "all").mkdir()
    whole = read(CONTAINERS[container](sound, tmp_path / "all"), kind)
    assert not isinstance(whole, str)
    each = {name: [alone[text][name][0] for text in sound] for name in whole}
    same(whole, each)


NUMBERS = {
    "int64": [7, 1, 100000, -999, 3],
    "float64": [7.0, 1.0, 100000.0, -999.0, 2.5, None],
    "float32": [7.0, 1.0, 2.5, None],
    "bool": [True, False, None],
    "decimal128(6, 1)": [Decimal("7.0"), Decimal("-999"), Decimal("2.5")],
}


@pytest.mark.parametrize("column", ["number", "text", "value", "strict"])
@pytest.mark.parametrize("kind", NUMBERS)
def test_typed_numbers_match_by_value_and_texts_by_their_digits(kind, column, tmp_path):
    makes = {
        "decimal128(6, 1)": pa.decimal128(6, 1), "float64": pa.float64(), "int64": pa.int64(),
        "float32": pa.float32(), "bool": pa.bool_(),
    }  # fmt: skip
    for cell in NUMBERS[kind]:
        typed = read(in_parquet([cell], tmp_path, makes[kind]), column)
        same(typed, read([{"x": [cell]}], column))
        if cell is not None and kind != "bool":
            text = str(int(cell)) if cell == int(cell) else str(cell)
            same(typed, read(in_csv([text], tmp_path), column))
    table = pa.table({"x": pa.array(NUMBERS[kind], makes[kind])})
    if column != "strict":
        same(read([table], column), read([{"x": NUMBERS[kind]}], column))


def test_missing_numbers_match_by_value_and_categories_as_they_are_declared(tmp_path):
    for cell in ("-999", "-999.0", "-9.99e2", " -999 "):
        assert np.isnan(read(in_csv([cell], tmp_path), "number")["x"][0])
    strings = ["007", "7", "7.0", "0007", "1E2"]
    assert read(in_csv(strings, tmp_path), "text")["x"][:2] == ["007", "7"]
    assert pd.isna(read(in_csv(strings, tmp_path), "text")["x"][2:]).all()
    assert read(in_csv(strings, tmp_path), "value")["x"][:4] == ["7"] * 4


LINES = {
    "7,8,9,10": "line 4: has 4 cells, but the header has 3",
    "7,8": "line 4: has 2 cells, but the header has 3",
    "7,8\0,9": "line 4: contains a NUL",
    "\ufeff7,8,9": "line 4: contains a byte order mark",
    "7\r,8,9": "line 4: contains a carriage return",
    '"7,8,9': "line 4: a quote is not closed",
    '7,8"8,9': "line 4: a quote is not closed",
    '7, "8",9': "line 4: a quote is not closed",
    '"7"8,8,9': "line 4: a quote is not closed",
    '7,"8\n8",9': "line 4: a quote is not closed",
}


@pytest.mark.parametrize("block", [30, 1 << 21])
@pytest.mark.parametrize("line", LINES)
def test_a_line_that_could_be_read_in_two_ways_is_refused(line, block, tmp_path, monkeypatch):
    monkeypatch.setattr(data_files, "BLOCK", block)
    path = tmp_path / "rows.csv"
    for end in ("\n1,2,3\n", '\n"1",2,3\n', ""):
        path.write_text(f"a,b,c\n\n1,2,3\n{line}{end}", encoding="utf-8", newline="")
        with pytest.raises(RowDomainError, match=LINES[line]):
            read_cells(path, ["a"])
    path.write_bytes(b"a,b,c\n1,2,3\n1,\xff,3\n")
    with pytest.raises(RowDomainError, match="line 3: the text has a different encoding"):
        read_cells(path, ["a"])


def test_one_byte_order_mark_may_begin_a_file(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("\ufeffa,b\n1,2\n", encoding="utf-8")
    assert read_header(path) == ["a", "b"]
    assert read_cells(path, ["a"]).to_pylist() == [{"a": "1"}]


@pytest.mark.parametrize("block", [64, 1 << 21])
@pytest.mark.parametrize("quote", ["", '"'])
def test_a_file_is_read_some_lines_at_a_time(block, quote, tmp_path, monkeypatch):
    monkeypatch.setattr(data_files, "BLOCK", block)
    path = tmp_path / "rows.csv"
    lines = [f"{quote}{i}{quote},{quote}é{quote}" for i in range(1000)]
    path.write_text("\n".join(["a,b", *lines]), encoding="utf-8")
    pieces = list(read_batches(path, ["a"]))
    assert (len(pieces) > 50) == (block == 64) and max(map(len, pieces)) < 20 * block
    assert pa.Table.from_batches(pieces)["a"].to_pylist() == [str(i) for i in range(1000)]


MARKS = [  # decimal, thousands, cell, number
    (",", "", "1,5", 1.5), (",", "", "-,5e2", -50.0), (",", "", "1.5", None), (",", "", "5%", None),
    (",", ".", "1.234,5", 1234.5), (",", ".", "1.234.567", 1234567.0), (",", ".", "12.34,5", None),
    (",", ".", "1234,5", 1234.5), (".", ",", "1,234.5", 1234.5), (".", ",", "1,23", None),
    (".", "'", "1'234", 1234.0), (".", " ", "1 234", 1234.0), (",", "", "NA", np.nan),
    (",", "", "-999,0", np.nan), (",", "", "", np.nan), (",", "", " 7 ", 7.0),
]  # fmt: skip


@pytest.mark.parametrize(("decimal", "thousands", "cell", "number"), MARKS)
def test_marks_within_numbers(decimal, thousands, cell, number, tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text(f"x;y;z\n{cell};{cell};1\n3;{cell};0\n")
    form = Csv(";", decimal=decimal, thousands=thousands)
    names = Column((cell.strip() or "empty",), "missing")
    domain = Domain("z", (0, 1), missing=MISSING, columns={"x": Column(), "y": names})
    if number is None:
        with pytest.raises(RowDomainError, match=r"'x'.*--decimal , --thousands \..*`\{date:"):
            read_table(path, domain, csv=form)
        return
    frame = read_table(path, domain, csv=form).frame
    np.testing.assert_array_equal(frame["x"], np.float32([number, 3]))
    if cell not in ("NA", "", "-999"):
        assert frame["y"].tolist() == [cell.strip()] * 2  # a category is no number


def test_wrong_forms():
    for wrong in ({"decimal": ";"}, {"thousands": "_"}, {"decimal": ",", "thousands": ","}):
        with pytest.raises(PrivacyParameterError, match=r"--decimal|--thousands"):
            Csv(";", **wrong)


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view()], ids=str)
@pytest.mark.parametrize("missing", ["-9", "-9 ", " -9", "x", " x"])
def test_no_row_decides_how_a_missing_text_is_read(missing, kind):
    cells = [missing.strip(), f"{missing.strip()} ", "1"]
    for more in ([], ["٥"], [" 2"], ["nan"]):
        read = read_numbers(pa.array([*cells, *more], kind), (missing,))
        np.testing.assert_array_equal(read[:3], [np.nan, np.nan, 1.0])


def test_each_text_is_the_nearest_number():
    rng = np.random.default_rng(0)
    strings = [
        repr(float(v)) for v in (rng.normal(size=2000) * 10.0 ** rng.integers(-300, 300, 2000))
    ]
    with np.errstate(over="ignore"):
        for more in ([], [""], [" 2"]):
            one_by_one = [np.float32(float(t)) if t else np.nan for t in [*strings, *more]]
            read = read_numbers(pa.array([*strings, *more]), ("", "NA"))
            np.testing.assert_array_equal(read, one_by_one)


FRAME = pd.DataFrame({"age": range(20, 60), "y": [0, 1] * 20, "patient": np.arange(40) // 2})
TRAIN = ["--target", "y", "--classes", "0,1", *SPENT, "--model", "m.json", "--force"]


def test_an_index_of_pandas_is_a_column_or_nothing(folder):
    FRAME[FRAME.age > 30].to_parquet("filtered.parquet")
    FRAME.set_index(["patient", "age"]).to_parquet("indexed.parquet")
    assert read_header(Path("filtered.parquet")) == list(FRAME)
    run("train", "filtered.parquet", *TRAIN)
    run("train", "indexed.parquet", *TRAIN, "--privacy-id", "patient")
    kept = run("predict", "m.json", "indexed.parquet", "--keep", "patient").stdout.splitlines()
    assert [line.split(",")[0] for line in kept[1:]] == list(map(str, FRAME["patient"]))


def test_folders_of_parquet_are_one_table(folder):
    for town, month, place in (("Rome", "1", "a"), ("Oslo", "12", "b"), ("São", "007", "a")):
        rows = Path(f"visits/town={town}/month={month}")
        rows.mkdir(parents=True)
        kind = "int64" if town == "Rome" else "float64"
        FRAME.astype({"age": kind}).to_parquet(rows / f"{place}.parquet")
    Path("visits/_SUCCESS").touch()
    domain = from_mapping(
        {"target": "y", "classes": [0, 1],
         "columns": {"age": "number", "month": "number", "town": ["Rome", "Oslo", "São"]}}
    )  # fmt: skip
    table = read_table(Path("visits"), domain)
    assert dict(table.frame["town"].value_counts()) == {"Rome": 40, "Oslo": 40, "São": 40}
    assert sorted(set(table.frame["month"])) == [1.0, 7.0, 12.0]
    assert sorted(read_header(Path("visits"))) == ["age", "month", "patient", "town", "y"]
    run("train", "visits", *TRAIN, "--categories", "town=Rome,Oslo,São", "--drop", "month")
    assert "is also read" in fails("train", "visits", *TRAIN[:-3], "--model", "visits/m.json")
    FRAME.to_parquet("visits/loose.parquet")
    assert "partitioned by different columns" in fails("train", "visits", *TRAIN)
    Path("none").mkdir()
    assert "without .parquet or .csv files" in fails("train", "none", *TRAIN)


def test_kept_columns_are_exact(folder):
    FRAME.drop(columns="patient").to_csv("a.csv", index=False)
    run("train", "a.csv", *TRAIN)
    ids = [2**53 + 1, 123, None]
    table = pa.table({"id": pa.array(ids, pa.int64()), "age": [30, 40, 50], "prediction": [1] * 3})
    parquet.write_table(table, "new.parquet")
    text = run("predict", "m.json", "new.parquet", "--keep", "id").stdout
    assert [line.split(",")[0] for line in text.splitlines()] == ["id", str(2**53 + 1), "123", ""]
    run("predict", "m.json", "new.parquet", "--keep", "id", "--out", "o.parquet")
    assert parquet.read_table("o.parquet")["id"].to_pylist() == ids
    output = fails("predict", "m.json", "new.parquet", "--keep", "prediction")
    assert "`--keep prediction`" in output


@pytest.mark.parametrize("weight", ["", "-1", "inf", "heavy"])
def test_weights_are_named(weight, folder, no_training):
    Path("w.csv").write_text("a,w,y\n" + f"1,{weight},0\n2,1,1\n" * 9)
    output = fails("train", "w.csv", *TRAIN, "--weight", "w")
    assert "The weight 'w' of a row is not a finite number >= 0" in output


def test_names_in_options_may_hold_commas_and_quotes(folder):
    Path("c.csv").write_text("a,y\n" + '"x, ""z""","no, never"\n7,yes\n' * 5)
    run("train", "c.csv", *TRAIN[2:], "--target", "y", "--classes", '"no, never",yes',
        "--categories", 'a="x, ""z""","7"')  # fmt: skip
    output = fails("train", "c.csv", "--target", "y", "--classes", '"no,yes', *SPENT)
    assert "A list has a misplaced or unclosed quote" in output


def test_a_file_of_names_alone(folder):
    Path("h.csv").write_text("a,y\n")
    done = run("train", "h.csv", *TRAIN)
    first, *others = done.stderr.splitlines()
    assert first == "Warning: h.csv has a header but no rows."
    assert all("little more than noise" in line for line in others)
