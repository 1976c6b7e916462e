"""`xgb-dp select`: a grid, one epsilon for all of it, a budget, and what is refused."""

import json

import pytest

import xgb_dp

from .calls import SPENT, fails, run

SELECT = ["select", "rows.csv", "--schema", "schema.yaml", *SPENT]


def test_the_best_of_a_grid(folder):
    xgb_dp.Budget("budget.json", epsilon=3.0, delta=1e-5, selection_epsilon=2.0)
    grid = ["--grid", "max_depth=1,2", "--grid", "rounds=2,3", "--budget", "budget.json"]
    output = run(*SELECT, *grid, "--score", "auc").stdout
    assert output.startswith("max_depth=") and ": auc 0." in output and "model.json is (" in output
    report = xgb_dp.privacy_report("model.json")
    assert 0.9 < report.epsilon <= 1.0
    assert report.ledger["trainings"][0]["rounds"] in (2, 3)
    left = json.loads(run("budget", "budget.json", "--json").stdout)
    assert [e["note"] for e in left["entries"]] == ["select model.json"]
    assert left["remaining_selection"] == pytest.approx(1.0, abs=0.01)
    assert set(left["plan"]) == {"discover", "train", "evaluate", "select"}
    assert run("predict", "model.json", "rows.csv").stdout.count("\n") == 201


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "--grid"),
        (["--grid", "max_depth"], "NAME=A,B"),
        (["--grid", "max_depth=1", "--grid", "max_depth=2"], "once per parameter"),
        (["--grid", "max_dept=1,2"], "max_depth"),
        (["--grid", "max_depth=1,2", "--param", "dp_epsilon=1"], "dp_epsilon"),
        (["--grid", "max_depth=1,2", "--model", "rows.csv"], "exists"),
    ],
)
def test_wrong_calls(folder, no_training, arguments, message):
    assert message in fails(*SELECT, *arguments)
