"""Through the whole trainer: one more row does not change what all other rows are.

Each test counts how often a model of epsilon 0.1 rises along a column, without one row and with it.
The row itself has no say in that column. If all other rows meant something else beside it, nearly
all trainings on one side would rise and few on the other, as they did before cells were read alone.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import xgboost as xgb

import xgb_dp
from xgb_dp.errors import PrivacyParameterError

pytestmark = pytest.mark.filterwarnings("ignore")

N = 2000
Y = np.arange(N) % 2
RUNS = 24
SHARED: dict[str, Any] = {
    "epsilon": 0.1, "delta": 1e-6, "classes": 2, "n_estimators": 3, "n_jobs": 1
}  # fmt: skip


def check_same(counts: tuple[int, int]) -> None:
    """Shares of two times RUNS trainings that one row may change by e^0.1 and no more.

    Two binomial counts of one share differ by 23 of 24 with probability below 4e-12.
    """
    assert abs(counts[0] - counts[1]) < 23


def rises(column: Any, labels: Any, ends: list[Any], **params: Any) -> int:
    """How many of the trainings predict more at the second end than at the first, clearly."""
    found = 0
    table = pd.DataFrame({"a": column})
    probe = pd.DataFrame({"a": ends})
    for _ in range(RUNS):
        model = xgb_dp.DPXGBClassifier(**SHARED, max_depth=1, **params).fit(table, labels)
        low, high = model.predict_proba(probe)[:, 1]
        found += high - low > 0.4
    return found


@pytest.mark.parametrize("dtype", ["boolean", "object"])
def test_a_missing_cell_among_truth_values(dtype: str) -> None:
    truths: list[Any] = [bool(k) for k in Y]
    found = [
        rises(pd.Series(truths + more, dtype=dtype), [*Y, *[0] * len(more)], [0, 1],
              categories={"a": [0, 1]})
        for more in ([], [None])
    ]  # fmt: skip
    check_same((found[0], found[1]))


def test_a_missing_cell_among_large_numbers() -> None:
    large = 2**60 + 2**36 + 1
    cut = float(np.float32(2.0**60 + 2.0**37))  # between what one and two roundings make of it
    cells: list[Any] = [large if k else 0 for k in Y]
    found = [
        rises(pd.array(cells + more, dtype="int64[pyarrow]"), [*Y, *[0] * len(more)], [0.0, cut],
              feature_cuts={"a": [cut]})
        for more in ([], [None])
    ]  # fmt: skip
    check_same((found[0], found[1]))


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_a_name_in_front_of_the_dictionary_of_a_frame(kind: str) -> None:
    """Its codes are those of the rows: one more name moves the codes of all others."""
    names = np.where(Y == 1, "y", "x")
    codes = pd.DataFrame({"a": np.zeros(N), "c": (names == "y").astype(float)})
    matrix = xgb.DMatrix(codes, Y, feature_types=["q", "c"], enable_categorical=True)
    params: dict[str, Any] = {
        "tree_method": "dp_hist", "objective": "binary:logistic", "dp_epsilon": 1.0,
        "dp_delta": 1e-6, "dp_categories": {"c": 2}, "nthread": 1, "verbosity": 0, "max_depth": 1,
    }  # fmt: skip
    model = xgb.train(params, matrix, 3)
    for more in ([], ["a"]):
        listed = [*more, *names]
        table: Any = pd.DataFrame({"a": 0.0, "c": pd.Series(listed, dtype="category")})
        if kind == "polars":
            table = pl.DataFrame({"a": np.zeros(len(listed)), "c": listed}).with_columns(
                pl.col("c").cast(pl.Categorical)
            )
        labels = [*[0] * len(more), *Y]
        with pytest.raises(PrivacyParameterError, match="categor"):
            xgb_dp.evaluate(model, (table, labels), epsilon=1.0, delta=1e-6)
        dictionary = xgb.DMatrix(table, labels, enable_categorical=True)
        with pytest.raises(PrivacyParameterError, match="names"):
            xgb_dp.evaluate(model, dictionary, epsilon=1.0, delta=1e-6)
        with pytest.raises(PrivacyParameterError, match="names"):
            xgb.train(params, dictionary, 3)
