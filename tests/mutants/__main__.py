"""Command ``python -m tests.mutants``: plant mistakes in clients of the kernel, and judge claims.

For each mistake a process trains models of twelve kinds. What they claim is computed without the
mistake, and compared with what was drawn. None may claim less.
"""

import argparse
import importlib
import json
import multiprocessing
import os
import random
import signal
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any

from .battery import DELTA, run
from .judge import verdict
from .plant import Mistake, install, mistakes_of

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "xgb_dp"
CLIENTS = (
    "budget/*.py", "calibrate.py", "planning.py", "published/*.py", "request/*.py", "training/*.py",
)  # fmt: skip
"""Clients that a training comes through."""
PARSER = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
PARSER.add_argument("--count", type=int, default=300, help="mistakes (300)")
PARSER.add_argument("--seed", type=int, default=0, help="of their choice (0)")
PARSER.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes")
PARSER.add_argument("--file", type=Path, help="a line for each mistake")
_LIMIT = 600  # seconds of one process
FORK = multiprocessing.get_context("fork")
Verdict = tuple[str, str, float, float]


def preload() -> None:
    """Import what processes with a mistake need beside the package, so that they start at once."""
    for name in ("numpy", "scipy.stats", "pandas", "sklearn.base", "dp_accounting.pld"):
        importlib.import_module(name)


def modules() -> dict[str, Path]:
    """Modules of clients that are no part of the kernel, by name."""
    page = (ROOT / "docs" / "kernel.md").read_text(encoding="utf-8")
    out = {}
    for pattern in CLIENTS:
        for path in sorted(PACKAGE.glob(pattern)):
            name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
            if f"`{path.relative_to(ROOT).as_posix()}`" not in page:
                out[name.removesuffix(".__init__")] = path
    return out


def covered(folder: Path, files: Iterable[Path]) -> dict[str, set[int]]:
    """Lines of each file that the trainings run, without any mistake."""
    lines: dict[str, set[int]] = {}
    required = set(map(str, files))

    def trace(frame: Any, event: str, arg: Any) -> Any:
        name = frame.f_code.co_filename
        if name not in required:
            return None
        lines.setdefault(name, set()).add(frame.f_lineno)
        return trace

    threading.settrace(trace)
    sys.settrace(trace)
    run(folder)
    sys.settrace(None)
    return lines


def _child(mistake: Mistake | None, folder: Path, files: Iterable[Path]) -> None:
    """What a process with a mistake does; it ends by itself, however the mistake goes wrong."""
    signal.alarm(_LIMIT)
    with open(os.devnull, "w", encoding="utf-8") as nowhere:
        os.dup2(nowhere.fileno(), 1)
        os.dup2(nowhere.fileno(), 2)
    if mistake is None:
        lines = {name: sorted(numbers) for name, numbers in covered(folder, files).items()}
        (folder / "lines").write_text(json.dumps(lines))
        return
    install(mistake, modules()[mistake.module])
    run(folder)


def in_process(
    mistake: Mistake | None, folder: Path, files: Mapping[str, Path] | None = None
) -> None:
    """Run the trainings in a process of their own, which has not imported the package.

    Without a mistake it writes down which lines of the files are run, by default those of clients.
    """
    required = list((modules() if files is None else files).values())
    # A fork is faster, where it has not imported the package.
    context: Any = multiprocessing.get_context("spawn") if "xgb_dp" in sys.modules else FORK
    child = context.Process(target=_child, args=(mistake, folder, required))
    child.start()
    child.join()


def _judge(mistake: Mistake | None, folder: Path) -> None:
    """Train with a mistake, and judge without it: in a process that ends afterwards."""
    in_process(mistake, folder)
    verdicts = [(p.stem, *verdict(p, DELTA)) for p in sorted(folder.glob("*.json"))]
    (folder / "verdicts").write_text(json.dumps(verdicts))


def judged(mistakes: Sequence[Mistake | None], jobs: int) -> Iterator[tuple[Any, list[Verdict]]]:
    """The verdict of each kind of training, for each mistake, as they come."""
    waiting = list(mistakes)[::-1]
    running: list[tuple[Any, Mistake | None, tempfile.TemporaryDirectory[str]]] = []
    while waiting or running:
        while waiting and len(running) < jobs:
            folder = tempfile.TemporaryDirectory()
            mistake = waiting.pop()
            process = FORK.Process(target=_judge, args=(mistake, Path(folder.name)))
            process.start()
            running.append((process, mistake, folder))
        wait([process.sentinel for process, *_ in running])
        for one in [one for one in running if not one[0].is_alive()]:
            running.remove(one)
            _, mistake, folder = one
            yield mistake, json.loads((Path(folder.name) / "verdicts").read_text())
            folder.cleanup()


def _line(mistake: Mistake | None, verdicts: Sequence[Verdict]) -> str:
    counts = dict(Counter(output for _, output, *_ in verdicts))
    line = f"{mistake or 'no mistake'}: {counts}"
    for kind, output, claimed, least in verdicts:
        if output == "FALSE" or mistake is None:
            line += f"\n  {kind} {output}: claims {claimed:.4f}, costs at least {least:.4f}"
    return line


def main() -> int:
    """Plant the mistakes; 1 if a claim was false."""
    args = PARSER.parse_args()
    preload()
    with tempfile.TemporaryDirectory() as folder:
        in_process(None, Path(folder))
        lines = {k: set(v) for k, v in json.loads((Path(folder) / "lines").read_text()).items()}
    every = [
        mistake
        for module, path in modules().items()
        for mistake in mistakes_of(module, path, lines.get(str(path), set()))
    ]
    chosen = random.Random(args.seed).sample(every, min(args.count, len(every)))
    print(f"{len(chosen)} of {len(every)} mistakes in {len(lines)} files", flush=True)
    total: Counter[str] = Counter()
    for mistake, verdicts in judged([None, *chosen], args.jobs):
        line = _line(mistake, verdicts)
        if args.file:
            with args.file.open("a", encoding="utf-8") as out:
                out.write(line + "\n")
        if mistake is None or "FALSE" in line:
            print(line, flush=True)
        total.update(output for _, output, *_ in verdicts)
    print(f"trainings: {dict(total)}")
    return 1 if total["FALSE"] else 0


if __name__ == "__main__":
    sys.exit(main())
