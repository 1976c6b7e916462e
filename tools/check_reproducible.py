"""Build one working tree in two folders and compare what comes out, byte by byte.

Usage: ``python tools/check_reproducible.py [--library]`` (``make check-reproducible``)

The folders have names of different lengths. Without ``--library``, a few object files are compared,
of the plugin and of XGBoost, compiled as CMakeLists.txt says for releases; that takes two minutes.
With it, the whole library is built twice. The exit status is 0 only where all files are equal.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import fetch_upstream
from fetch_upstream import ROOT

PARTS = ("CMakeLists.txt", "cmake", "patches", "plugin_cpp", "tools")
OBJECTS = (
    "plugin_cpp/random/samplers.cc.o",
    "plugin_cpp/grow/page_file.cc.o",
    "plugin_cpp/plan/row_bound.cc.o",
    "plugin_cpp/loss/failure_times.cc.o",
    "dir/common/column_matrix.cc.o",
    "objxgboost.dir/Unity/unity_2_cxx.cxx.o",  # files are grouped on Linux only
)
LIBRARY = "libxgboost/lib/libxgboost.so"


def run(*words: str | Path) -> str:
    """Run a command that must succeed, and return what it printed.

    Another launcher than none could hand out what the first folder compiled.
    """
    environment = os.environ | {"CCACHE_DISABLE": "1", "LC_ALL": "C"}
    done = subprocess.run(
        list(map(str, words)), capture_output=True, text=True, check=False, env=environment
    )
    if done.returncode:
        raise RuntimeError(f"{' '.join(map(str, words))}\n{done.stdout[-2000:]}{done.stderr}")
    return done.stdout


def copy_tree(folder: Path) -> Path:
    """What a build reads of the working tree, in a folder."""
    folder.mkdir(parents=True)
    for part in PARTS:
        source = ROOT / part
        copy = shutil.copytree if source.is_dir() else shutil.copyfile
        copy(source, folder / part)
    return folder


def configure(tree: Path, sdist: str) -> Path:
    """The build folder of a tree, configured for a release."""
    out = tree / "out"
    run("cmake", "-G", "Ninja", "-S", tree, "-B", out, "-DXGB_DP_REPRODUCIBLE=ON",
        f"-DXGB_DP_UPSTREAM_SDIST={sdist}", f"-DPython3_EXECUTABLE={sys.executable}")  # fmt: skip
    return out


def objects_of(out: Path) -> list[str]:
    """The targets of the few objects."""
    names = [
        line.split(":")[0] for line in run("ninja", "-C", out, "-t", "targets", "all").split("\n")
    ]
    objects = [name for name in names if name.endswith(OBJECTS) and "objxgboost" in name]
    if len(objects) != len(OBJECTS):
        raise RuntimeError(f"{len(objects)} of {len(OBJECTS)} objects are in the build: {objects}")
    return objects


def main() -> int:
    """Command line entry; returns the exit status."""
    parser = argparse.ArgumentParser(description="Build twice, and compare.")
    parser.add_argument("--library", action="store_true", help="the whole library, not a few files")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        trees = [copy_tree(Path(scratch) / name) for name in ("one", "another-folder/below")]
        kept = Path(scratch) / "kept"
        kept.mkdir()
        upstream = fetch_upstream.read_upstream()
        given = os.environ.get(fetch_upstream.SDIST_VARIABLE)
        sdist = str(fetch_upstream.obtain_sdist(upstream, kept, given))
        sums: list[dict[str, str]] = []
        for tree in trees:
            out = configure(tree, sdist)
            names = objects_of(out)
            run("cmake", "--build", out, "--target", *(["xgboost"] if arguments.library else names))
            if arguments.library:
                names = [LIBRARY]
            sums.append({name: fetch_upstream.file_sha256(out / name) for name in names})
    different = [name for name, digest in sums[0].items() if sums[1].get(name) != digest]
    for name, digest in sums[0].items():
        print(f"{'DIFFERENT' if name in different else 'equal'} {digest} {name}")
    return 1 if different or not all(sums[0].values()) else 0


if __name__ == "__main__":
    sys.exit(main())
