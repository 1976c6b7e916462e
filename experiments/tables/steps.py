"""What smaller steps gain above epsilon 2: ``python -m experiments steps``.

The default beside the plans of epsilon 2, on few rows. House 16H, HELOC, Higgs, California, Pol and
Electricity did not choose the rule. With 700 rows the trees of epsilon 2 differ, too: both systems
have those of this epsilon.
"""

import sys
from dataclasses import replace

from ..core import DEFAULT, Table
from ..datasets import (
    CALIFORNIA,
    COVTYPE_25K,
    CREDIT2,
    ELECTRICITY,
    EYE,
    HELOC,
    HIGGS_11K,
    HOUSE,
    PHISHING,
    POL,
)
from .sizes import of_size

TABLE = Table(
    name="steps",
    title="Steps above epsilon 2",
    source="own measure",
    datasets=(
        of_size(1_000),
        of_size(10_000),
        *(CALIFORNIA, ELECTRICITY, HELOC, HIGGS_11K, HOUSE, POL),
        *(COVTYPE_25K, CREDIT2, EYE, PHISHING),
    ),
    systems=(
        DEFAULT,
        replace(DEFAULT, name="steps of ε = 2", params={"eta": 0.5, "dp_shrinkage_noise": 1.0}),
    ),
    epsilons=(4.0, 16.0),
    metrics={"": "auc"},
    layout="differences",
    seeds=4,
)

if __name__ == "__main__":
    from ..__main__ import main

    sys.exit(main(["steps", *sys.argv[1:]]))
