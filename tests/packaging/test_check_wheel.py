"""Wheels that lack something, hold too much or do not work are found before they are given away."""

import platform
import sys
import zipfile
from pathlib import Path
from types import ModuleType

import pytest

from tests.scripts import script

ROOT = Path(__file__).resolve().parents[2]
GOOD = [
    "xgb_dp/__init__.py",
    "xgb_dp/py.typed",
    "xgb_dp/record/templates/model_card.md",
    "xgb_dp/record/templates/verification.schema.json",
    "_xgb_dp_door.py",
    "xgb_dp_door.pth",
    "_xgb_dp_xgboost/xgboost/__init__.py",
    "_xgb_dp_xgboost/xgboost/LICENSE",
    "_xgb_dp_xgboost/xgboost/lib/libxgboost.so",
    "xgb_dp.libs/libgomp-f9a9ad78.so.1.0.0",
    "xgb_dp-0.1.0.dist-info/licenses/LICENSE",
    "xgb_dp-0.1.0.dist-info/sboms/xgb-dp.cdx.json",
]
NAME = "xgb_dp-0.1.0-py3-none-manylinux_2_28_x86_64.whl"


@pytest.fixture(scope="module")
def check() -> ModuleType:
    return script("tools/check_wheel.py")


@pytest.fixture(scope="module")
def trial() -> ModuleType:
    return script("tools/try_wheel.py")


def wheel(folder: Path, files: list[str], name: str = NAME) -> Path:
    path = folder / name
    with zipfile.ZipFile(path, "w") as archive:
        for file in files:
            archive.writestr(file, b"content")
    return path


def test_a_good_wheel(check, tmp_path, capsys):
    assert check.main([str(wheel(tmp_path, GOOD))]) == 0
    assert "well" in capsys.readouterr().out


@pytest.mark.parametrize("lost", GOOD)
def test_something_is_missing(check, tmp_path, lost):
    assert len(check.faults(wheel(tmp_path, [f for f in GOOD if f != lost]))) == 1


@pytest.mark.parametrize(
    "more",
    [
        "xgboost/__init__.py",
        "tests/test_x.py",
        "_xgb_dp_xgboost/xgboost/lib/x.a",
        "_xgb_dp_xgboost/xgboost/lib/libxgboost.so.3.4.1",  # a link of a build, copied
        "_xgb_dp_xgboost/xgboost/lib/libxgboost.3.dylib",
    ],
)
def test_something_is_too_much(check, tmp_path, more):
    assert len(check.faults(wheel(tmp_path, [*GOOD, more]))) == 1


def test_a_wheel_for_this_machine_only(check, tmp_path, capsys):
    path = wheel(tmp_path, GOOD, "xgb_dp-0.1.0-py3-none-linux_x86_64.whl")
    assert check.main([str(path)]) == 1
    assert "make release-wheel" in capsys.readouterr().out


def test_damage_and_size(check, tmp_path, monkeypatch):
    path = wheel(tmp_path, GOOD)
    monkeypatch.setattr(check, "MOST_BYTES", 10)
    assert "larger" in check.faults(path)[0]
    monkeypatch.setattr(check, "MOST_BYTES", 1 << 20)
    raw = bytearray(path.read_bytes())
    raw[raw.index(b"content")] ^= 1
    path.write_bytes(raw)
    assert "damaged" in check.faults(path)[0]


def test_interpreters_are_found_once_each(trial, monkeypatch):
    version = platform.python_version()
    assert trial.interpreters([sys.executable, sys.executable]) == {version: sys.executable}
    with pytest.raises(trial.TrialError, match="no-such-python does not start"):
        trial.interpreters([sys.executable, "no-such-python"])
    monkeypatch.setattr(trial, "candidates", lambda: ["no-such-python", sys.executable])
    assert trial.interpreters([]) == {version: sys.executable}
    monkeypatch.setattr(trial, "candidates", lambda: ["no-such-python"])
    with pytest.raises(trial.TrialError, match="PYTHONS="):
        trial.interpreters([])


def test_a_trial_fails_if_a_command_does(trial, tmp_path, monkeypatch, capsys):
    path = str(wheel(tmp_path, GOOD))
    here = ["--pythons", sys.executable]

    def step(code: str) -> None:
        command = [sys.executable, "-c", code]
        monkeypatch.setattr(trial, "try_wheel", lambda *_: trial.run(command, tmp_path))

    step("print('all is well')")
    assert trial.main([path, *here]) == 0
    assert "all is well" in capsys.readouterr().out
    step("print('the reason'); raise SystemExit(3)")
    assert trial.main([path, *here]) == 1
    assert "the reason" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        trial.main([path + ".missing", *here])


def test_only_the_environment_is_on_the_path(trial, tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    bare = trial.bare_environment(tmp_path)
    assert bare["PATH"] == str(tmp_path / trial.BIN)
    assert "PYTHONPATH" not in bare
