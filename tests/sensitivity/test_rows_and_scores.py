import math

import pytest

from xgb_dp.accounting import sensitivity
from xgb_dp.accounting.sensitivity import RowBound


@pytest.mark.parametrize("k", [2, 5, 40])
def test_unit_hessians_fill_every_class(k):
    """Gradient boosting with softmax: each class is at the clip."""
    bound = RowBound("row_weight", 0.5, 0.25, unit_hessian=True)
    assert bound.round_sens2(18, k) == k * 4**18
    newton = RowBound("row_weight", 0.5, 0.25)
    assert k < 5 or newton.round_sens2(18, k) < k * 4**18


def test_tree_and_round():
    row = RowBound("row_weight", 0.5, 1.0)
    assert row.tree_sens2(18) == row.round_sens2(18) == 2**36
    assert row.round_sens2(18, 100) < 6 * 2**36
    every = RowBound("row_weight", 0.5, 1.0, max_weight=0.0)
    assert every.round_sens2(18, 100) == 100 * 2**36
    # With spread persons Hessians apart, a third of the norm, and up to 1 for each rounded sum.
    assert row.spread_sens2(18) == 2**36 + 2**32 + (2**18 // 3 + 3) ** 2
    assert every.spread_sens2(18, 100) == 100 * 2**36 + (10 * 2**18 // 3 + 201) ** 2
    clip = RowBound("clip", 0.3, 0.005625, 1.0)
    h_max = clip.max_hessian(18)
    assert h_max == math.ceil(0.25 * 2**18)
    assert clip.tree_sens2(18) == 2**36 + h_max**2
    with pytest.raises(ValueError, match="row_weight"):
        clip.round_sens2(18, 3)
    with pytest.raises(ValueError, match="mode"):
        RowBound("other", 0.3, 1.0)
    with pytest.raises(ValueError, match="positive"):
        RowBound("clip", 0.0, 1.0)


@pytest.mark.parametrize(
    ("score", "bound", "kwargs"),
    [
        ("gain", RowBound("row_weight", 0.5, 1.0), {}),
        ("gain", RowBound("prediction", 0.5, 1.0), {}),
        ("gain", RowBound("clip", 0.5, 1.0), {"unit_weights": False}),
        ("newton", RowBound("row_weight", 0.5, 1.0), {}),
        ("other", RowBound("row_weight", 0.5, 1.0), {}),
    ],
)
def test_unbounded_scores_are_refused(score, bound, kwargs):
    with pytest.raises(ValueError, match="score"):
        sensitivity.range_int(score, bound, 18, **kwargs)


def test_counts():
    assert sensitivity.candidates_sens2(14, 17, 9) == 14 * 17 * 4**9
    assert sensitivity.intercept_sens2("binary", 3, public_num_rows=False) == 2 * 4**3
    assert sensitivity.intercept_sens2("regression", 3, public_num_rows=True) == 4**3
    assert sensitivity.intercept_sens2("multiclass", 3, public_num_rows=False) == 4**3
    assert sensitivity.leaf_coordinates(3) == 6
    assert sensitivity.replace_one(5) == 20
    with pytest.raises(ValueError, match="kind"):
        sensitivity.intercept_sens2("other", 0, public_num_rows=False)
