"""What the proofs assume is checked: outside of it the samplers refuse to draw."""

import pytest
from xgboost.core import XGBoostError

from tests.noise import native

KEY = native.TEST_KEY


@pytest.mark.parametrize(
    "draw",
    [
        lambda: native.uniform(KEY, 0, 0, 1),
        lambda: native.uniform(KEY, 0, 2**63 + 1, 1),
        lambda: native.uniform128(KEY, 0, 0, 1),
        lambda: native.uniform128(KEY, 0, 2**126 + 1, 1),
        lambda: native.bernoulli_exp(KEY, 0, 0, 2, 1, 1),
        lambda: native.bernoulli_exp(KEY, 0, 0, 0, 0, 1),
        lambda: native.bernoulli_exp(KEY, 0, 0, 1, 2**126 + 1, 1),
        lambda: native.discrete_laplace(KEY, 0, 0, 1),
        lambda: native.discrete_laplace(KEY, 0, 2**48 + 1, 1),
        lambda: native.discrete_gaussian(KEY, 0, 0, 1),
        lambda: native.discrete_gaussian(KEY, 0, 2**56 + 1, 1),
        lambda: native.select(KEY, 0, [], 1, 1, 1),
        lambda: native.select(KEY, 0, [1], 1, 0, 1),
        lambda: native.select(KEY, 0, [1], 1, 2**63, 1),
        lambda: native.select(KEY, 0, [1], 2**47, 1, 1),
        lambda: native.select(KEY, 0, [0, 2**62], 1, 1, 1),
        lambda: native.select(KEY, 0, [0, -(2**62)], 1, 1, 1),
        lambda: native.argmax([]),
        lambda: native.select_grouped(KEY, 0, [[1]], [1], 1, 0, 1),
        lambda: native.select_grouped(KEY, 0, [[1]], [1], 2**47, 1, 1),
        lambda: native.select_grouped(KEY, 0, [[0]], [2**62], 1, 1, 1),
        lambda: native.select_grouped(KEY, 0, [[-(2**62)]], [0], 1, 1, 1),
        lambda: native.select_grouped(KEY, 0, [[1]], [0], 1, 1, 1),  # above its bound
    ],
)
def test_refused(draw):
    with pytest.raises(XGBoostError):
        draw()


@pytest.mark.parametrize(
    "draw",
    [
        lambda: native.uniform(KEY, 0, 2**63, 1),
        lambda: native.uniform128(KEY, 0, 2**126, 1),
        lambda: native.bernoulli_exp(KEY, 0, 2**64 - 1, 1, 2**126, 1),
        lambda: native.discrete_laplace(KEY, 0, 2**48, 1),
        lambda: native.discrete_gaussian(KEY, 0, 2**56, 1),
        lambda: native.select(KEY, 0, [1 - 2**62, 2**62 - 1], 2**47 - 1, 2**63 - 1, 1),
    ],
)
def test_the_largest_values_are_allowed(draw):
    assert len(draw()) == 1
