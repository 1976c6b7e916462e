"""Through the whole trainer: one more row does not change what all other rows are.

Each test counts how often a model of epsilon 0.1 rises along a column, without one row and with it.
The row itself has no say in that column. If all other rows meant something else beside it, nearly
all trainings on one side would rise and few on the other, as they did before cells were read alone.
"""

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


def check_missing(cells: list[Any], dtype: str, ends: list[Any], **params: Any) -> None:
    """One more row, whose cell is missing: how many trainings predict clearly more at an end."""
    counts = []
    for more in ([], [None]):
        table = pd.DataFrame({"a": pd.array(cells + more, dtype=dtype)})
        labels = [*Y, *[0] * len(more)]
        models = (xgb_dp.DPXGBClassifier(**SHARED, max_depth=1, **params) for _ in range(RUNS))
        probe = pd.DataFrame({"a": ends})
        shown = [m.fit(table, labels).predict_proba(probe)[:, 1] for m in models]
        counts.append(sum(high - low > 0.4 for low, high in shown))
    # Shares of two times RUNS trainings that one row may change by e^0.1 and no more: two binomial
    # counts of one share differ by 23 of 24 with probability below 4e-12.
    assert abs(counts[0] - counts[1]) < 23


@pytest.mark.parametrize("dtype", ["boolean", "object"])
def test_a_missing_cell_among_truth_values(dtype):
    check_missing([bool(k) for k in Y], dtype, [0, 1], categories={"a": [0, 1]})


def test_a_missing_cell_among_large_numbers():
    cut = float(np.float32(2.0**60 + 2.0**37))  # between what one and two roundings make of it
    cells = [2**60 + 2**36 + 1 if k else 0 for k in Y]
    check_missing(cells, "int64[pyarrow]", [0.0, cut], feature_cuts={"a": [cut]})


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_a_name_in_front_of_the_dictionary_of_a_frame(kind):
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
