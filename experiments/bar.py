"""Test scores with only epsilon and delta given: ``python -m experiments.bar``.

Plain 70/30 splits, delta = 1/n_train (which treats n as public, as the papers do), nothing tuned
per data set. A negative epsilon stands for stock XGBoost (hist, 150 rounds, eta 0.1, depth 6).
Writes one CSV row per run and prints the table of means and standard deviations.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import sys
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

import numpy as np
import xgboost as xgb
from sklearn.metrics import mean_squared_error, roc_auc_score
from sklearn.model_selection import train_test_split
from tqdm import tqdm

from .datasets import BAR, Dataset, load


def run(
    data: Dataset,
    epsilon: float,
    seed: int,
    rounds: int,
    extra: dict[str, Any],
    *,
    test_size: float = 0.3,
) -> float:
    """Test AUC, or RMSE for regression, of one training."""
    x, y, categories = load(data)
    x_train, x_test, y_train, y_test = train_test_split(
        x, y, test_size=test_size, random_state=seed
    )
    dtrain = xgb.DMatrix(x_train, y_train, enable_categorical=True)
    dtest = xgb.DMatrix(x_test, y_test, enable_categorical=True)
    params: dict[str, Any] = {"objective": data.objective, "nthread": 1}
    if epsilon < 0:  # stock XGBoost
        params |= {"tree_method": "hist", "eta": 0.1, "max_depth": 6}
        rounds = 150
    else:
        params |= {
            "tree_method": "dp_hist",
            "dp_epsilon": epsilon,
            "dp_delta": 1.0 / len(y_train),
        }
        if categories:
            params["dp_categories"] = categories
        if data.bounds:
            params["dp_target_bounds"] = data.bounds
        params |= extra
    booster = xgb.train(params, dtrain, rounds)
    predicted = booster.predict(dtest)
    if data.bounds:
        return float(np.sqrt(mean_squared_error(y_test, predicted)))
    return float(roc_auc_score(y_test, predicted))


def main() -> None:
    """Run the grid in parallel and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epsilon", type=float, nargs="+", default=[0.1, 0.25, 1.0, 4.0])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--data", nargs="+", help="names of data sets, all by default")
    parser.add_argument("--set", nargs="+", default=[], help="extra parameters, key=value")
    parser.add_argument("--out", type=Path, default=Path("build/bar.csv"))
    args = parser.parse_args()
    tasks = [d for d in BAR if not args.data or d.name in args.data or d.file in args.data]
    extra = dict(pair.split("=", 1) for pair in args.set)

    scores: dict[tuple[str, float], list[float]] = {}
    args.out.parent.mkdir(parents=True, exist_ok=True)
    with args.out.open("w", newline="") as file, ProcessPoolExecutor(args.jobs) as pool:
        writer = csv.writer(file)
        writer.writerow(["data", "epsilon", "seed", "rounds", "score"])
        grid = itertools.product(tasks, args.epsilon, range(args.seeds))
        jobs = {pool.submit(run, d, e, s, args.rounds, extra): (d, e, s) for d, e, s in grid}
        for job in tqdm(as_completed(jobs), total=len(jobs), file=sys.stderr):
            data, epsilon, seed = jobs[job]
            score = job.result()
            scores.setdefault((data.name, epsilon), []).append(score)
            writer.writerow([data.name, epsilon, seed, args.rounds, f"{score:.6f}"])

    heads = ("not private" if e < 0 else f"eps = {e:g}" for e in args.epsilon)
    print("| data | " + " | ".join(heads) + " |")
    print("|---" * (len(args.epsilon) + 1) + "|")
    for data in tasks:
        cells = [scores[data.name, e] for e in args.epsilon]
        text = " | ".join(f"{np.mean(c):.4f} ± {np.std(c):.4f}" for c in cells)
        print(f"| {data.name} | {text} |")


if __name__ == "__main__":
    main()
