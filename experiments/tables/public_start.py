"""What a public start is worth: ``python -m experiments public_start``.

Stock trees of a public part of the rows, private trees of another part on top, and a test part. The
private part is of PRIVATE rows, whatever the public one is. Beside it: the same public rows as the
source of candidates. Of one data set the public rows are of another population than the private
ones and the test rows: men, where these are women.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import pandas as pd
import xgboost as xgb

from .. import render
from ..core import DEFAULT, METRICS, Cell, Options, System, Table
from ..datasets import ADULT, Dataset, load
from ..scoring import scores
from ..train import report

PRIVATE, TEST = 10_000, 10_000
STARTS = (500, 5_000, 50_000)
USES = {"start": "start", "cuts": "candidates"}
"""What public rows are used for: the first word of a system, and what the table calls it."""
EPSILONS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
SHOWN = (0.1, 0.25, 1.0, 4.0)
HEART = Dataset("Heart", "heart_2020")
WOMEN = Dataset("Heart, men first", "heart_2020", drop=("Sex",))
STOCK = {"tree_method": "hist", "eta": 0.1, "max_depth": 4, "min_child_weight": 5}
MOST_ROUNDS, PATIENCE = 500, 20
_loaded = functools.lru_cache(maxsize=1)(load)


def populations(data: Dataset) -> np.ndarray:
    """Whether a row is of the population that the public rows are taken from, shape (rows,)."""
    _, y, _ = _loaded(data)
    if data.name != WOMEN.name:
        return np.ones(len(y), dtype=bool)
    x, _, _ = load(HEART)
    return np.asarray(x["Sex"] == "Male")


def parts(data: Dataset, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Numbers of the public, private and test rows; the public ones are all that are left."""
    there = populations(data)
    order = np.random.default_rng(seed).permutation(len(there))
    here = order if there.all() else order[~there[order]]
    test, private = here[:TEST], here[TEST : TEST + PRIVATE]
    public = here[TEST + PRIVATE :] if there.all() else order[there[order]]
    return public, private, test


def start_of(matrix: Callable[[np.ndarray], xgb.DMatrix], rows: np.ndarray) -> xgb.Booster:
    """A stock model of the rows, with as many rounds as a fifth of them say."""
    params = {**STOCK, "objective": "binary:logistic", "nthread": 1}
    cut = len(rows) * 4 // 5
    stopped = xgb.train(
        params,
        matrix(rows[:cut]),
        MOST_ROUNDS,
        evals=[(matrix(rows[cut:]), "public")],
        early_stopping_rounds=PATIENCE,
        verbose_eval=False,
    )
    return xgb.train(params, matrix(rows), stopped.best_iteration + 1)


def compute(table: Table, cell: Cell, options: Options) -> dict[str, Any]:
    """Train and score one cell."""
    data, system = table.dataset(cell.dataset), table.system(cell.system)
    x, y, categories = _loaded(data)
    public, private, test = parts(data, cell.seed)

    def matrix(rows: np.ndarray) -> xgb.DMatrix:
        frame: pd.DataFrame = x.iloc[rows]
        return xgb.DMatrix(frame, y[rows], enable_categorical=True, nthread=options.threads)

    rows = int(system.params.get("public_rows", 0))
    if rows > len(public):
        return asdict(cell) | {"note": f"{len(public)} public rows only"}
    use = cell.system.split(",")[0]
    booster = start_of(matrix, public[:rows]) if rows and use in ("start", "alone") else None
    released: dict[str, Any] = {}
    if system.private:
        params = {
            "tree_method": "dp_hist",
            "objective": data.objective,
            "dp_epsilon": cell.epsilon,
            "dp_delta": table.delta,
            "dp_categories": categories,
            "nthread": options.threads,
            "verbosity": 0,
        }
        if booster is not None:
            params["dp_public_model"] = True
        elif rows:
            params["dp_public_data"] = matrix(public[:rows])
        booster = xgb.train(params, matrix(private), xgb_model=booster)
        released = report(booster)
    assert booster is not None
    figures = scores(data.objective, y[test], booster.predict(matrix(test)))
    shape = {"n_train": len(private), "columns": x.shape[1], "rounds": booster.num_boosted_rounds()}
    return asdict(cell) | shape | figures | released


def worth(curve: Sequence[tuple[float, float]], score: float) -> str:
    """The epsilon at which training without a start has a score, by its curve over epsilon.

    Args:
        curve: (epsilon, mean score), by rising epsilon; higher scores are better.
        score: Of a training with a start.
    """
    best = np.maximum.accumulate([s for _, s in curve])
    logs = np.log([e for e, _ in curve])
    if score > best[-1]:
        return f"> {curve[-1][0]:g}"
    if score <= best[0]:
        return f"< {curve[0][0]:g}"
    at = int(np.searchsorted(best, score))
    part = (score - best[at - 1]) / (best[at] - best[at - 1])
    return f"{np.exp(logs[at - 1] + part * (logs[at] - logs[at - 1])):.2g}"


def lines(table: Table, means: Any) -> list[str]:
    """Scores, and the epsilon that a training without a start needs for the same score."""
    out: list[str] = []
    for data in table.datasets:
        metric = table.metric(data.name)
        sign = 1.0 if metric == "auc" else -1.0

        def score(system: str, epsilon: float, name: str = data.name) -> float | None:
            points = means.get((name, system, epsilon))
            return None if points is None else float(points.mean)

        points = [(e, score(DEFAULT.name, e)) for e in EPSILONS]
        curve = [(e, sign * s) for e, s in points if s is not None]
        shown = [_line("none", "", [score(DEFAULT.name, e) for e in SHOWN], [""] * len(SHOWN))]
        for rows in STARTS:
            alone = score(f"alone, {rows}", np.inf)
            if alone is None:
                continue
            for use, name in USES.items():
                cells = [score(f"{use}, {rows}", e) for e in SHOWN]
                worths = [worth(curve, sign * s) if s is not None else "" for s in cells]
                if any(cells):
                    only = f"{alone:.4f}" if use == "start" else ""
                    shown.append(_line(f"{name}, {rows:,} rows", only, cells, worths))
        heads = ["public rows", "alone", *map(render.head, SHOWN)]
        out += [f"**{data.name}**, {METRICS[metric]}", "", *render.grid(heads, shown), ""]
    return out


def _line(name: str, alone: str, cells: Sequence[float | None], worths: Sequence[str]) -> list[str]:
    shown = [
        "" if s is None else f"{s:.4f}" + (f" ({worth})" if worth else "")
        for s, worth in zip(cells, worths, strict=True)
    ]
    return [name, alone, *shown]


TABLE = Table(
    name="public_start",
    title="What a public start is worth",
    source="own measure",
    datasets=(ADULT, HEART, WOMEN),
    systems=(
        DEFAULT,
        *(System(f"start, {n}", params={"public_rows": n}, rounds=None) for n in STARTS),
        *(System(f"cuts, {n}", params={"public_rows": n}, rounds=None) for n in STARTS[:2]),
        *(System(f"alone, {n}", preset="", params={"public_rows": n}) for n in STARTS),
    ),
    epsilons=EPSILONS,
    only=lambda data, system, epsilon: (
        (system == DEFAULT.name or system.startswith("alone") or epsilon in SHOWN)
        and not (data == ADULT.name and system.endswith(str(STARTS[-1])))
    ),
    metrics={"": "auc", WOMEN.name: "log_loss"},
    also=("auc", "log_loss", "calibration", "mean_ratio"),
    compute=compute,
    lines=lines,
    seeds=3,
    delta=1e-6,
    notes=(
        f"{PRIVATE:,} private rows and {TEST:,} test rows. In brackets the ε at which "
        "the default without a start has the same score on the same private rows, by the line "
        "through its means at ε = .05 to 8.",
        "The start: stock XGBoost, depth 4, eta .1, as many rounds as a fifth of the public rows "
        "say. Alone: the start without any private tree. Candidates: `dp_public_data`.",
        "Heart, men first: the public rows are men, the private rows and the test rows women, "
        "and no column says which.",
    ),
)

if __name__ == "__main__":
    from ..__main__ import main

    sys.exit(main(["public_start", *sys.argv[1:]]))
