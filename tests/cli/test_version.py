"""`xgb-dp --version` names the loaded library, and says what to do where it is not ours."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import xgb_dp
from tests.children import light_environment
from tests.upstream.stock import stock_folder
from xgb_dp.cli import standalone
from xgb_dp.engine import native

from .calls import invoke

PACKAGE = Path(xgb_dp.__file__).resolve().parent


def test_the_private_build(capfd):
    import xgboost

    assert standalone.print_versions() == 0
    out = capfd.readouterr().out
    library = out.splitlines()[1].partition("private build: ")[2]
    assert f"xgb-dp {xgb_dp.__version__}, in {PACKAGE}\n" in out
    assert f"XGBoost {xgboost.__version__}, private build: {library}\n" in out
    assert Path(library).is_file()
    assert invoke("--version").exit_code == 0


def copied(folder: Path, path: str, absent: str) -> subprocess.CompletedProcess[str]:
    """The command of a copy that is not installed, with a folder more on the path."""
    shutil.copytree(PACKAGE, folder / "copy" / "xgb_dp")
    code = f"import sys; sys.modules[{absent!r}] = None; from xgb_dp.__main__ import main; main()"
    env = light_environment(folder) | {"PYTHONPATH": f"{folder / 'copy'}:{path}"}
    return subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code, "--version"],
        cwd=folder, env=env, capture_output=True, text=True, check=False,
    )  # fmt: skip


@pytest.mark.parametrize("damage", ["stock", "no library", "nothing"])
def test_without_the_private_build_the_remedy_is_said(damage, tmp_path):
    """A stock package has the name, or a package without its library, or none."""
    path = str(stock_folder()) if damage == "stock" else ""
    if damage == "no library":
        (tmp_path / "xgboost").mkdir()
        (tmp_path / "xgboost" / "__init__.py").write_text("raise OSError('libxgboost.so')\n")
        path = str(tmp_path)
    done = copied(tmp_path, path, "xgboost" if damage == "nothing" else "_xgb_dp_import_redirect")
    assert done.returncode == 1 and not done.stderr
    assert "private build:" not in done.stdout.replace("not the private build:", "")
    if damage == "stock":
        assert "not the private build" in done.stdout and str(stock_folder()) in done.stdout
        assert native.VARIABLE in done.stdout
    else:
        assert "pip install --force-reinstall --no-deps xgb-dp" in done.stdout


def test_stock_python_files_are_named(monkeypatch, capfd):
    monkeypatch.setattr(standalone, "files_are_private", lambda: False)
    assert standalone.print_versions() == 1
    assert "are from a stock wheel" in capfd.readouterr().out


def test_a_stock_package_beside(monkeypatch, capfd):
    monkeypatch.setattr(standalone, "stock_origin", lambda: "/somewhere/xgboost/__init__.py")
    assert standalone.print_versions() == 0
    assert "stock package in /somewhere/xgboost unless xgb_dp is imported" in capfd.readouterr().out
