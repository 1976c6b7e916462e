"""Command ``python -m tests.audit``: run every audit, of this library and of broken trainers.

The exit status is 0 if no audit of this library shows a violation and every trainer broken on
purpose shows one.
"""

import sys
from pathlib import Path

from xgb_dp.audit.__main__ import audit_all, parser

from . import broken
from .cases import FAST, FULL, cases

BEGIN, END = "<!-- audit results: begin -->", "<!-- audit results: end -->"


def merged(old: str, new: str) -> str:
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


def write(page: Path, text: str, *, part: bool) -> None:
    """Replace the block of results in a page, or the lines of those that were run."""
    before, _, rest = page.read_text(encoding="utf-8").partition(BEGIN)
    old, end, after = rest.partition(END)
    if not end:
        raise SystemExit(f"{page} has no block between {BEGIN!r} and {END!r}.")
    text = merged(old, text) if part else text
    page.write_text(f"{before}{BEGIN}\n{text}\n{END}{after}", encoding="utf-8")


def main(arguments: list[str] | None = None) -> int:
    """Run the audits."""
    reader = parser("python -m tests.audit", __doc__)
    reader.add_argument(
        "--write",
        nargs="?",
        const=Path("experiments/pages/audits.md"),
        type=Path,
        metavar="PAGE",
        help="also replace the block of results in this page; with --only, those lines",
    )
    options = reader.parse_args(arguments)
    size = FAST if options.fast else FULL
    text, good = audit_all(cases(size), broken.cases(size), options.only)
    if options.write:
        write(options.write, text, part=bool(options.only))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
