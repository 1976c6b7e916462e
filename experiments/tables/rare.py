"""Rare classes beside the constant prediction: ``python -m experiments rare``.

Rows of class 1 are removed from the training rows until one of 20 to 1,000 rows of class 0 is left.
The test rows keep theirs, with weights that give the class its share of the training rows. The
first three data sets are for choosing among estimators of the intercept, the others confirm.
"""

from __future__ import annotations

import math
import sys
from dataclasses import asdict, replace
from typing import Any

import numpy as np
from sklearn.metrics import log_loss, roc_auc_score

from .. import render
from ..core import DEFAULT, Cell, Options, System, Table
from ..datasets import ADULT, BANK, COVTYPE_25K, CREDIT1, CREDIT2, ELECTRICITY, HOUSE, Dataset
from ..scoring import LEAST
from ..summary import Means
from ..train import here, parameters, split

NEGATIVES = (20, 100, 300, 1000)
GENERATED = Dataset("Generated", generate="many interactions", size=(30_000, 12))
DATA = (BANK, CREDIT2, COVTYPE_25K, ADULT, CREDIT1, ELECTRICITY, HOUSE, GENERATED)
EXACT = "exact intercept"  # not private


def name(data: Dataset, negatives: int) -> str:
    """Name of a data set with a rare class."""
    return f"{data.name}, 1:{negatives}"


def compute(table: Table, cell: Cell, options: Options) -> dict[str, Any]:
    """Train and score one cell."""
    system, data = table.system(cell.system), table.dataset(cell.dataset)
    parts = split(data, system, cell.seed, table.held_out(data.name), stratify=False)
    extra = options.extra if system.name == DEFAULT.name else ()
    params = parameters(table, data, system, cell.epsilon, parts, extra, options.threads)
    share = float(np.mean(parts.y_train, dtype=np.float64))
    if system.name == EXACT:
        params["base_score"] = share
    predicted, measured = here(params, parts, system.rounds, None, private=True)
    y = parts.y_test > 0.5
    weight = np.where(y, share / y.mean(), (1.0 - share) / (1.0 - y.mean()))
    p = np.clip(predicted.astype(np.float64), LEAST, 1.0 - LEAST)
    loss = float(log_loss(y, p, sample_weight=weight))
    entropy = -share * math.log(share) - (1.0 - share) * math.log1p(-share)
    scores = {
        "excess": 100.0 * (loss / entropy - 1.0),
        "auc": float(roc_auc_score(y, p)),
        "log_loss": loss,
        "mean_ratio": float(np.average(p, weights=weight)) / share,
    }
    shape = {"n_train": len(parts.y_train), "columns": parts.x_train.shape[1]}
    return asdict(cell) | shape | scores | measured


def lines(table: Table, results: Means) -> list[str]:
    """A row for each ratio and system: the mean over the data sets, and the largest."""
    epsilons = sorted({k[2] for k in results})
    out = []
    for negatives in NEGATIVES:
        for system in table.systems:
            line = [f"1:{negatives}", system.name]
            for epsilon in epsilons:
                keys = ((name(data, negatives), system.name, epsilon) for data in DATA)
                values = [results[key].mean for key in keys if key in results]
                line.append(f"{np.mean(values):+.1f} ({max(values):+.1f})" if values else "")
            out.append(line)
    return ["", *render.grid(["ratio", "system", *map(render.head, epsilons)], out)]


TABLE = Table(
    name="rare",
    title="Rare classes",
    source="own measure",
    datasets=tuple(
        replace(data, name=name(data, negatives), negatives=negatives)
        for negatives in NEGATIVES
        for data in DATA
    ),
    systems=(DEFAULT, System(EXACT, rounds=None)),
    epsilons=(0.1, 0.25, 1.0),
    metrics={"": "excess"},
    also=("auc", "log_loss", "mean_ratio"),
    compute=compute,
    lines=lines,
    seeds=3,
    notes=(
        "Log loss above that of the exact class share, in % of it: mean over "
        f"{len(DATA)} data sets, and the largest of them in brackets.",
    ),
)

if __name__ == "__main__":
    from ..__main__ import main

    sys.exit(main(["rare", *sys.argv[1:]]))
