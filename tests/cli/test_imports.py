"""Wrong calls answer before the libraries are loaded that take long."""

import subprocess
import sys

import pytest

SLOW = ("pandas", "sklearn", "scipy.stats", "xgboost")
PROGRAM = f"""
import sys
from xgb_dp.__main__ import main
try:
    main()
finally:
    print(*[name for name in {SLOW} if name in sys.modules])
"""
PRIVACY = ["--epsilon", "1", "--delta", "1e-6"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["train", "{rows}", *PRIVACY, "--model", "no/such/m.json"], "does not exist"),
        (["train", "{rows}", *PRIVACY, "--report", "report.pdf"], "report.pdf"),
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
