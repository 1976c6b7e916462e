"""Memory and time of training on data on disk, beside stock ``hist``.

    make bench                                              # after the tables of bench.py
    .venv/bin/python -m benchmarks.external --rows 1200000 --columns 400 --batches 300

The rows are made batch by batch, so that no process ever holds all of them. Each method has a
process of its own. The peak is of all resident memory of the process, pages of files that it maps
included; what the process holds before it makes the matrix, mostly libraries, is told apart.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import xgboost as xgb

from benchmarks.bench import COMMON, DATA_SEED, METHODS, PRIVATE, Clock, kib, peak_kib, run_job

EXTERNAL: dict[str, dict[str, Any]] = {
    "hist, 64 bins": METHODS["hist, 64 bins"],
    "dp_hist": PRIVATE,
    "dp_hist, random splits": METHODS["dp_hist, random splits"],
    "dp_approx": {**PRIVATE, "tree_method": "dp_approx"},
}
# What the table shows: name, unit and digits after the point.
COLUMNS = {
    "matrix_s": ("matrix", "s", 1),
    "first_s": ("first round", "s", 1),
    "tree_s": ("tree", "s", 2),
    "tree_cpu_s": ("tree CPU", "s", 2),
    "before_mib": ("before", "MiB", 0),
    "peak_mib": ("peak", "MiB", 0),
    "ratio": ("data / peak", "", 1),
    "ratio_added": ("data / (peak - before)", "", 1),
}


class Batches(xgb.DataIter):
    """Rows with a known signal, made when they are asked for."""

    def __init__(self, args: argparse.Namespace, cache: str) -> None:
        self.args, self.at = args, 0
        super().__init__(cache_prefix=cache)

    def next(self, input_data: Callable[..., None]) -> bool:
        """Called by XGBoost."""
        n = self.args.batches
        if self.at == n:
            return False
        rng = np.random.default_rng((DATA_SEED, self.at))
        X = rng.standard_normal((self.args.rows // n, self.args.columns), dtype=np.float32)
        signal = X[:, 0] + X[:, 1] * X[:, 2] + rng.standard_normal(len(X))
        input_data(data=X, label=(signal > 0).astype(np.float32))
        self.at += 1
        return True

    def reset(self) -> None:
        """Called by XGBoost."""
        self.at = 0


def data_mib(args: argparse.Namespace) -> float:
    """Size of the rows as 32-bit floats."""
    return float(4 * args.rows * args.columns / 2**20)


def measure(method: str, args: argparse.Namespace) -> dict[str, float]:
    """One training, in this process. Times in seconds, memory in MiB."""
    before = kib("VmRSS") / 1024
    clock = Clock()
    with tempfile.TemporaryDirectory(dir=args.folder) as folder:
        start = time.perf_counter()
        d = xgb.DMatrix(Batches(args, str(Path(folder) / "cache")), nthread=args.threads)
        matrix = time.perf_counter() - start
        params = {**COMMON, **EXTERNAL[method], "max_depth": args.depth, "nthread": args.threads}
        xgb.train(params, d, args.rounds, callbacks=[clock])
        del d
    data, peak = data_mib(args), peak_kib() / 1024
    return {
        "matrix_s": matrix,
        "first_s": clock.ends[0] - clock.start,
        **clock.tree(),
        "before_mib": before,
        "peak_mib": peak,
        "ratio": data / peak,
        "ratio_added": data / (peak - before),
    }


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_200_000)
    parser.add_argument("--columns", type=int, default=400)
    parser.add_argument("--batches", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=5, help="trees, at least 2")
    parser.add_argument("--depth", type=int, default=6)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--methods", nargs="+", choices=EXTERNAL, default=list(EXTERNAL))
    parser.add_argument("--folder", type=Path, help="for the pages; else the system's own")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    args = parser.parse_args(arguments)
    if args.rounds < 2 or args.rows % args.batches:
        parser.error("--rounds must be at least 2, and --rows a multiple of --batches")
    return args


def main(arguments: Sequence[str] | None = None) -> None:
    given = sys.argv[1:] if arguments is None else arguments
    args = parse(given)
    if args.worker:
        print(json.dumps(measure(args.worker, args)))
        return
    print(
        f"{args.rows:,} x {args.columns} on disk, {data_mib(args):,.0f} MiB of 32-bit floats in "
        f"{args.batches} batches: {args.rounds} trees of depth {args.depth}, "
        f"{args.threads} threads.\n"
    )
    units = [f"{name} {unit}".strip() for name, unit, _ in COLUMNS.values()]
    print("| method | " + " | ".join(units) + " |\n" + "|---" * (len(units) + 1) + "|", flush=True)
    for method in args.methods:
        job = ["-m", "benchmarks.external", *given, "--worker", method]
        result = run_job(job, args.threads)
        cells = [f"{result[key]:.{digits}f}" for key, (_, _, digits) in COLUMNS.items()]
        print("| " + " | ".join([method, *cells]) + " |", flush=True)


if __name__ == "__main__":
    main()
