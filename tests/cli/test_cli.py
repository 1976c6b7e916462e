"""The command line: declared domains, and models that read files as they were trained."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import xgboost as xgb

import xgb_dp

pytest.importorskip("click")

from xgb_dp.cli.tables import read_table
from xgb_dp.domain.domain import from_mapping, read_domain
from xgb_dp.errors import RowDomainError
from xgb_dp.request.default_plans import SIZES, worth

from .calls import SPENT, TRAIN, fails, rows, run


def test_train_and_predict(folder):
    out = run(*TRAIN).stdout
    report = xgb_dp.privacy_report("model.json")
    assert "model.json is (0.99" in out
    assert 0.99 < report.epsilon <= 1.0
    assert report.ledger["trainings"][0]["rounds"] == 3
    public = report.ledger["trainings"][0]["public"]
    assert public["public_grids"] == ["age"]
    assert public["categories"] == {"zip": 4, "pet": 3}

    text = run("predict", "model.json", "rows.csv", "--keep", "id").stdout
    Path("out.csv").write_text(text)
    predicted = pd.read_csv("out.csv")
    assert list(predicted.columns) == ["id", "prediction", "probability_no", "probability_yes"]
    frame = rows()
    data = pd.DataFrame(
        {
            "age": frame["age"].astype("float32"),
            "height": pd.to_numeric(frame["height"], errors="coerce").astype("float32"),
            "zip": pd.Categorical(frame["zip"].replace("", None), ["011", "1.10", "on", "None"]),
            "pet": pd.Categorical(
                frame["pet"].where(frame["pet"] != "an undeclared snake", "others"),
                ["cat", "dog", "others"],
            ),
        }
    )
    booster = xgb.Booster(model_file="model.json")
    expected = booster.predict(xgb.DMatrix(data, enable_categorical=True))
    np.testing.assert_allclose(predicted["probability_yes"], expected, atol=1e-6)
    assert (predicted["prediction"] == np.where(expected > 0.5, "yes", "no")).all()
    assert (predicted["id"] == frame["id"]).all()
    frame.assign(zip="90210").to_csv("new.csv", index=False)
    shown = fails("predict", "model.json", "new.csv")
    assert "'zip': a row has an undeclared value" in shown and "90210" not in shown


JSON = """
{"target": "buys", "classes": ["no", "yes"], "missing": ["", "?"], "drop": ["id"],
 "columns": {"age": {"bounds": [0, 120]}, "height": "number", "zip": ["011", "1.10", "on", "None"],
             "pet": {"categories": ["cat", "dog", "others"], "other": "others"}},
 "params": {"max_depth": 2}}
"""
TOML = """
target = "buys"
classes = ["no", "yes"]
missing = ["", "?"]
drop = ["id"]
params = {max_depth = 2}
[columns]
age = {bounds = [0, 120]}
height = "number"
zip = ["011", "1.10", "on", "None"]
pet = {categories = ["cat", "dog", "others"], other = "others"}
"""


def test_formats_of_schemas_are_read_alike(folder):
    Path("schema.json").write_text(JSON)
    Path("schema.toml").write_text(TOML)
    domains = [read_domain(Path(f"schema.{kind}")) for kind in ("yaml", "json", "toml")]
    assert domains[0] == domains[1] == domains[2]
    whole = domains[0].resolve(list(rows().columns), training=True)
    again = from_mapping(json.loads(whole.to_json()))
    assert again.columns == whole.columns
    assert (again.target, again.classes, again.missing) == ("buys", ("no", "yes"), ("", "?"))


def test_regression_with_options_only(folder):
    frame = rows()[["age", "height"]].assign(pay=np.linspace(0, 100, 200), w=0.5)
    frame.to_parquet("pay.parquet")
    run("train", "pay.parquet", "--target", "pay", "--target-bounds", "0", "100", "--weight", "w",
        "--drop", "height", "--bounds", "age=1:120:log", "--param", "max_depth=1",
        "--param", 'dp_budget_shares={"leaves": 0.6}', "--model", "m.ubj", *SPENT)  # fmt: skip
    report = xgb_dp.privacy_report("m.ubj")
    public = report.ledger["trainings"][0]["public"]
    assert public["target_bounds"] == [0.0, 100.0]
    assert public["hyperparameters"]["budget_shares"]["leaves"] == pytest.approx(0.6)
    run("predict", "m.ubj", "pay.parquet", "--out", "p.parquet", "--contributions")
    predicted = pd.read_parquet("p.parquet")
    assert list(predicted.columns) == ["prediction", "contribution_age", "contribution_bias"]
    total = predicted["contribution_age"] + predicted["contribution_bias"]
    np.testing.assert_allclose(predicted["prediction"], total, rtol=1e-4)


def test_several_classes_and_continued_models(folder):
    frame = rows()[["age"]].assign(grade=np.arange(200) % 3 + 1)
    frame.to_csv("grades.csv", index=False)
    declared = ["--target", "grade", "--classes", "1,2,3", "--param", "max_depth=1"]
    run("train", "grades.csv", *declared, *SPENT)
    predicted = run("predict", "model.json", "grades.csv", "--contributions")
    header = predicted.stdout.splitlines()[0].split(",")
    assert header[1:4] == ["probability_1", "probability_2", "probability_3"]
    assert header[4:] == [f"contribution_{c}_{n}" for c in "123" for n in ("age", "bias")]
    Path("none.csv").write_text("age\n")
    nothing = run("predict", "model.json", "none.csv", "--contributions").stdout
    assert nothing == predicted.stdout.splitlines(keepends=True)[0]
    run("train", "grades.csv", *declared, *SPENT, "--continue", "model.json", "--model", "b.json")
    report = xgb_dp.privacy_report("b.json")
    assert len(report.ledger["trainings"]) == 2
    assert report.epsilon > 1.0


def test_what_a_model_says_of_its_files_does_not_depend_on_rows(folder):
    schemas = []
    for n in (0, 7, 200):
        rows(n).to_csv("some.csv", index=False)
        run("train", "some.csv", "--schema", "schema.yaml", *SPENT, "--force")
        assert xgb_dp.privacy_report("model.json").epsilon <= 1.0
        schemas.append(xgb.Booster(model_file="model.json").attr("dp_schema"))
    assert schemas[0] == schemas[1] == schemas[2]
    assert "an undeclared snake" not in schemas[2]
    attributes = xgb.Booster(model_file="model.json").attributes()
    assert sorted(attributes) == ["dp_ledger", "dp_schema"]


def test_schema_template_reads_names_only(folder):
    assert xgb_dp.__version__ in run("--version").stdout
    text = run("schema", "rows.csv", "--target", "buys").stdout
    Path("made.yaml").write_text(text)
    predicted = read_domain(Path("made.yaml"))
    assert list(predicted.columns) == ["id", "age", "height", "zip", "pet"]
    assert "remove columns that are not features" in text
    Path("header.csv").write_text(Path("rows.csv").read_text().splitlines()[0] + "\n")
    assert run("schema", "header.csv", "--target", "buys").stdout == text
    run("schema", "rows.csv", "--target", "buys", "--out", "empty.yaml")
    assert Path("empty.yaml").read_text() == text
    assert "exists" in fails("schema", "rows.csv", "--out", "empty.yaml")


def test_report_and_card(folder):
    run(*TRAIN, "--report", "r.html", "--report",
        "r.json", "--card", "card.md")  # fmt: skip
    report = xgb_dp.privacy_report("model.json")
    assert Path("r.html").read_text().startswith("<!DOCTYPE html>")
    assert json.loads(Path("r.json").read_text())["epsilon"] == report.epsilon
    assert Path("card.md").read_text() == xgb_dp.model_card("model.json")
    assert run("card", "model.json").stdout.strip() == xgb_dp.model_card("model.json").strip()
    assert run("report", "model.json").stdout.strip() == report.summary().strip()
    assert json.loads(run("report", "model.json", "--format", "json").stdout)["private"]
    run("report", "model.json", "--out", "r.txt")
    assert "Budget by mechanism" in Path("r.txt").read_text()
    one = float(run("report", "model.json", "--delta", "1e-8", "--group-size", "2").stdout)
    assert one == pytest.approx(report.get_epsilon(1e-8, group_size=2), rel=1e-3)
    swapped = float(run("report", "model.json", "--replace-one").stdout)
    assert swapped == pytest.approx(report.get_epsilon(1e-6, group_size=2), rel=1e-3)


CALIBRATE = ["calibrate", "--classes", "0,1", "--delta", "1e-6"]


def test_calibrate_says_what_training_will_draw(folder):
    run(*TRAIN)
    spent = xgb_dp.privacy_report("model.json").spending()
    shown = json.loads(run("calibrate", "--schema", "schema.yaml", *SPENT, "--json").stdout)
    budget = {s["release"]: s for s in shown[0]["budget"]}
    assert {s.release: (s.count, s.noise) for s in spent} == {
        name: (s["count"], s["noise"]) for name, s in budget.items()
    }
    text = run(*CALIBRATE, "--columns", "5", "--epsilon", "0.5", "--epsilon", "2").stdout
    assert text.count("certified") == 2
    assert "--columns" in fails(*CALIBRATE, "--epsilon", "1")


def test_calibrate_shows_every_plan_of_open_rounds(folder):
    config = [*CALIBRATE, "--columns", "5", "--epsilon", "0.5"]
    (shown,) = json.loads(run(*config, "--json").stdout)
    assert [p["rounds"] for p in shown["plans"]] == [s.rounds for s in SIZES["binary"]]
    assert shown["plans"][0]["rows_below"] == SIZES["binary"][0].below / worth(0.5)
    assert shown["plans"][-1]["rows_below"] == "inf"
    assert {s["release"] for s in shown["plans"][0]["budget"]} >= {"intercept", "leaves"}
    text = run(*config).stdout
    assert text.count("rounds, depth") == len(shown["plans"])
    assert "more rows: " in text


def test_without_noise(folder):
    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is no JSON")

    text = run(*CALIBRATE, "--columns", "5", "--epsilon", "inf", "--json").stdout
    (shown,) = json.loads(text, parse_constant=refuse)
    target = {"target": "inf", "epsilon": "inf", "delta": 1e-6, "unit": "row", "group_size": 1}
    assert shown == {**target, "budget": []}
    costly = [*SPENT[:1], "inf", *SPENT[2:]]
    predicted = run("train", "rows.csv", "--schema", "schema.yaml", *costly)
    assert predicted.stderr.startswith("Warning: ")
    assert ".py" not in predicted.stderr
    assert "NOT differentially private" in predicted.stdout
    assert "no model card" in fails("card", "model.json")


def test_trainings_draw_on_a_budget(folder):
    train = [*TRAIN, "--budget", "total.json"]
    assert "does not exist" in fails(*train)
    assert "epsilon" in fails("budget", "total.json")
    predicted = run("budget", "total.json", "--epsilon", "1.5", "--delta", "1e-5").stdout
    assert "(1.5, 1e-05)-differentially private" in predicted
    run(*train, "--model", "a.json")
    assert "train a.json" in run("budget", "total.json").stdout
    assert "budget" in fails(*train, "--model", "b.json", "--epsilon", "1.4")
    assert not Path("b.json").exists()
    assert "created with" in fails("budget", "total.json", "--epsilon", "9")
    (entry,) = xgb_dp.Budget("total.json").entries
    assert entry.state == "spent"


def test_predicting_with_models_from_python(folder, params, matrix):
    names = ["a", "b", "c", "d"]
    booster = xgb.train(params(), matrix(feature_names=names), 2)
    booster.save_model("python.json")
    frame = pd.DataFrame(np.zeros((3, 5)), columns=["z", *names])
    frame.to_csv("zeros.csv", index=False)
    predicted = run("predict", "python.json", "zeros.csv").stdout.splitlines()
    assert predicted[0] == "prediction,probability_0,probability_1"
    assert len(predicted) == 4
    unnamed = xgb.train(params(), matrix(), 2)
    unnamed.save_model("unnamed.json")
    assert "--schema" in fails("predict", "unnamed.json", "zeros.csv")


def test_numbers_and_truth_values_match_declared_classes(tmp_path):
    domain = from_mapping({"target": "y", "classes": ["0", "1"], "columns": {"x": "number"}})
    words = replace(domain, classes=("false", "true"))
    path = tmp_path / "rows.parquet"
    for labels, declared in (
        ([0, 1, 1], domain), ([0.0, 1.0, 1.0], domain), ([False, True, True], words)
    ):  # fmt: skip
        pd.DataFrame({"x": [1.0, None, 3.0], "y": labels}).to_parquet(path)
        table = read_table(path, declared, training=True)
        assert list(table.labels) == [0.0, 1.0, 1.0]
        assert np.isnan(table.frame["x"][1])
    pd.DataFrame({"x": [1.0], "y": [2]}).to_parquet(path)
    with pytest.raises(RowDomainError):
        read_table(path, domain, training=True)
