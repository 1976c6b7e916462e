"""Figure 2 of Li et al. (2020): DPBoost and SEQ against epsilon, 50 trees of depth 6.

Published as a plot; its claims: SEQ guesses, DPBoost is below SEQ everywhere and close to
the trainer without privacy. Labels are fitted as numbers. `default` has delta = 1e-6.
"""

from dataclasses import replace

from ..core import DEFAULT, STOCK, System, Table
from ..datasets import ABALONE, ADULT, COVTYPE_25K, WEBDATA
from .sarus_figure4 import CLASSES, NUMBERS

DATASETS = (replace(ADULT, train_only=True), COVTYPE_25K, WEBDATA, CLASSES, ABALONE, NUMBERS)
ABSENT = {
    **dict.fromkeys(("real-sim", "SUSY", "cod-rna", "YearPredictionMSD"), "no copy at hand"),
    "Covtype": "only the subsample of 24,744 rows is at hand",
}
TABLE = Table(
    name="dpboost_figure2",
    title="DPBoost, figure 2: error against epsilon",
    source="Li, Wu, Wen and He, Privacy-Preserving Gradient Boosting Decision Trees (AAAI 2020), "
    "figure 2; published as a plot only",
    datasets=DATASETS,
    systems=(
        DEFAULT,
        *(
            System(name, preset=name, rounds=50, inputs="codes", numbers=True)
            for name in ("dpboost", "seq")
        ),
        STOCK,
    ),
    epsilons=(1.0, 2.0, 4.0, 6.0, 8.0, 10.0),
    metrics={"": "error", "synthetic_reg": "rmse", "Abalone": "rmse"},
    test_size={"": 0.2},
    delta=1e-6,
    seeds=3,
    absent=ABSENT,
)
