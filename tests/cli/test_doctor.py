"""`xgb-dp doctor` finds what is wrong with an installation."""

import base64
import hashlib
import importlib
import os
from pathlib import Path

import pytest
import xgboost as xgb

import xgb_dp
from xgb_dp.cli import doctor
from xgb_dp.engine import native


def statuses(checks):
    return {c.name: c.status for c in checks}


def test_this_installation_is_well():
    checks = doctor.check_installation()
    assert {c.status for c in checks} == {"ok"}, checks
    assert {"library", "xgboost package", "entropy", "training"} <= set(statuses(checks))


def test_stock_library(monkeypatch, capsys):
    monkeypatch.setattr(native, "is_dp_build", lambda: False)
    checks = statuses(doctor.check_installation())
    assert checks["library"] == checks["training"] == "FAILED"
    assert doctor.main() == 1
    assert "from xgb_dp import xgboost as xgb" in capsys.readouterr().out


def blocked(*_):
    raise BlockingIOError("no such device")


@pytest.mark.parametrize(
    ("where", "name", "value", "check", "says"),
    [
        (doctor, "_changed_files", lambda _: ["_xgb_dp_door.py"], "own files", "_xgb_dp_door.py"),
        (doctor.metadata, "version", lambda name: "0.0.1", "xgb-dp", "another copy"),
        (os, "urandom", lambda n: bytes(range(n)), "entropy", "twice"),
        (os, "getrandom", blocked, "entropy", "not initialised"),
        (doctor, "_entropy", blocked, "blocked", "no such device"),  # a check that raises
        (xgb.Booster, "get_dump", lambda self: ["the same tree"], "training", "the same noise"),
    ],
)
def test_each_fault_has_a_check(where, name, value, check, says, monkeypatch):
    if not hasattr(where, name):
        pytest.skip("no getrandom(2) on this system")
    monkeypatch.setattr(where, name, value)
    (failed,) = (c for c in doctor.check_installation() if c.status == "FAILED")
    assert failed.name == check and says in failed.found


def test_stock_python_part(monkeypatch, tmp_path):
    for name in ("__init__.py", "training.py", "sklearn.py"):
        (tmp_path / name).write_text("# stock\n")
    monkeypatch.setattr(xgb, "__file__", str(tmp_path / "__init__.py"))
    assert statuses(doctor.check_installation())["xgboost package"] == "FAILED"


def distribution(folder, name="xgboost", version="9.9"):
    package, info = folder / "xgboost", folder / f"{name}-{version}.dist-info"
    package.mkdir()
    info.mkdir()
    (package / "__init__.py").write_text("# stock\n")
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    digest = base64.urlsafe_b64encode(hashlib.sha256(b"# stock\n").digest()).decode().rstrip("=")
    (info / "RECORD").write_text(f"xgboost/__init__.py,sha256={digest},8\n{info.name}/RECORD,,\n")
    return package


def stock_check(folder, monkeypatch):
    monkeypatch.syspath_prepend(folder)
    (check,) = (c for c in doctor._beside())
    return check


@pytest.mark.parametrize("name", ["xgboost", "xgboost-cpu"])
def test_a_stock_package_beside(name, monkeypatch, tmp_path):
    package = distribution(tmp_path, name)
    check = stock_check(tmp_path, monkeypatch)
    assert check.status == "ok"
    assert f"{name} 9.9, in {package}" in check.found
    assert "until xgb_dp is imported" in check.found
    monkeypatch.setenv("XGB_DP_XGBOOST", "private")
    (check,) = doctor._beside()
    assert "XGB_DP_XGBOOST=private" in check.found


@pytest.mark.parametrize("damage", ["changed", "longer", "removed"])
def test_a_stock_package_whose_files_another_wheel_has(damage, monkeypatch, tmp_path):
    file = distribution(tmp_path) / "__init__.py"
    if damage == "removed":
        file.unlink()
    else:
        file.write_text("# other\n" if damage == "changed" else "# another one\n")
    check = stock_check(tmp_path, monkeypatch)
    assert check.status == "warning"
    assert "xgboost/__init__.py" in check.found
    assert "pip install --force-reinstall --no-deps xgboost==9.9" in check.found


def test_a_folder_on_the_path(monkeypatch, tmp_path):
    """It is no package until it has an `__init__.py`."""
    (tmp_path / "xgboost").mkdir()
    assert stock_check(tmp_path, monkeypatch).found.startswith("none")
    (tmp_path / "xgboost" / "__init__.py").touch()
    importlib.invalidate_caches()
    check = stock_check(tmp_path, monkeypatch)
    assert check.status == "ok"
    assert str(tmp_path) in check.found


def test_the_folder_is_that_of_the_package(monkeypatch):
    monkeypatch.setattr(doctor, "_version", lambda _: None)
    (check,) = (c.found for c in doctor._versions() if c.name == "xgb-dp")
    assert f" in {Path(xgb_dp.__file__).resolve().parent}, not" in check
