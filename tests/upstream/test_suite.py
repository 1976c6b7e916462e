"""The comparison of upstream's tests, on a checkout of a few tests that this file writes."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.children import LIGHT
from tests.upstream import suite
from tests.upstream.stock import ROOT

SAME = """
import xgboost as xgb

def test_passes():
    assert xgb.__version__

def test_fails():
    assert not xgb.__version__
"""
OTHER = """
import pathlib
import pytest
import xgboost as xgb

OURS = hasattr(xgb.core._LIB, "XGDPBuildInfo")

class TestOther:
    @pytest.mark.parametrize("value", ["a b", "c"])
    def test_differs(self, value):
        assert not OURS

def test_fails_at_first():
    mark = pathlib.Path(__file__).with_suffix(".mark")
    if OURS and not mark.exists():
        mark.touch()
        raise AssertionError
"""


def checkout(folder: Path, **files: str) -> Path:
    tests = folder / "tests" / "python"
    tests.mkdir(parents=True)
    (folder / "tests" / "pytest.ini").write_text("[pytest]\n")
    (tests / "conftest.py").write_text(LIGHT)
    for name, text in files.items():
        (tests / f"{name}.py").write_text(text)
    return folder


def compared(folder: Path | None) -> tuple[int, str]:
    env = {k: v for k, v in os.environ.items() if k != suite.VARIABLE}
    env["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # the tests above need none
    if folder is not None:
        env[suite.VARIABLE] = str(folder)
    done = subprocess.run(
        [sys.executable, "-m", "tests.upstream.suite"],
        cwd=ROOT,
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


@pytest.mark.slow
def test_equal_failures_are_no_difference(tmp_path):
    files = {"test_same": SAME, "test_broken": "import not_there"}
    status, said = compared(checkout(tmp_path, **files))
    assert (status, "2 fail with both, 0 with one alone" in said) == (0, True), said


@pytest.mark.slow
def test_a_difference_is_told(tmp_path):
    status, said = compared(checkout(tmp_path, test_same=SAME, test_other=OTHER))
    assert (status, "1 fail with both, 2 with one alone" in said) == (1, True), said
    for value in ("a b", "c"):
        assert f"TestOther::test_differs[{value}]: failed with ours, passed with stock" in said


@pytest.mark.parametrize(
    "kind", ["unset", "no tests", pytest.param("other release", marks=pytest.mark.slow)]
)
def test_what_cannot_be_compared_is_an_error(kind, tmp_path):
    files = {"test_other": "import xgboost.not_there"} if kind == "other release" else {}
    folder = tmp_path / "elsewhere" if kind == "no tests" else checkout(tmp_path, **files)
    status, said = compared(None if kind == "unset" else folder)
    assert status == 2, said
    assert "error: " in said
