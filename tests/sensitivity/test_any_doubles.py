"""The bound of a row on its integers, for doubles that no training brings."""

import ctypes
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit
from xgboost.core import XGBoostError

from tests.reference.comparison import LOGISTIC, SOFTMAX, make_plan
from tests.stated import describe_plan
from xgb_dp.accounting import sensitivity
from xgb_dp.engine import native

from .strategies import MORE, text_of

FEATURES = [{"kind": "cuts", "cuts": []}]
LARGEST = float(np.finfo(float).max)
numbers = st.one_of(
    st.floats(),
    st.sampled_from((0.0, -0.0, 1e-45, 5e-324, 3.4e38, 1e308, LARGEST, -LARGEST)),
    st.floats(-2.0, 2.0),
)


def plan_of(n_class: int, r: str = "0.25", c: str = "0.5", bits: int = 18) -> dict[str, Any]:
    plan = make_plan(SOFTMAX if n_class > 1 else LOGISTIC, True, FEATURES, num_class=n_class)
    plan["row_bound"] |= {"mode": "prediction", "hessian_weight": r, "gradient_bound": c}
    return plan | {"grid_bits": bits}


def integers(plan: dict[str, Any], label: float, weight: float, g: Any, h: Any) -> Any:
    """The integers of one row, each of which is checked. For one class `g` is its margin."""
    pairs = np.array([g, h], dtype=np.float64)
    status = native.lib().XGDPTestRowBound(
        text_of(plan).encode(),
        ctypes.c_double(label),
        ctypes.c_double(weight),
        *(ctypes.c_void_p(part.ctypes.data) for part in pairs),
    )
    assert status == 0
    assert np.isfinite(pairs).all() and (pairs == np.rint(pairs)).all(), pairs
    assert (pairs[1] >= 0.0).all()
    return pairs.astype(int)


def norms(plan: dict[str, Any], label: float, weight: float, g: Any, h: Any) -> tuple[int, int]:
    """The squared norm and the sum of the integers of one row."""
    sizes = [abs(int(v)) for v in integers(plan, label, weight, g, h).ravel()]
    return sum(v**2 for v in sizes), sum(sizes)


@MORE
@given(
    pairs=st.lists(st.tuples(numbers, numbers), min_size=1, max_size=5),
    label=numbers,
    weight=numbers,
    r=st.sampled_from(("1e-12", "0.25", "1000000.0")),
    c=st.sampled_from(("1e-6", "0.5", "1000000.0")),
    bits=st.sampled_from((4, 18, 20)),
)
def test_any_doubles_are_bounded(pairs, label, weight, r, c, bits):
    g, h = zip(*pairs, strict=True)
    squares, total = norms(plan_of(len(pairs), r, c, bits), label, weight, g, h)
    assert squares <= 4**bits
    bound = sensitivity.RowBound("prediction", float(c), float(r))
    assert total <= sensitivity.leaf_sens("laplace", bound, bits, len(pairs))


def test_the_sum_of_the_entries_grows_with_the_classes():
    """A row whose classes are all as likely: what Laplace noise has to hide, nearly in full."""
    p = np.full(8, 1.0 / 8)
    squares, total = norms(plan_of(8), 0.0, 2.0, 2.0 * (p - np.eye(8)[0]), 4.0 * p * (1.0 - p))
    stated = sensitivity.leaf_sens("laplace", sensitivity.RowBound("prediction", 0.5, 0.25), 18, 8)
    assert squares <= 4**18
    assert stated == math.isqrt(16 * 4**18)
    assert 1.5 * math.sqrt(2.0) * 2**18 < total <= stated


@pytest.mark.parametrize(
    ("n_class", "weight", "g", "h"), [(1, LARGEST, 0.0, 0.0), (3, 1.0, 0.5, LARGEST)]
)
def test_a_product_beyond_doubles_is_no_number(n_class, weight, g, h):
    """sqrt(r) h overflows and the factor of the row vanishes."""
    plan = plan_of(n_class, r="1000000.0")
    assert norms(plan, 0.0, weight, [g] * n_class, [h] * n_class)[0] <= 4**18


@pytest.mark.parametrize("label", [0.0, 1.0])
@pytest.mark.parametrize(
    "margin", [0.0, 1e-8, math.log(2) / 2, 0.4, 1.0, 3.0, 10.0, 36.0, 709.0, 1e300, math.inf]
)
def test_logistic_gradients_of_one_class(margin, label):
    """No row is scaled under this bound, so the integers show the derivatives themselves."""
    plan = plan_of(1, c="2.0", bits=20)
    for signed in (margin, -margin):
        p = expit(signed)
        g, h = integers(plan, label, 1.0, [signed], [0.0]).ravel()
        assert g == pytest.approx((p - label) * 2**19, abs=0.51)
        assert h == pytest.approx(0.5 * p * (1 - p) * 2**19, abs=0.51)


def test_a_margin_that_is_no_number_adds_nothing():
    assert norms(plan_of(1), 1.0, 1.0, [math.nan], [0.0]) == (0, 0)


@pytest.mark.parametrize("size", [1.0, 1e300])
def test_very_many_classes_are_bounded(size):
    """As many as a plan may have, each as large as it gets: squares whose sum is not exact."""
    plan = plan_of(1 << 16, bits=20)
    ones = np.full(1 << 16, size)
    assert norms(plan, 0.0, 0.0, ones, ones)[0] <= 4**20


def test_more_classes_than_the_proof_has_are_refused():
    with pytest.raises(XGBoostError, match="num_class"):
        describe_plan(text_of(plan_of((1 << 16) + 1)))
