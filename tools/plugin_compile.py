"""Put files of the plugin through the first pass of a compiler, against upstream's headers.

Nothing is linked, and no object is written.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def plugin_sources() -> list[Path]:
    """Every file of the plugin that is compiled, in order."""
    return sorted(p for room in ("plugin_cpp", "tests/cpp") for p in (ROOT / room).rglob("*.cc"))


def compile_file(
    compiler: Sequence[str], source: Path, tree: Path, options: Sequence[str] = ()
) -> tuple[int, str]:
    """What a compiler says of one file.

    Args:
        compiler: The command and its first arguments.
        source: The file.
        tree: Upstream's source tree, as it is unpacked and patched. What its own headers are warned
            of is not said.
        options: More arguments, such as warnings.

    Returns:
        The exit status and what was printed.
    """
    cpp = tree / "cpp_src"
    folders = (cpp / "src", cpp / "include", cpp / "dmlc-core" / "include")
    command = [
        *compiler,
        *("-std=c++17", "-fsyntax-only", "-fopenmp", "-DDMLC_LOG_CUSTOMIZE=1", f"-I{ROOT}"),
        *(word for folder in folders for word in ("-isystem", str(folder))),
        *options,
        str(source),
    ]
    run = subprocess.run(
        command, capture_output=True, text=True, check=False, env={**os.environ, "LC_ALL": "C"}
    )
    return run.returncode, run.stderr


def compile_all(
    compiler: Sequence[str], tree: Path, options: Sequence[str] = ()
) -> list[tuple[Path, int, str]]:
    """What a compiler says of all files: each with its exit status and what was printed."""
    sources = plugin_sources()
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        output = list(pool.map(lambda s: compile_file(compiler, s, tree, options), sources))
    return [(source, *one) for source, one in zip(sources, output, strict=True)]
