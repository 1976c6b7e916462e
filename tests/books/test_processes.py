"""Several real processes on one budget, and processes that die."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.children import LIGHT
from xgb_dp import Budget, BudgetError
from xgb_dp.accounting import GaussianEvent

if sys.platform == "win32":
    pytest.skip("kills processes", allow_module_level=True)

HEAD = (
    LIGHT
    + """
import os, signal, sys
import numpy as np
import xgboost as xgb
from xgb_dp import Budget, BudgetError
from xgb_dp.accounting import GaussianEvent
budget = Budget(sys.argv[1])
QUIET = GaussianEvent("mean", 1 << 20, 1 << 26, 1, 1)
"""
)
GREEDY = """
booked = []
try:
    while True:
        booked.append(budget.reserve([QUIET], sys.argv[2]))
        if len(booked) % 2:
            budget.commit(booked[-1])
except BudgetError:
    print(" ".join(booked))
"""
TRAINING = """
rng = np.random.default_rng(0)
X = rng.normal(size=(200, 3))
dtrain = xgb.DMatrix(X, (X[:, 0] > 0).astype(int))
params = {"tree_method": "dp_hist", "objective": "binary:logistic", "dp_epsilon": 1.0,
          "dp_delta": 1e-6, "nthread": 1, "max_depth": 2}
"""
TRAIN = """
try:
    while True:
        budget.train(params, dtrain, 2, note=sys.argv[2])
        print("trained")
except BudgetError:
    pass
"""
DIE_IN_TRAINING = """
class Die(xgb.callback.TrainingCallback):
    def after_iteration(self, model, epoch, evals_log):
        os.kill(os.getpid(), signal.SIGKILL)
budget.train(params, dtrain, 3, callbacks=[Die()], note="died")
"""
DIE_WHILE_WRITING = """
os.replace = lambda *args: os.kill(os.getpid(), signal.SIGKILL)
budget.reserve([QUIET], "died")
"""
QUIET = GaussianEvent("mean", 1 << 20, 1 << 26, 1, 1)


def start(script: str, budget: Budget, name: str) -> subprocess.Popen[str]:
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(
        [sys.executable, "-c", HEAD + script, str(budget.path), name],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )


def finish(process: subprocess.Popen[str]) -> str:
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    return out


def make(tmp_path: Path, **totals: Any) -> Budget:
    return Budget(tmp_path / "budget.json", **{"epsilon": 3.0, "delta": 1e-6, **totals})


def test_greedy_processes_lose_and_double_no_entry(tmp_path: Path) -> None:
    budget = make(tmp_path)
    running = [start(GREEDY, budget, f"process {i}") for i in range(3)]
    booked = [name for process in running for name in finish(process).split()]
    entries = budget.entries
    assert sorted(booked) == sorted(e.id for e in entries)
    assert len(set(booked)) == len(booked)
    # As many as fit one after another, and not one more.
    alone = Budget(tmp_path / "alone.json", epsilon=3.0, delta=1e-6)
    for _ in booked:
        alone.reserve([QUIET])
    with pytest.raises(BudgetError):
        alone.reserve([QUIET])
    assert len(booked) > 15
    assert budget.capacity.holds(budget.spent)
    odd = {name for name in booked if {e.id: e.state for e in entries}[name] == "spent"}
    assert len(booked) / 2 <= len(odd) <= len(booked) / 2 + 2
    assert {p.name for p in tmp_path.iterdir()} == {
        "budget.json", "budget.json.lock", "alone.json", "alone.json.lock"
    }  # fmt: skip


def test_trainings_in_two_processes(tmp_path: Path) -> None:
    budget = make(tmp_path, epsilon=2.0)
    running = [start(TRAINING + TRAIN, budget, f"process {i}") for i in range(2)]
    trained = sum(finish(process).count("trained") for process in running)
    assert trained == len(budget.entries) == 3
    assert {e.state for e in budget.entries} == {"spent"}


def test_a_process_that_dies_in_training_leaves_its_booking(tmp_path: Path) -> None:
    budget = make(tmp_path)
    process = start(TRAINING + DIE_IN_TRAINING, budget, "dies")
    process.communicate(timeout=300)
    assert process.returncode == -signal.SIGKILL
    [entry] = budget.entries
    assert (entry.note, entry.state) == ("died", "reserved")
    assert budget.spent.mu2 >= entry.charge.mu2 > 0.0


def test_a_process_that_dies_while_writing_leaves_a_sound_file(tmp_path: Path) -> None:
    budget = make(tmp_path)
    budget.reserve([QUIET], "before")
    process = start(DIE_WHILE_WRITING, budget, "dies")
    process.communicate(timeout=300)
    assert process.returncode == -signal.SIGKILL
    budget.reserve([QUIET], "after")  # the lock is free
    assert [e.note for e in budget.entries] == ["before", "after"]
