"""The command line: clear errors, which spend nothing and show no data."""

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("click")

from xgb_dp import __main__

from .calls import SPENT, TRAIN, fails, rows, run

DECLARED = ["--target", "buys", "--classes", "no,yes"]
WRONG = [
    (["--classes", "no,yes"], "--target"),
    (["--target", "buys"], "The classes or values in the file are private"),
    (["--target", "buyz", "--classes", "no,yes"], "no column 'buyz' among its"),
    ([*DECLARED], "'zip', 'pet': a row has a cell that is not a number"),
    (
        [*DECLARED, "--categories", "zip=a,b", "--drop", "pet"],
        "'zip': a row has an undeclared value",
    ),
    ([*DECLARED, "--categories", "zip"], "--categories must be COLUMN="),
    ([*DECLARED, "--target-bounds", "0", "1"], "not both"),
    ([*DECLARED, "--bounds", "age=9:1"], "finite ends and low < high"),
    ([*DECLARED, "--drop", "nothing"], "no column 'nothing'"),
    ([*DECLARED, "--drop", "zip,pet"], "repeat the option"),
    ([*DECLARED, "--separator", ";"], "another character separates the columns"),
    (["--target", "buys", "--classes", "no yes"], "two classes, such as no,yes"),
    ([*DECLARED, "--param", "max_depth"], "NAME=VALUE"),
    (["--target", "buys", "--classes", "no,no"], "twice"),
    (["--target", "buys", "--classes", "no,maybe", "--schema", "schema.yaml"], "declared class"),
    (["--schema", "schema.yaml", "--param", "max_dept=3"], "max_depth"),
    (["--schema", "schema.yaml", "--param", "dp_epsilon=3"], "--epsilon"),
    (["--schema", "schema.yaml", "--param", "booster=dart"], "gbtree"),
    (["--schema", "schema.yaml", "--preset", "sarus"], "dp_feature_bounds"),
    (["--schema", "schema.yaml", "--report", "r.doc"], ".html"),
    (["--schema", "schema.yaml", "--model", "no/such/m.json"], "does not exist"),
    (["--schema", "schema.yaml", "--continue", "rows.csv"], "not a model that XGBoost can read"),
]


@pytest.mark.parametrize(("arguments", "message"), WRONG, ids=lambda x: str(x)[-40:])
def test_errors_tell_what_to_do_and_spend_nothing(folder, no_training, arguments, message):
    shown = fails("train", "rows.csv", *arguments, *SPENT)
    assert message in shown
    assert "Traceback" not in shown
    assert "snake" not in shown  # a value of a row
    assert not Path("model.json").exists()


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("predict model.json rows.csv --out rows.xlsx", "rows.xlsx: unsupported file type"),
        ("split rows.csv --train a.xlsx --test b.csv", "a.xlsx: unsupported file type"),
        ("discover rows.csv --number zip --epsilon 1 --delta 1e-6", "'zip': a row has a cell"),
        ("discover rows.csv --date pet --epsilon 1 --delta 1e-6", "'pet': a row has a cell"),
        ("evaluate model.json rows.csv --by sexx --epsilon 1 --delta 1e-6", "Check the name"),
    ],
)
def test_other_commands_tell_what_to_do(folder, command, message):
    run(*TRAIN)
    assert message in fails(*command.split())


def test_budget_must_be_given(folder):
    for given, absent in (("--epsilon", "--delta"), ("--delta", "--epsilon")):
        assert absent in fails("train", "rows.csv", "--schema", "schema.yaml", given, "1e-6")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"age": "seventy"}, "'age': a row has a cell that is not a number"),
        ({"zip": "90210"}, "'zip': a row has an undeclared value"),
        ({"buys": "perhaps"}, "'buys' of a row is not a declared class"),
        ({"buys": "?"}, "'buys' of a row is not a declared class"),
        *(
            ({"height": text}, "'height': a row has a number that is infinite")
            for text in ("inf", "-Infinity", "1e39")
        ),
    ],
)
def test_a_row_outside_its_domain_is_told_by_column_only(folder, no_training, change, message):
    frame = rows()
    for where in ([3], [3, 7, 150]):  # how many there are is not told
        bad = frame.copy()
        bad.loc[where, next(iter(change))] = next(iter(change.values()))
        bad.to_csv("bad.csv", index=False)
        shown = fails("train", "bad.csv", "--schema", "schema.yaml", *SPENT)
        assert message in shown
        assert next(iter(change.values())) not in shown.split() or change == {"buys": "?"}


def test_unexpected_errors_show_no_data(folder, monkeypatch):
    def defect(*_, **__):
        raise KeyError("the value of a cell")

    monkeypatch.setattr("xgb_dp.cli.tables.read_table", defect)
    shown = fails(*TRAIN)
    assert "KeyError" in shown
    assert "cell" not in shown
    monkeypatch.setenv("XGB_DP_DEBUG", "1")
    with pytest.raises(KeyError):
        run(*TRAIN)


def test_models_are_not_overwritten_by_accident(folder, no_training):
    Path("model.json").write_text("precious")
    assert "--force" in fails(*TRAIN)
    assert Path("model.json").read_text() == "precious"


def test_without_the_extra_the_version_is_shown(monkeypatch, capsys):
    find = __main__.importlib.util.find_spec
    monkeypatch.setattr(
        __main__.importlib.util, "find_spec", lambda name: None if name == "click" else find(name)
    )
    monkeypatch.setattr(sys, "argv", ["xgb-dp", "train"])
    with pytest.raises(SystemExit, match=r"xgb-dp\[cli\]"):
        __main__.main()
    monkeypatch.setattr(sys, "argv", ["xgb-dp", "--version"])
    with pytest.raises(SystemExit) as ended:
        __main__.main()
    assert ended.value.code == 0
    assert ", private build: " in capsys.readouterr().out


@pytest.mark.skipif(sys.platform == "win32", reason="descriptors are closed by a shell")
def test_an_input_that_is_closed(folder):
    call = f"{sys.executable} -m xgb_dp train - --schema schema.yaml --epsilon 1 --delta 1e-6"
    ended = subprocess.run(f"{call} <&-", shell=True, capture_output=True, text=True)
    assert ended.returncode == 2, ended.stderr
    assert "Standard input is closed" in ended.stderr and "Traceback" not in ended.stderr
