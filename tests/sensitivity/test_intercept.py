"""Label sums of the C++ move within their sensitivity."""

import math
from typing import Any

import numpy as np
import pytest
import xgboost as xgb
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from xgboost.core import XGBoostError

from tests.reference.comparison import LOGISTIC, SOFTMAX, SQUARED
from tests.stated import describe_intercept
from xgb_dp.accounting import sensitivity
from xgb_dp.engine import native
from xgb_dp.mechanisms.label_range import edges, weight_edges

from .cpp import IN_THE_CLEAR
from .strategies import CLASSES, EXAMPLES, label, squared_distance


def request_of(kind: str, shift: int = 9, **more: Any) -> dict[str, Any]:
    """A request for sums without noise."""
    return {
        "kind": kind, "num_class": 1, "sigma2": 0, "shift": shift, "noise_free": True,
        **IN_THE_CLEAR, **more,
    }  # fmt: skip


@pytest.mark.parametrize("public_num_rows", [False, True])
@pytest.mark.parametrize("kind", ["binary", "regression", "multiclass", "cells", "range", "rows"])
@EXAMPLES
@given(data=st.data())
def test_intercept_sums(kind, public_num_rows, data):
    """The label sums of the C++, with labels on and beyond the bounds; counts; or rows alone."""
    squared = dict.fromkeys(("regression", "cells", "range"), SQUARED)
    objective = {**squared, "multiclass": SOFTMAX}.get(kind, LOGISTIC)
    y = np.array(data.draw(st.lists(label(objective), min_size=1, max_size=13)), np.float32)
    low, high = data.draw(st.sampled_from(((-4.0, 4.0), (0.1, 0.3), (-1e300, 1e308))))
    request = request_of(
        kind,
        data.draw(st.sampled_from((0, 7, 26))),
        num_class=sensitivity.LABEL_CELLS if kind in ("cells", "range") else CLASSES,
        edges=[repr(v) for v in edges(max(low, -1e30), min(high, 1e30))],
        target_lower=repr(low),
        target_upper=repr(high),
    )
    if public_num_rows and kind in ("binary", "regression"):
        request["public_num_rows"] = len(y)
    one, other = (
        native.release_before_trees(xgb.DMatrix(np.zeros((len(v), 1)), v), request)["sums"]
        for v in (y, y[:-1])
    )
    event = describe_intercept(request)
    assert squared_distance(one, other) <= event["sensitivity2"]
    if kind == "rows":
        assert one == [len(y) << int(request["shift"])]
    if kind in ("cells", "range"):  # every row is in one, whatever its label
        assert sum(one) == len(y) << int(request["shift"])
    assert np.count_nonzero(np.subtract(one, other)) <= event["coordinates"]


@EXAMPLES
@given(data=st.data())
def test_cells_of_weights(data):
    """A row is in one cell of its label and in one of its weight, in either and in both."""
    most = data.draw(st.sampled_from((1.5, 10.0, 1e6)))
    weights = st.lists(st.floats(0.0, 4e6, width=32), min_size=1, max_size=9)
    w = np.array(data.draw(weights), np.float32)
    y = np.linspace(-9.0, 9.0, len(w), dtype=np.float32)
    shift = data.draw(st.sampled_from((0, 7, 26)))
    weights = {"weight_edges": [repr(v) for v in weight_edges(most)]}
    for lists in (weights, weights | {"edges": [repr(v) for v in edges(-4.0, 4.0)]}):
        n_cells = sensitivity.LABEL_CELLS * len(lists)
        request = request_of("range", shift, num_class=n_cells, **lists)
        one, other = (
            native.release_before_trees(
                xgb.DMatrix(np.zeros((n, 1)), y[:n], weight=w[:n]), request
            )["sums"]
            for n in (len(w), len(w) - 1)
        )
        bound, touched = sensitivity.LabelSumSizes.from_request(request).measure(person=False)
        assert squared_distance(one, other) == bound == len(lists) << (2 * shift)
        assert np.count_nonzero(np.subtract(one, other)) == touched == len(lists)
        cells = np.searchsorted(weight_edges(most), w, side="right")
        expected = np.bincount(cells, minlength=sensitivity.LABEL_CELLS) << shift
        assert one[-sensitivity.LABEL_CELLS :] == expected.tolist()
    with pytest.raises(ValueError, match="does not match the plan"):
        sensitivity.LabelSumSizes.from_request(request | {"num_class": sensitivity.LABEL_CELLS})


TARGETS: dict[str, Any] = {"lower": ["-4.0", "0.1", "-1e30"], "upper": ["4.0", "0.3", "1e30"]}


@pytest.mark.parametrize("public_num_rows", [False, True])
@EXAMPLES
@given(data=st.data())
def test_sums_of_several_targets(public_num_rows, data):
    """A row moves the sum of each of its labels by at most one unit, and their number by one."""
    row = st.tuples(*[label(SQUARED)] * 3)
    y = np.array(data.draw(st.lists(row, min_size=1, max_size=9)), np.float32)
    shift = data.draw(st.sampled_from((0, 7, 26)))
    request = request_of("targets", shift, num_class=3, **TARGETS)
    if public_num_rows:
        request["public_num_rows"] = len(y)
    one, other = (
        native.release_before_trees(xgb.DMatrix(np.zeros((len(v), 1)), v), request)["sums"]
        for v in (y, y[:-1])
    )
    event = describe_intercept(request)
    assert squared_distance(one, other) <= event["sensitivity2"]
    assert len(one) == event["coordinates"]
    for k, (low, high) in enumerate(zip(TARGETS["lower"], TARGETS["upper"], strict=True)):
        half = (float(high) - float(low)) / 2
        centred = np.clip((y[:, k].astype(float) - float(low) - half) / half, -1, 1)
        assert one[k] == int(np.rint(np.ldexp(centred, shift)).sum())
    if not public_num_rows:
        assert one[3] == len(y) << shift


def test_other_numbers_of_targets_are_refused():
    request = request_of("targets", num_class=3, **TARGETS)
    with pytest.raises(XGBoostError, match="number of targets"):
        native.release_before_trees(xgb.DMatrix(np.ones((1, 1)), np.ones((1, 2))), request)


# Rows of five columns, of which some are 0, missing, or nearly either.
CELLS = st.lists(
    st.lists(st.sampled_from((0.0, -0.0, 1.0, -1e-45, 3e38, math.nan)), min_size=5, max_size=5),
    min_size=1,
    max_size=9,
)


@EXAMPLES
@given(
    cells=CELLS,
    columns=st.sampled_from((1, 3, 5, 7)),
    shift=st.sampled_from((0, 7, 26)),
)
def test_cells_that_are_present(cells, columns, shift):
    """A row adds its share of the columns, one at most, whatever their number is said to be."""
    rows = np.array(cells, np.float32)
    request = request_of("binary", shift, columns=columns)
    one, other = (
        native.release_before_trees(xgb.DMatrix(v, np.ones(len(v))), request)["sums"]
        for v in (rows, rows[:-1])
    )
    event = describe_intercept(request)
    assert squared_distance(one, other) <= event["sensitivity2"]
    assert len(one) == event["coordinates"] == 3
    present = ((rows != 0) & ~np.isnan(rows)).sum(axis=1)
    assert one[-1] == sum((min(int(k), columns) << shift) // columns for k in present)


def test_cells_that_are_present_come_with_labels():
    request = request_of("rows", columns=4)
    with pytest.raises(XGBoostError):
        native.release_before_trees(xgb.DMatrix(np.ones((1, 4)), np.ones(1)), request)


@pytest.mark.parametrize(
    ("kind", "more", "row", "label_", "expected"),
    [("binary", {"columns": 4}, np.ones((1, 4)), [1.0], [512] * 3),
     ("targets", {"num_class": 3, **TARGETS}, np.ones((1, 1)), [[4.0, -9.0, 2e30]],
      [512, -512, 512, 512])],
)  # fmt: skip
def test_the_sums_are_attained_together(kind, more, row, label_, expected):
    """A positive label with all cells, or all labels at ends: every sum moves by one unit."""
    request = request_of(kind, **more)
    sums = native.release_before_trees(xgb.DMatrix(row, np.array(label_, np.float32)), request)[
        "sums"
    ]
    assert sums == expected
    event = describe_intercept(request)
    assert (event["sensitivity2"], event["coordinates"]) == (sum(v**2 for v in sums), len(sums))


@EXAMPLES
@given(
    cells=CELLS,
    labels=st.lists(st.sampled_from((0.0, 1.0, 0.5, 7.0, -1.0)), min_size=9, max_size=9),
    columns=st.sampled_from((1, 3, 5, 7)),
    shift=st.sampled_from((0, 7, 26)),
)
def test_cells_of_each_column_by_class(cells, labels, columns, shift):
    """A row adds a vector of bounded norm to the columns that it has, of its class alone."""
    rows, y = np.array(cells, np.float32), np.array(labels[: len(cells)], np.float32)
    request = request_of("columns", shift, columns=columns)
    one, other = (
        native.release_before_trees(xgb.DMatrix(v, z), request)["sums"]
        for v, z in ((rows, y), (rows[:-1], y[:-1]))
    )
    assert squared_distance(one, other) <= sensitivity.columns_sens2(shift)
    assert np.count_nonzero(np.subtract(one, other)) <= columns
    expected = np.zeros((2, columns), dtype=np.int64)
    has = (rows > 0)[:, :columns]
    for row, label_ in zip(has, y, strict=True):
        if row.any():
            each = math.isqrt(4**shift // int(row.sum()))
            expected[int(label_ > 0.5), : len(row)] += each * row
    assert one == expected.ravel().tolist()


@pytest.mark.parametrize("label_", [0.0, 1.0])
@pytest.mark.parametrize("cells", [1, 4])
def test_the_bound_of_columns_is_attained(cells, label_):
    """With one column, or with four of four, of which each weighs a half."""
    request = request_of("columns", columns=4)
    d = xgb.DMatrix(np.array([[1.0] * cells + [0.0] * (4 - cells)]), np.full(1, label_))
    square = sum(v**2 for v in native.release_before_trees(d, request)["sums"])
    event = describe_intercept(request)
    assert (event["release"], event["sensitivity2"], event["coordinates"]) == ("columns", square, 4)


def test_a_row_that_stores_a_column_twice_is_refused():
    twice = sparse.csr_matrix(
        (np.ones(5, np.float32), np.array([1, 1, 1, 0, 3]), np.array([0, 5])), (1, 4)
    )
    with pytest.raises(XGBoostError, match="A row has two entries in one column"):
        native.release_before_trees(
            xgb.DMatrix(twice, np.ones(1)), request_of("columns", columns=4)
        )


@pytest.mark.parametrize("change", [{"columns": None}, {"public_num_rows": 5}, {"unit": "person"}])
def test_columns_are_released_where_their_bound_is_proved(change):
    asked = {k: v for k, v in (request_of("columns", columns=4) | change).items() if v is not None}
    with pytest.raises(XGBoostError):
        native.release_before_trees(xgb.DMatrix(np.ones((1, 4)), np.ones(1)), asked)


@pytest.mark.parametrize("other", [{"kind": "multiclass"}, {"public_num_rows": 5}])
def test_cells_are_released_where_their_bound_is_proved(other):
    request = request_of("binary", num_class=3, columns=4)
    with pytest.raises(XGBoostError, match="columns"):
        native.release_before_trees(xgb.DMatrix(np.ones((1, 4)), np.ones(1)), request | other)
