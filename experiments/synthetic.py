"""Generated data sets of the papers."""

from __future__ import annotations

import numpy as np
import pandas as pd
from sklearn.datasets import make_classification, make_regression

STATE = 100


def generate(
    name: str, rows: int, columns: int
) -> tuple[pd.DataFrame, np.ndarray, dict[str, list[str]]]:
    """Features, target and an empty set of categories.

    Args:
        name: "classification" and "regression": scikit-learn's generators as they stand;
            "interactions 1" and "interactions 2": labels from products of three normal columns;
            "informative K": K informative columns, the others noise.
        rows: Number of rows.
        columns: Number of columns.

    Raises:
        ValueError: If there is no such generator.
    """
    rng = np.random.default_rng(STATE)
    if name == "classification":
        x, y = make_classification(rows, columns, random_state=STATE)
    elif name == "regression":
        x, y = make_regression(rows, columns, random_state=STATE)
    elif name.startswith("interactions"):
        # Appendix C.2.1 of the DP-XGB paper; N(mean, variance).
        x = rng.normal([1, -5, -2], np.sqrt([25, 8, 7]), (rows, 3))
        a, b, c = x.T
        score = a * b + a * c + b * c + a * b * c
        if name.endswith("2"):
            score = score + a + b + c
        y = score > 0
    elif name.startswith("informative"):
        k = int(name.split()[1])
        # Two classes of one cluster each need 2^k >= 2 corners; the rest is noise of its own.
        x, y = make_classification(rows, k, n_informative=k, n_redundant=0, random_state=STATE)
        x = np.hstack([x, rng.normal(size=(rows, columns - k))])
    else:
        raise ValueError(f"No generator {name!r}")
    names = [f"x{i}" for i in range(x.shape[1])]
    return pd.DataFrame(x.astype(np.float32), columns=names), np.asarray(y, dtype=np.float32), {}
