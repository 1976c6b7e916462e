"""What `tools/fetch_upstream.py` knows of the pinned releases, and what builds took of them."""

from pathlib import Path

from tests.scripts import script

ROOT = Path(__file__).resolve().parents[2]

fetch_upstream = script("tools/fetch_upstream.py")


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
