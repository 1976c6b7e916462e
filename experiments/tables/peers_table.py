"""Libraries of others from PyPI on the same splits, each in its own environment.

Their budgets are what they claim; docs/peers.md says which claims fail. Sarus' package has the
settings of its paper, the others their own defaults. delta = 1/n, except that Sarus and diffprivlib
claim pure epsilon.
"""

from dataclasses import replace

from ..core import DEFAULT, PROBABILITIES, STOCK, System, Table
from ..datasets import ABALONE, ADULT, BANK, CREDIT2

TABLE = Table(
    name="peers_table",
    title="Other libraries, side by side",
    source="dp-xgboost 0.2.10, interpret-core 0.7.8 and diffprivlib 0.6.6 from PyPI, run here",
    datasets=(
        replace(ADULT, name="Adult (complete)", complete_rows=True),
        BANK,
        CREDIT2,
        ABALONE,
    ),
    systems=(
        DEFAULT,
        System("dp-xgboost (Sarus)", peer="dp-xgboost", inputs="codes", rounds=20),
        System("DP-EBM (interpret)", peer="interpret-core", inputs="codes"),
        System("diffprivlib", peer="diffprivlib", inputs="codes"),
        STOCK,
    ),
    epsilons=(0.1, 0.5, 1.0, 4.0),
    metrics={"": "auc", "Abalone": "rmse"},
    seeds=3,
    also=PROBABILITIES,
    notes=(
        "dp-xgboost and diffprivlib claim pure ε.",
        "diffprivlib: random forest of ten trees for classes, linear regression for Abalone.",
    ),
)
