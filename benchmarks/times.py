"""Which part of the training time depends on the rows: the guarantee does not cover time.

    .venv/bin/python -m benchmarks.times

First the time of a draw of discrete Gaussian noise, which never sees the sum it is added to. Then
the time of whole trainings, by what differs between tables. Each training has a process of its own
with one thread. Tables show the shortest of several runs, since other programs only add time.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import xgboost as xgb

from benchmarks.bench import COMMON, DATA_SEED, METHODS, run_python
from benchmarks.shares import read_monitors
from xgb_dp.engine import native

COLUMNS = 20
# Monitors of XGBoost and the plugin, under the names of the table.
PHASES = {
    "checks, counts, bins": ("Checks", "Candidates", "Bins", "Gradients"),
    "histograms, positions": ("Histograms", "Positions"),
    "choice of splits": ("Splits",),
    "noise of leaves": ("Leaves",),
}


@dataclass(frozen=True)
class Table:
    """One training table.

    Attributes:
        rows: Number of rows.
        missing: Share of missing cells.
        signal: 0 for labels that no column predicts, else how clearly the first column does.
        per_person: Rows of each person; 0 trains without a privacy id.
    """

    rows: int = 100_000
    missing: float = 0.0
    signal: float = 1.0
    per_person: int = 0


START = Table()
TABLES = {
    **{f"{n:,} rows": replace(START, rows=n) for n in (0, 1_000, 10_000, 100_000, 1_000_000)},
    **{f"{100 * s:.0f}% of cells missing": replace(START, missing=s) for s in (0.5, 0.9)},
    "labels that no column predicts": replace(START, signal=0.0),
    "labels that a column predicts exactly": replace(START, signal=1000.0),
    "1 row per person": replace(START, per_person=1),
    "10 rows per person": replace(START, per_person=10),
}


def train(table: Table, rounds: int) -> None:
    """One training, in this process."""
    rng = np.random.default_rng(DATA_SEED)
    X = rng.standard_normal((table.rows, COLUMNS), dtype=np.float32)
    y = rng.random(table.rows) < 1 / (1 + np.exp(-np.clip(table.signal * X[:, 0], -50, 50)))
    X[rng.random(X.shape) < table.missing] = np.nan
    params: dict[str, Any] = {**COMMON, **METHODS["dp_hist, its default of 64 bins"]}
    params |= {"nthread": 1, "verbosity": 3}
    if table.per_person:
        params["dp_privacy_id"] = np.arange(table.rows) // table.per_person
    dtrain = xgb.DMatrix(X, y, nthread=1)
    xgb.train(params, dtrain, rounds)  # a first training also loads code and calibrates
    start = time.perf_counter()
    xgb.train(params, dtrain, rounds)
    print(json.dumps({"whole": time.perf_counter() - start}), flush=True)


def measure(table: Table, rounds: int) -> dict[str, float]:
    """Milliseconds of a training and of its phases."""
    job = json.dumps({"table": asdict(table), "rounds": rounds})
    lines = run_python(["-m", "benchmarks.times", "--job", job], 1, stderr=subprocess.STDOUT)
    (whole,) = (json.loads(line)["whole"] for line in lines if line.startswith('{"whole"'))
    monitors = read_monitors(lines)
    phases = {
        phase: 1000 * sum(monitors.get(name, 0.0) for name in names)
        for phase, names in PHASES.items()
    }
    return {"whole": 1000 * whole, **phases}


def draws(repeats: int, size: int = 100_000) -> str:
    """Nanoseconds of a draw, by the standard deviation of the noise."""
    lines = ["| standard deviation | ns per draw |", "|---|---|"]
    for power in (0, 5, 10, 15, 20, 25):
        times = []
        for _ in range(repeats):
            start = time.process_time()
            native.discrete_gaussian(4**power, size)
            times.append(1e9 * (time.process_time() - start) / size)
        lines.append(f"| 2^{power} | {min(times):.0f} |")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, and print two tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--most-rows", type=int, default=1_000_000, help="leave out larger tables")
    parser.add_argument("--job", type=json.loads, help=argparse.SUPPRESS)
    args = parser.parse_args(arguments)
    if args.job:
        train(Table(**args.job["table"]), args.job["rounds"])
        return
    print(draws(args.repeats))
    names = ["whole", *PHASES]
    print("\n| table | " + " | ".join(f"{name}, ms" for name in names) + " |")
    print("|---" * (1 + len(names)) + "|")
    tables = {name: table for name, table in TABLES.items() if table.rows <= args.most_rows}
    runs: dict[str, list[dict[str, float]]] = {name: [] for name in tables}
    for _ in range(args.repeats):  # in turns, so that a slow minute of the machine hits all
        for name, table in tables.items():
            runs[name].append(measure(table, args.rounds))
    for name, results in runs.items():
        cells = (f"{min(r[key] for r in results):.0f}" for key in names)
        print(f"| {name} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
