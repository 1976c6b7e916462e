"""Counts, amounts, times and quantiles: private trainings, stock XGBoost and constants.

Stock XGBoost is tuned: of a small grid, the setting and the number of rounds are those with the
least loss on a fifth of the training rows, and it is trained again on all of them.
"""

from __future__ import annotations

import functools
import math
import time
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pandas as pd
import xgboost as xgb
from sklearn.model_selection import train_test_split

from . import datasets, losses
from .core import Cell, Options, Table
from .datasets import Dataset
from .train import delta_of, report

CONSTANT = "constant"
DISTRIBUTION = "logistic"  # of our own default
INNER = 0.2
MOST_ROUNDS = 2000
PATIENCE = 50
ETA = 0.05
GRID: tuple[dict[str, Any], ...] = (
    {"max_depth": 3},
    {"max_depth": 5},
    {"max_depth": 7},
)
TIMES: tuple[dict[str, Any], ...] = tuple(
    {
        "max_depth": depth,
        "aft_loss_distribution": distribution,
        "aft_loss_distribution_scale": scale,
    }
    for depth in (3, 5)
    for distribution in ("normal", "logistic")
    for scale in (1.0, 1.5, 2.0)
)
# Columns are sampled and leaves are large, as on data with as much chance as these have.
NOISY = {"colsample_bytree": 0.7, "subsample": 0.8}
LEAVES = {"count:poisson": 20.0, "reg:tweedie": 200.0, "reg:gamma": 50.0}
METRIC = {
    "count:poisson": "poisson-nloglik",
    "reg:gamma": "gamma-deviance",
    "reg:tweedie": f"tweedie-nloglik@{losses.TWEEDIE_POWER}",
    "reg:quantileerror": "quantile",
    "reg:absoluteerror": "mae",
    "survival:aft": "aft-nloglik",
}


@dataclass(frozen=True)
class Rows:
    """Rows of a task.

    Attributes:
        x: Features.
        y: Labels; of a time until it was seen or censored.
        exposure: Of each row; ones where the task has none.
        seen: Whether the end of the time was seen; True where the task has no times.
    """

    x: pd.DataFrame
    y: np.ndarray
    exposure: np.ndarray
    seen: np.ndarray

    def __getitem__(self, rows: np.ndarray) -> Rows:
        return Rows(self.x.iloc[rows], self.y[rows], self.exposure[rows], self.seen[rows])

    def matrix(self, data: Dataset, threads: int, **more: Any) -> xgb.DMatrix:
        """The rows as XGBoost takes them."""
        out = xgb.DMatrix(self.x, enable_categorical=True, nthread=threads, **more)
        if data.event:
            out.set_float_info("label_lower_bound", self.y)
            out.set_float_info("label_upper_bound", np.where(self.seen, self.y, np.inf))
        else:
            out.set_label(self.y)
        if data.exposure:
            out.set_base_margin(np.log(self.exposure))
        return out


@functools.lru_cache(maxsize=2)
def loaded(data: Dataset) -> tuple[Rows, dict[str, list[str]]]:
    """All rows of a task, and its declared categories."""
    x, y, categories = datasets.load(data)
    ones = np.ones(len(y))
    exposure = datasets.column(data, data.exposure) if data.exposure else ones
    seen = datasets.column(data, data.event) > 0 if data.event else ones > 0
    return Rows(x, y.astype(np.float64), exposure, seen), categories


def parts(table: Table, data: Dataset, seed: int) -> tuple[Rows, Rows]:
    """Training and test rows of a split."""
    rows, _ = loaded(data)
    train, test = train_test_split(
        np.arange(len(rows.y)), test_size=table.held_out(data.name), random_state=seed
    )
    return rows[train], rows[test]


def shared(data: Dataset) -> dict[str, Any]:
    """Parameters that say what is fitted."""
    out: dict[str, Any] = {"objective": data.objective}
    if data.objective == "reg:quantileerror":
        out["quantile_alpha"] = list(data.quantiles)
    if data.objective == "reg:tweedie":
        out["tweedie_variance_power"] = losses.TWEEDIE_POWER
    return out


def tuned(
    data: Dataset, train: Rows, seed: int, threads: int
) -> tuple[xgb.Booster, dict[str, Any]]:
    """Stock XGBoost, and the parameters that were taken."""
    rest, inner = train_test_split(np.arange(len(train.y)), test_size=INNER, random_state=seed)
    fitted, judge = (train[rows].matrix(data, threads) for rows in (rest, inner))
    best: tuple[float, int, dict[str, Any]] = (math.inf, 0, {})
    for setting in TIMES if data.event else GRID:
        params = shared(data) | setting | NOISY
        params |= {"eta": ETA, "nthread": threads, "tree_method": "hist", "seed": seed}
        params["min_child_weight"] = LEAVES.get(data.objective, 5.0)
        params["eval_metric"] = METRIC[data.objective]
        booster = xgb.train(
            params,
            fitted,
            MOST_ROUNDS,
            evals=[(judge, "inner")],
            early_stopping_rounds=PATIENCE,
            verbose_eval=False,
        )
        candidate = (booster.best_score, booster.best_iteration + 1, params)
        best = min(best, candidate, key=lambda one: one[0])
    _, rounds, params = best
    return xgb.train(params, train.matrix(data, threads), rounds), params


def constant(data: Dataset, train: Rows, test: Rows) -> np.ndarray:
    """What the best constant predicts, of a rate times the exposure where there is one."""
    if data.quantiles:
        return np.tile(np.quantile(train.y, data.quantiles), (len(test.y), 1))
    if data.event:
        return np.full(len(test.y), np.exp(np.log(train.y).mean()))
    return train.y.sum() / train.exposure.sum() * test.exposure


def private(
    table: Table, data: Dataset, cell: Cell, train: Rows, extra: Any, threads: int
) -> tuple[xgb.Booster, dict[str, Any]]:
    """The default, told epsilon, delta, the categories and the bounds of the labels."""
    system = table.system(cell.system)
    params = shared(data) | {
        "tree_method": "dp_hist",
        "dp_epsilon": cell.epsilon,
        "dp_delta": delta_of(table, system, len(train.y)),
        "dp_target_bounds": data.bounds,
        "nthread": threads,
    }
    categories = loaded(data)[1]
    if categories:
        params["dp_categories"] = categories
    if data.exposure:
        params |= {"dp_base_margin": True, "dp_exposure_bounds": (0.001, 1.0)}
    params |= dict(system.params) | dict(extra)
    rounds = {} if system.rounds is None else {"num_boost_round": system.rounds}
    return xgb.train(params, train.matrix(data, threads), **rounds), params


def scores(
    data: Dataset, test: Rows, predicted: np.ndarray, params: dict[str, Any]
) -> dict[str, float]:
    """All metrics of a task.

    Raises:
        ValueError: If a prediction is not finite.
    """
    if not np.isfinite(predicted).all():
        raise ValueError("a prediction is not finite")
    predicted = predicted.astype(np.float64)
    if data.quantiles:
        quantiles = predicted.reshape(len(test.y), -1)
        return {
            "pinball": losses.pinball(test.y, quantiles, data.quantiles),
            "coverage_gap": losses.coverage_gap(test.y, quantiles, data.quantiles),
        }
    if data.event:
        distribution = str(params.get("aft_loss_distribution", DISTRIBUTION))
        scale = float(params.get("aft_loss_distribution_scale", 1.0))
        return {
            "concordance": losses.concordance(test.y, test.seen, predicted),
            "survival_gap": losses.survival_gap(
                test.y, test.seen, np.log(predicted), distribution, scale
            ),
        }
    return {
        "deviance": losses.DEVIANCES[data.objective](test.y, predicted),
        "gini": losses.gini(test.y, predicted, test.exposure),
        "mean_ratio": float(predicted.mean() / test.y.mean()),
    }


def compute(table: Table, cell: Cell, options: Options) -> dict[str, Any]:
    """Train and score one cell."""
    data = table.dataset(cell.dataset)
    train, test = parts(table, data, cell.seed)
    start = time.perf_counter()
    measured: dict[str, Any] = {"n_train": len(train.y), "columns": train.x.shape[1]}
    params: dict[str, Any] = {}
    if cell.system == CONSTANT:
        predicted = constant(data, train, test)
    else:
        if table.system(cell.system).private:
            extra = options.extra if cell.system == "default" else ()
            booster, params = private(table, data, cell, train, extra, options.threads)
            measured |= report(booster)
        else:
            booster, params = tuned(data, train, cell.seed, options.threads)
        measured["rounds"] = booster.num_boosted_rounds()
        predicted = booster.predict(test.matrix(data, options.threads))
    measured["seconds"] = round(time.perf_counter() - start, 3)
    return asdict(cell) | scores(data, test, predicted, params) | measured
