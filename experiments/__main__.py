"""``python -m experiments NAME``: run a table, resume it, print it beside the published figures.

``python -m experiments list`` names all tables, ``all`` runs them one after the other, and ``docs``
writes the rendered results into the pages that quote them. With ``--keep`` a finished table is also
written to ``experiments/results``, in the form that is committed.
"""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import sys
from pathlib import Path

from . import download, kept, render, runner, tables
from .core import Options, Table
from .store import read

ROOT = Path(__file__).resolve().parent.parent
# Audits, attacks, intervals and times have commands of their own, which write their pages. The list
# of what was tried is written by hand.
OTHERS = ("README.md", "audits.md", "coverage.md", "performance.md", "tried.md")
PAGES = (
    *(p for p in sorted((ROOT / "experiments/pages").glob("*.md")) if p.name not in OTHERS),
    ROOT / "README.md",
    ROOT / "docs/accuracy.md",
)
OUT = Path("build/tables")


def parser() -> argparse.ArgumentParser:
    """The command line."""
    out = argparse.ArgumentParser(prog="python -m experiments", description=__doc__)
    out.add_argument("name", choices=[*tables.NAMES, "all", "list", "docs"], metavar="NAME")
    out.add_argument("--seeds", type=int, help="number of splits, the table's by default")
    out.add_argument("--data", nargs="+", default=[], help="names of data sets, all by default")
    out.add_argument("--systems", nargs="+", default=[], help="names of systems, all by default")
    out.add_argument(
        "--epsilon",
        type=float,
        nargs="+",
        default=[],
        help="budgets, the table's by default; a negative one adds nothing",
    )
    out.add_argument("--rounds", type=int, help="rounds of `default`")
    out.add_argument("--set", nargs="+", default=[], help="parameters of `default`, key=value")
    out.add_argument("--size", default="", help="ROWSxCOLUMNS of generated data sets, or 'paper'")
    out.add_argument("--jobs", type=int, default=2, help="worker processes; 0 for one a core")
    out.add_argument("--threads", type=int, default=1, help="threads of each training")
    out.add_argument("--out", type=Path, default=OUT, help="folder of results, or a .csv file")
    out.add_argument("--redo", nargs="+", default=[], help="systems to run again")
    out.add_argument("--any-build", action="store_true", help="keep cells of other builds too")
    out.add_argument("--keep", action="store_true", help="write the results that are committed")
    out.add_argument("--limit", type=int, help="run at most so many cells now")
    out.add_argument("--download", action="store_true", help="fetch data that is not at hand")
    return out


def keep(table: Table, path: Path) -> None:
    """Write a table's results in the committed form, with what was run and its plot."""
    kept.write(render.RESULTS / path.name, table, read(path))
    for suffix in (".runs.json", ".png"):
        source = path.with_suffix(suffix)
        shutil.copyfile(source, render.RESULTS / source.name)


def main(argv: list[str] | None = None) -> int:
    """Run one table or all; print Markdown."""
    arguments = sys.argv[1:] if argv is None else argv
    args = parser().parse_args(arguments)
    if args.name == "list":
        for name in tables.NAMES:
            print(f"{name:18} {tables.get(name).title}")
        return 0
    if args.name == "docs":
        for page in PAGES:
            render.write_page(page)
        return 0
    if args.download:
        os.environ[download.SWITCH] = "1"
    options = Options(
        seeds=args.seeds,
        datasets=tuple(args.data),
        systems=tuple(args.systems),
        epsilons=tuple(e for e in args.epsilon if e > 0),
        rounds=args.rounds,
        size="1000000x400" if args.size == "paper" else args.size,
        extra=tuple(tuple(pair.split("=", 1)) for pair in args.set),
        threads=args.threads,
    )
    for name in tables.NAMES if args.name == "all" else [args.name]:
        table = tables.get(name, options.size)
        path = args.out if args.out.suffix == ".csv" else args.out / f"{name}.csv"
        store, absent = runner.run(
            table,
            options,
            path,
            shlex.join(["python", "-m", "experiments", *arguments]),
            jobs=args.jobs or os.cpu_count() or 1,
            redo=tuple(args.redo),
            any_build=args.any_build,
            limit=args.limit,
        )
        rows = list(store.rows.values())
        text = render.markdown(table, rows, absent)
        path.with_suffix(".md").write_text(text, encoding="utf-8")
        render.plot(table, rows, path.with_suffix(".png"))
        if args.keep:
            keep(table, path)
        print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
