"""`xgb-dp evaluate`: figures, groups, budgets, calibrated models, and what is refused."""

import json

import pytest

import xgb_dp

from .calls import TARGET, TRAIN, fails, run


@pytest.fixture
def model(folder):
    run(*TRAIN, "--quiet")
    return "model.json"


def test_figures_of_all_rows_and_groups(model):
    output = run("evaluate", model, "rows.csv", *TARGET, "--by", "pet", "--json", "figures.json")
    assert "auc" in output.stdout and "Group cat" in output.stdout and "Group dog" in output.stdout
    assert "add up" in output.stdout
    with open("figures.json") as file:
        content = json.load(file)
    assert set(content["figures"]) == {"all", "cat", "dog", "others", "other"}
    figure = content["figures"]["all"]["auc"]
    assert figure["low"] <= figure["value"] <= figure["high"]


def test_figures_for_a_program(model):
    printed = json.loads(run("evaluate", model, "rows.csv", *TARGET, "--json", "-").stdout)
    assert printed["kind"] == "binary" and set(printed["figures"]) == {"all"}


def test_budgets_and_calibrated_models(model):
    xgb_dp.Budget("budget.json", epsilon=2.0, delta=1e-5)
    run("evaluate", model, "rows.csv", *TARGET, "--budget", "budget.json", "--calibrated", "b.json")
    (entry,) = xgb_dp.Budget("budget.json").entries
    assert entry.note == "evaluate model.json" and entry.events[0].label == "evaluation"
    assert xgb_dp.privacy_report("b.json").epsilon > xgb_dp.privacy_report(model).epsilon
    more = [*TARGET, "--epsilon", "2.5", "--budget", "budget.json"]
    assert "exceed" in fails("evaluate", model, "rows.csv", *more)


def test_two_models(model):
    output = run("evaluate", model, "rows.csv", *TARGET, "--against", model)
    assert "difference" in output.stdout


def test_what_is_refused(model):
    more = ["--max-rows-per-person", "3"]
    assert "requires ids" in fails("evaluate", model, "rows.csv", *TARGET, *more)
    assert "categories" in fails("evaluate", model, "rows.csv", *TARGET, "--by", "age")
    assert "epsilon" in fails("evaluate", model, "rows.csv", "--epsilon", "-1", "--delta", "1e-6")
