"""What a user's own learning rate and rounds cost: ``python -m experiments own_settings``.

The settings are habits from training without privacy. The first three data sets chose how private
training treats them; the others confirm it.
"""

import sys

from ..core import DEFAULT, System, Table
from ..datasets import (
    ABALONE,
    ADULT,
    CREDIT2,
    ELECTRICITY,
    HOUSE_PRICES,
    POL_NUMBERS,
    PRICES,
    SLEEP,
)

TABLE = Table(
    name="own_settings",
    title="Learning rates and rounds of a user's own",
    source="own measure",
    datasets=(
        PRICES,
        HOUSE_PRICES,
        ABALONE,
        POL_NUMBERS,
        ADULT,
        CREDIT2,
        ELECTRICITY,
        SLEEP,
    ),
    systems=(
        DEFAULT,
        System("eta 0.1, rounds open", params={"eta": 0.1}, rounds=None),
        System("eta 0.1, depth 6, 150 rounds", params={"eta": 0.1, "max_depth": 6}, rounds=150),
        System("eta 0.05, depth 6, 500 rounds", params={"eta": 0.05, "max_depth": 6}, rounds=500),
        System("eta 0.05, 50 rounds", params={"eta": 0.05}, rounds=50),
    ),
    epsilons=(0.25, 1.0, 4.0),
    metrics={"": "auc", SLEEP.name: "log_loss"}
    | {data.name: "r2" for data in (PRICES, HOUSE_PRICES, ABALONE, POL_NUMBERS)},
    layout="epsilons",
    seeds=2,
)

if __name__ == "__main__":
    from ..__main__ import main

    sys.exit(main(["own_settings", *sys.argv[1:]]))
