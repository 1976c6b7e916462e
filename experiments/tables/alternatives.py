"""What a practitioner would take instead: ``python -m experiments alternatives``.

Each training has a process of its own with one thread, whose CPU time and peak memory are shown.
Peers get what they need as public; `default` gets the declared categories. Their environments are
made under ``build/peers``, of some gigabytes. Cells of peers are kept over builds of this package:
``--redo default`` runs our own column again, and ``--redo NAME`` that of a peer.
"""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

from ..core import DEFAULT, PROBABILITIES, STOCK, System, Table
from ..datasets import (
    ADULT,
    BANK,
    CALIFORNIA,
    CREDIT1,
    CREDIT2,
    ELECTRICITY,
    HELOC,
    PHISHING,
    WEBDATA,
)
from ..peers import HERE

# Bins, rounds, step and clip of gradient descent: all combinations.
GRID = ((6, 16, 32), (100, 400), (2.0, 8.0, 32.0), (0.25, 0.5, 1.0))


def descent(bins: int, rounds: int, step: float, clip: float) -> System:
    """Noisy gradient descent with one of the settings."""
    return System(
        f"gradient descent on bins, {bins} bins {rounds} rounds step {step:g} clip {clip:g}",
        peer=HERE,
        method="descent",
        inputs="codes",
        params={"bins": bins, "rounds": rounds, "step": step, "clip": clip},
        limit_s=3600.0,
        grid=True,
    )


def peer(name: str, package: str, method: str = "", **params: Any) -> System:
    """Another library."""
    return System(name, peer=package, method=method, inputs="codes", params=params)


NETWORK = {"epochs": 20, "batch": 1024, "step": 0.01, "width": 64}
MST = "MST and XGBoost"
AIM = "AIM and XGBoost"


def runs(dataset: str, system: str, epsilon: float) -> bool:
    """Whether a system is run: synthetic rows take minutes to hours."""
    if system == AIM:
        return dataset == ADULT.name
    return system != MST or dataset != WEBDATA.name


TABLE = Table(
    name="alternatives",
    title="What a practitioner would take instead",
    source="own measure; peers from PyPI, run here",
    datasets=(
        ADULT,
        BANK,
        CREDIT1,
        CREDIT2,
        CALIFORNIA,
        ELECTRICITY,
        PHISHING,
        HELOC,
        WEBDATA,
    ),
    systems=(
        replace(DEFAULT, apart=True, method="booster"),
        *(descent(*setting) for setting in itertools.product(*GRID)),
        peer("linear model on ranks (AdaSSP)", HERE, "adassp"),
        peer("logistic regression (diffprivlib)", "diffprivlib", "logistic", C=100.0),
        peer("random forest (diffprivlib)", "diffprivlib"),
        peer("DP-EBM (interpret)", "interpret-core"),
        peer("S-BDT", "sbdt"),
        peer("DP-SGD network (Opacus)", "opacus", "network", **NETWORK),
        peer(MST, "smartnoise-synth", "mst"),
        replace(peer(AIM, "smartnoise-synth", "aim", rounds=None), limit_s=1800.0),
        replace(STOCK, apart=True, method="booster"),
    ),
    epsilons=(0.1, 0.25, 1.0, 4.0),
    metrics={"": "auc"},
    layout="cells",
    seeds=3,
    only=runs,
    best_of=True,
    also=("error", *PROBABILITIES, "seconds", "peak_mib"),
    notes=(
        "In each cell: AUC, and below it log loss, expected calibration error, and mean prediction "
        "over base rate. Then CPU seconds of a training with its predictions, in one thread, and "
        "peak memory of its process with all libraries, as means over the budgets.",
        "δ = 1/n_train. diffprivlib claims pure ε.",
        "Free for peers, from the whole file: ranges, categories, quantile bins, medians in place "
        "of missing values, means and spreads. `default` is told the categories, nothing else.",
        "Gradient descent: own code, on one-hot bins; in each cell the best of "
        f"{len(list(itertools.product(*GRID)))} settings, chosen on the test rows, so its "
        "figures are optimistic.",
        "AdaSSP (Wang 2018): own code, on ranks in 64 bins and one-hot categories.",
        "S-BDT: the best of its published settings for Adult; its epsilon is understated.",
        "Logistic regression: categories one-hot, rows of norm at most 1. Forest: ten trees. "
        "Network: two hidden layers, 64 and 32 wide. Synthetic rows: numbers in 16 bins, as many "
        "rows as there were; XGBoost with the settings of the last line.",
        "Noise is drawn once for each split; few splits mean that differences below .005 are not "
        "resolved.",
    ),
    absent={
        f"{MST} on {WEBDATA.name}": "it compares all 45,150 pairs of columns",
        f"{AIM} on other data sets": "it has not finished on Adult, which has 14 columns",
        "Tab-PE": "its package, private-evolution, is not on the package index",
    },
)
