"""Run code with the unmodified upstream wheel, in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy

from tests.upstream.pinned import ROOT, fetch_upstream


def stock_folder() -> Path:
    """The private folder into which `make test` puts the stock wheel."""
    default = ROOT / "build" / f"stock-{fetch_upstream.read_upstream().version}"
    folder = Path(os.environ.get("XGB_DP_STOCK", default))
    assert (folder / "xgboost").is_dir(), f"no stock xgboost in {folder}: run `make test`"
    return folder


def stock_environment() -> dict[str, str]:
    """Environment in which ``python -S`` sees the stock `xgboost` and none of our packages."""
    site_packages = Path(numpy.__file__).parent.parent
    path = os.pathsep.join([str(stock_folder()), str(site_packages)])
    return {**os.environ, "PYTHONPATH": path}


def run_stock(code: str, *arguments: str) -> str:
    """Standard output of Python code that sees the stock `xgboost` and neither of our packages.

    The environment's other packages stay importable. ``-S`` keeps the finder of an editable install
    from putting our `xgboost` first.
    """
    run = subprocess.run(
        [sys.executable, "-S", "-c", code, *arguments],
        cwd=stock_folder(),
        env=stock_environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    return run.stdout
