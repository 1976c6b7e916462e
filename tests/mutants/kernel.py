"""Command ``python -m tests.mutants.kernel``: plant mistakes in the kernel; the suite finds them.

Each mistake is in a line that a training runs. The tests of its room run until one fails. What no
test finds is printed, to be judged by a reader: some changes change nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from .__main__ import PACKAGE, ROOT, in_process
from .plant import Mistake, mistakes_of

PARSER = argparse.ArgumentParser(prog="python -m tests.mutants.kernel", description=__doc__)
PARSER.add_argument("--count", type=int, default=60, help="mistakes (60)")
PARSER.add_argument("--seed", type=int, default=0, help="of their choice (0)")
PARSER.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes")
TESTS = {
    "accounting": ("accounting", "sensitivity", "parameters/test_agreement.py", "books", "reports"),
    "record": ("accounting", "books", "reports", "parameters/test_agreement.py", "training"),
    "data": ("rows", "persons", "estimators"),
    "engine": ("noise", "books", "rows", "reports", "training"),
    "noisy_sums": ("evaluation", "discovery", "selection"),
    "errors": ("books", "rows"),
}
"""Tests of each room of the kernel, those that are likeliest to find a mistake first."""


def modules() -> dict[str, Path]:
    """Modules of the kernel, by name."""
    page = (ROOT / "docs" / "kernel.md").read_text(encoding="utf-8")
    names = re.findall(r"^- `(xgb_dp/[^`]+\.py)`", page, re.M)
    return {
        name.removesuffix(".py").removesuffix("/__init__").replace("/", "."): ROOT / name
        for name in names
    }


def finder(mistake: Mistake) -> str | None:
    """The test that finds a mistake; None where none does."""
    path = modules()[mistake.module]
    room = mistake.module.split(".")[1]
    given = json.dumps({"mistake": vars(mistake), "path": str(path)})
    for tests in TESTS[room]:
        command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "tests.mutants.planted"]
        run = subprocess.run(
            [*command, "-p", "no:cacheprovider", f"tests/{tests}"],
            cwd=ROOT,
            env={**os.environ, "XGB_DP_MISTAKE": given},
            capture_output=True,
            text=True,
            check=False,
        )
        if run.returncode not in (0, 5):
            failed = re.findall(r"^(?:FAILED|ERROR) (\S+)", run.stdout, re.M)
            return failed[0] if failed else f"{tests} cannot be imported"
    return None


def main() -> int:
    """Plant the mistakes; 1 if one was not found."""
    asked = PARSER.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        in_process(None, Path(folder), modules())
        lines = json.loads((Path(folder) / "lines").read_text())
    every = [
        mistake
        for module, path in modules().items()
        for mistake in mistakes_of(module, path, set(lines.get(str(path), ())))
    ]
    chosen = random.Random(asked.seed).sample(every, min(asked.count, len(every)))
    print(f"{len(chosen)} of {len(every)} mistakes in {PACKAGE.name}", flush=True)
    unseen = 0
    with ThreadPoolExecutor(asked.jobs) as pool:
        for mistake, test in zip(chosen, pool.map(finder, chosen), strict=True):
            unseen += test is None
            print(f"{mistake}: {test or 'NOT FOUND'}", flush=True)
    print(f"not found: {unseen}")
    return 1 if unseen else 0


if __name__ == "__main__":
    sys.exit(main())
