"""Test AUC on data that chose no default, as in ``bar``: ``python -m experiments unseen``."""

import dataclasses
import sys

from ..datasets import COVTYPE_25K, HIGGS_11K, NOMAO
from . import bar

TABLE = dataclasses.replace(
    bar.TABLE,
    name="unseen",
    title="Data that chose nothing",
    datasets=(COVTYPE_25K, HIGGS_11K, NOMAO),
    metrics={"": "auc"},
)

if __name__ == "__main__":
    from ..__main__ import main

    sys.exit(main(["unseen", *sys.argv[1:]]))
