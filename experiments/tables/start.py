"""What a linear start is worth: ``python -m experiments start``.

The default, with open rounds, beside the same without its linear start, on the same splits. The
start was designed on the data sets of ``bar``, and on Adult and Credit 1 with a rare class. Classes
are made rare by leaving out training rows of class 1; the test rows are as they were.
"""

import sys
from dataclasses import replace

from ..core import DEFAULT, System, Table
from ..datasets import (
    ABALONE,
    ADULT,
    BANK,
    BAR,
    COVTYPE_25K,
    CREDIT1,
    HIGGS_11K,
    NOMAO,
)

RARE = tuple(
    replace(data, name=f"{data.name}, 1:{negatives}", negatives=negatives)
    for data, negatives in (
        (CREDIT1, 100),
        (CREDIT1, 300),
        (CREDIT1, 1000),
        (ADULT, 100),
        (BANK, 100),
    )
)

TABLE = Table(
    name="start",
    title="What a linear start is worth",
    source="own measure",
    datasets=(*(data for data in BAR if data != ABALONE), HIGGS_11K, COVTYPE_25K, NOMAO, *RARE),
    systems=(DEFAULT, System("intercept alone", params={"dp_start": "intercept"}, rounds=None)),
    epsilons=(0.1, 0.25, 1.0, 4.0),
    metrics={"": "auc"},
    layout="differences",
    seeds=3,
)

if __name__ == "__main__":
    from ..__main__ import main

    sys.exit(main(["start", *sys.argv[1:]]))
