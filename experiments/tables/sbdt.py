"""Head to head with S-BDT at its delta and on its splits: ``python -m experiments sbdt``.

S-BDT (Peinemann et al. 2023) is the strongest published private booster. Adult without incomplete
rows, 70/30; Abalone 80/20; delta = 5e-8, a constant, so that the number of rows stays private. Its
figures are what its code reached on such splits with its tuned settings (its epsilon is understated
by 6% to 26%); ours have only epsilon and delta given.
"""

import sys
from dataclasses import replace

from ..core import DEFAULT, STOCK, Table
from ..datasets import ABALONE, ADULT

TABLE = Table(
    name="sbdt",
    title="Head to head with S-BDT",
    source="Peinemann et al., S-BDT (2023), its code on such splits",
    datasets=(replace(ADULT, name="Adult (complete)", complete_rows=True), ABALONE),
    systems=(DEFAULT, STOCK),
    epsilons=(0.1, 0.5, 1.0, 2.0),
    metrics={"": "auc", "Abalone": "rmse"},
    test_size={"": 0.3, "Abalone": 0.2},
    delta=5e-8,
    seeds=10,
)

if __name__ == "__main__":
    from ..__main__ import main

    sys.exit(main(["sbdt", *sys.argv[1:]]))
