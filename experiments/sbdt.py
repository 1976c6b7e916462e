"""Head to head with S-BDT at its delta and on its splits: ``python -m experiments.sbdt``.

S-BDT (Peinemann et al. 2023) is the strongest published private booster. Adult without incomplete
rows, 70/30; Abalone 80/20; delta = 5e-8, a constant, so that the number of rows stays private. Its
figures are what its code reached on such splits with its tuned settings (its epsilon is understated
by 6% to 26%); ours have only epsilon and delta given.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
from tqdm import tqdm

from .bar import run
from .datasets import Dataset

DELTA = 5e-8
ADULT = Dataset("Adult, AUC", "adult", complete_rows=True)
ABALONE = Dataset("Abalone, RMSE", "abalone", "reg:squarederror", bounds=(0.0, 30.0))
# Test size, and the figures of S-BDT by epsilon.
TASKS = {
    ADULT: (0.3, {0.1: 0.875, 0.5: 0.901, 1.0: 0.907, 2.0: 0.910}),
    ABALONE: (0.2, {0.1: 2.77, 0.5: 2.61, 1.0: 2.59, 2.0: 2.58}),
}


def _job(task: tuple[Dataset, float, int]) -> float:
    data, epsilon, seed = task
    return run(data, epsilon, seed, 50, {"dp_delta": DELTA}, test_size=TASKS[data][0])


def main() -> None:
    """Run both tasks and print a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("build/sbdt.csv"))
    args = parser.parse_args()
    grid = [
        (data, epsilon, seed)
        for data, (_, theirs) in TASKS.items()
        for epsilon, seed in itertools.product(theirs, range(args.seeds))
    ]
    with ProcessPoolExecutor(args.jobs) as pool:
        scores = list(tqdm(pool.map(_job, grid), total=len(grid), file=sys.stderr))
    args.out.parent.mkdir(parents=True, exist_ok=True)
    with args.out.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["data", "epsilon", "seed", "score"])
        for (data, epsilon, seed), score in zip(grid, scores, strict=True):
            writer.writerow([data.name, epsilon, seed, f"{score:.6f}"])
    print("| data | eps | S-BDT | xgb-dp |\n|---|---|---|---|")
    for data, (_, theirs) in TASKS.items():
        for epsilon, figure in theirs.items():
            ours = [s for t, s in zip(grid, scores, strict=True) if t[:2] == (data, epsilon)]
            print(
                f"| {data.name} | {epsilon:g} | {figure} | "
                f"{np.mean(ours):.4f} ± {np.std(ours):.4f} |"
            )


if __name__ == "__main__":
    main()
