"""A walk on real data with one budget: what it spends, and that no moment of death loses a cost."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import xgboost as xgb

import xgb_dp

pytest.importorskip("statsmodels")

from tests.budget.walk import MOMENTS, PARAMS, STEPS, TOTAL, rows, walk

ROOT = Path(__file__).resolve().parents[2]


def test_the_walk_spends_what_it_planned(tmp_path):
    budget = xgb_dp.Budget(tmp_path / "table.json", **TOTAL)
    plan = budget.plan()
    for step, epsilon in (("discover", 0.116), ("train", 1.04), ("evaluate", 0.2), ("select", 0.9)):
        assert plan[step]["epsilon"] == pytest.approx(epsilon, rel=0.1)
    shown: list[str] = []
    report = walk(budget, *rows(8000), shown)
    assert tuple(shown) == STEPS
    assert [e.state for e in budget.entries] == ["spent"] * 4
    assert report.cost.parallel and [e.part is None for e in budget.entries] == [
        True, False, False, True,
    ]  # fmt: skip
    assert budget.remaining_selection() < 0.01
    assert "(2, 1e-06)-differentially private" in budget.statement()
    budget.verify()


@pytest.mark.parametrize("split", [False, True])
@pytest.mark.parametrize(
    ("epsilon", "selection"), [(0.3, 0.0), (0.3, 0.25), (2.0, 0.0), (8.0, 0.25)]
)
def test_the_plan_fits(tmp_path, epsilon, selection, split):
    budget = xgb_dp.Budget(
        tmp_path / "b.json", epsilon=epsilon, delta=1e-6, selection_epsilon=selection * epsilon
    )
    plan = budget.plan(split=split)
    assert list(plan) == ["discover", "train", "evaluate", *(["select"] if selection else [])]
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"age": rng.integers(18, 90, 400), "town": rng.choice(["a", "b"], 400)})
    xgb_dp.discover(table, **plan["discover"], budget=budget)
    params = PARAMS | {f"dp_{name}": value for name, value in plan["train"].items()}
    matrix = xgb.DMatrix(table[["age"]], table["age"] > 50)
    parts = xgb_dp.split(matrix, test=0.3) if split else None
    model = budget.train(params, matrix if parts is None else parts.train, 5)
    xgb_dp.evaluate(model, parts or matrix, **plan["evaluate"], budget=budget)
    assert [e.state for e in budget.entries] == ["spent"] * 3
    budget.verify()
    assert 1.0 - budget.spent.mu2 / budget.capacity.mu2 < 0.02
    if selection:
        assert plan["select"]["epsilon"] == pytest.approx(selection * epsilon, rel=1e-3)
    assert budget.plan()["train"]["epsilon"] < plan["train"]["epsilon"]


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A book for each step and moment, left behind by a process that was killed."""
    folder = tmp_path_factory.mktemp("books")
    command = [sys.executable, "-m", "tests.budget.walk", str(folder)]
    subprocess.run(command, check=True, cwd=ROOT, timeout=900)
    return folder


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("step", STEPS)
def test_killed_at_each_step_the_book_is_right(killed, step, moment):
    budget = xgb_dp.Budget(killed / f"{step} {moment}.json")
    shown = (killed / f"{step} {moment}.shown").read_text().split()
    budget.verify()
    before = STEPS.index(step)
    assert shown == list(STEPS[:before])  # of the step itself nothing was shown
    states = [entry.state for entry in budget.entries]
    if moment == "before reserve":
        assert states == ["spent"] * before
    elif moment == "after commit":
        assert states == ["spent"] * (before + 1)
    else:  # whatever was drawn has been charged, and counts in full
        assert states == ["spent"] * before + ["reserved"]
    # What is left is divided anew, and still fits.
    left = budget.plan()
    assert left["train"]["epsilon"] < 1.1 and budget.remaining() >= left["train"]["epsilon"]
