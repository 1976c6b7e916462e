"""Whether training raises is decided by each row alone, in every container that rows come in.

For every table D: if all its rows train alone then D trains, also without rows; and if a row raises
alone, so does D, with the message of one of its rows.
"""

import re
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import xgboost as xgb
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.batches import Batches
from tests.conftest import private
from tests.containers import ARRAYS, FRAMES, LISTS, NAMES
from xgb_dp import DPXGBClassifier, DPXGBRegressor
from xgb_dp.errors import RowDomainError

from .strategies import EXAMPLES

FEW = settings(EXAMPLES, max_examples=12)
INF = float("inf")
# A number, a category and a label. Some of the odd ones are fine in containers of other types.
FINE: list[tuple[float, str | None, Any]] = [
    (0.5, "u", 0), (-2.0, None, 1), (float("nan"), "wé", 1), (1e30, "v", 0), (0.0, "u", 1),
]  # fmt: skip
ODD: list[tuple[float, str | None, Any]] = [
    (INF, "u", 0), (1.0, "u", 7), (1.0, "v", float("nan")), (-INF, None, "a"), (1.0, "u", None),
    (1.0, "u", 10**400),
]  # fmt: skip
drawn = st.lists(st.one_of(st.sampled_from(FINE), st.sampled_from(ODD)), max_size=4)
valid = st.lists(st.sampled_from(FINE), max_size=4)
SHARED: dict[str, Any] = {
    "epsilon": 1.0, "delta": 1e-6, "n_estimators": 1, "max_depth": 1, "n_jobs": 1
}  # fmt: skip


def labels_of(rows: Any) -> np.ndarray:
    labels = np.empty(len(rows), dtype=object)
    labels[:] = [label for _, _, label in rows]
    return labels


@cache
def outcome(kind: str, regression: bool, rows: tuple[tuple[float, str | None, Any], ...]) -> str:
    """The message of a training, or an empty text."""
    table = {**ARRAYS, **LISTS, **FRAMES}[kind]([(a, c) for a, c, _ in rows])
    model: Any = DPXGBRegressor(target_bounds=(0, 1), **SHARED)
    if not regression:
        model = DPXGBClassifier(classes=2, **SHARED)
    if kind in FRAMES:
        model.set_params(categories={"c": NAMES})
    try:
        model.fit(table, labels_of(rows).tolist())
    except RowDomainError as error:
        return str(error)
    return ""


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("kind", "regression"),  # labels are read by themselves, whatever the table is
    [*((kind, False) for kind in (*ARRAYS, *LISTS, *FRAMES)),
     *((kind, True) for kind in ("float32", "csr", "list", "pandas", "arrow chunks"))],
)  # fmt: skip
@FEW
@given(rows=drawn.map(tuple))
def test_rows_decide_one_by_one(kind, regression, rows):
    if kind in LISTS and not rows:
        return  # the only containers that do not show their columns without rows
    alone = [outcome(kind, regression, (row,)) for row in rows]
    together = outcome(kind, regression, rows)
    assert bool(together) == any(alone)
    assert not together or together in alone


# -------------------------------------------------------------------- matrices made by the caller
PARAMS = private(objective="binary:logistic", max_depth=1, nthread=1, verbosity=0)


def declared(kind: str, rows: Any) -> Any:
    """Tables that bring the declared dictionary, also without rows."""
    table = FRAMES["pandas"](rows)
    if kind == "polars":
        return pl.DataFrame(
            {"a": table["a"].to_list(), "c": [c for _, c in rows]},
            schema={"a": pl.Float64, "c": pl.Enum(NAMES)},
        )
    return table.astype({"c": pd.CategoricalDtype(NAMES)})


@pytest.mark.parametrize("kind", ["pandas", "polars"])
@FEW
@given(rows=valid)
def test_declared_tables_train(kind, rows):
    table = declared(kind, [(a, c) for a, c, _ in rows])
    d = xgb.DMatrix(table, [y for *_, y in rows], enable_categorical=True)
    params = PARAMS | {"dp_categories": {"c": NAMES}}
    assert xgb.train(params, d, 1).num_boosted_rounds() == 1


@pytest.mark.parametrize("kind", ["float32", "csr", "coo", "pandas"])
@pytest.mark.parametrize("empty", ["first", "last", "none"])
@FEW
@given(rows=valid)
def test_batches_train(tmp_path_factory, kind, empty, rows):
    """A batch for each row, and one without rows, which shows the columns if there are none."""

    def batch(some: Any) -> tuple[Any, Any]:
        pairs = [(a, c) for a, c, _ in some]
        table = declared(kind, pairs) if kind == "pandas" else ARRAYS[kind](pairs)
        return table, np.array([y for *_, y in some], dtype=float)

    parts = [batch([row]) for row in rows]
    if empty != "none" or not rows:
        parts.insert(0 if empty == "first" else len(parts), batch([]))
    folder: Path = tmp_path_factory.mktemp("batches")
    d = xgb.DMatrix(Batches(parts, folder), enable_categorical=True)
    params = PARAMS | ({"dp_categories": {"c": NAMES}} if kind == "pandas" else {})
    assert d.num_row() == len(rows)
    assert xgb.train(params, d, 1).num_boosted_rounds() == 1


def test_infinite_features_decide_one_by_one():
    """XGBoost refuses them as it makes the matrix, which tells no more than one row does."""

    def refusal_of(*values: float) -> str:
        try:
            d = xgb.DMatrix(np.array(values).reshape(-1, 1), np.zeros(len(values)))
            xgb.train(PARAMS, d, 1)
        except ValueError as error:
            return re.sub(r"^\[[\d:]+\]", "", str(error).split("Stack trace")[0])
        return ""

    assert refusal_of() == refusal_of(0.0) == ""
    assert refusal_of(0.0, INF) == refusal_of(INF, 1.0, -INF) == refusal_of(INF) != ""
