"""Laplace noise: what accountants say of it, against its laws written out."""

import itertools
import math

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtr, ndtri

from xgb_dp.accounting import ExponentialEvent, LaplaceEvent, make_accountant
from xgb_dp.accounting.published_accountants import bounded_range_mu, laplace_mu

from .events import gaussian, laplace, sampled, selections
from .oracle import stick

Distribution = npt.NDArray[np.float64]


def discrete(scale: int, shift: int, reach: int) -> Distribution:
    """Discrete Laplace noise on -reach..reach, what is beyond added to the ends."""
    k = np.arange(-reach, reach + 1)
    distribution = np.exp(-np.abs(k - shift) / scale)
    decay = math.exp(-1.0 / scale)
    distribution[0] /= 1.0 - decay
    distribution[-1] /= 1.0 - decay
    return np.asarray(distribution * (1.0 - decay) / (1.0 + decay))


@pytest.mark.parametrize(("scale", "shifts"), [(3, (4,)), (2, (1, 3)), (5, (2, 2, 3)), (1, (2, 1))])
def test_any_division_of_a_shift_among_numbers(scale, shifts):
    """All of it on one number is the worst, and of several releases the composition."""
    event = LaplaceEvent("leaves", sum(shifts), scale, 1)
    accountant = make_accountant("exact", [event])
    reach = 8 * scale + sum(shifts)
    for signs in itertools.product((1, -1), repeat=len(shifts)):
        p, q = np.ones(1), np.ones(1)
        for shift, sign in zip(shifts, signs, strict=True):
            p = np.outer(p, discrete(scale, 0, reach)).ravel()
            q = np.outer(q, discrete(scale, sign * shift, reach)).ravel()
        for x in (0.0, 0.1, 0.5, 1.0, 1.7):
            for first, second in ((p, q), (q, p)):
                assert stick(first, second, x) <= accountant.get_delta(x) * (1 + 1e-9) + 1e-12


@settings(max_examples=40, deadline=None)
@given(
    st.integers(1, 6), st.integers(1, 5), st.integers(1, 3), st.floats(0.05, 1.5), st.integers(0, 1)
)
def test_above_an_adversary_that_selects_after_noise(scale, shift, count, eps0, pick):
    """A selection of two outcomes after each release, its law fixed; all outcomes written out."""
    t = eps0 * (0.3 + 0.4 * pick)
    up = math.expm1(t - eps0) / math.expm1(-eps0)
    pair = np.array([up, 1 - up]), np.array([up * math.exp(-t), 1 - up * math.exp(-t)])
    reach = 3 * scale + shift
    p, q = np.ones(1), np.ones(1)
    for _ in range(count):
        p = np.outer(np.outer(p, discrete(scale, 0, reach)), pair[0]).ravel()
        q = np.outer(np.outer(q, discrete(scale, shift, reach)), pair[1]).ravel()
    events = [
        LaplaceEvent("leaves", shift, scale, count),
        ExponentialEvent("splits", math.ceil(eps0 * 2**40), 40, count),
    ]
    accountant = make_accountant("exact", events)
    for x in (0.0, 0.2, 0.8, 2.0):
        assert stick(p, q, x) <= accountant.get_delta(x) * (1 + 1e-9) + 1e-12
        assert stick(q, p, x) <= accountant.get_delta(x) * (1 + 1e-9) + 1e-12


@pytest.mark.parametrize("mu", [0.1, 1.0])
def test_with_gaussians_and_samples_against_dp_accounting(mu):
    pld = pytest.importorskip("dp_accounting.pld.privacy_loss_distribution")
    distribution = pld.from_laplace_mechanism(1 / 0.4, value_discretization_interval=1e-4)
    noise = pld.from_gaussian_mechanism(1 / mu, value_discretization_interval=1e-4)
    want = distribution.self_compose(7).compose(noise).get_epsilon_for_delta(1e-6)
    got = make_accountant("exact", [gaussian(1 / mu), laplace(0.4, 7)]).get_epsilon(1e-6)
    assert want * (1 - 1e-3) <= got <= want * (1 + 2e-3)
    part = pld.from_laplace_mechanism(
        1 / 0.8, sampling_prob=0.1, value_discretization_interval=1e-4
    )
    want = part.self_compose(40).get_epsilon_for_delta(1e-6)
    got = make_accountant("exact", [sampled(0.1, 40, laplace(0.8))]).get_epsilon(1e-6)
    assert want * (1 - 1e-3) <= got <= want * (1 + 5e-3)


@pytest.mark.parametrize("epsilon", [0.02, 0.5, 2.0, 8.0])
def test_its_gaussian_is_below_its_trade_off_curve(epsilon):
    mu = laplace_mu(epsilon)
    z = np.linspace(-60.0, 60.0, 200_001)
    missed = np.where(z < 0, 0.5 * np.exp(z), 1.0 - 0.5 * np.exp(-np.abs(z)))
    detected = np.where(
        z - epsilon < 0, 0.5 * np.exp(np.minimum(z - epsilon, 0.0)), 1 - 0.5 * np.exp(epsilon - z)
    )
    alarm, power = 1.0 - missed, 1.0 - detected
    inside = (alarm > 1e-12) & (power < 1.0 - 1e-12)
    assert np.all(ndtr(ndtri(alarm[inside]) + mu) >= power[inside] * (1 - 1e-9))
    assert mu <= bounded_range_mu(2 * epsilon)


@pytest.mark.parametrize("name", ["exact", "rdp", "gdp", "classic", "pure"])
@pytest.mark.parametrize(("epsilon", "count"), [(0.05, 60), (0.7, 4), (0.3, 1500)])
def test_never_above_a_selection_of_twice_its_epsilon(name, epsilon, count):
    events = [laplace(epsilon, count), selections(0.2, 5)]
    as_range = [selections(2 * epsilon * (1 + 1e-6), count), selections(0.2, 5)]
    for group in (1, 2):
        got, most = (make_accountant(name, e).get_epsilon(1e-6, group) for e in (events, as_range))
        assert got <= most * (1 + 1e-6)
        if name == "exact":
            assert got <= make_accountant("rdp", events).get_epsilon(1e-6, group) * (1 + 1e-9)
            assert got > make_accountant(name, events[1:]).get_epsilon(1e-6, group)
