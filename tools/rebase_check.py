"""Try the patches and the plugin on another upstream release, and say what breaks.

Usage: ``python tools/rebase_check.py VERSION [--sdist FILE]`` (``make rebase-check VERSION=x``)

The release need not be pinned. Its source is downloaded, each patch of ``patches/series`` is tried
in order (in the words for that release, if there are any, else in those for the newest release that
we build on), and every file of ``plugin_cpp/`` goes through the first pass of a compiler against
its headers. Nothing is linked, and no meaning is compared: docs/following-upstream.md says what to
look at besides. The exit status is 0 only where nothing breaks.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import fetch_upstream
from fetch_upstream import PATCHES, ROOT, Upstream, UpstreamError
from plugin_compile import compile_all

_ERROR = re.compile(r"^(?P<file>\S+?):\d+:\d+: (?:fatal )?error: (?P<text>.*)$", re.MULTILINE)


def find_release(version: str) -> Upstream:
    """A release, pinned or not; an empty sha256 stands for any."""
    return fetch_upstream.find_release(version) or Upstream(
        fetch_upstream.read_releases()[-1].name, version, "", "3.10"
    )


def words_for(name: str, version: str) -> Path:
    """A patch for a release: its own words, else those of the newest release, else the shared."""
    newest = fetch_upstream.read_releases()[-1].version
    for folder in (PATCHES / version, PATCHES / newest):
        if (folder / name).is_file():
            return folder / name
    return PATCHES / name


def try_patches(version: str, tree: Path) -> list[tuple[str, str]]:
    """Apply what applies; every patch with what became of it.

    A fix that the newest release has by itself is left out.
    """
    results = []
    for name in fetch_upstream.read_names():
        patch = words_for(name, version)
        if not patch.is_file():
            continue
        try:
            output = fetch_upstream.apply_patch(patch, tree)
            result = "applies, at other lines" if "offset" in output else "applies"
        except UpstreamError as error:
            reasons = [line for line in str(error).splitlines() if line.startswith("error: patch")]
            result = "REJECTED " + "; ".join(r.removeprefix("error: ") for r in reasons)
        results.append((str(patch.relative_to(PATCHES)), result))
    return results


def describe(status: int, output: str) -> str:
    """The first errors of a compiler in one line; empty if there are none."""
    if status == 0:
        return ""
    errors = list(dict.fromkeys(match["text"] for match in _ERROR.finditer(output)))
    return "; ".join(errors[:3]) or output.strip()[-300:]


def main() -> int:
    """Command line entry; returns the exit status."""
    parser = argparse.ArgumentParser(description="Try patches and plugin on another release.")
    parser.add_argument("version", help="an upstream release, for example 3.4.1")
    parser.add_argument("--sdist", help="local copy of its source distribution")
    arguments = parser.parse_args()
    release = find_release(arguments.version)
    broken = 0
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        try:
            given = arguments.sdist or os.environ.get(fetch_upstream.SDIST_VARIABLE)
            sdist = Path(given) if given else fetch_upstream.download(release, folder)
            print(f"{release.name} {release.version}, sha256 {fetch_upstream.file_sha256(sdist)}")
            tree = folder / "source"
            fetch_upstream.unpack(release, sdist, tree)
        except (UpstreamError, OSError) as error:
            print(f"error: {error}", file=sys.stderr)
            return 2
        print("\nPatches")
        for name, result in try_patches(release.version, tree):
            broken += result.startswith("REJECTED")
            print(f"  {name}: {result}")
        print("\nFiles of the plugin that do not compile")
        results = compile_all(shlex.split(os.environ.get("CXX", "c++")), tree)
        failed = [(s, text) for s, status, output in results if (text := describe(status, output))]
        for source, text in failed:
            print(f"  {source.relative_to(ROOT)}: {text}")
        broken += len(failed)
        print(f"  {len(failed)} of {len(results)}")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
