"""Tables in several files, typed templates, and outputs that are no regular files."""

import gzip
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import xgb_dp
from tests.policy.conftest import TEXT
from tests.policy.conftest import table as patients

pytest.importorskip("click")

from xgb_dp.cli.tables import paged_table, read_table
from xgb_dp.domain.data_files import Csv, find_files
from xgb_dp.domain.domain import from_mapping, read_domain, read_header
from xgb_dp.errors import PrivacyParameterError

from .calls import SPENT, TARGET, TRAIN, fails, rows, run

SECRET = "secret cell"
PERSONS = ["--target", "y", "--classes", "0,1", "--privacy-id", "patient", *SPENT]


def command(*arguments: str) -> subprocess.CompletedProcess[str]:
    whole = [sys.executable, "-m", "xgb_dp", *arguments]
    return subprocess.run(whole, check=False, capture_output=True, text=True)


@pytest.fixture
def parts(folder: Path) -> list[str]:
    """The rows of `rows.csv` in three files: with other column orders, and compressed."""
    frame, names = rows(), ["parts/0.csv", "parts/sub/1.csv.gz", "parts/sub/2.tsv"]
    Path("parts/sub").mkdir(parents=True)
    frame[:50].to_csv(names[0], index=False)
    frame[50:60][frame.columns[::-1]].to_csv(names[1], index=False)
    frame[60:].to_csv(names[2], index=False, sep="\t")
    Path("parts/sub/README.txt").write_text("not rows")
    Path("parts/sub/1.csv.gz.part.json").write_text("{}")
    return names


def test_a_folder_a_pattern_and_several_files_are_one_table(folder, parts):
    run(*TRAIN)
    expected = command("predict", "model.json", "rows.csv", "--keep", "id").stdout
    assert expected.count("\n") == 201
    for given in (["parts"], parts, ["parts/**/*.*[vz]"], ["parts/0.csv", "parts/sub"]):
        done = command("predict", "model.json", *given, "--keep", "id")
        assert (done.returncode, done.stdout) == (0, expected), done.stderr
    run("train", *parts, *TRAIN[2:], "--model", "second.json")
    assert xgb_dp.privacy_report("second.json").epsilon <= 1.0
    assert "discovered:" in run("discover", "parts", *TARGET, "--text", "pet").stdout


def test_outputs_do_not_replace_one_of_several_inputs(folder, parts, no_training):
    given = [*parts, *TRAIN[2:], "--force", "--model"]
    assert "is also read" in fails("train", *given, parts[1])
    assert "is also read" in fails("train", "parts", *given, "parts/new.json")


def test_a_row_is_read_once(folder, parts, no_training):
    os.link(parts[0], "hard.csv")
    Path("link.csv").symlink_to(parts[0])
    for more in (["parts"], [parts[0]], ["hard.csv"], ["link.csv"], ["parts/0.*"]):
        assert "a file occurs twice" in fails("train", *parts, *more, *TRAIN[2:])


def test_files_that_are_not_one_table(folder, parts, no_training):
    rows().to_parquet("rows.parquet")
    assert "different formats" in fails("train", "rows.parquet", *parts, *TRAIN[2:])
    rows().drop(columns="age").to_csv("few.csv", index=False)
    assert "no column 'age'" in fails("train", *parts, "few.csv", *TRAIN[2:])
    Path("cells.csv").write_text(f"1,2,3,4,5,{SECRET}\n" * 2)  # no header
    assert SECRET not in fails("train", *parts, "cells.csv", *TRAIN[2:])
    rows().assign(age=SECRET).to_csv("wrong.csv", index=False)
    output = fails("train", *parts, "wrong.csv", *TRAIN[2:])
    assert "'age'" in output and SECRET not in output
    with gzip.open(parts[1], "at") as file:
        file.write(f"{SECRET}\n")
    output = fails("train", *parts, *TRAIN[2:])
    assert "1.csv.gz, line 12:" in output and SECRET not in output
    assert fails("train", "none*.csv", *TRAIN[2:]).endswith("'none*.csv' does not exist.\n")


def test_a_part_with_others_counts_as_all_rows(folder):
    run("split", "rows.csv", "--train", "train.csv", "--test", "test.csv")
    xgb_dp.Budget("total.json", epsilon=5.0, delta=1e-5)
    run("train", "train.csv", *TRAIN[2:], "--budget", "total.json")
    rows(40).assign(id=-1).to_csv("more.csv", index=False)
    for given in (["test.csv"], ["test.csv", "more.csv"]):
        run("evaluate", "model.json", *given, *TARGET, "--budget", "total.json")
    *_, one, several = xgb_dp.Budget("total.json").entries
    assert one.part.name == "test" and several.part is None


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_partitions(folder, ending):
    frame = pd.DataFrame({"age": np.arange(400) % 90, "y": [0, 1] * 200, "patient": range(400)})
    for town in ("Rome", "A%2FB", "__HIVE_DEFAULT_PARTITION__"):
        place = Path(f"visits/town={town}")
        place.mkdir(parents=True)
        path = place / f"a.{ending}"
        frame.to_csv(path, index=False) if ending == "csv" else frame.to_parquet(path)
    domain = from_mapping(
        {"target": "y", "classes": [0, 1], "columns": {"town": ["Rome", "A/B"], "age": "number"}}
    )
    whole = Path("visits")
    several = tuple(whole.iterdir()), tuple(whole.glob(f"*/*.{ending}"))
    for source in (whole, *several):
        assert sorted(read_header(source)) == ["age", "patient", "town", "y"]
        towns = read_table(source, domain).frame["town"]
        assert dict(towns.value_counts()) == {"Rome": 400, "A/B": 400}
        assert towns.isna().sum() == 400
    run("train", f"visits/*/*.{ending}", *PERSONS, "--categories", "town=Rome,A/B")
    lines = run("discover", "visits", *TARGET, "--text", "town").stderr
    assert "town (text): " in lines and "Rome" in lines
    assert find_files(Path(f"visits/town=Rome/a.{ending}"))[0][1] == {}


@pytest.mark.parametrize("kind", ["float64", "str"])
def test_ids_of_two_types_are_refused(folder, kind, no_training):
    """The error of a conversion would show one."""
    frame = pd.DataFrame({"age": range(40), "y": [0, 1] * 20, "patient": 2**53 + np.arange(40)})
    frame.to_parquet("a.parquet")
    frame.astype({"patient": kind}).to_parquet("b.parquet")
    several = Path("a.parquet"), Path("b.parquet")
    domain = from_mapping(
        {"target": "y", "classes": [0, 1], "privacy_id": "patient", "columns": {"age": "number"}}
    )
    for read in (read_table, lambda *args: paged_table(*args, folder, Csv())):
        with pytest.raises(PrivacyParameterError, match="different types"):
            read(several, domain)


def test_persons_span_files(folder):
    """A person in two files is one person."""
    frame = pd.DataFrame({"age": range(40), "y": [0, 1] * 20, "patient": np.arange(40) // 2})
    frame.to_csv("whole.csv", index=False)
    frame[::2].to_csv("a.csv", index=False)
    frame[1::2].to_csv("b.csv", index=False)
    domain = from_mapping(
        {"target": "y", "classes": [0, 1], "privacy_id": "patient", "columns": {"age": "number"}}
    )
    several = Path("a.csv"), Path("b.csv")
    for table in (read_table(several, domain), paged_table(several, domain, folder, Csv())):
        assert len(table.persons.distinct) == 20
        assert (np.bincount(table.persons.codes) == 2).all()


def test_public_data_is_none_of_the_files(folder, parts, no_training):
    for given in (parts, ["parts"]):
        output = fails("train", *given, *TRAIN[2:], "--public-data", parts[2])
        assert "is a file of the training rows" in output


def test_a_template_keeps_the_types_of_parquet(folder):
    joined = pd.Timestamp("2020-01-01") + pd.to_timedelta(np.arange(200), "D")
    frame = rows().assign(
        joined=joined, day=joined.date, age=range(200), pet=rows()["pet"].astype("category"),
        smoker=True,
    ).drop(columns=["height", "zip"])  # fmt: skip
    frame.to_parquet("typed.parquet")
    text = run("schema", "typed.parquet", "--target", "buys").stdout
    lines = {line.split(":")[0].strip(): line for line in text.splitlines()}
    assert lines['"pet"'] == '  "pet": []    # text: list all categories'
    Path("s.yaml").write_text(text.replace('"pet": []', "pet: [cat, dog, an undeclared snake]"))
    columns = read_domain(Path("s.yaml")).columns
    assert columns["joined"].date == ("days", "month", "weekday", "hour")
    assert columns["day"].date == ("days", "month", "weekday")
    assert columns["age"].is_number and columns["smoker"].is_number
    Path("s.yaml").write_text(text)
    assert "'pet'" in fails("train", "typed.parquet", "--schema", "s.yaml", *SPENT)


@pytest.mark.skipif(not Path("/dev/null").exists(), reason="no devices")
def test_outputs_that_are_no_files(folder):
    run(*TRAIN)
    for arguments in (
        ["predict", "model.json", "rows.csv"],
        ["schema", "rows.csv"],
        ["report", "model.json"],
        ["card", "model.json"],
    ):
        plain = command(*arguments)
        dash = command(*arguments, "--out", "-")
        assert (dash.returncode, dash.stdout) == (0, plain.stdout), dash.stderr
        done = command(*arguments, "--out", "/dev/null")
        assert (done.returncode, done.stdout, done.stderr) == (0, "", ""), done.stderr
    done = command("discover", "rows.csv", *TARGET, "--text", "pet", "--out", "/dev/null")
    assert done.returncode == 0, done.stderr
    done = command("discover", "rows.csv", *TARGET, "--text", "pet", "--out", "-")
    assert "discovered:" in done.stdout
    os.mkfifo("pipe")
    reader = subprocess.Popen(["cat", "pipe"], stdout=subprocess.PIPE, text=True)
    done = command("predict", "model.json", "rows.csv", "--out", "pipe")
    assert reader.communicate()[0] == command("predict", "model.json", "rows.csv").stdout
    assert done.returncode == 0
    assert Path("/dev/null").is_char_device() and not Path("-").exists()
    assert "'-' is not a file name" in fails(*TRAIN, "--model", "-")


@pytest.mark.parametrize("budget", ["missing", "too large"])
def test_a_wrong_budget_of_a_policy_is_reported_before_rows_are_read(folder, budget):
    patients().to_csv("patients.csv", index=False)
    Path("policy.yaml").write_text(TEXT)
    if budget == "too large":
        xgb_dp.Budget("budget.json", epsilon=40.0, delta=1e-5, unit="person")
    with open("patients.csv", "a") as file:
        file.write("a row with too few cells\n")
    spent = ["--epsilon", "0.5", "--delta", "1e-6"]
    for arguments in (
        ["train", "patients.csv", *spent],
        ["select", "patients.csv", *spent, "--grid", "eta=0.1,0.3"],
        ["discover", "patients.csv", *spent, "--text", "sex", "--privacy-id", "patient"],
    ):
        done = command("--policy", "policy.yaml", *arguments)
        assert done.returncode == 1 and "udget" in done.stderr, done.stderr
        assert "row" not in done.stderr.replace("of rows", ""), done.stderr
    done = command("--policy", "none.yaml", "train", "patients.csv", *spent)
    assert done.returncode == 1 and "none.yaml" in done.stderr
