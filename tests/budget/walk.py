"""One budget from the look to the selection, killed at a moment; run by test_walk.py.

Arguments: the path of the folder of books. For each moment a process is forked, which walks with a
book of its own and kills itself; what it has shown by then is in a file beside the book.
"""

import os
import signal
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xgboost as xgb
from statsmodels.datasets import randhie

import xgb_dp

STEPS = ("discover", "train", "evaluate", "select")
MOMENTS = tuple(f"{when} {what}" for what in ("reserve", "commit") for when in ("before", "after"))
TOTAL = {"epsilon": 2.0, "delta": 1e-6, "selection_epsilon": 0.9}
PARAMS = {"tree_method": "dp_hist", "objective": "binary:logistic", "nthread": 1, "verbosity": 0}


def rows(n: int = 4000) -> tuple[pd.DataFrame, Any]:
    """The first years of the health insurance experiment, and whether somebody saw a doctor."""
    table = randhie.load_pandas().data.iloc[:n].reset_index(drop=True)
    poor, fair, good = (table.pop(name) > 0 for name in ("hlthp", "hlthf", "hlthg"))
    table["health"] = np.select([poor, fair, good], ["poor", "fair", "good"], "excellent")
    return table, (table.pop("mdvis") > 0).astype(int)


def walk(budget: xgb_dp.Budget, table: pd.DataFrame, y: Any, shown: list[str]) -> Any:
    """All four steps by the plan of the book; `show` gets the name of each once it is over."""
    plan = budget.plan()
    discovery = xgb_dp.discover(table, **plan["discover"], budget=budget)
    shown.append("discover")
    matrix = xgb.DMatrix(discovery.apply(table), y, enable_categorical=True)
    parts = xgb_dp.split(matrix, test=0.3)
    params = {**PARAMS, **discovery.params()}
    spend = {f"dp_{name}": value for name, value in plan["train"].items()}
    model = budget.train({**params, **spend}, parts.train, 3, note="train")
    shown.append("train")
    report = xgb_dp.evaluate(model, parts, **plan["evaluate"], budget=budget)
    shown.append("evaluate")
    settings = [{"max_depth": 1}, {"max_depth": 2}]
    more = {**plan["select"], "num_boost_round": 2, "mean_runs": 2, "budget": budget}
    xgb_dp.select(params, matrix, settings, **more)
    shown.append("select")
    return report


class Shown(list):  # type: ignore[type-arg]
    """Names of steps that a file holds, too."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path
        path.write_text("")

    def append(self, name: str) -> None:
        super().append(name)
        with self.path.open("a") as file:
            file.write(f"{name}\n")


def killing(name: str, call: int, when: str) -> None:
    """Have this process die before or after the n-th call of a method of budgets."""
    method = getattr(xgb_dp.Budget, name)
    calls = [0]

    def run(*args: Any, **kwargs: Any) -> Any:
        calls[0] += 1
        if calls[0] == call and when == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        out = method(*args, **kwargs)
        if calls[0] == call:
            os.kill(os.getpid(), signal.SIGKILL)
        return out

    setattr(xgb_dp.Budget, name, run)


def main(folder: Path) -> None:
    warnings.simplefilter("ignore")
    table, y = rows()
    for number, step in enumerate(STEPS):
        for moment in MOMENTS:
            path = folder / f"{step} {moment}.json"
            budget = xgb_dp.Budget(path, **TOTAL)
            when, what = moment.split()
            child = os.fork()  # nothing was computed yet, so no thread is lost
            if child == 0:
                killing(f"_{what}", number + 1, when)
                walk(budget, table, y, Shown(path.with_suffix(".shown")))
                os._exit(0)
            _, status = os.waitpid(child, 0)
            assert os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL


if __name__ == "__main__":
    main(Path(sys.argv[1]))
