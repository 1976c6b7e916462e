"""Run code with the unmodified upstream wheel, in a process of its own."""

import os
import subprocess
import sys
from pathlib import Path

import numpy

from tests.children import LIGHT
from tests.upstream.pinned import ROOT, fetch_upstream

PINNED = fetch_upstream.read_upstream().version
# The releases whose stock wheel runs on this Python.
STOCK_VERSIONS = [release.version for release in fetch_upstream.runnable_releases()]


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
