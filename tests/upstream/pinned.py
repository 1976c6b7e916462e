"""Access of the tests to `cmake/fetch_upstream.py`, which is a script and no package."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parents[2]


def _load() -> ModuleType:
    spec = importlib.util.spec_from_file_location(
        "fetch_upstream", ROOT / "cmake" / "fetch_upstream.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


fetch_upstream = _load()


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
