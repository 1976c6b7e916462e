"""Thousands of columns, most of them empty in a row: ``python -m experiments wide``.

Rows stay sparse: what a row does not have is neither stored nor trained on. Beside the default are
its trees without a start from columns, and what a table of words is usually given to, a logistic
regression by noisy gradient descent with its best step.
"""

from __future__ import annotations

import functools
import sys
import time
from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse, special
from sklearn.model_selection import train_test_split

from .. import datasets, synthetic
from ..core import DEFAULT, STOCK, Cell, Options, System, Table
from ..datasets import WEBDATA, Dataset
from ..scoring import scores
from ..train import Split, delta_of, here, parameters
from ..workers import descent

ROUNDS, CLIP = 60, 1.0  # of the logistic regression
STEPS = (2.0, 8.0, 32.0)
LINEAR = "logistic regression"


def strings(kind: str, rows: int, columns: int) -> Dataset:
    """A generated table."""
    return Dataset(f"{kind}, {columns:,} columns", generate=kind, size=(rows, columns))


TASKS = (
    WEBDATA,
    strings("few words", 20_000, 1_000),
    strings("many words", 20_000, 1_000),
    strings("topics", 20_000, 1_000),
    strings("presence", 20_000, 1_000),
    strings("few words", 40_000, 10_000),
)


@functools.lru_cache(maxsize=2)
def load(data: Dataset) -> tuple[sparse.csr_matrix, np.ndarray]:
    """Cells that are not 0, and labels."""
    if data.generate:
        return synthetic.words(data.generate, *data.size)
    frame, y, _ = datasets.load(data)
    return sparse.csr_matrix(frame.to_numpy(dtype=np.float32)), y


def linear(system: System, epsilon: float, delta: float, parts: Split) -> np.ndarray:
    """Probabilities of the test rows by noisy gradient descent."""
    x = descent.unit_rows(parts.x_train)
    mu = descent.gaussian_mu(epsilon, delta)
    weights = descent.fit(x, parts.y_train, mu, ROUNDS, system.params["step"], CLIP)
    return special.expit(descent.unit_rows(parts.x_test) @ weights)


def compute(table: Table, cell: Cell, options: Options) -> dict[str, Any]:
    """Train and score one cell."""
    data, system = table.dataset(cell.dataset), table.system(cell.system)
    x, y = load(data)
    x_train, x_test, y_train, y_test = train_test_split(
        x, y, test_size=table.held_out(data.name), random_state=cell.seed
    )
    parts = Split(x_train, x_test, y_train, y_test, {}, {}, {}, ())
    shared = {"dataset": cell.dataset, "system": cell.system, "epsilon": cell.epsilon,
              "seed": cell.seed, "n_train": len(parts.y_train), "columns": x.shape[1]}  # fmt: skip
    if system.peer:
        start = time.perf_counter()
        predicted = linear(system, cell.epsilon, delta_of(table, system, len(y)), parts)
        measured: dict[str, Any] = {"seconds": round(time.perf_counter() - start, 3)}
    else:
        extra = options.extra if system.name == DEFAULT.name else ()
        params = parameters(table, data, system, cell.epsilon, parts, extra, options.threads)
        predicted, measured = here(params, parts, system.rounds, None, private=system.private)
    return shared | scores(data.objective, parts.y_test, predicted) | measured


TABLE = Table(
    name="wide",
    title="Thousands of columns",
    source="own measure",
    datasets=TASKS,
    systems=(
        DEFAULT,
        System("trees", params={"dp_split": "exponential"}, rounds=None),
        *(
            System(f"{LINEAR}, step {step:g}", peer="here", method="descent", params={"step": step})
            for step in STEPS
        ),
        replace(STOCK, params={"tree_method": "hist"}, rounds=75),
    ),
    epsilons=(1.0,),
    metrics={"": "auc"},
    also=("seconds", "tree_ms"),
    compute=compute,
    best_of=True,
    seeds=1,
    notes=(
        "Cells that are 0 are not stored. Few words: texts as counts of words by Zipf's law, of "
        "which one in twenty matters for the label, on the log scale and linearly. Many words: "
        "every second matters. Topics: as few words, and texts are mixtures of ten topics. "
        "Presence: cells say only whether a word occurs, and every second matters. "
        f"{WEBDATA.name}: {WEBDATA.file}, 300 binary columns, 3% ones.",
        '`trees` is the default without a start from columns (`dp_split="exponential"`).',
        f"{LINEAR.capitalize()}: {ROUNDS} steps of noisy gradient descent on rows of norm 1 "
        "(log(1 + count) and an intercept), the best of three step lengths, chosen on test scores.",
        "Seconds: training and prediction in one thread of a busy machine; CPU milliseconds a tree "
        "are of training alone.",
    ),
)

if __name__ == "__main__":
    from ..__main__ import main

    sys.exit(main(["wide", *sys.argv[1:]]))
