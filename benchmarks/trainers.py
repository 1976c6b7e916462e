"""Time of private trees and whole trainings, compared with the fastest public trainers on CPUs.

    make bench                                              # after the tables of bench.py
    .venv/bin/python -m benchmarks.trainers --repeats 5

hessboost, LightGBM with quantised gradients (Shi et al. 2022) and the newest stock XGBoost are in
``build/reference``, because they need a newer Python; ``hist`` and ``dp_hist`` are in our library.
Each trainer is a process that holds its rows and trains when asked, so that trainers take turns.
The time of a tree is the slope between two numbers of rounds, without what a training does once. A
whole training includes that and the matrix. CPU time is of all threads. Writes tables of
``experiments/pages/performance.md`` and ``docs/performance.md``.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.bench import (
    COMMON,
    DATA_SEED,
    DELTA,
    EPSILON,
    PAGE,
    PRIVATE,
    ROOT,
    Case,
    make_data,
    ratios,
    spread,
    write,
)

REFERENCE = ROOT / "build" / "reference" / "bin" / "python"
MARKS = "<!-- trainers: written by benchmarks/trainers.py -->", "<!-- end of trainers -->"
HESSBOOST, LIGHTGBM, STOCK = "hessboost", "LightGBM", "XGBoost"
HIST, DP_HIST, PERSONS = "hist", "dp_hist", "persons"
MODULES = {HESSBOOST: "hessboost", LIGHTGBM: "lightgbm", STOCK: "xgboost"}  # in the reference
TRAINERS = [*MODULES, HIST, DP_HIST]
# From a CSV file to the file of a model.
SCRIPT = """
import sys, pandas, {library} as library
table = pandas.read_csv(sys.argv[1])
rows = library.{matrix}(table.drop(columns="y"), table["y"])
library.train({params}, rows, 100).save_model(sys.argv[2])
"""
COMMAND = ["--target", "y", "--classes", "0,1", "--epsilon", f"{EPSILON}", "--delta", f"{DELTA}"]


@dataclass(frozen=True)
class Task:
    """Work that the trainers do in turns.

    Attributes:
        rows: Number of rows.
        columns: Number of columns.
        threads: Threads of each trainer.
        rounds: Two numbers, whose slope is the time of a tree with equal settings; or one, of a
            whole training with each trainer's defaults. 0 is 100 rounds, or the default of dp_hist.
    """

    rows: int
    columns: int = 20
    threads: int = 1
    rounds: tuple[int, ...] = (0,)

    @property
    def whole(self) -> bool:
        """Whether a whole training is timed."""
        return len(self.rounds) == 1

    def __str__(self) -> str:
        rounds = f", {self.rounds[0]:,} rounds" if self.whole and self.rounds[0] else ""
        return f"{'training' if self.whole else 'tree'}, {self.rows:,} x {self.columns}{rounds}"


SIZES = {(10_000, 20): (20, 120), (100_000, 20): (10, 40), (1_000_000, 50): (2, 8)}
TREES = [Task(*size, threads, rounds) for size, rounds in SIZES.items() for threads in (1, 2)]
TRAININGS = [*map(Task, (1_000, 10_000, 100_000)), Task(2_000, rounds=(5_000,))]
FROM_CSV = Task(10_000)

Runs = dict[str, list[np.ndarray]]
"""CPU time and elapsed time of each turn in seconds, by trainer."""
CPU, ELAPSED = 0, 1
Line = tuple[str, int, Runs]
"""Name of a row of a table, CPU or ELAPSED, and the runs."""


def parameters(trainer: str, task: Task) -> dict[str, Any]:
    """Equal settings for the time of a tree, and otherwise the defaults of the trainer."""
    params: dict[str, Any]
    if trainer == LIGHTGBM:
        params = {"objective": "binary", "use_quantized_grad": True, "verbosity": -1}
        params |= {"num_threads": task.threads}
        if not task.whole:
            params |= {"learning_rate": COMMON["eta"], "lambda_l2": COMMON["lambda"]}
            params |= {"min_sum_hessian_in_leaf": 0.0, "min_data_in_leaf": 1}
            params |= {"max_depth": 6, "num_leaves": 2**6, "max_bin": 255}
        return params
    params = {"objective": COMMON["objective"], "nthread": task.threads}
    params |= PRIVATE if trainer in (DP_HIST, PERSONS) else {"tree_method": "hist"}
    return params if task.whole else {**COMMON, **params, "max_depth": 6, "max_bin": 256}


def make_rows(task: Task) -> tuple[Any, np.ndarray]:
    """Features and labels."""
    return make_data(Case(task.rows, task.columns, 1.0, (-4.0, 4.0)), task.rows)


def serve(trainer: str, task: Task) -> None:
    """Train the number of rounds that each line of input asks for, and answer with the times."""
    library = importlib.import_module(MODULES.get(trainer, "xgboost"))
    X, y = make_rows(task)
    params = parameters(trainer, task)
    if trainer == PERSONS:  # some 10 rows for 3 persons, which lie anywhere
        rng = np.random.default_rng(DATA_SEED)
        params["dp_privacy_id"] = rng.integers(0, 3 * task.rows // 10, task.rows)

    def make_matrix() -> Any:
        if trainer == LIGHTGBM:
            return library.Dataset(X, y, params=params).construct()
        return library.DMatrix(X, y)

    kept = None if task.whole else make_matrix()

    def train(rounds: int) -> list[float]:
        busy, start = time.process_time(), time.perf_counter()
        private = trainer in (DP_HIST, PERSONS)
        given = [] if private and rounds == 0 else [rounds or 100]
        booster = library.train(params, make_matrix() if kept is None else kept, *given)
        if private and task.whole:
            import xgb_dp

            xgb_dp.privacy_report(booster)
        return [time.process_time() - busy, time.perf_counter() - start]

    for line in sys.stdin:
        if not task.whole:
            print(train(int(line)), flush=True)
        elif os.fork() == 0:  # a process calibrates once, so each training has its own
            train(1)
            print(train(int(line)), flush=True)
            os._exit(0)
        elif os.wait()[1] != 0:
            sys.exit(1)


def command(trainer: str, *arguments: str) -> list[str]:
    """Start the Python that has the library of a trainer."""
    return [str(REFERENCE if trainer in MODULES else sys.executable), "-W", "ignore", *arguments]


def environment(threads: int) -> dict[str, str]:
    """Variables of a process with a number of threads, which wait as OpenMP does by default."""
    count = dict.fromkeys(("OMP_NUM_THREADS", "RAYON_NUM_THREADS"), str(threads))
    others = {name: value for name, value in os.environ.items() if name != "OMP_WAIT_POLICY"}
    return others | count


def take_turns(trainers: Sequence[str], task: Task, repeats: int) -> Runs:
    """Times of a tree, or of a whole training, after one that warms up."""

    def start(trainer: str) -> subprocess.Popen[str]:
        job = json.dumps({"trainer": trainer, "task": asdict(task)})
        return subprocess.Popen(
            command(trainer, "-m", "benchmarks.trainers", "--job", job),
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment(task.threads),
        )

    def ask(worker: subprocess.Popen[str], rounds: int) -> np.ndarray:
        assert worker.stdin is not None and worker.stdout is not None
        print(rounds, file=worker.stdin, flush=True)
        return np.array(json.loads(worker.stdout.readline()))

    runs: Runs = {trainer: [] for trainer in trainers}
    with ExitStack() as stack:
        workers = {trainer: stack.enter_context(start(trainer)) for trainer in trainers}
        for worker in workers.values():  # whole trainings warm up in their processes
            for rounds in () if task.whole else task.rounds:
                ask(worker, rounds)
        for _ in range(repeats):
            for trainer, worker in workers.items():
                times = [ask(worker, rounds) for rounds in task.rounds]
                if not task.whole:
                    times[0] = (times[1] - times[0]) / (task.rounds[1] - task.rounds[0])
                runs[trainer].append(times[0])
    return runs


def train_from_csv(trainers: Sequence[str], task: Task, repeats: int) -> Runs:
    """Times from a CSV file to the file of a model, with the start of a process."""
    runs: Runs = {trainer: [] for trainer in trainers}
    with tempfile.TemporaryDirectory() as folder:
        path, model = str(Path(folder) / "rows.csv"), str(Path(folder) / "model.json")
        names = ",".join([*(f"x{i}" for i in range(task.columns)), "y"])
        np.savetxt(path, np.column_stack(make_rows(task)), "%.4g", ",", header=names, comments="")
        for _ in range(repeats):
            for trainer in trainers:
                library, params = MODULES.get(trainer, "xgboost"), parameters(trainer, task)
                matrix = "Dataset" if trainer == LIGHTGBM else "DMatrix"
                script = SCRIPT.format(library=library, matrix=matrix, params=params)
                words = command(trainer, "-c", script, path, model)
                if trainer == DP_HIST:
                    private = ["train", path, *COMMAND, "--model", model, "--force"]
                    words = command(trainer, "-m", "xgb_dp", *private)
                start, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
                subprocess.run(words, stdout=subprocess.DEVNULL, check=True, env=environment(1))
                elapsed = time.perf_counter() - start
                after = resource.getrusage(resource.RUSAGE_CHILDREN)
                busy = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
                runs[trainer].append(np.array([busy, elapsed]))
    return runs


def release(trainer: str) -> str:
    """The release of the library of a trainer."""
    ask = f"import {MODULES.get(trainer, 'xgboost')} as library; print(library.__version__)"
    return subprocess.check_output(command(trainer, "-c", ask), text=True).strip()


def table(lines: Sequence[Line], heads: dict[str, str], base: str, brief: bool = False) -> str:
    """Milliseconds, and ratios of one trainer to the others, as median (least-greatest).

    Args:
        lines: Rows of the table.
        heads: Heads of the trainers that have a column.
        base: The trainer that the others are compared with.
        brief: Show medians, and no ratios.
    """
    others = [trainer for trainer in heads if trainer != base and not brief]
    names = ["ms", *heads.values(), *(f"{base} / {trainer}" for trainer in others)]
    text = ["| " + " | ".join(names) + " |", "|---" * len(names) + "|"]
    for name, kind, runs in lines:
        times = {trainer: [1e3 * run[kind] for run in runs[trainer]] for trainer in heads}
        digits = 1 if statistics.median(times[base]) < 100 else 0
        cells = [spread(values, digits) for values in times.values()]
        cells = [cell.split(" ")[0] for cell in cells] if brief else cells
        cells += [ratios(times[base], times[trainer]) for trainer in others]
        text.append("| " + " | ".join([name, *cells]) + " |")
    return "\n".join(text)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, and write the tables if no trainer and no size is left out."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--trainers", nargs="+", choices=TRAINERS, default=TRAINERS)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--most-rows", type=int, default=10**6, help="leave out larger tables")
    parser.add_argument("--job", type=json.loads, help=argparse.SUPPRESS)
    args = parser.parse_args(arguments)
    if args.job:
        serve(args.job["trainer"], Task(**args.job["task"]))
        return
    trainers = args.trainers
    if not REFERENCE.exists():
        print("No Python >= 3.12 was found for other trainers, so they are left out.")
        trainers = [trainer for trainer in trainers if trainer not in MODULES]
    one, two, persons = list[Line](), list[Line](), list[Line]()
    for task in [*TREES, *TRAININGS]:
        if task.rows > args.most_rows:
            continue
        print(task, task.threads, file=sys.stderr, flush=True)
        per_person = not task.whole and task.threads == 1 and task.rows >= 100_000
        runs = take_turns([*trainers, PERSONS] if per_person else trainers, task, args.repeats)
        (one if task.threads == 1 else two).append((str(task), CPU, runs))
        if task.threads > 1:
            two.append((f"{task}, elapsed", ELAPSED, runs))
        if per_person:
            persons.append((str(task), CPU, runs))
    runs = train_from_csv(trainers, FROM_CSV, args.repeats)
    one.append((f"{FROM_CSV}, from CSV to model", CPU, runs))
    heads = {trainer: f"{trainer} {release(trainer)}" for trainer in trainers}
    heads |= {DP_HIST: DP_HIST}
    parts = [
        "CPU time, one thread:",
        table(one, heads, DP_HIST),
        "Two threads:",
        table(two, heads, DP_HIST),
        "CPU time with a privacy id, one thread:",
        table(persons, {DP_HIST: DP_HIST, PERSONS: PERSONS}, PERSONS),
    ]
    print("\n\n".join(parts))
    if trainers == TRAINERS and args.most_rows >= max(task.rows for task in TREES):
        write("\n\n".join(parts), PAGE, *MARKS)
        write(table(one, heads, DP_HIST, brief=True), ROOT / "docs" / "performance.md", *MARKS)


if __name__ == "__main__":
    main()
