"""`xgb-dp discover`, dates in schema files, and training from what it wrote."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import xgboost as xgb

import xgb_dp
from xgb_dp.discovery import discover
from xgb_dp.domain.domain import from_mapping, read_domain
from xgb_dp.errors import PrivacyParameterError

from .calls import fails, run

DISCOVERY = ["--epsilon", "1", "--delta", "1e-6"]
DATED = """\
target: buys
classes: [no, yes]
columns:
  age: {bounds: [0, 120]}
  joined: {date: [days, month, weekday, hour], since: 2015-01-01, bounds: [0, 4000]}
params: {max_depth: 2}
"""


def dated(n: int = 6000) -> pd.DataFrame:
    rng = np.random.default_rng(5)
    age = rng.integers(18, 90, n)
    joined = pd.Timestamp("2015-01-01") + pd.to_timedelta(rng.integers(0, 80_000, n), "h")
    return pd.DataFrame(
        {
            "age": age,
            "joined": joined,
            "pet": rng.choice(["cat", "dog", "a, b"], n),
            "person": np.arange(n) // 2,
            "buys": np.where(age + 20 * (joined.month > 6) > 60, "yes", "no"),
        }
    )


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table = dated()
    table.to_csv("rows.csv", index=False)
    table.to_parquet("rows.parquet")
    Path("dated.yaml").write_text(DATED)
    return tmp_path


def test_from_a_look_to_a_model(files):
    run("budget", "budget.json", "--epsilon", "3", "--delta", "1e-5")
    kinds = ["--text", "pet,buys", "--number", "age", "--datetime", "joined"]
    result = run("discover", "rows.csv", *DISCOVERY, *kinds, "--target", "buys", "--out", "s.yaml",
                 "--budget", "budget.json")  # fmt: skip
    assert "About " in result.stderr and result.stdout == ""
    domain = read_domain(Path("s.yaml"))
    assert domain.classes == ("no", "yes")
    assert set(domain.columns["pet"].categories) == {"cat", "dog", "a, b", "other"}
    spent = ["--epsilon", "1", "--delta", "1e-6", "--rounds", "5", "--budget", "budget.json"]
    output = run("train", "rows.csv", "--schema", "s.yaml", *spent).output
    assert "includes the cost of the column discovery" in output
    names = xgb.Booster(model_file="model.json").feature_names
    assert names == ["age", "joined_days", "joined_month", "joined_weekday", "joined_hour", "pet"]
    run("predict", "model.json", "rows.parquet", "--out", "p.csv")
    assert len(pd.read_csv("p.csv")) == 6000
    assert [e.note for e in xgb_dp.Budget("budget.json").entries] == [
        "discover rows.csv", "train model.json",
    ]  # fmt: skip
    assert xgb_dp.verify("model.json").verdict == "passed"


def test_columns_of_parquet_have_types(files):
    text = run("discover", "rows.parquet", *DISCOVERY, "--privacy-id", "person").stdout
    Path("s.yaml").write_text(text)
    domain = read_domain(Path("s.yaml"))
    assert list(domain.columns) == ["age", "joined", "pet", "buys"]
    assert domain.privacy_id == "person"
    assert domain.discovered["unit"] == "person"


def test_dates_in_files(files):
    spent = ["--epsilon", "4", "--delta", "1e-6", "--rounds", "20"]
    run("train", "rows.csv", "--schema", "dated.yaml", *spent)
    report = xgb_dp.privacy_report("model.json")
    public = report.ledger["trainings"][0]["public"]
    assert {"joined_month", "joined_weekday", "joined_hour"} <= set(public["public_cuts"])
    from_csv = run("predict", "model.json", "rows.csv").stdout
    assert from_csv == run("predict", "model.json", "rows.parquet").stdout
    assert len(set(from_csv.splitlines())) > 10
    shown = run("predict", "model.json", "rows.csv", "--contributions").stdout.splitlines()[0]
    assert "contribution_joined_month" in shown
    run("calibrate", "--schema", "dated.yaml", "--epsilon", "1", "--delta", "1e-6")


@pytest.mark.parametrize(
    ("column", "message"),
    [
        ({"date": "days"}, "list"),
        ({"date": ["days", "year"]}, "weekday"),
        ({"date": []}, "empty"),
        ({"date": ["month"], "bounds": [0, 1]}, "days"),
        ({"date": ["days"], "since": "yesterday"}, "since"),
        ({"since": "2000-01-01"}, "without `date`"),
        ({"date": ["days"], "categories": ["a"]}, "more than one"),
        ({"date": ["days"]}, "joined_days"),  # the part is another column
    ],
)
def test_wrong_dates_of_a_schema(column, message):
    with pytest.raises(PrivacyParameterError, match=message):
        from_mapping({"columns": {"joined": column, "joined_days": "number"}}).parameters()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--epsilon", "1", "--text", "pet"], "--delta"),
        (["--text", "pet"], "--epsilon"),
        ([*DISCOVERY], "CSV"),
        ([*DISCOVERY, "--text", "nobody"], "nobody"),
        ([*DISCOVERY, "--text", "pet", "--number", "pet"], "two types"),
        ([*DISCOVERY, "--text", "pet", "--target", "buys"], "buys"),
        ([*DISCOVERY, "--text", "pet", "--privacy-id", "nobody"], "nobody"),
        ([*DISCOVERY, "--text", "pet", "--out", "s.toml"], ".yaml"),
        ([*DISCOVERY, "--text", "pet", "--out", "rows.csv"], "exists"),
        ([*DISCOVERY, "--number", "pet"], "number"),
        ([*DISCOVERY, "--date", "pet"], "date"),
        (["--epsilon", "0", "--delta", "1e-6", "--text", "pet"], "epsilon"),
    ],
)
def test_wrong_calls(files, arguments, message, monkeypatch):
    monkeypatch.setattr(discover, "_release", lambda *_: pytest.fail("noise was drawn"))
    assert message in fails("discover", "rows.csv", *arguments)
