"""AUC of DP-EBM on Adult and Phishing, from the slides of 2025 and Nori et al. (2021).

The preset has 30 passes over the columns; categories are declared and ranges of numbers public.
delta = 1e-6, as Nori et al. have it.
"""

from ..core import DEFAULT, STOCK, System, Table
from ..datasets import ADULT, PHISHING

PASSES = 30
TABLE = Table(
    name="ebm_slides",
    title="DP-EBM: AUC on Adult and Phishing",
    source="Differential Privacy for Machine Learning: Explainable Boosting (slides, 2025), after "
    "Nori, Caruana, Bu, Shen and Kulkarni (2021)",
    datasets=(ADULT, PHISHING),
    systems=(
        DEFAULT,
        System(
            "dp_ebm",
            preset="dp_ebm",
            rounds=PASSES,
            rounds_per_column=True,
            inputs="ranges",
            reproduces="DP-EBM GDP, recreated",
        ),
        System(
            "dp_ebm classic",
            preset="dp_ebm",
            params={"dp_accountant": "classic"},
            rounds=PASSES,
            rounds_per_column=True,
            inputs="ranges",
            reproduces="DP-EBM classic, recreated",
        ),
        System("dp_ebm_newton", preset="dp_ebm_newton", rounds=100, inputs="ranges"),
        STOCK,
    ),
    epsilons=(0.1, 0.5, 1.0, 2.0, 4.0, 8.0),
    metrics={"": "auc", "Parkinson's": "rmse"},
    test_size={"": 0.2},
    delta=1e-6,
    absent={
        "Parkinson's": "no copy at hand",
        "Telco churn": "no copy at hand",
        "Credit fraud": "no copy at hand",
    },
)
