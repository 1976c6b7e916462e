"""`xgb-dp demo`: the whole way in one command, and its rows in a pipe."""

import os
import subprocess
import sys

import pandas as pd
import pytest

from .calls import run

pytest.importorskip("statsmodels")


def test_rows_for_a_pipe(tmp_path):
    run("demo", "--rows", tmp_path / "patients.csv")
    printed = run("demo", "--rows", "-").stdout
    assert printed == (tmp_path / "patients.csv").read_text()
    table = pd.read_csv(tmp_path / "patients.csv")
    assert table.shape == (20190, 9)
    assert 2 < table.groupby("person").size().mean() < 5
    assert set(table["visit"]) == {"no", "yes"}


def test_the_whole_way_ends_with_a_model_that_passed(tmp_path):
    command = [sys.executable, "-m", "xgb_dp", "demo"]
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    ended = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.count("$ xgb-dp ") == 7
    assert "for one person (column person) added or removed" in ended.stdout
    assert "final.json: PASSED" in ended.stdout
    assert not list(tmp_path.iterdir())
