"""Make a wheel that this machine built fit for others: ``python tools/repair_wheel.py WHEEL OUT``.

1. The OpenMP runtime moves into the wheel, and the tag names the oldest system that it runs on:
   auditwheel on Linux, delocate on macOS. On Windows all runtimes are linked into the library.
2. The tag names the oldest Python that the upstream release inside runs on, so that of two wheels
   of one version pip takes the newest that runs: ``py310`` or ``py312``.
3. A document says what the wheel is made of (`sbom.py`), in ``.dist-info/sboms/``.
4. All times are those of SOURCE_DATE_EPOCH, by default the first that an archive can hold.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import check_wheel
import fetch_upstream
import sbom

# The first that the format of archives can hold: the first of January 1980.
FIRST = "315532800"
_COPY: dict[str, list[str]] = {
    "linux": [sys.executable, "-m", "auditwheel", "repair", "-w"],
    "darwin": [sys.executable, "-m", "delocate.cmd.delocate_wheel", "-w"],
}


class RepairError(RuntimeError):
    """A wheel that cannot be repaired; the message says why."""


def run(command: Sequence[str | Path]) -> None:
    """Run a tool, with times fixed.

    Raises:
        RepairError: It ended with an error; the message holds what it said.
    """
    words = [str(word) for word in command]
    done = subprocess.run(
        words,
        env={**os.environ, "SOURCE_DATE_EPOCH": os.environ.get("SOURCE_DATE_EPOCH", FIRST)},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RepairError(f"{' '.join(words)}\n{done.stdout}{done.stderr}")


def only_wheel(folder: Path) -> Path:
    """The wheel of a folder, of which there must be one."""
    wheels = list(folder.glob("*.whl"))
    if len(wheels) != 1:
        raise RepairError(f"{len(wheels)} wheels came out of a tool that makes one.")
    return wheels[0]


def python_tag(version: str) -> str:
    """Tag of the oldest Python that a pinned release runs on, such as ``py312``."""
    return "py" + sbom.release_inside(version).python.replace(".", "")


def describe_and_tag(wheel: Path, out: Path, scratch: Path) -> Path:
    """Steps 2 to 4: the finished wheel in ``out``."""
    text = sbom.dump(sbom.make_document(wheel))
    wrong = sbom.check_document(text)
    if wrong is not None:
        raise RepairError(f"The document of {wheel.name} is not CycloneDX: {wrong}")
    tool: list[str | Path] = [sys.executable, "-m", "wheel"]
    run([*tool, "unpack", "-d", scratch, wheel])
    (tree,) = (path for path in scratch.iterdir() if path.is_dir())
    (info,) = tree.glob("*.dist-info")
    folder = info / "sboms"
    folder.mkdir(exist_ok=True)
    (folder / "xgb-dp.cdx.json").write_text(text, encoding="utf-8")
    version = (tree / sbom.VERSION).read_text(encoding="utf-8").strip()
    with tempfile.TemporaryDirectory(dir=scratch) as packed:
        run([*tool, "pack", "-d", packed, tree])
        one = only_wheel(Path(packed))
        run([*tool, "tags", "--remove", "--python-tag", python_tag(version), one])
        tagged = only_wheel(Path(packed))
        target = out / tagged.name
        os.replace(tagged, target)
    return target


def repair(wheel: Path, out: Path) -> Path:
    """Everything; returns the wheel that came out.

    Raises:
        RepairError: A tool failed, or the wheel is still not fit for others.
    """
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=out) as folder:
        copied, scratch = Path(folder) / "copied", Path(folder) / "scratch"
        copied.mkdir()
        scratch.mkdir()
        copy = _COPY.get(sys.platform)
        if copy:
            run([*copy, copied, wheel])
        done = describe_and_tag(only_wheel(copied) if copy else wheel, out, scratch)
    faults = check_wheel.faults(done)
    if faults:
        raise RepairError(f"{done.name}: {'; '.join(faults)}")
    return done


def main(arguments: Sequence[str] | None = None) -> int:
    """Command line entry; returns the exit status."""
    parser = argparse.ArgumentParser(description="Make a wheel fit for others.")
    parser.add_argument("wheel", type=Path)
    parser.add_argument("out", type=Path, help="folder of the wheel that comes out")
    given = parser.parse_args(arguments)
    try:
        done = repair(given.wheel.resolve(), given.out.resolve())
    except (RepairError, ValueError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(f"{done.name}, sha256 {fetch_upstream.file_sha256(done)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
