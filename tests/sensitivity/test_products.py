"""Products of scores move within their sensitivity, and are those of the rows."""

import math
from typing import Any

import numpy as np
import pytest
import xgboost as xgb
from hypothesis import given
from hypothesis import strategies as st
from xgboost.core import XGBoostError

from xgb_dp.accounting import sensitivity
from xgb_dp.engine import native
from xgb_dp.releases.products import products_of

from .strategies import EXAMPLES, squared_distance
from .test_intercept import request_of

CUTS = (-1.0, 0.0, 2.5)
CATEGORIES = 3
POSITIONS = 2 + CATEGORIES

ROWS = st.lists(
    st.tuples(
        st.sampled_from((-3e38, -1.0, -0.5, 0.0, -0.0, 2.5, 7.0, math.nan)),
        st.sampled_from((0.0, 1.0, 2.0, math.nan)),
        st.sampled_from((0.0, 1.0, 0.5, 7.0, -1.0)),
    ),
    min_size=1,
    max_size=9,
)


def most_score(shift: int) -> int:
    return math.isqrt(1 << shift)


def some_scores(shift: int) -> st.SearchStrategy[int]:
    return st.integers(-most_score(shift), most_score(shift))


def scored(constant: int, scores: list[int], of_category: int) -> dict[str, Any]:
    numbers = {"index": 1, "categories": 0, "cuts": [repr(v) for v in CUTS], "scores": scores}
    categories = {"index": 0, "categories": CATEGORIES, "cuts": [], "scores": [of_category]}
    sums = products_of(POSITIONS)
    return {
        "constant_score": constant, "scored": [numbers, categories], "sums": sums, "again": False
    }  # fmt: skip


def released(rows: list[Any], request: dict[str, Any], ids: Any = None) -> list[int]:
    table = np.array(rows, np.float32)
    cells = table[:, [1, 0]]  # positions of numbers are before those of categories all the same
    d = xgb.DMatrix(cells, table[:, 2], feature_types=["c", "q"], enable_categorical=True)
    if ids is not None:
        native.set_persons(d, np.asarray(ids, np.uint32))
        request = request | {"unit": "person"}
    return list(native.release_intercept(d, request)["sums"])


def toward_zero(value: int, by: int) -> int:
    return abs(value) // by * (1 if value >= 0 else -1)


def own(row: Any, request: dict[str, Any]) -> list[int]:
    """What a row adds, counted here."""
    x, code, label = np.float32(row)
    numbers, categories = request["scored"]
    z = [request["constant_score"], 0] + [0] * CATEGORIES
    z[1] = numbers["scores"][-1 if math.isnan(x) else int(np.searchsorted(CUTS, x, side="right"))]
    if not math.isnan(code):
        z[2 + int(code)] = categories["scores"][0]
    most = most_score(request["shift"])
    norm2 = sum(v * v for v in z)
    if norm2 > most * most:
        norm = math.isqrt(norm2 - 1) + 1
        z = [toward_zero(v * most, norm) for v in z]
    pairs = [
        toward_zero(z[i] * z[i] * 23170, 1 << 15) if i == j else z[i] * z[j]
        for i in range(POSITIONS)
        for j in range(i, POSITIONS)
    ]
    of_label = (most if label > 0.5 else -most) * z[0] * 23170
    return pairs + [toward_zero(v * of_label, request["constant_score"] << 15) for v in z]


@EXAMPLES
@given(rows=ROWS, shift=st.sampled_from((0, 7, 20, 26)), data=st.data())
def test_products_of_scores(rows, shift, data):
    """A row adds the products of its own scores, a vector of bounded norm."""
    constant, of_category, *scores = (data.draw(some_scores(shift)) for _ in range(len(CUTS) + 4))
    asked = scored(max(abs(constant), 1), scores, of_category)
    request = request_of("products", shift, **asked)
    one = released(rows, request)
    assert one == np.sum([own(row, request) for row in rows], axis=0).tolist()
    bound = sensitivity.columns_sens2(shift)
    for row in rows:
        assert sum(v * v for v in own(row, request)) <= bound
    if len(rows) > 1:
        assert squared_distance(one, released(rows[:-1], request)) <= bound


@EXAMPLES
@given(rows=ROWS, scores=st.lists(some_scores(20), min_size=5, max_size=5))
def test_a_person_adds_the_mean_of_rows(rows, scores):
    request = request_of("products", 20, **scored(500, scores, 500))
    other = [(7.0, 1.0, 1.0)]
    ids = np.array([0] * len(rows) + [1])
    alone = released(other, request, [0])
    together = released(rows + other, request, ids)
    assert squared_distance(together, alone) <= sensitivity.columns_sens2(20)
    total = np.sum([own(row, request) for row in rows], axis=0)
    mean = [toward_zero(int(v), len(rows)) for v in total]
    assert np.subtract(together, alone).tolist() == mean


def test_the_bound_of_products_is_attained():
    """But for the rounding of 23170 / 2^15, which is just below the root of a half."""
    request = request_of("products", 26, **scored(1 << 13, [0] * 5, 0))
    sums = released([(0.0, 0.0, 1.0)], request)
    bound = sensitivity.columns_sens2(26)
    assert (1 - 1e-4) * bound <= sum(v * v for v in sums) <= bound


def test_labels_shrink_with_the_scores_of_their_rows():
    """Where all rows have one label, its products are those of the constant, in another unit."""
    most, constant = most_score(26), 2000
    scores = [most, -most, 50, 7000, most // 2]
    request = request_of("products", 26, **scored(constant, scores, 3000))
    rows = [(x, code, 1.0) for x in (-5.0, -0.5, 1.0, 3.0, math.nan) for code in (0.0, 2.0)]
    sums = np.array(released(rows, request), dtype=np.float64)
    of_constant, by_label = sums[:POSITIONS], sums[-POSITIONS:]
    of_constant[0] *= 2**15 / 23170
    expected = of_constant * most / constant * 23170 / 2**15
    assert np.abs(by_label - expected).max() <= len(rows) * (1 + most / constant)


@pytest.mark.parametrize(
    "change",
    [
        {"constant_score": -1},
        {"constant_score": 0},
        {"constant_score": most_score(9) + 1},
        {"sums": 1},
        {"shift": 27},
        {"scored": None},
        {"again": None},
    ],
)
def test_products_are_released_where_their_bound_is_proved(change):
    request = request_of("products", **scored(1, [1] * 5, 1)) | change
    with pytest.raises(XGBoostError):
        released([(0.0, 0.0, 1.0)], {k: v for k, v in request.items() if v is not None})


@pytest.mark.parametrize(
    "column", [{"scores": [1] * 4}, {"scores": [most_score(9) + 1] * 5}, {"cuts": ["1", "0", "2"]}]
)
def test_scores_that_do_not_fit_are_refused(column):
    request = request_of("products", **scored(1, [1] * 5, 1))
    request["scored"][0] |= column
    with pytest.raises(XGBoostError):
        released([(0.0, 0.0, 1.0)], request)
