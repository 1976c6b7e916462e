"""`xgb-dp split`: what it writes, and what knows the parts again."""

import json
from pathlib import Path

import pandas as pd
import pytest
import xgboost as xgb

import xgb_dp
from xgb_dp.record.ledger import read_ledger

from .calls import SCHEMA, SPENT, TARGET, fails, rows, run

PARTS = ["--train", "train.csv", "--test", "test.csv", "--share", "0.4"]


def trained(*more: str) -> None:
    run("train", "train.csv", "--schema", "schema.yaml", *SPENT, "--quiet", *more)


def test_parts_of_a_file_cost_in_parallel(folder):
    xgb_dp.Budget("budget.json", epsilon=1.5, delta=1e-5)
    output = run("split", "rows.csv", *PARTS)
    assert "Each row was assigned at random" in output.stdout
    assert not any(c.isdigit() for c in output.stdout + output.stderr)  # no numbers of rows
    before = pd.read_csv("rows.csv", dtype=str, keep_default_na=False)
    after = pd.concat(
        pd.read_csv(f"{name}.csv", dtype=str, keep_default_na=False) for name in ("train", "test")
    )
    pd.testing.assert_frame_equal(
        before, after.sort_values("id", key=lambda ids: ids.astype(int)).reset_index(drop=True)
    )
    trained("--budget", "budget.json")
    output = run("evaluate", "model.json", "test.csv", *TARGET, "--budget", "budget.json")
    assert "contributes to only one of them" in output.stdout
    assert {e.part.name for e in xgb_dp.Budget("budget.json").entries} == {"train", "test"}
    output = run("evaluate", "model.json", "train.csv", *TARGET)
    assert "add up" in output.stdout


@pytest.mark.parametrize("change", ["rows", "note"])
def test_a_file_that_was_changed_is_all_rows(folder, change):
    run("split", "rows.csv", *PARTS)
    trained()
    if change == "rows":
        with open("test.csv", "a") as file:
            file.write(Path("train.csv").read_text().splitlines()[1] + "\n")
    else:
        Path("test.csv.part.json").unlink()
    output = run("evaluate", "model.json", "test.csv", *TARGET)
    assert "add up" in output.stdout
    assert ("was changed or copied since" in output.stderr) == (change == "rows")


def test_persons_stay_together(folder):
    frame = rows()
    frame["id"] = frame["id"] // 5
    frame.to_csv("rows.csv", index=False)
    Path("schema.yaml").write_text(SCHEMA.replace("drop: [id]", "privacy_id: id"))
    output = run("split", "rows.csv", *PARTS, "--schema", "schema.yaml")
    assert "Each person was assigned at random" in output.stdout
    parts = [set(pd.read_csv(f"{name}.csv")["id"]) for name in ("train", "test")]
    assert parts[0].isdisjoint(parts[1]) and parts[0] | parts[1] == set(range(40))
    trained()
    public = read_ledger(xgb.Booster(model_file="model.json")).trainings[-1].public
    assert public["part"]["unit"] == "person"
    output = run("evaluate", "model.json", "test.csv", *TARGET)
    assert "each person contributes to only one of them" in output.stdout


def test_other_persons_than_those_of_the_division_are_in_both_parts(folder):
    """Rows of one hospital lie in both parts where the coins were those of patients."""
    frame = rows()
    frame["hospital"] = frame["id"] % 3
    frame.to_csv("rows.csv", index=False)
    Path("schema.yaml").write_text(SCHEMA.replace("drop: [id]", "drop: [id]\nprivacy_id: hospital"))
    run("split", "rows.csv", *PARTS, "--privacy-id", "id")
    trained()
    public = read_ledger(xgb.Booster(model_file="model.json")).trainings[-1].public
    assert "part" not in public
    output = run("evaluate", "model.json", "test.csv", *TARGET)
    assert "add up" in output.stdout


def test_parquet_keeps_its_types(folder):
    frame = pd.DataFrame({"age": [1.5, None] * 50, "pet": pd.Categorical(["a", "b"] * 50)})
    frame.to_parquet("rows.parquet")
    run("split", "rows.parquet", "--train", "a.parquet", "--test", "b.parquet")
    after = pd.concat([pd.read_parquet("a.parquet"), pd.read_parquet("b.parquet")])
    assert dict(after.dtypes) == dict(frame.dtypes) and len(after) == 100
    wrong = ("split", "rows.parquet", "--train", "a.csv", "--test", "c.parquet")
    assert "same format" in fails(*wrong)


def test_what_is_refused(folder):
    assert "'who'" in fails("split", "rows.csv", *PARTS, "--privacy-id", "who")
    assert "`--share` must" in fails("split", "rows.csv", *PARTS[:4], "--share", "1")
    run("split", "rows.csv", *PARTS)
    assert "exists" in fails("split", "rows.csv", *PARTS)
    trained()
    for text in ("no JSON", json.dumps({"form": 2}), json.dumps({"form": 1, "part": {}})):
        Path("test.csv.part.json").write_text(text)
        assert "is not a valid note" in fails("evaluate", "model.json", "test.csv", *TARGET)
