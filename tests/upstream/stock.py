"""The pinned releases: what builds took of them, and code that runs with their stock wheels."""

import os
import subprocess
import sys
from pathlib import Path

import numpy

from tests.children import LIGHT
from tests.scripts import ROOT, script

fetch_upstream = script("tools/fetch_upstream.py")
PINNED = fetch_upstream.read_upstream().version
# The releases whose stock wheel runs on this Python.
STOCK_VERSIONS = [release.version for release in fetch_upstream.runnable_releases()]


def upstream_folders() -> list[Path]:
    """Where builds keep what they took from upstream; that of `make build UPSTREAM=x` is deeper."""
    return sorted([*ROOT.glob("build/*/upstream"), *ROOT.glob("build/upstream-*/*/upstream")])


def pinned_sdist() -> Path:
    """The sdist that the build downloaded and checked."""
    upstream = fetch_upstream.read_upstream()
    for folder in upstream_folders():
        path = folder / upstream.sdist_name
        if fetch_upstream.file_sha256(path) == upstream.sha256:
            return path
    raise AssertionError("the build folder holds no copy of the pinned sdist: run `make build`")


def stock_folder(version: str = PINNED) -> Path:
    """The private folder into which `make test` puts the stock wheel of a release."""
    folder = Path(os.environ.get("XGB_DP_STOCK", ROOT / "build" / f"stock-{PINNED}"))
    folder = folder.with_name(f"stock-{version}")
    assert (folder / "xgboost").is_dir(), f"no stock xgboost in {folder}: run `make test`"
    return folder


def stock_environment(version: str = PINNED) -> dict[str, str]:
    """Environment in which ``python -S`` sees the stock `xgboost` and none of our packages."""
    site_packages = Path(numpy.__file__).parent.parent
    path = os.pathsep.join([str(stock_folder(version)), str(site_packages)])
    return {**os.environ, "PYTHONPATH": path}


def run_stock(code: str, *arguments: str, version: str = PINNED, light: bool = True) -> str:
    """Standard output of Python code that sees the stock `xgboost` and neither of our packages.

    `version` names the release. The environment's other packages stay importable, all but those
    that take long to import where it is `light`. ``-S`` keeps the finder of an editable install
    from putting our `xgboost` first.
    """
    run = subprocess.run(
        [sys.executable, "-S", "-c", (LIGHT if light else "") + code, *arguments],
        cwd=stock_folder(version),
        env=stock_environment(version),
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    return run.stdout
