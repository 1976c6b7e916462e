"""What private selection buys: test scores of the default, of a selection, and of the settings.

    XGB_DP_DATA=FOLDER .venv/bin/python -m benchmarks.settings --seeds 3

All that is called private spends the same epsilon and delta. "each" trains every setting with the
whole budget and shows the best and the worst of them on the test rows: no private method can know
which they are. Test rows are used for scores only.
"""

from __future__ import annotations

import argparse
import itertools
import statistics

import numpy as np
import xgboost as xgb
from sklearn.metrics import mean_squared_error, roc_auc_score

import xgb_dp
from experiments.datasets import ABALONE, ADULT, ELECTRICITY, EYE, HOUSE, POL, Dataset, load

DELTA = 1e-6
TASKS = {d.file: d for d in (ADULT, ELECTRICITY, HOUSE, POL, EYE, ABALONE)}
GRID = {"max_depth": [2, 4, 6], "num_boost_round": [20, 50, 100], "eta": [0.3]}


def split(data: Dataset, seed: int) -> tuple[xgb.DMatrix, xgb.DMatrix, dict[str, object]]:
    """Training and test rows, 70/30, and the declared parameters."""
    X, y, categories = load(data)
    rows = np.random.default_rng(1000 + seed).permutation(len(y))
    cut = int(0.7 * len(y))
    parts = [
        xgb.DMatrix(X.iloc[part], y[part], enable_categorical=True, nthread=1)
        for part in (rows[:cut], rows[cut:])
    ]
    params: dict[str, object] = {
        "tree_method": "dp_hist",
        "objective": data.objective,
        "nthread": 1,
        "dp_categories": categories or None,
    }
    if data.bounds:
        params["dp_target_bounds"] = data.bounds
    return parts[0], parts[1], params


def score(booster: xgb.Booster, test: xgb.DMatrix, data: Dataset) -> float:
    """AUC, or RMSE of regression."""
    scores, y = booster.predict(test), test.get_label()
    if data.bounds:
        return float(np.sqrt(mean_squared_error(y, scores)))
    return float(roc_auc_score(y, scores))


def trial(data: Dataset, epsilon: float, seed: int, runs: float) -> dict[str, float]:
    """Scores of one split."""
    train, test, params = split(data, seed)
    private = {**params, "dp_epsilon": epsilon, "dp_delta": DELTA}
    out = {"default": score(xgb.train(private, train, 50), test, data)}
    chosen = xgb_dp.select(params, train, GRID, epsilon=epsilon, delta=DELTA, mean_runs=runs)
    out["selection"] = score(chosen.booster, test, data)
    each = []
    for depth, rounds, eta in itertools.product(*GRID.values()):
        changed = {**private, "max_depth": depth, "eta": eta}
        each.append(score(xgb.train(changed, train, rounds), test, data))
    out["best of each"] = min(each) if data.bounds else max(each)
    out["worst of each"] = max(each) if data.bounds else min(each)
    return out


def main() -> None:
    """Print one line for each task and epsilon."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", nargs="+", default=list(TASKS), choices=list(TASKS))
    parser.add_argument("--epsilon", nargs="+", type=float, default=[1.0])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--runs", type=float, default=4.0)
    given = parser.parse_args()
    for name, epsilon in itertools.product(given.data, given.epsilon):
        scores = [trial(TASKS[name], epsilon, seed, given.runs) for seed in range(given.seeds)]
        for column in scores[0]:
            values = [trial[column] for trial in scores]
            spread = statistics.stdev(values) if len(values) > 1 else 0.0
            print(
                f"{name:16} eps={epsilon:<5g} {column:14} "
                f"{statistics.mean(values):.4f} ± {spread:.4f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
