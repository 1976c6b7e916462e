"""Figure 1 of Grislain and Gonzalvez (2021): number of bins of the noisy histogram, at epsilon 1.

The paper names neither the task nor the figures. Two binary tasks stand for it.
"""

from dataclasses import replace

from ..core import STOCK, Table
from ..datasets import ADULT, COVTYPE_25K
from .sarus_figure4 import SARUS

CELLS = (16, 64, 256, 1024, 4096)
TABLE = Table(
    name="sarus_figure1",
    title="Sarus, figure 1: bins of the noisy histogram",
    source="Grislain and Gonzalvez (2021), figure 1; published as a plot only",
    datasets=(COVTYPE_25K, replace(ADULT, train_only=True)),
    systems=(
        *(
            replace(
                SARUS,
                name=f"{c} bins",
                params={**SARUS.params, "dp_candidate_cells": c},
                reproduces="",
            )
            for c in CELLS
        ),
        STOCK,
    ),
    epsilons=(1.0,),
    metrics={"": "error"},
    layout="systems",
    test_size={"": 0.2},
)
