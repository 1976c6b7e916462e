"""The default from 1,000 to 10,000,000 rows beside stock XGBoost: ``python -m experiments sizes``.

One generated task at all sizes (``many interactions`` in synthetic.py). 70% of the rows are for
training; the test rows are at least 100,000, so that small sizes can be told apart, and at most
300,000. The largest size takes some 6 GB in each process, and time: with 16 cores, first ``--jobs
16 --data`` with the smaller ones, then ``--jobs 4 --threads 4``. Numbers of threads and processes
do not change the results; a later call adds to those that are there.
"""

from __future__ import annotations

import math

from ..core import DEFAULT, PROBABILITIES, STOCK, System, Table
from ..datasets import Dataset
from ..summary import Means

SIZES = (1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000, 3_000_000, 10_000_000)
COLUMNS = 20


def of_size(rows: int) -> Dataset:
    """The task with that number of rows, of which 70% are for training."""
    train, test = 7 * rows // 10, min(max(3 * rows // 10, 100_000), 300_000)
    return Dataset(
        f"{rows:,} rows",
        generate="many interactions",
        size=(train + test, COLUMNS),
        test_rows=test,
    )


def draw(table: Table, results: Means) -> None:
    """AUC against the number of rows, a line for each budget."""
    import matplotlib.pyplot as plt

    rows = {of_size(n).name: n for n in SIZES}
    _, axis = plt.subplots(figsize=(6.0, 3.6))
    for epsilon in sorted({k[2] for k in results}):
        points = sorted((rows[k[0]], m.mean, m.sd) for k, m in results.items() if k[2] == epsilon)
        x, y, spread = zip(*points, strict=True)
        stock = math.isinf(epsilon)
        label = "not private" if stock else f"epsilon {epsilon:g}"
        style = {"color": "0.5", "linestyle": ":"} if stock else {"marker": "o", "ms": 4}
        axis.errorbar(x, y, spread, lw=1.2, capsize=2, label=label, **style)
    axis.set_xscale("log")
    axis.set_xlabel("rows, of which 70% are for training", fontsize=8)
    axis.set_ylabel("test AUC", fontsize=8)
    axis.tick_params(labelsize=7)
    axis.grid(alpha=0.3)
    axis.legend(fontsize=7)


TABLE = Table(
    name="sizes",
    title="The default from 1,000 to 10,000,000 rows",
    source="own measure, a generated task of 20 columns",
    datasets=tuple(of_size(rows) for rows in SIZES),
    systems=(DEFAULT, System(STOCK.name, preset="", params=STOCK.params, rounds=300)),
    epsilons=(0.1, 0.25, 1.0, 4.0),
    metrics={"": "auc"},
    layout="default",
    seeds=3,
    also=(*PROBABILITIES, "seconds"),
    draw=draw,
    notes=(
        "Of the rows, 70% are for training. Not private: `hist`, 300 trees of depth 6, eta 0.1.",
        "Seconds: training and prediction, of one process among others on a busy machine.",
    ),
)
