"""Several classes and numbers, with only epsilon and delta given: ``python -m experiments tasks``.

Splits, delta and stock XGBoost as in ``bar``. The bounds of targets are public.
"""

from ..core import DEFAULT, PROBABILITIES, STOCK, Table
from ..datasets import (
    ABALONE,
    COVTYPE_7,
    FARS,
    HOSPITALS,
    HOUSE_PRICES,
    POL_NUMBERS,
    PRICES,
    SLEEP,
)

CLASSES = (SLEEP, FARS, HOSPITALS, COVTYPE_7)
NUMBERS = (PRICES, HOUSE_PRICES, POL_NUMBERS, ABALONE)

TABLE = Table(
    name="tasks",
    title="Several classes and regression",
    source="own measure",
    datasets=(*CLASSES, *NUMBERS),
    systems=(DEFAULT, STOCK),
    epsilons=(0.25, 1.0, 4.0),
    metrics={"": "r2"} | {data.name: "log_loss" for data in CLASSES},
    layout="default",
    also=("error", "rmse", *PROBABILITIES),
    notes=(
        "Predictions of numbers are the model's own, which may lie beyond the declared range. The "
        "estimator moves them to its end.",
    ),
)
