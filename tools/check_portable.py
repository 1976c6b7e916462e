"""Compile the plugin for every system that it is meant for, and count a warning as a fault.

Usage: ``python tools/check_portable.py FOLDER [--compilers NAME ...]`` (``make check-portable``)

Every file of ``plugin_cpp/`` goes through the first pass of GCC, Clang, MinGW-w64 (Windows) and GCC
for 64-bit ARM, against the headers of the pinned upstream release, which is unpacked and patched in
``FOLDER``. Nothing is linked. The exit status is 0 only where all compilers are there and none of
them says anything.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import fetch_upstream
from plugin_compile import ROOT, compile_all

# What CMakeLists.txt compiles the plugin with, and warnings as there.
OPTIONS = (
    *("-Wall", "-Wextra", "-O2", "-fPIC"),
    *("-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math"),
)


@dataclass(frozen=True)
class Compiler:
    """A compiler for one system.

    Attributes:
        name: What the user calls it.
        command: Names to look for on the path, the first that is there.
        package: What brings it, on Debian.
    """

    name: str
    command: tuple[str, ...]
    package: str

    def find(self) -> str | None:
        """Path of the compiler; None without one."""
        return next((path for name in self.command if (path := shutil.which(name))), None)


COMPILERS = (
    Compiler("gcc", ("g++",), "g++"),
    Compiler("clang", ("clang++",), "clang libomp-dev"),
    Compiler(
        "mingw",
        ("x86_64-w64-mingw32-g++-posix", "x86_64-w64-mingw32-g++"),
        "g++-mingw-w64-x86-64-posix",
    ),
    Compiler("aarch64", ("aarch64-linux-gnu-g++",), "g++-aarch64-linux-gnu"),
)


def check(compiler: Compiler, tree: Path) -> list[str]:
    """What one compiler finds fault with; nothing if all is well."""
    path = compiler.find()
    if path is None:
        return [f"no {compiler.command[0]} on the path: apt install {compiler.package}"]
    return [
        f"{source.relative_to(ROOT)}: exit status {status}\n{output.strip()}"
        for source, status, output in compile_all([path], tree, OPTIONS)
        if status != 0 or output.strip()
    ]


def main() -> int:
    """Command line entry; returns the exit status."""
    parser = argparse.ArgumentParser(description="Compile the plugin for every system.")
    parser.add_argument("folder", type=Path, help="where upstream's source is unpacked")
    names = [compiler.name for compiler in COMPILERS]
    parser.add_argument("--compilers", nargs="+", choices=names, default=names)
    arguments = parser.parse_args()
    given = os.environ.get(fetch_upstream.SDIST_VARIABLE)
    try:
        tree = fetch_upstream.make_tree(arguments.folder, given)
    except (fetch_upstream.UpstreamError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    n_faults = 0
    for compiler in COMPILERS:
        if compiler.name not in arguments.compilers:
            continue
        faults = check(compiler, tree)
        n_faults += len(faults)
        print(f"{compiler.name}: {'no warnings' if not faults else f'{len(faults)} faults'}")
        for fault in faults:
            print(f"  {fault}")
        sys.stdout.flush()
    return 1 if n_faults else 0


if __name__ == "__main__":
    sys.exit(main())
