"""`xgb-dp doctor` finds what is wrong with an installation."""

from __future__ import annotations

import os

import pytest
import xgboost as xgb

from xgb_dp.cli import doctor
from xgb_dp.engine import native


def statuses(found):
    return {c.name: c.status for c in found}


def test_this_installation_is_well():
    found = doctor.check_installation()
    assert {c.status for c in found} == {"ok"}, found
    assert {"library", "xgboost package", "entropy", "training"} <= set(statuses(found))


def test_stock_library(monkeypatch, capsys):
    monkeypatch.setattr(native, "is_dp_build", lambda: False)
    found = statuses(doctor.check_installation())
    assert found["library"] == found["training"] == "FAILED"
    assert doctor.main() == 1
    assert "pip uninstall" in capsys.readouterr().out


def test_stock_python_part(monkeypatch, tmp_path):
    for name in ("__init__.py", "training.py", "sklearn.py"):
        (tmp_path / name).write_text("# stock\n")
    monkeypatch.setattr(xgb, "__file__", str(tmp_path / "__init__.py"))
    assert statuses(doctor.check_installation())["xgboost package"] == "FAILED"


def test_other_owners_of_the_name(monkeypatch, tmp_path):
    class Stock:
        metadata = {"Name": "xgboost-cpu"}  # noqa: RUF012

    monkeypatch.setattr(doctor.metadata, "distributions", lambda: [Stock()])
    found = {c.name: c for c in doctor.check_installation()}
    assert found["other installs"].status == "FAILED"
    assert "pip uninstall -y xgboost-cpu" in found["other installs"].found


def test_another_copy_on_the_path(monkeypatch, tmp_path):
    (tmp_path / "xgboost").mkdir()
    (tmp_path / "xgboost" / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    found = {c.name: c for c in doctor.check_installation()}
    assert found["import path"].status == "warning"
    assert str(tmp_path) in found["import path"].found


def test_another_copy_of_the_package(monkeypatch):
    monkeypatch.setattr(doctor.metadata, "version", lambda name: "0.0.1")
    found = {c.name: c for c in doctor.check_installation()}
    assert found["xgb-dp"].status == "FAILED"


@pytest.mark.skipif(not hasattr(os, "getrandom"), reason="no getrandom(2) on this system")
def test_entropy_that_is_not_ready(monkeypatch):
    def blocked(*_):
        raise BlockingIOError

    monkeypatch.setattr(os, "getrandom", blocked)
    assert statuses(doctor.check_installation())["entropy"] == "FAILED"


def test_random_bytes_that_repeat(monkeypatch):
    monkeypatch.setattr(os, "urandom", lambda n: bytes(range(n)))
    assert statuses(doctor.check_installation())["entropy"] == "FAILED"


def test_noise_that_repeats(monkeypatch):
    class Same:
        def get_dump(self):
            return ["the same tree"]

        def __getattr__(self, name):
            return getattr(self.real, name)

    real = xgb.train

    def train(*args, **kwargs):
        Same.real = real(*args, **kwargs)
        return Same.real

    monkeypatch.setattr(xgb, "train", train)
    monkeypatch.setattr(xgb.Booster, "get_dump", lambda self: ["the same tree"])
    assert statuses(doctor.check_installation())["training"] == "FAILED"


def test_a_check_that_raises_has_failed(monkeypatch):
    def broken():
        raise OSError("no such device")

    monkeypatch.setattr(doctor, "_entropy", broken)
    found = doctor.check_installation()
    assert any(c.status == "FAILED" and "no such device" in c.found for c in found)
