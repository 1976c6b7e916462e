"""``python -m experiments.targets``: several targets at once, and each by itself, at one epsilon.

Three columns of California housing are predicted from the other six. One model of all targets has
the whole budget; three models of one target each share it, at the epsilon whose threefold
composition is certified for the whole. Stock XGBoost has all targets in one model, of the
best number of rounds on a fifth of the training rows. With ``--keep`` the figures are written to
the folder of results, and their table to experiments/pages/objectives.md.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache, partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import xgboost as xgb
from sklearn.model_selection import train_test_split

from xgb_dp.accounting import make_accountant
from xgb_dp.request.schema import read_schema
from xgb_dp.training.hook import prepare

from . import datasets
from .evaluation import RESULTS
from .lines import show_lines, with_part

Floats = npt.NDArray[np.float64]
BOUNDS = {
    "target": (0.0, 510_000.0),
    "medianIncome": (0.0, 15.0),
    "housingMedianAge": (0.0, 55.0),
}
"""Public ranges of the targets."""

PAGE = RESULTS.parent / "pages" / "objectives.md"
HEAD = ["trainer", "target", "split", "r2"]
EPSILON = 1.0
ETA, MOST_ROUNDS, PATIENCE, DEPTH = 0.2, 500, 20, 6


def rows() -> tuple[Floats, Floats]:
    """Features and targets, the columns of which are those of :data:`BOUNDS`."""
    frame = pd.read_parquet(datasets.path(datasets.CALIFORNIA))
    y = frame[list(BOUNDS)].to_numpy(dtype=np.float64)
    return frame.drop(columns=list(BOUNDS)).to_numpy(dtype=np.float64), y


def usual(epsilon: float, delta: float, threads: int) -> dict[str, Any]:
    """The default, told epsilon and delta."""
    return {
        "tree_method": "dp_hist", "dp_epsilon": epsilon, "dp_delta": delta, "nthread": threads,
    }  # fmt: skip


@lru_cache
def share(columns: int, epsilon: float, delta: float, times: int) -> float:
    """The epsilon of one of several models of one target that are epsilon together.

    Args:
        columns: Number of columns, none of which has public candidates.
        epsilon: Of all of them.
        delta: Of all of them; each is calibrated for it as well.
        times: How many there are.
    """
    schema = read_schema(xgb.DMatrix(np.empty((0, columns)), np.empty(0)))
    low, high = epsilon / times, epsilon
    for _ in range(12):
        middle = (low + high) / 2
        params = usual(middle, delta, 1) | {"dp_target_bounds": (0.0, 1.0)}
        events = prepare(params, schema, None).events * times
        if make_accountant("exact", events).get_epsilon(delta) <= epsilon:
            low = middle
        else:
            high = middle
    return low


def together(
    x: Floats, y: Floats, epsilon: float, delta: float, threads: int, class_trees: str = "joint"
) -> Any:
    """One private model of all targets."""
    params = usual(epsilon, delta, threads) | {"dp_target_bounds": list(BOUNDS.values())}
    params["dp_class_trees"] = class_trees
    model = xgb.train(params, xgb.DMatrix(x, y))
    return lambda rows: model.predict(xgb.DMatrix(rows))


def apart(x: Floats, y: Floats, epsilon: float, delta: float, threads: int) -> Any:
    """A private model of each target, of this epsilon each."""
    models = [
        xgb.train(
            usual(epsilon, delta, threads) | {"dp_target_bounds": bounds}, xgb.DMatrix(x, column)
        )
        for column, bounds in zip(y.T, BOUNDS.values(), strict=True)
    ]
    return lambda rows: np.stack([m.predict(xgb.DMatrix(rows)) for m in models], axis=1)


def stock(x: Floats, y: Floats, seed: int, threads: int) -> Any:
    """Stock XGBoost, of targets in deviations so that all count alike when it stops."""
    centre, deviation = y.mean(axis=0), y.std(axis=0)
    scaled = (y - centre) / deviation
    fit, judge = train_test_split(np.arange(len(y)), test_size=0.2, random_state=seed)
    params = {"max_depth": DEPTH, "eta": ETA, "nthread": threads, "seed": seed}
    model = xgb.train(
        params, xgb.DMatrix(x[fit], scaled[fit]), MOST_ROUNDS,
        evals=[(xgb.DMatrix(x[judge], scaled[judge]), "inner")],
        early_stopping_rounds=PATIENCE, verbose_eval=False,
    )  # fmt: skip
    model = xgb.train(params, xgb.DMatrix(x, scaled), model.best_iteration + 1)
    return lambda rows: model.predict(xgb.DMatrix(rows)) * deviation + centre


def explained(predict: Callable[[Floats], Floats], x: Floats, y: Floats) -> Floats:
    """R^2 of each target, predictions moved into the ranges."""
    low, high = zip(*BOUNDS.values(), strict=True)
    off = y - np.clip(predict(x), low, high)
    return np.asarray(1.0 - (off**2).mean(axis=0) / y.var(axis=0))


def trainers(x: Floats, y: Floats, seed: int, threads: int) -> dict[str, Callable[[], Any]]:
    """Every trainer of the table, by its name; each is a function that predicts once trained."""
    delta = 1.0 / len(y)
    given = (x, y, EPSILON, delta, threads)
    each = share(x.shape[1], EPSILON, delta, len(BOUNDS))
    return {
        "one model": partial(together, *given),
        "one model, own splits": partial(together, *given, "per_class"),
        "three models": partial(apart, x, y, each, delta, threads),
        "not private": partial(stock, x, y, seed, threads),
    }


def measured(splits: int, threads: int) -> Iterator[list[Any]]:
    """R^2 of each trainer, target and split."""
    x, y = rows()
    for seed in range(splits):
        fit, test = train_test_split(np.arange(len(y)), test_size=0.2, random_state=seed)
        for name, train in trainers(x[fit], y[fit], seed, threads).items():
            shares = explained(train(), x[test], y[test])
            for target, value in zip((*BOUNDS, "mean"), (*shares, shares.mean()), strict=True):
                yield [name, target, seed, f"{value:.4f}"]


def table(lines: Sequence[Sequence[Any]]) -> str:
    """Means and deviations over the splits, in Markdown."""
    scores: dict[str, dict[str, list[float]]] = {}
    for name, target, _, value in lines:
        scores.setdefault(name, {}).setdefault(target, []).append(float(value))
    text = f"\n| R² | {' | '.join((*BOUNDS, 'mean'))} |\n|---|{'---|' * (len(BOUNDS) + 1)}\n"
    for name, of in scores.items():
        cells = (f"{np.mean(v):.3f} ± {np.std(v, ddof=1):.3f}" for v in of.values())
        text += f"| {name} | {' | '.join(cells)} |\n"
    return text + "\n"


def main() -> None:
    """Measure, print and keep."""
    reader = argparse.ArgumentParser(description=__doc__)
    reader.add_argument("--splits", type=int, default=5, help="number of random splits")
    reader.add_argument("--threads", type=int, default=2, help="threads of a training")
    reader.add_argument("--keep", action="store_true", help="write experiments/results")
    given = reader.parse_args()
    keep = RESULTS / "targets.csv" if given.keep else None
    lines = show_lines(HEAD, measured(given.splits, given.threads), keep)
    if given.keep:
        page = with_part(PAGE.read_text(encoding="utf-8"), "targets", table(lines))
        PAGE.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
