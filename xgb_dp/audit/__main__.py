"""Command ``python -m xgb_dp.audit``: attack trainings of this library, and print what that shows.

The exit status is 0 if no audit of this library shows a violation, and if the audit of a trainer
without noise shows one.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Callable, Iterable
from functools import partial

from ..engine import native
from ..engine.progress import progress
from ..errors import PrivacyWarning
from .bounds import AuditResult
from .suite import FAST, FULL, broken_cases, cases

Audits = Iterable[Callable[[], AuditResult]]


def parser(program: str, description: str | None) -> argparse.ArgumentParser:
    """The options that a choice of audits has."""
    options = argparse.ArgumentParser(prog=program, description=description)
    options.add_argument("--fast", action="store_true", help="fewer draws, within a minute")
    options.add_argument(
        "--only",
        action="append",
        default=[],
        metavar="TEXT",
        help="only audits with this in their name; may be repeated",
    )
    return options


def audit_all(sound: Audits, broken: Audits, only: list[str]) -> tuple[str, bool]:
    """The results as Markdown, and whether they are as claimed; loads the library first."""
    native.lib()
    start = time.perf_counter()
    of_sound, of_broken = _run(sound, only), _run(broken, only)
    parts = ["### This library", table(of_sound), "### Trainers broken on purpose"]
    text = "\n\n".join([*parts, table(of_broken)])
    good = not any(result.violated for result in of_sound)
    good &= all(result.violated for result in of_broken)
    print(text)
    print(f"{time.perf_counter() - start:.0f} s; {'as claimed' if good else 'NOT AS CLAIMED'}")
    return text, good


def table(results: list[AuditResult]) -> str:
    """Results as a Markdown table; negative bounds are shown as 0."""
    lines = [
        "| audited | statistic | draws | δ | claimed ε(δ) | lower bound | verdict |",
        "|---|---|--:|--:|--:|--:|---|",
    ]
    for r in results:
        figures = f"{r.draws:,} | {r.delta:g} | {r.claimed_epsilon:.3f}"
        bound = f"{max(r.lower_bound, 0.0):.3f}"
        lines.append(f"| {r.name} | {r.statistic} | {figures} | {bound} | {r.verdict} |")
    return "\n".join(lines)


def _run(audits: Audits, only: list[str]) -> list[AuditResult]:
    chosen = [a for a in audits if not only or any(text in name_of(a) for text in only)]
    results = []
    with warnings.catch_warnings(), progress("audit", len(chosen)) as step:
        warnings.filterwarnings("ignore", "These rows train", PrivacyWarning)  # again and again
        for number, audit in enumerate(chosen, 1):
            step(f"{number} of {len(chosen)}")
            start = time.perf_counter()
            result = audit()
            seconds = time.perf_counter() - start
            print(f"{seconds:6.1f} s  {result.verdict:12}  {result.name}", file=sys.stderr)
            results.append(result)
    return results


def name_of(audit: Callable[[], AuditResult]) -> str:
    """The name of a case, which is the first text among its arguments; empty where it has none."""
    if not isinstance(audit, partial):
        return ""
    arguments = [*audit.keywords.values(), *audit.args]
    return next((value for value in arguments if isinstance(value, str)), "")


def main(arguments: list[str] | None = None) -> int:
    """Run the audits."""
    options = parser("python -m xgb_dp.audit", __doc__).parse_args(arguments)
    size = FAST if options.fast else FULL
    _, good = audit_all(cases(size), broken_cases(size), options.only)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
