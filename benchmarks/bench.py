"""Time and memory of ``dp_hist`` beside stock ``hist``, in the same libxgboost.

    make bench
    make bench BENCH_ARGS="--case dense --repeats 5"

All methods train the same number of trees of the same depth, with the same threads, on the same
rows, and with the same max_bin unless the table says otherwise. Each run has a process of its own,
and the methods take turns, so that a slow minute of the machine hits all. A ratio compares two runs
of the same turn; the table shows the median of the ratios and their range.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import xgboost as xgb

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "experiments" / "pages" / "performance.md"
EPSILON = 1.0
DELTA = 1e-6
DATA_SEED = 1


@dataclass(frozen=True)
class Case:
    """Shape of a synthetic binary task.

    Attributes:
        rows: Number of rows.
        columns: Number of columns.
        density: Share of stored cells; 1 for a dense array.
        bounds: Public range of each column.
    """

    rows: int
    columns: int
    density: float
    bounds: tuple[float, float]


CASES = {
    "dense": Case(1_000_000, 50, 1.0, (-4.0, 4.0)),
    "sparse": Case(200_000, 500, 0.02, (0.0, 1.0)),
    "wide": Case(50_000, 1000, 1.0, (-4.0, 4.0)),
}

# Trees grow to max_depth in all methods: no pruning, no leaf minimum.
COMMON: dict[str, Any] = {
    "objective": "binary:logistic",
    "eta": 0.3,
    "lambda": 1.0,
    "min_child_weight": 0.0,
}
PRIVATE = {"tree_method": "dp_hist", "dp_epsilon": EPSILON, "dp_delta": DELTA}
METHODS: dict[str, dict[str, Any]] = {
    "hist": {"tree_method": "hist", "max_bin": 256},
    "dp_hist": {**PRIVATE, "max_bin": 256},
    "dp_hist, public bounds": {**PRIVATE, "max_bin": 256},
    "hist, 64 bins": {"tree_method": "hist", "max_bin": 64},
    "dp_hist, its default of 64 bins": PRIVATE,
    "dp_hist, random splits": {**PRIVATE, "dp_split": "random"},
}
# Private candidates are fewer than max_bin where the noise does not allow more; with public bounds
# each column has exactly max_bin bins.
WITH_BOUNDS = "dp_hist, public bounds"

# What the table shows: name, unit and digits after the point.
COLUMNS = {
    "nodes": ("nodes a tree", "", 0),
    "train_s": ("train", "s", 2),
    "setup_s": ("before training", "s", 2),
    "first_s": ("first round", "s", 2),
    "tree_s": ("tree", "s", 4),
    "tree_cpu_s": ("tree CPU", "s", 4),
    "peak_mib": ("peak", "MiB", 0),
    "added_mib": ("added", "MiB", 0),
}
RATIOS = ("train_s", "tree_s", "tree_cpu_s", "peak_mib", "added_mib")


def make_data(case: Case, rows: int) -> tuple[Any, np.ndarray]:
    """Rows with a known signal, half of it in interactions, and noisy labels."""
    rng = np.random.default_rng(DATA_SEED)
    signal = min(case.columns, 20)
    weights = rng.standard_normal(signal)
    X: Any
    if case.density < 1:
        from scipy import sparse

        X = sparse.random(
            rows, case.columns, density=case.density, format="csr", dtype=np.float32, rng=rng
        )
        head = X[:, :signal].toarray() * 3
    else:
        X = rng.standard_normal((rows, case.columns), dtype=np.float32)
        head = X[:, :signal]
    logit = head @ weights + np.where(head[:, 0] * head[:, 1] > 0, 1.0, -1.0)
    y = (rng.random(rows) < 1 / (1 + np.exp(-logit))).astype(np.float32)
    return X, y


def kib(field: str) -> int:
    """A memory figure of this process, in KiB; 0 where the system does not tell."""
    try:
        text = Path("/proc/self/status").read_text()
    except OSError:
        return 0
    sizes = [line.split()[1] for line in text.splitlines() if line.startswith(field + ":")]
    return int(sizes[0]) if sizes else 0


def _reset_peak() -> None:
    """Forget the peak that making the data left behind, where the system can."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def peak_kib() -> int:
    """Largest memory of this process since its peak was forgotten, in KiB; of its whole life where
    the system tells no other."""
    return kib("VmHWM") or resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


class Clock(xgb.callback.TrainingCallback):
    """Notes when training starts and when each round ends, in seconds.

    Attributes:
        start: When training began, after calibration.
        ends: Ends of the rounds.
        busy: CPU time of all threads at these moments.
    """

    def __init__(self) -> None:
        super().__init__()
        self.start = 0.0
        self.ends: list[float] = []
        self.busy: list[float] = []

    def before_training(self, model: Any) -> Any:
        """Called by XGBoost."""
        self.start = time.perf_counter()
        return model

    def after_iteration(self, model: Any, epoch: int, evals_log: Any) -> bool:
        """Called by XGBoost."""
        self.ends.append(time.perf_counter())
        self.busy.append(time.process_time())
        return False

    def tree(self, first: int = 0) -> dict[str, float]:
        """Mean seconds of the rounds after number `first`: the first one bins the data."""
        rounds = len(self.ends) - 1 - first
        return {
            "tree_s": (self.ends[-1] - self.ends[first]) / rounds,
            "tree_cpu_s": (self.busy[-1] - self.busy[first]) / rounds,
        }


def measure(
    case: Case, method: str, rows: int, rounds: int, depth: int, threads: int
) -> dict[str, float]:
    """One training, in this process. Times in seconds, memory in MiB."""
    X, y = make_data(case, rows)
    dtrain = xgb.DMatrix(X, y, nthread=threads)
    del X, y
    gc.collect()
    params = {**COMMON, **METHODS[method], "max_depth": depth, "nthread": threads}
    if method == WITH_BOUNDS:
        params["dp_feature_bounds"] = dict.fromkeys(range(case.columns), case.bounds)
    clock = Clock()
    before = kib("VmRSS")
    _reset_peak()
    start, busy = time.perf_counter(), time.process_time()
    booster = xgb.train(params, dtrain, rounds, callbacks=[clock])
    end, busy = time.perf_counter(), time.process_time() - busy
    peak = peak_kib()
    # dp_hist alternates two shapes of tree: leave out the first round, which bins the data, and
    # count an even number of the others.
    first = 1 - len(clock.ends) % 2
    return {
        "train_s": end - start,
        "cpu_s": busy,
        "setup_s": clock.start - start,
        "first_s": clock.ends[0] - clock.start,
        **clock.tree(first),
        "peak_mib": peak / 1024,
        "added_mib": (peak - before) / 1024,
        "process_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "nodes": sum(tree.count("\n") for tree in booster.get_dump()) / rounds,
    }


def run_worker(case: str, method: str, args: argparse.Namespace) -> dict[str, float]:
    """:func:`measure` in a process of its own."""
    job = {"case": case, "method": method, "rows": rows_of(case, args)}
    job |= {"rounds": args.rounds, "depth": args.depth, "threads": args.threads}
    return run_job([__file__, "--worker", json.dumps(job)], args.threads)


def run_python(arguments: Sequence[str], threads: int, stderr: int | None = None) -> list[str]:
    """Lines of output of this Python in a process of its own."""
    run = subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=stderr,
        text=True,
        check=True,
        env={**os.environ, "OMP_NUM_THREADS": str(threads)},
    )
    return run.stdout.splitlines()


def run_job(arguments: Sequence[str], threads: int) -> dict[str, float]:
    """:func:`run_python`, whose last line is the result, as JSON."""
    result: dict[str, float] = json.loads(run_python(arguments, threads)[-1])
    return result


def rows_of(case: str, args: argparse.Namespace) -> int:
    return int(args.rows or CASES[case].rows)


def ratios(values: Sequence[float], base: Sequence[float]) -> str:
    """Ratios of runs of the same turn, as median (least-greatest).

    A turn whose base is 0, too little to be measured, is left out.
    """
    quotients = [a / b for a, b in zip(values, base, strict=True) if b > 0]
    if not quotients:
        return "unknown"
    return spread(quotients, 2)


def spread(values: Sequence[float], digits: int) -> str:
    """Median (least-greatest)."""
    middle, least, most = statistics.median(values), min(values), max(values)
    return f"{middle:.{digits}f} ({least:.{digits}f}-{most:.{digits}f})"


def table(results: dict[str, list[dict[str, float]]]) -> str:
    """Markdown table of one case: medians, and ratios to `hist` as median (least-greatest)."""
    units = {key: f"{name} {unit}".strip() for key, (name, unit, _) in COLUMNS.items()}
    heads = ["method", *units.values(), *(f"{COLUMNS[key][0]} ratio" for key in RATIOS)]
    lines = ["| " + " | ".join(heads) + " |", "|---" * len(heads) + "|"]
    for method, runs in results.items():
        cells = [method]
        for key, (_, _, digits) in COLUMNS.items():
            cells.append(f"{statistics.median(r[key] for r in runs):.{digits}f}")
        for key in RATIOS:
            if method == "hist":
                cells.append("1")
                continue
            cells.append(ratios([r[key] for r in runs], [r[key] for r in results["hist"]]))
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def write(text: str, page: Path, begin: str, end: str) -> None:
    """Put a table between its marks."""
    head, rest = page.read_text(encoding="utf-8").split(begin)
    tail = rest.split(end)[1]
    page.write_text(f"{head}{begin}\n\n{text}\n\n{end}{tail}", encoding="utf-8")


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--case", choices=[*CASES, "all"], default="all")
    parser.add_argument("--rows", type=int, help="instead of the case's own number of rows")
    parser.add_argument("--rounds", type=int, default=50, help="trees, at least 4")
    parser.add_argument("--depth", type=int, default=6)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "bench.json")
    parser.add_argument("--worker", type=json.loads, help=argparse.SUPPRESS)
    args = parser.parse_args(arguments)
    if args.rounds < 4:
        parser.error("--rounds must be at least 4")
    return args


def main(arguments: Sequence[str] | None = None) -> None:
    args = parse(arguments)
    if args.worker:
        job = dict(args.worker)
        print(json.dumps(measure(CASES[job.pop("case")], **job)))
        return
    print(
        f"dp_hist and hist in one library: {args.rounds} trees of depth {args.depth}, "
        f"{args.threads} threads, {args.repeats} turns; epsilon {EPSILON:g}, delta {DELTA:g}.\n"
        f"{platform.machine()}, {os.cpu_count()} processors. "
        "Train: the whole of xgboost.train, without making the\nDMatrix, with calibration. Tree: "
        "the mean of a round, without the first ones. CPU: of all threads together;\nother load on "
        "the machine disturbs it less. Peak: memory of the process while it trains. Added: what\n"
        "training adds to the process that already holds the DMatrix.",
        flush=True,
    )
    raw: dict[str, dict[str, list[dict[str, float]]]] = {}
    for name in CASES if args.case == "all" else [args.case]:
        case, rows = CASES[name], rows_of(name, args)
        filled = "dense" if case.density == 1 else f"{case.density:.0%} filled"
        print(f"\n## {name}: {rows:,} x {case.columns}, {filled}\n", flush=True)
        results: dict[str, list[dict[str, float]]] = {method: [] for method in METHODS}
        for turn in range(args.repeats):
            for method, runs in results.items():
                runs.append(run_worker(name, method, args))
                took = f"{runs[-1]['train_s']:.1f} s"
                print(f"turn {turn + 1}, {method}: {took}", file=sys.stderr, flush=True)
        print(table(results), flush=True)
        raw[name] = results
    args.out.parent.mkdir(parents=True, exist_ok=True)
    args.out.write_text(json.dumps(raw, indent=1))


if __name__ == "__main__":
    main()
