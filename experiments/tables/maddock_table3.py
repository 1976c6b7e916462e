"""Tables 3 and 9 to 12 of Maddock et al. (2022): split methods and weight updates.

Depth 4; 25 trees where splits read the data, 300 where they are random. "Averaging" is a forest:
one round, class shares as leaves.
"""

from dataclasses import replace
from typing import Any

from ..core import DEFAULT, STOCK, System, Table
from ..datasets import ADULT, BANK, CREDIT1, CREDIT2, NOMAO

DATASETS = (
    BANK,
    replace(CREDIT1, complete_rows=True),
    CREDIT2,
    replace(ADULT, train_only=True, code_all=True),
    NOMAO,
)
FOREST = {"eta": 1.0, "max_delta_step": 0.0}


def system(preset: str, update: str, published: str, trees: int, **params: Any) -> System:
    """A preset with Newton or gradient leaves, or as a forest."""
    settings: dict[str, Any] = {"max_depth": 4, **params}
    rounds = trees
    if update == "averaging":
        settings |= FOREST | {"num_parallel_tree": trees}
        rounds = 1
    if update == "gradient":
        settings["dp_leaf"] = "gradient"
    return System(
        f"{preset} {update}",
        preset=preset,
        params=settings,
        rounds=rounds,
        inputs="grid",
        reproduces=f"{published} {update}",
    )


TABLE = Table(
    name="maddock_table3",
    title="Maddock et al., tables 3 and 9 to 12: split methods and weight updates",
    source="Maddock, Cormode, Wang, Maple and Jha, Federated Boosted Decision Trees with "
    "Differential Privacy (CCS 2022), tables 3, 9, 10, 11 and 12",
    datasets=DATASETS,
    systems=(
        DEFAULT,
        system("dp_gbm", "gradient", "Hist", 25),
        system("feverless", "averaging", "Hist", 25),
        system("feverless", "newton", "Hist", 25),
        system("dp_pr", "gradient", "PR", 25),
        system("dp_pr", "averaging", "PR", 25),
        system("dp_pr", "newton", "PR", 25),
        system("dp_tr", "gradient", "TR", 300),
        system("dp_rf", "averaging", "TR", 300),
        system("dp_tr", "newton", "TR", 300),
        STOCK,
    ),
    epsilons=(0.1, 0.25, 0.5, 0.75, 1.0),
    metrics={"": "auc"},
    stratify=True,
    seeds=3,
)
