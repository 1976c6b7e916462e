"""How time grows with rows, columns, depth and workers, beside stock ``hist``.

    make bench                                              # after the tables of bench.py
    .venv/bin/python -m benchmarks.growth --factor rows

One factor changes at a time, from 100,000 rows of 28 columns, depth 6, one thread, one worker. The
methods take turns in processes of their own, as in ``bench.py``. Writes ``docs/performance.csv``,
``docs/performance.png`` and the tables of ``experiments/pages/performance.md``.
"""

from __future__ import annotations

import argparse
import csv
import json
import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import xgboost as xgb

from benchmarks import bench
from benchmarks.bench import COMMON, DATA_SEED, PAGE, ROOT, Clock, ratios, run_job

MARK = "<!-- figures: written by benchmarks/growth.py -->"
METHODS: dict[str, dict[str, Any]] = {
    "hist": bench.METHODS["hist, 64 bins"],
    "dp_hist": bench.METHODS["dp_hist, its default of 64 bins"],
    "random": bench.METHODS["dp_hist, random splits"],
}


@dataclass(frozen=True)
class Point:
    """One training.

    Attributes:
        rows: Number of rows.
        columns: Number of columns.
        depth: Depth of the trees.
        workers: Dask worker processes of one thread; 0 trains without Dask.
        signal: Strength of the signal: 0 makes all utilities alike (flat), 1 makes a few stand out.
    """

    rows: int = 100_000
    columns: int = 28
    depth: int = 6
    workers: int = 0
    signal: float = 1.0


START = Point()
FACTORS: dict[str, list[Point]] = {
    "rows": [replace(START, rows=n) for n in (10_000, 100_000, 1_000_000, 10_000_000)],
    "columns": [replace(START, columns=n) for n in (10, 50, 200, 1000)],
    "depth": [replace(START, depth=n) for n in (3, 4, 6, 8)],
    "workers": [replace(START, rows=400_000, workers=n) for n in (1, 2, 4)],
    "signal": [replace(START, signal=s) for s in (0.0, 1.0)],
}


def make_data(point: Point, part: int = 0, parts: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Rows of one part; labels follow five columns with the strength of the signal."""
    rng = np.random.default_rng([DATA_SEED, part])
    n = point.rows // parts
    X = rng.standard_normal((n, point.columns), dtype=np.float32)
    logit = point.signal * (X[:, :5] @ np.array([1.0, -1.0, 0.5, 0.5, 1.0], dtype=np.float32))
    return X, (rng.random(n) < 1 / (1 + np.exp(-logit))).astype(np.float32)


def measure(point: Point, method: str, rounds: int) -> dict[str, float]:
    """Seconds of the rounds after the first, for each, and of everything before."""
    params = {**COMMON, **METHODS[method], "max_depth": point.depth, "nthread": 1}
    if point.workers:
        return _measure_dask(point, params, rounds)
    X, y = make_data(point)
    d = xgb.DMatrix(X, y, nthread=1)
    del X, y
    start = time.perf_counter()
    return _timings(xgb.train(params, d, rounds, callbacks=[TellingClock()]), start)


class TellingClock(Clock):
    """Notes what it measured in the model, which workers send back."""

    def after_training(self, model: Any) -> Any:
        """Called by XGBoost."""
        model.set_attr(clock=json.dumps({**self.tree(), "rounds_s": self.ends[-1] - self.ends[0]}))
        return model


def _timings(model: Any, start: float) -> dict[str, float]:
    """The figures of a training that began at a time."""
    whole = time.perf_counter() - start
    noted = json.loads(model.attr("clock"))
    return {"first_s": whole - noted.pop("rounds_s"), **noted}


def _measure_dask(point: Point, params: dict[str, Any], rounds: int) -> dict[str, float]:
    """The clock of a worker in the second training: the first one loads the library."""
    import dask
    import dask.array as da
    from distributed import Client, LocalCluster, wait
    from xgboost import dask as dxgb

    workers, more = point.workers, 5 * rounds
    with (
        LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            dashboard_address=None,
        ) as cluster,
        Client(cluster) as client,
    ):
        parts = [dask.delayed(make_data)(point, i, workers) for i in range(workers)]
        n = point.rows // workers
        X = da.concatenate(
            [da.from_delayed(p[0], (n, point.columns), dtype=np.float32) for p in parts]
        )
        y = da.concatenate([da.from_delayed(p[1], (n,), dtype=np.float32) for p in parts])
        X, y = client.persist([X, y])
        wait([X, y])
        d = dxgb.DaskDMatrix(client, X, y)
        quiet = {**params, "verbosity": 0}
        dxgb.train(client, quiet, d, 1)
        start = time.perf_counter()
        clock = TellingClock()
        return _timings(dxgb.train(client, quiet, d, more, callbacks=[clock])["booster"], start)


def run(point: Point, method: str, rounds: int) -> dict[str, float]:
    """:func:`measure` in a process of its own."""
    job = json.dumps({"point": asdict(point), "method": method, "rounds": rounds})
    return run_job(["-m", "benchmarks.growth", "--job", job], 1)


def table(factor: str, rows: list[dict[str, Any]]) -> str:
    """Milliseconds a tree, and ratios to hist of the same turn: median (least-greatest)."""
    lines = [
        f"| {factor} | hist, ms a tree | dp_hist | random | dp_hist / hist | random / hist |",
        "|---|---|---|---|---|---|",
    ]
    # Without Dask the CPU time of all threads: other load on the machine disturbs it less.
    field = "tree_s" if factor == "workers" else "tree_cpu_s"
    for value in dict.fromkeys(r[factor] for r in rows):
        turns: dict[str, list[float]] = {m: [] for m in METHODS}
        for r in rows:
            if r[factor] == value:
                turns[r["method"]].append(r[field])
        cells = [f"{value:,}", *(f"{1e3 * statistics.median(t):.1f}" for t in turns.values())]
        cells += [ratios(turns[method], turns["hist"]) for method in ("dp_hist", "random")]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def plot(results: dict[str, list[dict[str, Any]]], path: Path) -> None:
    """Curves on logarithmic axes, one panel for each factor."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    from matplotlib.ticker import LogFormatter

    shown = [f for f in ("rows", "columns", "depth", "workers") if f in results]
    figure, axes = plt.subplots(2, 2, figsize=(6, 5))  # narrow, for phones
    for axis in axes.flat[len(shown) :]:
        axis.set_visible(False)
    for axis, factor in zip(axes.flat, shown, strict=False):
        for method in METHODS:
            values: dict[float, list[float]] = {}
            for r in results[factor]:
                if r["method"] == method:
                    values.setdefault(r[factor], []).append(r["tree_s"])
            medians = [1e3 * statistics.median(v) for v in values.values()]
            axis.plot(list(values), medians, "o-", label=method)
        axis.set(xlabel=factor, xscale="log", yscale="log")
        axis.yaxis.set_major_formatter(LogFormatter())
        axis.yaxis.set_minor_formatter(LogFormatter())
        if max(values) < 100:
            axis.set_xticks(list(values), [f"{v:g}" for v in values])
            axis.minorticks_off()
            axis.yaxis.minorticks_on()
    axes[0][0].set_ylabel("ms a tree")
    axes[0][0].legend()
    figure.tight_layout()
    figure.savefig(path, dpi=110)


def read(path: Path) -> dict[str, list[dict[str, Any]]]:
    """Earlier results, by factor: those of factors that are not measured now are kept."""
    out: dict[str, list[dict[str, Any]]] = {}
    if path.exists():
        with path.open(newline="") as file:
            for row in csv.DictReader(file):
                method = row.pop("method")
                out.setdefault(row.pop("factor"), []).append(
                    {"method": method}
                    | {k: int(v) if v.isdigit() else float(v) for k, v in row.items()}
                )
    return {factor: out[factor] for factor in FACTORS if factor in out}


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, and write the page."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--factor", choices=[*FACTORS, "all"], default="all")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=8, help="timed trees, an even number")
    parser.add_argument(
        "--most",
        type=int,
        default=10**7,
        help="largest number of rows; earlier results of more are kept",
    )
    parser.add_argument("--out", type=Path, default=ROOT / "docs", help="folder of the results")
    parser.add_argument("--page", type=Path, default=PAGE, help="page of the tables")
    parser.add_argument("--job", type=json.loads, help=argparse.SUPPRESS)
    args = parser.parse_args(arguments)
    if args.job:
        point = Point(**args.job["point"])
        print(json.dumps(measure(point, args.job["method"], args.job["rounds"] + 1)))
        return
    path = args.out / "performance.csv"
    results = read(path)
    for factor in FACTORS if args.factor == "all" else [args.factor]:
        kept = [r for r in results.get(factor, []) if r["rows"] > args.most]
        rows = results[factor] = []
        for point in FACTORS[factor]:
            if point.rows > args.most:
                continue
            for turn in range(args.repeats):
                for method in METHODS:
                    figures = run(point, method, args.rounds)
                    rows.append({"turn": turn, "method": method, **asdict(point), **figures})
                    print(
                        factor, asdict(point)[factor], method, figures, file=sys.stderr, flush=True
                    )
        rows += kept
        print(f"\n{table(factor, rows)}\n", flush=True)
    args.out.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        flat = [{"factor": f, **r} for f, rows in results.items() for r in rows]
        writer = csv.DictWriter(file, flat[0])
        writer.writeheader()
        writer.writerows(flat)
    plot(results, args.out / "performance.png")
    if args.page.exists():
        head = args.page.read_text(encoding="utf-8").split(MARK)[0]
        tables = "\n\n".join(f"## By {f}\n\n{table(f, rows)}" for f, rows in results.items())
        args.page.write_text(f"{head}{MARK}\n\n{tables}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
