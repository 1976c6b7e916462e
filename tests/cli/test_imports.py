"""Wrong calls answer before the libraries are loaded that take long."""

import subprocess
import sys

import pytest

SLOW = ("pandas", "pyarrow", "sklearn", "scipy.sparse", "scipy.stats", "xgboost")
PROGRAM = f"""
import sys
from xgb_dp.__main__ import main
try:
    main()
finally:
    print(*[name for name in {SLOW} if sys.modules.get(name)])
"""
PRIVACY = ["--epsilon", "1", "--delta", "1e-6"]
CHOSEN = ["{rows}", *PRIVACY, "--target", "b", "--classes", "0,1"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["train", "{rows}", *PRIVACY, "--model", "no/such/m.json"], "does not exist"),
        (["train", "{rows}", *PRIVACY, "--report", "report.pdf"], "report.pdf"),
        (["train", "{rows}", *PRIVACY, "--target", "c", "--classes", "0,1"], "no column"),
        (["train", *CHOSEN, "--param", "max_depht=3"], "Did you mean `max_depth`"),
        (["schema", "{rows}", "--target", "c"], "no column"),
        (["discover", "{rows}", *PRIVACY], "No column types"),
        (["discover", "{rows}", *PRIVACY, "--number", "c"], "no column"),
        (["select", "{rows}", *PRIVACY, "--grid", "max_depth"], "NAME=A,B"),
        (["select", "{rows}", *PRIVACY, "--grid", "eta=1,2", "--score", "f1"], "not one of"),
        (["predict", "{rows}", "{rows}", "--out", "no/such.csv"], "does not exist"),
        (["evaluate", "no such model", "{rows}"], "no such model"),
    ],
)
def test_a_wrong_call_needs_no_slow_library(arguments, message, tmp_path):
    rows = tmp_path / "rows.csv"
    rows.write_text("a,b\n1,2\n")
    command = [sys.executable, "-c", PROGRAM, *(a.format(rows=rows) for a in arguments)]
    answer = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert answer.returncode != 0 and message in answer.stderr
    assert answer.stdout.strip() == ""


def test_no_command_waits_for_scikit_learn(tmp_path):
    """XGBoost loads it, where it is, for its estimators alone."""
    rows = tmp_path / "rows.csv"
    rows.write_text("a,b\n" + "1,0\n2,1\n" * 20)
    arguments = ["train", *(a.format(rows=rows) for a in CHOSEN), "--rounds", "1"]
    command = [sys.executable, "-c", PROGRAM, *arguments]
    answer = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert answer.returncode == 0, answer.stderr
    loaded = set(answer.stdout.splitlines()[-1].split())
    assert loaded == {"pandas", "pyarrow", "scipy.sparse", "xgboost"}
