"""Visits to a doctor in the RAND Health Insurance Experiment, which statsmodels carries.

The data is in the public domain. Each of its 20,190 rows is one year of one person; the rows of a
person follow each other, and nobody took part for more than five years.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

YEARS = 5
BLOCK = 100


def load() -> tuple[pd.DataFrame, np.ndarray]:
    """Columns, and whether there was a visit to a doctor in the year."""
    from statsmodels.datasets import randhie

    table = randhie.load_pandas().data.astype("float32")
    return table, (table.pop("mdvis") > 0).to_numpy().astype(int)


def held_out(rows: int) -> np.ndarray:
    """Every third block of rows, so that few people have years in both parts."""
    chosen: np.ndarray = np.arange(rows) // BLOCK % 3 == 0
    return chosen
