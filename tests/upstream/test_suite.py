"""The comparison of upstream's tests, on a checkout of a few tests that this file writes."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.children import LIGHT
from tests.upstream import suite

Compared = Callable[[Path | None], tuple[int, str]]

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


@pytest.fixture
def compared(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Compared:
    """Exit status of the comparison on a checkout, and what it says."""

    def compare(folder: Path | None) -> tuple[int, str]:
        monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # the tests above need none
        monkeypatch.delenv(suite.VARIABLE, raising=False)
        if folder is not None:
            monkeypatch.setenv(suite.VARIABLE, str(folder))
        return suite.main([]), "".join(capsys.readouterr())

    return compare


def test_equal_failures_are_no_difference(compared, tmp_path, monkeypatch):
    outcomes = {"passes": "passed", "fails": "failed"}
    monkeypatch.setattr(suite, "run", lambda *_: outcomes)
    status, output = compared(checkout(tmp_path))
    assert (status, output.splitlines()[-1]) == (0, "1 fail with both, 0 with one alone")


@pytest.mark.slow
def test_a_difference_is_told(compared, tmp_path):
    files = {"test_same": SAME, "test_other": OTHER, "test_broken": "import not_there"}
    status, output = compared(checkout(tmp_path, **files))
    assert (status, "2 fail with both, 2 with one alone" in output) == (1, True), output
    for value in ("a b", "c"):
        assert f"TestOther::test_differs[{value}]: failed with ours, passed with stock" in output


@pytest.mark.parametrize(
    "kind", ["unset", "no tests", pytest.param("other release", marks=pytest.mark.slow)]
)
def test_what_cannot_be_compared_is_an_error(kind, compared, tmp_path):
    files = {"test_other": "import xgboost.not_there"} if kind == "other release" else {}
    folder = tmp_path / "elsewhere" if kind == "no tests" else checkout(tmp_path, **files)
    status, output = compared(None if kind == "unset" else folder)
    assert status == 2, output
    assert "error: " in output
