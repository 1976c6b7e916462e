"""Secret coins of a split: the bound against the definition, and what would break it."""

import math
from dataclasses import replace
from functools import partial
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from tests.accounting.events import LAPLACE, SELECTION, gaussian
from tests.accounting.oracle import stick
from xgb_dp.accounting import ExactAccountant
from xgb_dp.accounting.gaussian import gaussian_delta, gaussian_mu
from xgb_dp.accounting.secret import SecretSplit, mixed_delta
from xgb_dp.data.parts import Part, is_secret
from xgb_dp.errors import LedgerError

SHARES, SIZES = (0.3, 0.5, 0.7, 0.95), ((0.02, 0.004), (0.3, 0.1), (0.8, 0.8), (1.5, 0.4), (0.5, 0))
Array = np.ndarray


def num(share: float) -> int:
    return round((1.0 - share) * 2**32)


def sticks(ratio: Array, without: Array, epsilon: float) -> tuple[float, float]:
    """Hockey sticks of with against without a row, and of the other order."""
    factor = math.exp(epsilon)
    return (
        float(np.sum(without * np.maximum(ratio - factor, 0.0))),
        float(np.sum(without * np.maximum(1.0 - factor * ratio, 0.0))),
    )


def one_answer(share: float, one: float, other: float) -> tuple[Array, Array]:
    """A row moves the same sum by one of two amounts: the worst of all that have both curves."""
    z, weight = midpoints(one, other, 50_000)
    ratio = share * np.exp(one * z - one**2 / 2) + (1 - share) * np.exp(other * z - other**2 / 2)
    return ratio, weight


def two_answers(share: float, one: float, other: float) -> tuple[Array, Array]:
    """Each part has a sum of its own."""
    z, weight = midpoints(one, other, 1000)
    ratio = share * np.exp(one * z - one**2 / 2)[:, None]
    ratio = ratio + (1 - share) * np.exp(other * z - other**2 / 2)[None, :]
    return ratio, weight[:, None] * weight[None, :]


def midpoints(one: float, other: float, number: int) -> tuple[Array, Array]:
    """Cells of a standard normal number: a value in each, and its chance."""
    edges = np.linspace(-9.0, 9.0 + max(one, other), number + 1)
    return 0.5 * (edges[1:] + edges[:-1]), np.diff(norm.cdf(edges))


@pytest.mark.parametrize(("share", "size"), list(product(SHARES, SIZES)))
def test_the_bound_by_quadrature(share, size):
    """The bound is that of one sum, whose loss both parts share, and above that of two sums."""
    one, other = size
    curves = [partial(gaussian_delta, mu=mu) for mu in (one, other)]
    worst, usual = one_answer(share, one, other), two_answers(share, one, other)
    reach = one * one / 2 + 5.0 * one
    for epsilon in np.linspace(0.0, reach, 4):
        bound = mixed_delta(float(epsilon), share, *curves)
        largest = max(sticks(*worst, float(epsilon)))
        assert largest * (1 - 1e-4) - 1e-12 <= bound <= largest * 1.001 + 1e-12
        assert max(sticks(*usual, float(epsilon))) <= bound * 1.001 + 1e-12
        assert bound <= max(curve(float(epsilon)) for curve in curves) * (1 + 1e-6) + 1e-15


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
@pytest.mark.parametrize("delta", [1e-9, 1e-6, 1e-3])
@pytest.mark.parametrize("share", SHARES)
def test_epsilon_of_a_split(share, epsilon, delta):
    """Never below the truth, hardly above it, and below what a part costs alone."""
    one, other = (gaussian_mu(part * epsilon, delta) for part in (1.0, 0.2))
    exact = SecretSplit(num(share), (gaussian(1 / one),), (gaussian(1 / other),)).get_epsilon(delta)
    law = one_answer(share, one, other)
    assert max(sticks(*law, exact)) <= delta * (1 + 1e-4)
    assert max(sticks(*law, 0.995 * exact)) > delta
    simple = math.log(share * math.exp(epsilon) + (1 - share) * math.exp(epsilon / 5))
    assert exact <= simple * (1 + 1e-6) < epsilon


def test_the_goal():
    """A training of epsilon on 70% and an evaluation of a fifth of it."""
    for epsilon, most in ((0.1, 0.078), (1.0, 0.83), (4.0, 3.65)):
        events = [gaussian(1 / gaussian_mu(part * epsilon, 1e-6)) for part in (1.0, 0.2)]
        assert SecretSplit(num(0.7), (events[0],), (events[1],)).get_epsilon(1e-6) <= most


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32 - 1), st.floats(0.02, 0.98), st.floats(0.0, 3.0))
def test_the_bound_for_any_laws(seed, share, epsilon):
    """Three laws on a few outcomes: what the definition gives for their mixture is below."""
    rng = np.random.default_rng(seed)
    size = int(rng.integers(2, 9))
    without, one, other = rng.dirichlet(np.full(size, rng.choice([0.3, 1.0, 5.0])), 3)

    def curve(law: Array, x: float) -> float:
        return max(stick(law, without, x), stick(without, law, x))

    mixture = share * one + (1 - share) * other
    bound = mixed_delta(epsilon, share, partial(curve, one), partial(curve, other))
    assert curve(mixture, epsilon) <= bound + 1e-12


@pytest.mark.parametrize("inner", [SELECTION, LAPLACE])
def test_other_mechanisms(inner):
    """Without noise of unbounded loss the simple formula holds at delta 0, nearly."""
    alone = ExactAccountant([inner]).get_epsilon(0.0)
    exact = SecretSplit(num(0.6), (inner,), ()).get_epsilon(1e-9)
    assert exact <= math.log(0.6 * math.exp(alone) + 0.4) * (1 + 1e-3)


def test_ends():
    event = gaussian(4.0)
    both = SecretSplit(num(0.5), (event,), (event,))
    assert both.get_epsilon(1e-6) == pytest.approx(
        ExactAccountant([event]).get_epsilon(1e-6), rel=1e-3
    )
    assert SecretSplit(num(0.5), (), ()).get_epsilon(1e-6) == 0.0
    assert math.isinf(SecretSplit(num(0.5), (gaussian(0.0),), ()).get_epsilon(1e-6))
    # Delta would hide whatever is released of a part that is as small.
    for share in (0, 1 << 32, num(0.001), num(0.9999)):
        with pytest.raises(ValueError, match="test_num"):
            SecretSplit(share, (event,), ())
    with pytest.raises(LedgerError):
        SecretSplit(num(0.5), (event,), (gaussian_of_person(),))


def gaussian_of_person():
    return replace(gaussian(4.0), unit="person")


# ----------------------------------------------------------------------------- what would break it
def test_a_coin_that_is_known_breaks_the_claim():
    """With the coin the output is that of a pair of one part: the claim is false, and by far."""
    claim = SecretSplit(num(0.7), (gaussian(1 / 0.8),), (gaussian(1 / 0.2),)).get_epsilon(1e-4)
    z, weight = midpoints(0.8, 0.2, 20_000)
    # The size of the first part is published: one row more there has the chance of its coin.
    known = 0.7 * sticks(np.exp(0.8 * z - 0.32), weight, claim)[0]
    known += 0.3 * sticks(np.exp(0.2 * z - 0.02), weight, claim)[0]
    assert known > 1e-4 * 1.2


def test_claims_of_one_coin_do_not_add_up():
    """Two models of one part: each costs the claim, and both more than twice as much."""
    share, size, delta = 0.5, 1.0, 1e-3
    claim = SecretSplit(num(share), (gaussian(1 / size),), ()).get_epsilon(delta / 2)
    law = one_answer(share, math.sqrt(2.0) * size, 0.0)
    alone = ExactAccountant([gaussian(1 / size)]).get_epsilon(delta / 2)
    assert claim < 0.9 * alone
    both = SecretSplit(num(share), (gaussian(1 / size, 2),), ()).get_epsilon(delta)
    assert max(sticks(*law, 0.99 * both)) > delta
    # With pure losses: log E e^2L is above 2 log E e^L.
    twice = math.log(share * math.exp(2.0) + 1 - share)
    assert twice > 2.0 * math.log(share * math.exp(1.0) + 1 - share)


def test_rows_do_not_hide_behind_coins_of_persons():
    """Another row of the person is in the same part, and shows in which."""
    one, share = 1.0, 0.5
    z, weight = midpoints(one + 9.0, 0.0, 20_000)
    # The other row moves a second sum, without noise: a neighbour has it too.
    given_the_part = sticks(np.exp(one * z - one**2 / 2), weight, 1.0)[0]
    true = share * given_the_part
    claimed = mixed_delta(1.0, share, partial(gaussian_delta, mu=one), lambda x: 1.0 * (x < 0.0))
    assert true > 1.1 * claimed
    assert not is_secret(Part("aa", "train", "person", 1 << 31), "row")
    assert not is_secret(Part("aa", "train", "row"), "row")
    assert is_secret(Part("aa", "train", "row", 1 << 31), "row")
