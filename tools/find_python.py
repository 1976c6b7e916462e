"""Print an interpreter that a pinned upstream release runs on; nothing if there is none.

Usage: ``python tools/find_python.py VERSION``
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from fetch_upstream import find_release

NAMES = ("python3", "python3.14", "python3.13", "python3.12", "python3.11", "python3.10")
_ASK = "import sys; print(*sys.version_info[:2])"


def candidates() -> list[str]:
    """What may be an interpreter: the usual names on the path, then those that pyenv keeps."""
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    kept = sorted(map(str, (pyenv / "versions").glob("*/bin/python3")), reverse=True)
    return [path for name in NAMES if (path := shutil.which(name))] + kept


def find_python(version: str) -> str | None:
    """The first interpreter that starts and that this release runs on; None without any."""
    release = find_release(version)
    if release is None:
        return None
    for path in candidates():
        run = subprocess.run([path, "-c", _ASK], capture_output=True, text=True, check=False)
        numbers = run.stdout.split()  # nothing where the name stands for no installed interpreter
        if len(numbers) == 2 and release.runs_on((int(numbers[0]), int(numbers[1]))):
            return path
    return None


if __name__ == "__main__":
    print(find_python(sys.argv[1]) or "")
