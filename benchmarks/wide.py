"""Time and memory of trees on thousands of columns of which a row stores few cells.

    make bench                                              # after the tables of bench.py
    .venv/bin/python -m benchmarks.wide --repeats 3

Texts are those of ``python -m experiments wide``. Numbers are stored cells of a standard normal
law, anywhere in the table. Methods take turns in processes of their own, as in ``bench.py``. Writes
its table into ``experiments/pages/performance.md``.
"""

from __future__ import annotations

import argparse
import gc
import json
import statistics
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import xgboost as xgb
from scipy import sparse

from benchmarks import bench
from benchmarks.bench import (
    COMMON,
    DATA_SEED,
    PAGE,
    PRIVATE,
    Clock,
    _reset_peak,
    kib,
    peak_kib,
    ratios,
    run_job,
    spread,
    write,
)
from experiments.synthetic import words

BEGIN = "<!-- wide tables: written by benchmarks/wide.py -->"
END = "<!-- end of wide tables -->"
METHODS: dict[str, dict[str, Any]] = {
    "hist": bench.METHODS["hist, 64 bins"],
    "dp_hist": {**PRIVATE, "dp_split": "exponential"},
}
BYTES_OF_CELL = 8  # in a DMatrix: a column and a value


@dataclass(frozen=True)
class Case:
    """A generated table.

    Attributes:
        rows: Number of rows.
        columns: Number of columns.
        share: Of the cells that are stored; 0 for texts, which have what their rows have.
    """

    rows: int
    columns: int
    share: float = 0.0


CASES = {
    "texts, 1,000 columns": Case(14_000, 1_000),
    "texts, 10,000 columns": Case(40_000, 10_000),
    "numbers, 10,000 columns, 0.1% stored": Case(40_000, 10_000, 0.001),
    "numbers, 10,000 columns, 0.5% stored": Case(40_000, 10_000, 0.005),
    "numbers, 10,000 columns, 2% stored": Case(40_000, 10_000, 0.02),
}


def make_data(case: Case) -> tuple[sparse.csr_matrix, np.ndarray]:
    """Stored cells, and labels of which a few columns tell something."""
    if case.share == 0:
        return words("few words", case.rows, case.columns)
    rng = np.random.default_rng(DATA_SEED)
    n = int(case.rows * case.columns * case.share)
    # A cell that comes up twice is stored once, with the sum of both.
    place = rng.integers(0, case.rows, n), rng.integers(0, case.columns, n)
    X = sparse.csr_matrix(
        (rng.standard_normal(n, dtype=np.float32), place), (case.rows, case.columns)
    )
    logit = 5.0 * np.asarray(X[:, :20].sum(axis=1)).ravel()
    return X, (rng.random(case.rows) < 1 / (1 + np.exp(-logit))).astype(np.float32)


def measure(name: str, method: str, rounds: int) -> dict[str, float]:
    """One training of one thread, in this process. Times in seconds, memory in MiB."""
    X, y = make_data(CASES[name])
    stored = X.nnz
    d = xgb.DMatrix(X, y, nthread=1)
    del X, y
    gc.collect()
    params = {**COMMON, "max_depth": 6, "nthread": 1, **METHODS[method]}
    clock = Clock()
    before = kib("VmRSS")
    _reset_peak()
    xgb.train(params, d, rounds, callbacks=[clock])
    return {
        "stored_mib": stored * BYTES_OF_CELL / 2**20,
        "first_s": clock.ends[0] - clock.start,
        **clock.tree(),
        "added_mib": (peak_kib() - before) / 1024,
    }


def table(results: dict[str, dict[str, list[dict[str, float]]]]) -> str:
    """Markdown: medians, and ratios to `hist` of the same turn."""
    lines = [
        "| table | cells, MiB | method | CPU, ms a tree | ratio to hist | first round, s "
        "| added memory, MiB | added / cells |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name, methods in results.items():
        for method, runs in methods.items():
            base = [run["tree_cpu_s"] for run in methods["hist"]]
            times = [run["tree_cpu_s"] for run in runs]
            cells = statistics.median(run["stored_mib"] for run in runs)
            added = [run["added_mib"] for run in runs]
            first = statistics.median(run["first_s"] for run in runs)
            row = [
                name, f"{cells:.0f}", method, f"{1e3 * statistics.median(times):.1f}",
                "1" if method == "hist" else ratios(times, base), f"{first:.2f}", spread(added, 0),
                f"{statistics.median(added) / cells:.1f}",
            ]  # fmt: skip
            lines.append("| " + " | ".join(row) + " |")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, and write the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--case", choices=[*CASES, "all"], default="all")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=10, help="timed trees, an even number")
    parser.add_argument("--page", type=Path, default=PAGE)
    parser.add_argument("--job", type=json.loads, help=argparse.SUPPRESS)
    args = parser.parse_args(arguments)
    if args.job:
        print(json.dumps(measure(args.job["case"], args.job["method"], args.job["rounds"] + 1)))
        return
    names = list(CASES) if args.case == "all" else [args.case]
    results: dict[str, dict[str, list[dict[str, float]]]] = {}
    for name in names:
        of_case = results[name] = {method: [] for method in METHODS}
        for _ in range(args.repeats):
            for method, runs in of_case.items():
                job = json.dumps({"case": name, "method": method, "rounds": args.rounds})
                runs.append(run_job(["-m", "benchmarks.wide", "--job", job], 1))
                print(name, method, runs[-1], file=sys.stderr, flush=True)
    page = table(results)
    print(page, flush=True)
    if args.case == "all":
        write(page, args.page, BEGIN, END)


if __name__ == "__main__":
    main()
