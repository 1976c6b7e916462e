"""What was built and installed: the wheel's content and the loaded library, or a stock one."""

import importlib
import json
import subprocess
import types
from importlib import metadata
from pathlib import Path

import pytest
import xgboost
import xgboost as xgb
from xgboost.core import _LIB

import xgb_dp
from tests.upstream.stock import fetch_upstream, run_stock, stock_folder, upstream_folders
from xgb_dp.engine import native
from xgb_dp.errors import NativeLibraryError


def test_library_and_package_lie_together():
    assert fetch_upstream.read_upstream().version == xgboost.__version__
    package = Path(xgboost.__file__).parent
    assert Path(_LIB._name).resolve().parent == (package / "lib").resolve()
    assert (package / "LICENSE").is_file()


def test_package_is_the_patched_one():
    package = Path(xgboost.__file__).parent
    built = [path / "source" for path in upstream_folders()]
    targets = {
        target
        for patch in fetch_upstream.read_series()
        for target in fetch_upstream.patch_targets(patch)
        if target.startswith("xgboost/")
    }
    for target in targets:
        installed = fetch_upstream.file_sha256(package.parent / target)
        assert installed in {fetch_upstream.file_sha256(tree / target) for tree in built}, target


def test_wheel_metadata():
    distribution = metadata.distribution("xgb-dp")
    assert distribution.version == "0.1.0"
    assert distribution.metadata["Requires-Python"] == ">=3.10"
    requires = distribution.requires or []
    assert {name for name in requires if "extra ==" not in name} == {"numpy", "scipy>=1.12"}
    extras = set(distribution.metadata.get_all("Provides-Extra") or [])
    assert {"test", "dev", "sklearn", "dask", "plot"} <= extras
    wheel = distribution.read_text("WHEEL") or ""
    assert "Tag: py3-none-" in wheel


def test_wheel_holds_our_packages_only():
    files = metadata.files("xgb-dp") or []
    commands = {path for path in files if path.parts[-2:-1] in (("bin",), ("Scripts",))}
    assert {path.stem for path in commands} == {"xgb-dp"}
    tops = {p.parts[0] for p in files if p not in commands and ".dist-info" not in p.parts[0]}
    # An editable install adds a finder for xgb_dp at the top level.
    own_files = {"_xgb_dp_xgboost", "_xgb_dp_import_redirect.py", "xgb_dp_import_redirect.pth"}
    assert own_files <= tops
    assert all(name.startswith(("xgb_dp", "_editable", "__pycache__")) for name in tops - own_files)
    suffixes = {path.suffix for path in files}
    assert not suffixes & {".h", ".hpp", ".cmake", ".a", ".pc", ".cc"}


def test_no_cpp_symbol_of_the_plugin_is_exported():
    exported = subprocess.run(
        ["nm", "-D", "--defined-only", "-C", _LIB._name], capture_output=True, text=True, check=True
    ).stdout
    assert "XGDPBuildInfo" in exported
    assert "xgboost::dp::" not in exported


def test_stock_wheel_is_the_unmodified_release():
    """`make test` puts the stock wheel beside ours; other tests load our models with it."""
    code = """
import json, xgboost
from xgboost.core import _LIB
print(json.dumps([xgboost.__version__, xgboost.__file__, hasattr(_LIB, "XGDPBuildInfo")]))
"""
    version, file, is_private_build = json.loads(run_stock(code))
    assert version == fetch_upstream.read_upstream().version
    assert Path(file).is_relative_to(stock_folder())
    assert not is_private_build


def test_the_private_build_is_loaded():
    assert xgb_dp.is_dp_build()
    assert json.loads(native.call_for_string("XGDPBuildInfo"))["name"] == "xgb-dp"
    assert xgb_dp.xgboost is xgb


@pytest.fixture
def stock(monkeypatch):
    """A library without the private symbols, as a stock wheel that took the package's place."""
    library = types.SimpleNamespace(path="site-packages/xgboost/lib/libxgboost.so")
    monkeypatch.setattr(native, "_raw", lambda: library)


def test_a_stock_build_says_how_to_fix(stock, params, matrix):
    assert not xgb_dp.is_dp_build()
    with pytest.raises(NativeLibraryError, match="Import xgb_dp first"):
        xgb.train(params(), matrix(), 2)
    with pytest.raises(NativeLibraryError, match="XGB_DP_XGBOOST=private"):
        _ = xgb_dp.xgboost
    with pytest.warns(RuntimeWarning, match="from xgb_dp import xgboost as xgb"):
        importlib.reload(xgb_dp)
