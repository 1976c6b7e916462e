"""Label sums of the C++ move within their sensitivity."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import xgboost as xgb
from hypothesis import given
from hypothesis import strategies as st
from xgboost.core import XGBoostError

from tests.reference.comparison import LOGISTIC, SOFTMAX, SQUARED
from xgb_dp.accounting import sensitivity
from xgb_dp.engine import native

from .cpp import IN_THE_CLEAR
from .strategies import CLASSES, EXAMPLES, label, squared_distance


@pytest.mark.parametrize("n_public", [False, True])
@pytest.mark.parametrize("kind", ["binary", "regression", "multiclass", "cells", "rows"])
@EXAMPLES
@given(data=st.data())
def test_intercept_sums(kind: str, n_public: bool, data: st.DataObject) -> None:
    """The label sums of the C++, with labels on and beyond the bounds; counts; or rows alone."""
    objective = {"regression": SQUARED, "cells": SQUARED, "multiclass": SOFTMAX}.get(kind, LOGISTIC)
    y = np.array(data.draw(st.lists(label(objective), min_size=1, max_size=13)), np.float32)
    low, high = data.draw(st.sampled_from(((-4.0, 4.0), (0.1, 0.3), (-1e300, 1e308))))
    request = {
        "kind": kind,
        "num_class": sensitivity.LABEL_CELLS if kind == "cells" else CLASSES,
        "sigma2": 0,
        "shift": data.draw(st.sampled_from((0, 7, 26))),
        "target_lower": repr(low),
        "target_upper": repr(high),
        "noise_free": True,
        **IN_THE_CLEAR,
    }
    if n_public and kind in ("binary", "regression"):
        request["n_public"] = len(y)
    one, other = (
        native.release_intercept(xgb.DMatrix(np.zeros((len(v), 1)), v), request)["sums"]
        for v in (y, y[:-1])
    )
    bound = sensitivity.intercept_sens2(kind, int(request["shift"]), n_public=n_public)
    assert squared_distance(one, other) <= bound
    if kind == "rows":
        assert one == [len(y) << int(request["shift"])]
    if kind == "cells":  # every row is in one, whatever its label
        assert sum(one) == len(y) << int(request["shift"])
    touched = sensitivity.intercept_coordinates(kind, n_public=n_public)
    assert np.count_nonzero(np.subtract(one, other)) <= touched


@pytest.mark.parametrize("kind", ["binary", "rows"])
@EXAMPLES
@given(
    cells=st.lists(
        st.lists(st.sampled_from((0.0, -0.0, 1.0, -1e-45, 3e38, math.nan)), min_size=5, max_size=5),
        min_size=1,
        max_size=9,
    ),
    columns=st.sampled_from((1, 3, 5, 7)),
    shift=st.sampled_from((0, 7, 26)),
)
def test_cells_that_are_present(
    kind: str, cells: list[list[float]], columns: int, shift: int
) -> None:
    """A row adds its share of the columns, one at most, whatever their number is said to be."""
    rows = np.array(cells, np.float32)
    request = {
        "kind": kind, "num_class": 1, "sigma2": 0, "shift": shift, "columns": columns,
        "noise_free": True, **IN_THE_CLEAR,
    }  # fmt: skip
    one, other = (
        native.release_intercept(xgb.DMatrix(v, np.ones(len(v))), request)["sums"]
        for v in (rows, rows[:-1])
    )
    bound = sensitivity.intercept_sens2(kind, shift, n_public=False, presence=True)
    assert squared_distance(one, other) <= bound
    touched = sensitivity.intercept_coordinates(kind, n_public=False, presence=True)
    assert len(one) == touched == (3 if kind == "binary" else 2)
    present = ((rows != 0) & ~np.isnan(rows)).sum(axis=1)
    assert one[-1] == sum((min(int(k), columns) << shift) // columns for k in present)


def test_the_sums_are_attained_together() -> None:
    """A row of a positive label with all cells moves every sum by one unit."""
    request = {
        "kind": "binary", "num_class": 1, "sigma2": 0, "shift": 9, "columns": 4,
        "noise_free": True, **IN_THE_CLEAR,
    }  # fmt: skip
    sums = native.release_intercept(xgb.DMatrix(np.ones((1, 4)), np.ones(1)), request)["sums"]
    bound = sensitivity.intercept_sens2("binary", 9, n_public=False, presence=True)
    assert sum(v**2 for v in sums) == bound
    event = native.describe_intercept(request | {"noise_free": False, "sigma2": 1 << 40})
    assert (event["sensitivity2"], event["coordinates"]) == (bound, 3)


@pytest.mark.parametrize("other", [{"kind": "multiclass"}, {"n_public": 5}])
def test_cells_are_released_where_their_bound_is_proved(other: dict[str, Any]) -> None:
    request = {
        "kind": "binary", "num_class": 3, "sigma2": 0, "shift": 9, "columns": 4,
        "noise_free": True, **IN_THE_CLEAR,
    }  # fmt: skip
    with pytest.raises(XGBoostError, match="columns"):
        native.release_intercept(xgb.DMatrix(np.ones((1, 4)), np.ones(1)), request | other)
