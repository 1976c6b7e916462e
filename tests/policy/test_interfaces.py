"""Every interface obeys the policy, and says nothing that depends on rows."""

import json
import os
from pathlib import Path

import numpy as np
import pytest
import xgboost as xgb

import xgb_dp
from xgb_dp import policy
from xgb_dp.errors import POLICY, RowDomainError
from xgb_dp.training import hook

from ..cli.calls import invoke
from .conftest import CHANGES, TEXT, matrix, params, table

QUIET = "The rows do not match the declared domain."
UNBOOKED = "charged to its budget"
TARGET = {"epsilon": 0.5, "delta": 1e-6}


def features():
    return table().drop(columns=["ill"])


def classifier(**changes):
    given = {**TARGET, "classes": ["no", "yes"], "categories": {"sex": ["f", "m"]}} | changes
    return xgb_dp.DPXGBClassifier(n_estimators=2, dp_privacy_id="patient", **CHANGES, **given)


def selected(budget=None, **changes):
    given = {k: v for k, v in params(**changes).items() if k not in ("dp_epsilon", "dp_delta")}
    settings = [{"max_depth": 2}]
    return xgb_dp.select(given, matrix(), settings, num_boost_round=2, budget=budget, **TARGET)


@pytest.mark.parametrize(
    "release",
    [
        lambda: xgb.train(params(), matrix(), 2),
        lambda: classifier().fit(features(), table()["ill"]),
        lambda: classifier().fit_select(features(), table()["ill"], [{"max_depth": 2}]),
        lambda: selected(),
        lambda: xgb_dp.evaluate(xgb.Booster(model_file="made.json"), matrix(), **TARGET),
        hook.check_here,  # asked by Dask and Spark
    ],
    ids=["train", "fit", "fit_select", "select", "evaluate", "cluster"],
)
def test_nothing_is_released_past_the_book(enforce, release):
    xgb.train(params(), matrix(), 2).save_model("made.json")
    enforce()
    with pytest.raises(xgb_dp.BudgetError, match=UNBOOKED):
        release()
    assert not xgb_dp.Budget("budget.json").entries


def test_cross_validation_is_refused(enforce):
    enforce()
    with pytest.raises(xgb_dp.PrivacyRefusal):
        xgb.cv(params(), matrix(), 2)


@pytest.mark.parametrize("allowed", [False, True])
def test_looks_are_booked_where_they_are_allowed(enforce, allowed):
    enforce(TEXT + "allow: [discoveries]\n" if allowed else TEXT)

    def discovery(epsilon):
        config = {"columns": {"sex": "text"}, "privacy_id": "patient", "budget": "budget.json"}
        xgb_dp.discover(table()[["patient", "sex"]], **config, epsilon=epsilon, delta=1e-6)

    if allowed:
        with pytest.raises(xgb_dp.BudgetError, match="epsilon 1 at"):
            discovery(1.5)
        discovery(0.5)
    else:
        with pytest.raises(xgb_dp.PrivacyRefusal, match="'discoveries'"):
            discovery(0.5)
    assert len(xgb_dp.Budget("budget.json").entries) == allowed


def test_a_selection_and_a_judgement_are_within_the_policy(enforce):
    enforce(selection_epsilon=1.0)
    best = selected("budget.json").booster
    [training] = xgb_dp.privacy_report(best).record.trainings
    assert training.public["policy"] == policy.in_force().digest
    judged = {"privacy_id": table()["patient"], "budget": "budget.json", "delta": 1e-6}
    with pytest.raises(xgb_dp.BudgetError, match="epsilon 1 at"):
        xgb_dp.evaluate(best, matrix(), epsilon=1.5, **judged)
    xgb_dp.evaluate(best, matrix(), epsilon=0.5, **judged)
    for changes in ({"dp_public_num_rows": 90}, {"dp_public_evals": True}):
        with pytest.raises(xgb_dp.PrivacyRefusal, match="policy"):
            selected("budget.json", **changes)
    assert len(xgb_dp.Budget("budget.json").entries) == 2


def test_an_estimator_says_nothing_of_labels_or_categories(enforce):
    """Whether a row fits what an analyst declares would be an answer about the row."""
    enforce()
    for changes in ({"classes": ["maybe", "no"]}, {"categories": {"sex": ["f"]}}):
        with pytest.raises(xgb_dp.PrivacyRefusal, match="policy of this data"):
            classifier(**changes, budget="budget.json").fit(features(), table()["ill"])
        with pytest.raises(xgb_dp.PrivacyRefusal, match="policy of this data"):
            classifier(**changes, budget="budget.json").fit_select(features(), table()["ill"], [{}])
    classifier(budget="budget.json").fit(features(), table()["ill"])


def bad_label():
    d = matrix()
    d.set_label(np.full(400, 7.0))
    return xgb_dp.Budget("budget.json").train(params(), d, 2)


@pytest.mark.parametrize(
    "release",
    [
        bad_label,
        lambda: classifier(budget="budget.json").fit(features(), table()["ill"] + "?"),
        lambda: classifier(budget="budget.json").fit(features().assign(sex="x"), table()["ill"]),
        lambda: classifier(budget="budget.json").fit(
            features().assign(patient=None), table()["ill"]
        ),
    ],
    ids=["label", "class", "category", "id"],
)
def test_errors_say_nothing_of_rows(enforce, release):
    enforce()
    assert str(RowDomainError("row 17 holds 'x'")).startswith(QUIET)  # before it was read
    with pytest.raises(xgb_dp.RowDomainError) as error:
        release()
    assert str(error.value).startswith(QUIET) and error.value.args == (str(error.value),)


@pytest.fixture
def command(enforce, monkeypatch):
    """Calls ``xgb-dp`` in a folder with rows, as a process of its own would run it."""
    pytest.importorskip("click")
    enforce()
    table().to_csv("rows.csv", index=False)

    def call(*arguments, rules="policy.yaml"):
        monkeypatch.setattr(policy, "_first", [])
        monkeypatch.setattr(RowDomainError, "exact", None)
        monkeypatch.delenv(POLICY, raising=False)
        if rules is not None:
            arguments = ("--policy", rules, *arguments)
        return invoke(*arguments)

    return call


TRAIN = ("train", "rows.csv", "--epsilon", "0.5", "--delta", "1e-6", "--rounds", "2")


def test_the_command_takes_schema_and_book_from_the_policy(command):
    done = command(*TRAIN)
    assert done.exit_code == 0, done.output
    [entry] = xgb_dp.Budget("budget.json").entries
    assert entry.state == "spent"
    judge = ("evaluate", "model.json", "rows.csv", "--epsilon", "0.5", "--delta", "1e-6")
    assert command(*judge).exit_code == 0
    assert xgb_dp.verify("model.json", policy="policy.yaml").verdict == "passed"


@pytest.mark.parametrize(
    "option",
    [
        ("--epsilon", "2"),
        ("--classes", "no,maybe"),
        ("--target", "sex"),
        ("--categories", "sex=f"),
        ("--bounds", "height=100:200"),
        ("--privacy-id", "age"),
        ("--weight", "age"),
        ("--drop", "height"),
        ("--encoding", "latin-1"),
        ("--separator", ";"),
        ("--decimal", ","),
        ("--thousands", ","),
        ("--objective", "count:poisson"),
        ("--schema", "mine.yaml"),
        ("--param", "dp_public_num_rows=90"),
        ("--param", "objective=reg:gamma"),
        ("--param", "dp_public_evals=true"),
        ("--param", "verbosity=3"),
        ("--param", "dp_privacy_id=age"),
        ("--public-data", "mine.csv"),
        ("--budget", "mine.json"),
    ],
    ids=" ".join,
)
def test_no_option_raises_the_policy(command, option):
    Path("mine.yaml").write_text('target: ill\nclasses: ["no", "yes"]\ncolumns: {age: number}\n')
    table(50).to_csv("mine.csv", index=False)
    os.environ.pop(POLICY)
    policy._first.clear()
    xgb_dp.Budget("mine.json", epsilon=9.0, delta=1e-5, unit="person")
    done = command(*TRAIN, *option)
    assert done.exit_code == 1, done.output
    assert not xgb_dp.Budget("budget.json").entries and not Path("model.json").exists()


def test_an_environment_and_an_option_name_one_policy(command, monkeypatch):
    Path("other.yaml").write_text(TEXT)
    monkeypatch.setenv(POLICY, "policy.yaml")
    assert "different policies" in invoke("--policy", "other.yaml", *TRAIN).stderr
    assert command(*TRAIN, rules="absent.yaml").exit_code == 1


def test_the_command_writes_no_rows(command):
    for name in ("predict", "split"):
        assert "not allowed under a policy" in command(name, "rows.csv", "rows.csv").stderr


def test_files_are_read_as_the_policy_declares(command):
    form = 'csv: {separator: ";", encoding: latin-1, decimal: ","}\n'
    Path("policy.yaml").write_text(form + TEXT.replace("[f, m]", "[f, é]"))
    rows = table().assign(sex=lambda t: t["sex"].replace("m", "é"))
    rows.to_csv("rows.csv", index=False, sep=";", encoding="latin-1", decimal=",")
    done = command(*TRAIN)
    assert done.exit_code == 0, done.output
    done = command(*TRAIN, "--encoding", "utf-8", "--force")
    assert done.exit_code == 1 and "in its key `csv`" in done.stderr
    Path("policy.yaml").write_text("csv: {encoding: utf-7}\n" + TEXT)
    assert "cannot be read" in command(*TRAIN, "--force").stderr


@pytest.mark.parametrize(
    "line",
    ['p1,"30,f,170,no', "p1,30,f,170", "p1,30,f,170,no,1", "p1,3\0,f,1,no", "p1,\ufeff3,f,1,no"],
)
def test_the_command_says_the_same_of_every_line_that_cannot_be_read(command, line):
    with open("rows.csv", "a", encoding="utf-8") as file:
        file.write(f"{line}\n")
    done = command(*TRAIN)
    assert done.exit_code == 1 and done.stderr.startswith(f"Error: {QUIET}"), done.stderr
    assert "line" not in done.stderr and not xgb_dp.Budget("budget.json").entries


def test_a_model_of_some_columns_is_judged_on_rows_that_are_read_whole(command):
    columns = {"age": {"bounds": [0, 120]}, "height": "number"}
    schema = {
        "target": "ill",
        "classes": ["no", "yes"],
        "privacy_id": "patient",
        "columns": columns,
    }
    features = table()[["age", "height"]]
    budget = xgb_dp.Budget("budget.json")
    plain = params(dp_categories=None)
    booster = budget.train(plain, xgb.DMatrix(features, table()["ill"] == "yes"), 2)
    booster.set_attr(dp_schema=json.dumps(schema))
    booster.save_model("some.json")
    judge = ("evaluate", "some.json", "rows.csv", "--epsilon", "0.5", "--delta", "1e-6")
    assert command(*judge).exit_code == 0
    table().assign(sex="x").to_csv("rows.csv", index=False)
    assert command(*judge).stderr.startswith(f"Error: {QUIET}")


@pytest.mark.parametrize("column", ["ill", "sex", "age", "patient"])
def test_the_command_says_the_same_of_every_wrong_row(command, column):
    wrong = {"age": "old", "sex": "?"}.get(column, "")
    table().assign(**{column: wrong}).to_csv("rows.csv", index=False)
    done = command(*TRAIN)
    assert done.exit_code == 1 and done.stderr.startswith(f"Error: {QUIET}"), done.stderr


def test_what_nobody_foresaw_is_quiet(command, monkeypatch):
    def fail(*_, **__):
        raise KeyError("a cell")

    monkeypatch.setenv("XGB_DP_DEBUG", "1")
    monkeypatch.setattr("xgb_dp.cli.tables.read_table", fail)
    done = command(*TRAIN)
    assert done.stderr.startswith(f"Error: {QUIET}") and "cell" not in done.stderr
