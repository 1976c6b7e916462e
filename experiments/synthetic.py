"""Generated data sets: of the papers, and one of any size."""

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
            "informative K": K informative columns, the others noise; "many interactions": twelve
            normal columns in smooth, stepped and multiplied terms, and labels that are drawn.
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
    elif name == "many interactions":
        x = rng.standard_normal((rows, columns), dtype=np.float32)
        y = rng.random(rows, dtype=np.float32) < 1 / (1 + np.exp(-1.5 * _many_interactions(x)))
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
    frame = pd.DataFrame(x.astype(np.float32, copy=False), columns=names, copy=False)
    return frame, np.asarray(y, dtype=np.float32), {}


def _many_interactions(x: np.ndarray) -> np.ndarray:
    """The log-odds of "many interactions", divided by 1.5."""
    c = x.T
    return (
        np.sin(2 * c[0]) * c[1]
        + 0.8 * np.abs(c[2]) * c[3]
        + 0.7 * c[4] * c[5]
        + 0.5 * np.tanh(3 * c[6])
        + 0.6 * ((c[7] > 0.5) & (c[8] < 0))
        + 0.4 * c[9] * c[10] * c[11]
    )
