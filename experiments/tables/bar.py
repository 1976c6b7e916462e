"""Test scores with only epsilon and delta given: ``python -m experiments bar``.

Plain 70/30 splits, delta = 1/n_train (which treats n as public, as the papers do), nothing tuned
per data set, beside stock XGBoost (hist, 150 rounds, eta 0.1, depth 6). With 16 cores:
``python -m experiments bar --seeds 20 --jobs 16 --keep``.
"""

import sys

from ..core import DEFAULT, PROBABILITIES, STOCK, Table
from ..datasets import BAR

TABLE = Table(
    name="bar",
    title="Accuracy with only epsilon and delta given",
    source="own measure",
    datasets=BAR,
    systems=(DEFAULT, STOCK),
    epsilons=(0.1, 0.25, 1.0, 4.0),
    metrics={"": "auc", "Abalone": "rmse"},
    layout="default",
    also=PROBABILITIES,
)

if __name__ == "__main__":
    from ..__main__ import main

    sys.exit(main(["bar", *sys.argv[1:]]))
