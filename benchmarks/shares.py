"""Where the time of private training goes, by the monitors that verbosity 3 shows.

    make bench                                              # after the tables of bench.py
    .venv/bin/python -m benchmarks.shares --repeats 3

Each training has a process of its own. Times are of the wall clock, of one thread unless told.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import time
from collections.abc import Sequence

import xgboost as xgb

from benchmarks.bench import CASES, COMMON, METHODS, Clock, make_data, run_python, spread

# What private training does besides what any training does, by monitor; and the rest of it.
PRIVATE_WORK = {
    "setup": "calibration",
    "Checks": "checks of the rows",
    "Candidates": "candidates: counts, noise and cuts",
    "Gradients": "gradients to the integer grid",
    "Splits": "utilities and choice of splits",
    "Leaves": "noise and shrinkage of leaves",
}
COMMON_WORK = {
    "Bins": "binning",
    "Histograms": "histograms, and rows to their nodes",
    "Positions": "rows to their leaves",
    "rest": "the rest of XGBoost: gradients, predictions",
}


def train(method: str, rows: int, rounds: int, threads: int) -> None:
    """One training, in this process. Monitors tell what they measured when the model is freed."""
    X, y = make_data(CASES["dense"], rows)
    d = xgb.DMatrix(X, y, nthread=threads)
    params = {**COMMON, **METHODS[method], "max_depth": 6, "nthread": threads, "verbosity": 3}
    clock = Clock()
    start = time.perf_counter()
    xgb.train(params, d, rounds, callbacks=[clock])
    print(
        json.dumps({"setup": clock.start - start, "whole": time.perf_counter() - start}), flush=True
    )


def read_monitors(lines: Sequence[str]) -> dict[str, float]:
    """Seconds of each kind of work, from the output at verbosity 3; of the last training only."""
    matches = (re.search(r"\b(\w+): ([0-9.e-]+)s, \d+ calls", line) for line in lines)
    names = {**PRIVATE_WORK, **COMMON_WORK}
    return {match[1]: float(match[2]) for match in matches if match and match[1] in names}


def measure(**job: str | int) -> dict[str, float]:
    """Seconds of each kind of work; the arguments are those of :func:`train`."""
    command = ["-m", "benchmarks.shares", "--job", json.dumps(job)]
    lines = run_python(command, int(job["threads"]), stderr=subprocess.STDOUT)
    reported = json.loads(next(line for line in lines if line.startswith('{"setup"')))
    parts = {"setup": reported["setup"], **read_monitors(lines)}
    rest = reported["whole"] - sum(parts.values())
    return {**parts, "rest": rest, "whole": reported["whole"]}


def table(runs: Sequence[dict[str, float]]) -> str:
    """Shares of the whole training: median, least and greatest."""

    def cells(names: Sequence[str]) -> str:
        return spread([100 * sum(r.get(n, 0.0) for n in names) / r["whole"] for r in runs], 1)

    lines = ["| work | % of the time |", "|---|---|"]
    lines += [f"| {words} | {cells([name])} |" for name, words in PRIVATE_WORK.items()]
    lines.append(f"| **all that is for privacy** | **{cells(list(PRIVATE_WORK))}** |")
    lines += [f"| {words} | {cells([name])} |" for name, words in COMMON_WORK.items()]
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--method", default="dp_hist, its default of 64 bins", choices=METHODS)
    parser.add_argument("--rows", type=int, default=CASES["dense"].rows)
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--job", type=json.loads, help=argparse.SUPPRESS)
    args = parser.parse_args(arguments)
    if args.job:
        train(**args.job)
        return
    job = {k: getattr(args, k) for k in ("method", "rows", "rounds", "threads")}
    print(table([measure(**job) for _ in range(args.repeats)]))


if __name__ == "__main__":
    main()
