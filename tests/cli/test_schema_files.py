"""Schema files are read by types: what is ill-formed is named before any row is read."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("click")

from xgb_dp.cli.data_commands import template
from xgb_dp.domain.domain import read_domain
from xgb_dp.errors import PrivacyParameterError

from .calls import SPENT, TARGET, fails, invoke, run

# Ending, text, and what the message must say.
WRONG = [
    # a scalar where a list is due
    ("yaml", "columns:\n  age: {bounds: 18}", r"'age'.*bounds must be \[low, high\].*got a string"),
    ("yaml", "columns:\n  age: {cuts: 12}", "'age'.*cuts must be a list of numbers; got a string"),
    ("yaml", "columns:\n  a: {categories: TRUEFALSE, other: missing}",
     "'a'.*categories must be a list of names.*got a string"),
    ("yaml", "columns:\n  a: red", "'a'.*must be 'number'"),
    ("yaml", "classes: no,yes", "`classes` must be a list of names"),
    ("yaml", "missing: NA", "`missing` must be a list of names.*got a string"),
    ("yaml", "drop: id", "`drop` must be a list"),
    ("yaml", "target_bounds: 100", "target_bounds` must be a pair"),
    ("json", '{"columns": {"age": {"bounds": 18}}}', "'age'.*got a number"),
    ("json", '{"columns": {"a": {"categories": true}}}', "'a'.*got a boolean"),
    ("json", '{"columns": {"a": true}}', "'a'.*got a boolean"),
    # a parameter that there is not
    ("yaml", "params: {max_dept: 3}", "`max_dept`.*Did you mean `max_depth`"),
    # a list or a mapping where a scalar is due
    ("yaml", "target: [y]", "`target` must be the name of a column; got a list"),
    ("yaml", "weight: {w: 1}", "`weight` must be the name of a column; got a mapping"),
    ("yaml", "missing: [[NA], '']", "`missing`.*one entry is a list"),
    ("yaml", "classes: [[a, b]]", "`classes`.*one entry is a list"),
    ("yaml", "columns:\n  a: {categories: [x, y], other: [missing]}", "'a'.*: `other` must be"),
    ("yaml", "columns:\n  a: {bounds: [[0, 1], 2]}", "'a'.*: bounds"),
    ("yaml", "columns:\n  a: {cuts: [[1]]}", "'a'.*: cuts"),
    ("yaml", "columns:\n  a: {bounds: [0, 1, 2]}", r"'a'.*: bounds must be \[low, high\]"),
    ("yaml", "columns: [a, b]", "`columns` must map names to declarations; got a list"),
    ("yaml", "columns: {}", "`columns` is empty"),
    ("yaml", "params: [max_depth]", "`params` must map names.*got a list"),
    ("yaml", "- target: y", "must be a mapping.*got a list"),
    ("yaml", "target", "must be a mapping.*got a string"),
    ("yaml", "", "must be a mapping.*got nothing"),
    # what does not go together
    ("yaml", "classes: [a]", "at least two"),
    ("yaml", "target_bound: [0, 1]", "target_bounds"),
    ("yaml", "columns: {a: {category: [x]}}", "'a'"),
    ("yaml", "columns: {a: {other: missing}}", "without `categories`"),
    ("yaml", "columns: {a: {categories: [x], other: y}}", "a category of the column"),
    ("yaml", "classes: [a, b]\ntarget_bounds: [0, 1]", "not both"),
    # a key given twice
    ("yaml", "target: y\nclasses: [a, b]\ntarget: z", "line 3: the key 'target' is given twice"),
    ("yaml", "columns:\n  a: number\n  b: number\n  'a': [x, y]", "line 4: the key 'a' is given"),
    ("yaml", "columns:\n  a: {bounds: [0, 1], bounds: [0, 9]}", "line 2: the key 'bounds'"),
    ("yaml", "params: {max_depth: 2, max_depth: 9}", "line 1: the key 'max_depth'"),
    ("yaml", "params: {dp_feature_cuts: '{\"a\": [0], \"a\": [1]}'}", "the key 'a' is given twice"),
    ("json", '{"target": "y", "target": "z"}', "the key 'target' is given twice"),
    ("json", '{"columns": {"a": "number", "a": ["x", "y"]}}', "the key 'a' is given twice"),
    ("toml", 'target = "y"\ntarget = "z"\n', "TOML.*line 2"),
    ("toml", "[columns]\na = 'number'\n[columns.a]\nbounds = [0, 1]", "TOML.*line 3"),
    # unknown keys and choices
    ("yaml", "column: {a: number}", "unknown key 'column'.*columns"),
    ("yaml", "columns:\n  a: {bound: [0, 1]}", "'a'.*got 'bound'"),
    ("yaml", "columns:\n  a: {bounds: [0, 1], cuts: [1]}", "'a'.*has both bounds and cuts"),
    ("yaml", "columns:\n  a: {categories: [x, y], bounds: [0, 1]}", "'a'.*more than one of"),
    ("yaml", "columns:\n  a: {categories: [x, missing], other: missing}", "'a'.*also a category"),
    # null, truth values, dates and other numbers of YAML
    ("yaml", "target: null", r"`target`.*got nothing \(null\)"),
    ("yaml", "target:", "`target`.*got nothing"),
    ("yaml", "classes: [no, null]", "`classes`.*one entry is nothing.*in quotes"),
    ("yaml", "columns:", "`columns` must map names to declarations; got nothing"),
    ("yaml", "columns: {null: number}", "line 1: a key must be a name. Put it in quotes"),
    ("yaml", "columns:\n  ? [a, b]\n  : number", "line 2: a key must be a name"),
    ("yaml", "columns:\n  a: {bounds: [yes, no]}", "'a'.*: bounds.*must be a finite number"),
    ("yaml", "columns:\n  a: {bounds: [2020-01-01, 2021-01-01]}", "'a'.*: bounds.*number"),
    ("yaml", "columns:\n  a: {cuts: [1:30]}", "'a'.*: cuts.*must be a finite number"),
    ("yaml", "columns:\n  a: {bounds: [null, 1]}", "'a'.*: bounds.*must be a finite number"),
    ("yaml", "columns:\n  a: {bounds: [.nan, 1]}", "'a'.*: bounds"),
    ("yaml", "params: {max_depth: }", "`params`: max_depth has no value"),
    ("json", '{"target": 5}', "`target`.*got a number"),
    ("json", '{"classes": [false, true]}', "`classes`.*one entry is a boolean.*quotes"),
    ("json", '{"classes": ["a", 2.5]}', "`classes`.*one entry is a number. Put it in quotes"),
    ("json", '{"classes": [1, 1.0]}', "`classes` contains an entry twice"),
    ("json", '{"columns": {"a": {"bounds": [NaN, 1]}}}', "NaN is not a valid JSON number"),
    ("toml", "classes = [2020-01-01, 2021-01-01]", "`classes`.*one entry is a date"),
    ("toml", "columns = {a = {bounds = [true, 2]}}", "'a'.*: bounds.*number; got a bool"),
    # other syntax
    ("yaml", "a: &x [1]\nb: *x", "line 1: a schema must not contain anchors"),
    ("yaml", "a: &x [*x]", "must not contain anchors"),
    ("yaml", "target: !!python/object:os.system y", r"line 1: a schema must not contain tags"),
    ("yaml", "target: y\n---\ntarget: z", "YAML: line 2"),
    ("yaml", "a: [", "cannot be parsed as YAML: line 1"),
    ("yaml", "target: y\n\tclasses: [a, b]", "YAML: line 2"),
    ("yaml", "a: " + 50 * "[" + 50 * "]", "line 1: nested too deeply"),
    ("yaml", "a: " + 800 * "[" + 800 * "]", "nested too deeply to be parsed"),
    ("json", 100000 * "[", "nested too deeply"),
    ("json", '{"target": "y",\n "classes": [}', "JSON: line 2"),
    ("json", '{"a": ' + 5000 * "9" + "}", "a number is too long|unknown key"),
    ("json", "", "JSON: line 1"),
    ("toml", "target = ", "cannot be parsed as TOML"),
    ("ini", "target = y", "A schema file must end in .yaml, .toml or .json"),
    *((ending, text, "") for ending in ("yaml", "json", "toml")
      for text in (b"target: \xff\xfe", b"\x00\x01\x02", b"target: \x07y")),
]  # fmt: skip


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("schemas")
    frame = pd.DataFrame({"a": np.arange(20.0), "age": np.arange(20.0), "y": ["no", "yes"] * 10})
    frame.to_csv(folder / "rows.csv", index=False)
    given = ["--target", "y", "--classes", "no,yes", "--model", folder / "model.json"]
    run("train", folder / "rows.csv", *given, *SPENT)
    return folder


@pytest.fixture
def no_rows(monkeypatch) -> None:
    def fail(*_, **__):
        pytest.fail("a row was read")

    monkeypatch.setattr("xgb_dp.cli.tables.read_table", fail)
    monkeypatch.setattr("xgb_dp.cli.tables.read_header", fail)


@pytest.mark.parametrize(("ending", "text", "message"), WRONG)
def test_wrong_schema_files(tmp_path, ending, text, message):
    path = tmp_path / f"schema.{ending}"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(PrivacyParameterError, match=rf"^schema\.{ending}: .*({message})") as error:
        read_domain(path)
    assert len(str(error.value).splitlines()) == 1


@pytest.mark.parametrize("command", ["train", "predict", "calibrate"])
def test_a_command_ends_in_what_is_wrong_with_its_schema(model, tmp_path, no_rows, command):
    path = tmp_path / "schema.yaml"
    path.write_text("drop: id")
    given = {
        "train": [model / "rows.csv", *SPENT, "--model", tmp_path / "new.json"],
        "predict": [model / "model.json", model / "rows.csv"],
        "calibrate": TARGET,
    }
    result = invoke(command, *given[command], "--schema", path)
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith("Error: schema.yaml: `drop`")
    assert len(result.stderr.splitlines()) == 1
    assert not (tmp_path / "new.json").exists()


def test_names_are_what_is_written(tmp_path):
    """What other readers of YAML take for truth values, dates, octal and sexagesimal numbers."""
    path = tmp_path / "schema.yaml"
    path.write_text(
        "\N{BYTE ORDER MARK}target: yes\nclasses: [no, off]\n"
        "columns:\n  on: [011, 1.10, 1:30, 2020-01-01, y, 'null', 1e3, 0x1F]\n  2: number\n  b:\n"
    )
    domain = read_domain(path)
    assert domain.target == "yes"
    assert domain.classes == ("no", "off")
    assert list(domain.columns or {}) == ["on", "2", "b"]
    assert (domain.columns or {})["on"].categories == (
        "011", "1.10", "1:30", "2020-01-01", "y", "null", "1e3", "0x1F",
    )  # fmt: skip
    path = tmp_path / "schema.json"
    path.write_text(json.dumps({"classes": [0, 1], "columns": {"a": {"cuts": [1, "2.5"]}}}))
    assert read_domain(path).classes == (0, 1)
    assert (read_domain(path).columns or {})["a"].cuts == (1.0, 2.5)
    for kind, text in (("yaml", "classes: [0, '1']"), ("toml", "classes = ['0', '1']")):
        path = tmp_path / f"schema.{kind}"
        path.write_text(text)
        assert read_domain(path).classes == ("0", "1")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--bounds", "age=18"], "--bounds age must be"),
        (["--bounds", "age=1:2:3"], "--bounds age must be"),
        (["--bounds", "age=0:1", "--bounds", "age=0:2"], "'age' is declared twice"),
        (["--bounds", "age=0:1", "--categories", "age=0,1"], "'age' is declared twice"),
        (["--categories", "age=0,1", "--categories", "age=2,3"], "'age' is declared twice"),
        (["--categories", "age=0,0"], "contains an entry twice"),
    ],
)
def test_wrong_options(model, tmp_path, no_rows, options, message):
    given = ["--target", "y", "--classes", "no,yes", "--model", tmp_path / "m.json", *options]
    assert message in fails("train", model / "rows.csv", *given, *SPENT)


def test_a_template_quotes_any_name(tmp_path):
    """Names that JSON would write as pairs of escapes, which YAML takes for other letters."""
    names = ["y", "\U0001f600 mood", 'say "no"', "a: b", "\u2028"]
    path = tmp_path / "template.yaml"
    path.write_text(template(names, "y", {}), encoding="utf-8")
    assert list(read_domain(path).columns or {}) == names[1:]
