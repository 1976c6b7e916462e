"""Command ``python -m tests.mutants.kernel``: plant mistakes in the kernel; the suite finds them.

``--record`` runs tests once, and writes into a folder which lines of the kernel each of them runs.
Afterwards each mistake is looked for by the tests that run its line, the short and special ones
first, until one fails. What no test finds is printed, to be judged by a reader: some changes change
nothing.
"""

import argparse
import json
import os
import random
import re
import resource
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from .__main__ import FORK, ROOT, preload
from .plant import Mistake, install, mistakes_of
from .recording import Recorder

PARSER = argparse.ArgumentParser(prog="python -m tests.mutants.kernel", description=__doc__)
PARSER.add_argument("folder", type=Path, help="of the record, outside the tree")
PARSER.add_argument("--record", nargs="+", metavar="TESTS", help="record these files and folders")
PARSER.add_argument("--count", type=int, default=60, help="mistakes (60)")
PARSER.add_argument("--seed", type=int, default=0, help="of their choice (0)")
PARSER.add_argument("--module", default="", help="only in modules whose name starts like this")
PARSER.add_argument("--seconds", type=float, default=30.0, help="of tests for one mistake (30)")
PARSER.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes")
_LIMIT = 120  # seconds of computing: a mistake may be an endless loop
Record = Sequence[dict[str, Any]]


def modules() -> dict[str, Path]:
    """Modules of the kernel, by name."""
    page = (ROOT / "docs" / "kernel.md").read_text(encoding="utf-8")
    names = re.findall(r"^- `(xgb_dp/[^`]+\.py)`", page, re.M)
    return {
        name.removesuffix(".py").removesuffix("/__init__").replace("/", "."): ROOT / name
        for name in names
    }


def _child(log: Path, mistake: Mistake | None, tests: Sequence[str], plugins: list[object]) -> None:
    """What a process does that runs tests: it ends by itself, however the mistake goes wrong."""
    with log.open("w", encoding="utf-8") as out:
        os.dup2(out.fileno(), 1)
        os.dup2(out.fileno(), 2)
    if mistake is not None:
        resource.setrlimit(resource.RLIMIT_CPU, (_LIMIT, _LIMIT))
        install(mistake, modules()[mistake.module])
    first = [] if mistake is None else ["-x"]
    status = pytest.main(["-q", "-p", "no:cacheprovider", *first, *tests], plugins)
    sys.stdout.flush()
    os._exit(status)


def in_process(
    tests: Sequence[str], mistake: Mistake | None = None, plugins: Sequence[object] = ()
) -> tuple[int, str]:
    """Run tests in a process of their own, and give its status and what it has printed."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        child = FORK.Process(target=_child, args=(log, mistake, tests, list(plugins)))
        child.start()
        child.join()
        return child.exitcode or 0, log.read_text(encoding="utf-8")


def record(folder: Path, tests: str) -> str:
    """Write down which lines some tests run; how the tests went."""
    files = {str(path) for path in modules().values()}
    recorder = Recorder(files, folder / (tests.replace("/", "-") + ".json"))
    return f"{tests}: {in_process([tests], plugins=[recorder])[1].splitlines()[-1]}"


def chosen_tests(tests: Record, mistake: Mistake, seconds: float) -> list[str]:
    """The tests that run the line of a mistake, the short and special ones first.

    A line that no test runs is one of an import, or unreachable: then all that run the module.
    """
    path = str(modules()[mistake.module])
    runs = [test for test in tests if mistake.line in test["lines"].get(path, ())]
    runs = runs or [test for test in tests if path in test["lines"]]
    runs.sort(key=lambda test: (test["seconds"] + 0.01) * sum(map(len, test["lines"].values())))
    out, total = [], 0.0
    for test in runs:
        if out and total + test["seconds"] > seconds:
            continue  # a long one; shorter ones may follow
        total += test["seconds"]
        out.append(test["test"])
    return out


def finder(tests: Sequence[str], mistake: Mistake) -> str | None:
    """The test that finds a mistake; None where none does."""
    status, text = in_process(tests, mistake) if tests else (0, "")
    if status == 0:
        return None
    failed = re.findall(r"^(?:FAILED|ERROR) (\S+)", text, re.M)
    return failed[0] if failed else f"pytest ends with {status}"


def _discovery(tests: Record, mistakes: Sequence[Mistake], seconds: float) -> None:
    """What one of several processes does; its status is 1 if a mistake was not found."""
    caught = True
    for mistake in mistakes:
        test = finder(chosen_tests(tests, mistake, seconds), mistake)
        caught = caught and test is not None
        print(f"{mistake}: {test or 'NOT FOUND'}", flush=True)
    sys.exit(not caught)


def main() -> int:
    """Record tests, or plant mistakes; 1 if one was not found."""
    args = PARSER.parse_args()
    preload()
    if args.record:
        for tests in args.record:
            print(record(args.folder, tests), flush=True)
        return 0
    known = [t for path in args.folder.glob("*.json") for t in json.loads(path.read_text())]
    every = [
        mistake
        for module, path in modules().items()
        if module.startswith(args.module)
        for mistake in mistakes_of(module, path, range(1, 1000))
    ]
    chosen = random.Random(args.seed).sample(every, min(args.count, len(every)))
    print(f"{len(chosen)} of {len(every)} mistakes", flush=True)
    parts = [chosen[i :: args.jobs] for i in range(args.jobs)]
    running = [FORK.Process(target=_discovery, args=(known, part, args.seconds)) for part in parts]
    for process in running:
        process.start()
    for process in running:
        process.join()
    return 1 if any(process.exitcode for process in running) else 0


if __name__ == "__main__":
    sys.exit(main())
