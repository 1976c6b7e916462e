"""Command ``python -m xgb_dp.audit``: run every audit and print the results as Markdown.

The exit status is 0 if no audit of this library shows a violation and every trainer broken on
purpose shows one.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from ..engine import native
from ..engine.progress import progress
from .result import AuditResult, table
from .suite import FAST, FULL, cases

BEGIN, END = "<!-- audit results: begin -->", "<!-- audit results: end -->"


def _name_of(audit: Any) -> str:
    """The name of a case, which is among its arguments; empty where it has none."""
    own = [*getattr(audit, "keywords", {}).values(), *getattr(audit, "args", ())]
    return next((value for value in own if isinstance(value, str)), "")


def _run(audits: Iterable[Callable[[], AuditResult]], only: list[str]) -> list[AuditResult]:
    listed = [a for a in audits if not only or any(text in _name_of(a) for text in only)]
    results = []
    with progress("audit", len(listed)) as step:
        for number, audit in enumerate(listed, 1):
            step(f"{number} of {len(listed)}")
            start = time.perf_counter()
            result = audit()
            print(
                f"{time.perf_counter() - start:6.1f} s  {result.verdict:12}  {result.name}",
                file=sys.stderr,
            )
            results.append(result)
    return results


def _found(module: str) -> bool:
    """Whether the module can be imported; its parents may be missing too."""
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False


def _merged(old: str, new: str) -> str:
    """A block of results in which some lines are new: instead of those of their name."""
    head: list[str] = []
    fresh: dict[str, dict[str, str]] = {}
    for line in new.splitlines():
        if line.startswith("### "):
            head.append(line)
            fresh[line] = {}
        elif line.startswith("| ") and not line.startswith("| audited"):
            fresh[head[-1]][line.split("|")[1]] = line
    out: list[str] = []
    part: dict[str, str] = {}
    for line in [*old.splitlines(), "### "]:
        if line.startswith("### "):
            while out and not out[-1]:
                out.pop()
            out += [*part.values(), *([""] if out else [])]
            part = dict(fresh.get(line, {}))
        out.append(part.pop(line.split("|")[1], line) if line.startswith("| ") else line)
    return "\n".join(out[:-1]).strip()


def _write(page: Path, text: str, *, part: bool) -> None:
    before, _, rest = page.read_text(encoding="utf-8").partition(BEGIN)
    old, found, after = rest.partition(END)
    if not found:
        raise SystemExit(f"{page} has no block between {BEGIN!r} and {END!r}.")
    text = _merged(old, text) if part else text
    page.write_text(f"{before}{BEGIN}\n{text}\n{END}{after}", encoding="utf-8")


def main(arguments: list[str] | None = None) -> int:
    """Run the audits."""
    parser = argparse.ArgumentParser(prog="python -m xgb_dp.audit", description=__doc__)
    parser.add_argument("--fast", action="store_true", help="fewer draws, within a minute")
    parser.add_argument(
        "--broken",
        default="tests.audit.broken",
        metavar="MODULE",
        help="module whose cases(size) are broken trainers; skipped where it cannot be imported, "
        "as outside of the repository. 'none' for no such module",
    )
    parser.add_argument(
        "--only",
        action="append",
        default=[],
        metavar="TEXT",
        help="only audits with this in their name; may be repeated. The page keeps all others",
    )
    parser.add_argument(
        "--write",
        nargs="?",
        const=Path("docs/tables/audits.md"),
        type=Path,
        metavar="PAGE",
        help="also replace the block of results in this page",
    )
    options = parser.parse_args(arguments)
    native.lib()
    size, start = FAST if options.fast else FULL, time.perf_counter()
    real = _run(cases(size), options.only)
    parts = ["### This library", table(real)]
    good = not any(result.violated for result in real)
    if options.broken != "none" and _found(options.broken):
        broken = _run(importlib.import_module(options.broken).cases(size), options.only)
        parts += ["### Trainers broken on purpose", table(broken)]
        good &= all(result.violated for result in broken)
    else:
        print("The broken trainers are not available and were not audited.", file=sys.stderr)
    text = "\n\n".join(parts)
    print(text)
    if options.write:
        _write(options.write, text, part=bool(options.only))
    print(f"{time.perf_counter() - start:.0f} s; {'as claimed' if good else 'NOT AS CLAIMED'}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
