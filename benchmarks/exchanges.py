"""What the workers of a cluster exchange for a tree: counted, sent by real workers, and on paper.

    make bench                                              # after the tables of bench.py
    .venv/bin/python -m benchmarks.exchanges

Real workers, processes of this machine with few rows each, count the bytes that they send. What
takes time in a large cluster is computed from the same counts: its sizes are below, and the time of
the rows is measured with one thread. Writes a table of ``experiments/pages/performance.md``.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import multiprocessing
import os
import socket
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import xgboost as xgb
from xgboost.tracker import RabitTracker

from benchmarks.bench import COMMON, METHODS, PAGE, Clock, run_job, write

BEGIN = "<!-- exchanges: written by benchmarks/exchanges.py -->"
END = "<!-- end of exchanges -->"
NUMBER = 8  # bytes
FEW = 1024  # numbers for each worker; see plugin_cpp/release/workers.h

# On paper: 10^10 rows, a step between two machines, and what a machine sends in a second.
WORKERS, ROWS, CORES = 1_000, 10_000_000, 4
STEP_S, BYTES_S = 50e-6, 10e9 / 8
TABLES = [(50, 64), (50, 256), (1_000, 64), (1_000, 256)]  # columns and bins
HIST, DP_HIST, RING = "hist", "dp_hist", "dp_hist, all sums by the ring"


@dataclass(frozen=True)
class Exchange:
    """Numbers that all workers get: sums over workers, or those of rank 0."""

    numbers: int
    sums: bool
    by_tree: bool  # else by XGBoost's ring

    def cost(self, workers: int) -> tuple[float, float, float]:
        """Bytes that all workers send, and on the longest way steps and bytes one after another."""
        size, depth = NUMBER * self.numbers, math.ceil(math.log2(workers))
        if self.by_tree:
            ways = 2 if self.sums else 1
            return ways * (workers - 1) * size, ways * depth, ways * depth * size
        if self.numbers < workers:  # everybody gets what everybody has
            return workers**2 * size, workers, workers * size
        steps = 2 * workers - 1
        return steps * size, steps, steps * size / workers


def exchanges(method: str, workers: int, columns: int, bins: int, depth: int = 6) -> list[Exchange]:
    """Those of a tree in which every node has its own split."""

    def add_up(numbers: int) -> Exchange:
        return Exchange(numbers, True, by_tree=method == DP_HIST and numbers <= FEW * workers)

    levels = 1 if method == HIST else 2  # that a split, or a selection, fills
    out, nodes, summed = [add_up(2)], 1, 1
    for top in range(0, depth, levels):
        out.append(add_up(2 * columns * bins * summed))
        children = 2 ** min(levels, depth - top)
        summed, nodes = nodes * (children - 1), nodes * children
        if method != HIST:
            out.append(Exchange(nodes // children, False, by_tree=True))
    return out if method == HIST else [*out, Exchange(2 * nodes, False, by_tree=True)]


def total(counted: Sequence[Exchange], workers: int) -> np.ndarray:
    """Costs of all together."""
    return np.sum([one.cost(workers) for one in counted], axis=0)


def sent() -> int:
    """Bytes that the connections of this process have sent, without those sent again."""
    bytes_ = 0
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):  # no connection
            with socket.socket(fileno=os.dup(int(name))) as connection:
                info = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)
            once, again = struct.unpack_from("=QQ", info, 200)  # bytes_sent, bytes_retrans
            bytes_ += once - again
    return bytes_


class Counter(Clock):
    """Notes what this process has sent when each round ends."""

    def __init__(self) -> None:
        super().__init__()
        self.sent: list[int] = []

    def after_iteration(self, model: Any, epoch: int, evals_log: Any) -> bool:
        """Called by XGBoost."""
        self.sent.append(sent())
        return super().after_iteration(model, epoch, evals_log)


def train(method: str, rows: int, columns: int, bins: int, rounds: int, seed: int) -> Counter:
    """A training on rows of this process, with public cuts, so that the number of bins is known."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((rows, columns), dtype=np.float32)
    y = (X[:, 0] + rng.standard_normal(rows) > 0).astype(np.float32)
    params = {**COMMON, **METHODS[method], "max_bin": bins, "max_depth": 6, "nthread": 1}
    if method == DP_HIST:
        cuts = dict.fromkeys(range(columns), np.linspace(-2, 2, bins - 1).tolist())
        params |= {"dp_feature_cuts": cuts, "dp_tree_shape": "per_node"}
    counter = Counter()
    xgb.train({**params, "verbosity": 0}, xgb.DMatrix(X, y), rounds, callbacks=[counter])
    return counter


def _work(arguments: dict[str, Any], job: dict[str, Any], out: Any) -> None:
    with xgb.collective.CommunicatorContext(**arguments):
        counter = train(**job, seed=int(arguments["dmlc_task_id"]))
    out.put((np.diff(counter.sent)[1:].mean(), counter.tree(1)["tree_s"]))


def simulate(workers: int, **job: Any) -> tuple[float, float]:
    """Bytes that real workers send for a tree, and seconds that one takes them."""
    fork = multiprocessing.get_context("fork")  # they share the memory of what is imported
    out = fork.Queue()
    tracker = RabitTracker(host_ip="127.0.0.1", n_workers=workers)
    tracker.start()
    for i in range(workers):
        arguments = tracker.worker_args() | {"dmlc_task_id": str(i)}
        fork.Process(target=_work, args=(arguments, job, out), daemon=True).start()
    answers = [out.get(timeout=300) for _ in range(workers)]
    tracker.wait_for()
    return sum(a[0] for a in answers), float(np.median([a[1] for a in answers]))


def row_seconds(method: str, columns: int, bins: int) -> float:
    """Seconds of a tree on the rows of a worker on paper, with one thread."""
    rows = 100_000_000 // columns
    job = {"method": method, "rows": rows, "columns": columns, "bins": bins, "rounds": 5, "seed": 0}
    figures = run_job(["-m", "benchmarks.exchanges", "--job", json.dumps(job)], 1)
    return figures["tree_cpu_s"] * ROWS / rows


def row(*cells: Any) -> str:
    """A row of a table."""
    return f"| {' | '.join(map(str, cells))} |"


def seen_table(workers: int) -> str:
    """What is counted for a tree, and what real workers have sent."""
    lines = [row("method", "exchanges", "steps", "MB counted", "MB sent", "s"), "|---" * 6 + "|"]
    columns, bins = TABLES[0]
    for method in (HIST, DP_HIST):
        counted = exchanges(method, workers, columns, bins)
        size, steps, _ = total(counted, workers)
        job = {"rows": 1_000, "columns": columns, "bins": bins, "rounds": 6}
        seen, seconds = simulate(workers, method=method, **job)
        figures = (f"{size / 1e6:.3f}", f"{seen / 1e6:.3f}", f"{seconds:.2f}")
        lines.append(row(method, len(counted), int(steps), *figures))
    return "\n".join(lines)


def paper_table() -> str:
    """Times of a tree in the cluster on paper."""
    heads = ("columns", "bins", "method", "rows, s", "exchange, s", "share", "steps", "MB")
    lines = [row(*heads), "|---" * len(heads) + "|"]
    for columns, bins in TABLES:
        seconds = {m: row_seconds(m, columns, bins) / CORES for m in (HIST, DP_HIST)}
        for method in (HIST, RING, DP_HIST):
            _, steps, size = total(exchanges(method, WORKERS, columns, bins), WORKERS)
            of_rows = seconds[HIST if method == HIST else DP_HIST]
            exchange = STEP_S * steps + size / BYTES_S
            figures = (f"{of_rows:.3f}", f"{exchange:.3f}", f"{exchange / of_rows:.2f}")
            lines.append(row(columns, bins, method, *figures, int(steps), f"{size / 1e6:.1f}"))
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> None:
    """Simulate, compute, and write the tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--workers", type=int, default=64)
    parser.add_argument("--seen", action="store_true", help="only what they send; writes nothing")
    parser.add_argument("--job", type=json.loads, help=argparse.SUPPRESS)
    args = parser.parse_args(arguments)
    if args.job:
        print(json.dumps(train(**args.job).tree()))
        return
    seen = seen_table(args.workers)
    print(seen, flush=True)
    if args.seen:
        return
    cluster = f"{WORKERS:,} workers of {ROWS:,} rows, {CORES} cores, {STEP_S * 1e6:.0f} µs a step"
    cluster += f" and {BYTES_S * 8 / 1e9:.0f} Gbit/s, on paper:\n\n{paper_table()}"
    print(cluster)
    write(f"{args.workers} workers here:\n\n{seen}\n\n{cluster}", PAGE, BEGIN, END)


if __name__ == "__main__":
    main()
