"""Accountants of rounds that read a Poisson sample, against closed forms and dp-accounting."""

import math
from dataclasses import replace

import numpy as np
import pytest

from xgb_dp.accounting import ExactAccountant

from .events import gaussian, sampled, selections

SAMPLED = [
    (0.5, 30.0, 50, 1e-6),
    (0.1, 5.0, 50, 1e-6),
    (0.01, 1.0, 1000, 1e-6),
    (0.1, 2.0, 100, 1e-9),
    (0.9, 20.0, 300, 1e-5),
    (0.001, 0.7, 2000, 1e-8),
    (0.3, 0.5, 3, 1e-4),
]


@pytest.mark.parametrize(("rate", "noise", "count", "delta"), SAMPLED)
def test_sampled_gaussians_against_dp_accounting(rate, noise, count, delta):
    """Theirs is the larger of a row added and a row removed, too."""
    dpa = pytest.importorskip("dp_accounting")
    from dp_accounting.pld import pld_privacy_accountant

    theirs = pld_privacy_accountant.PLDAccountant(value_discretization_interval=1e-4)
    theirs.compose(dpa.PoissonSampledDpEvent(rate, dpa.GaussianDpEvent(noise)), count)
    want = theirs.get_epsilon(delta)
    accountant = ExactAccountant([sampled(rate, count, gaussian(noise))])
    got = accountant.get_epsilon(delta)
    assert want * (1 - 3e-4) <= got <= want * (1 + 2e-3)  # their grid rounds up as well
    assert accountant.get_delta(got) == pytest.approx(delta, rel=1e-3)


def test_one_sampled_round_has_its_closed_form():
    """One round of one selection: two-point laws mixed by hand, in both orders."""
    eps0, rate = 1.2, 0.3
    accountant = ExactAccountant([sampled(rate, 1, selections(eps0))])

    def sticks(x: float) -> tuple[float, float]:
        t = np.linspace(0.0, eps0, 20_001)
        p = -np.expm1(t - eps0) / -np.expm1(-eps0)
        P, Q = np.stack([p, 1 - p]), np.stack([p * np.exp(-t), 1 - p * np.exp(-t)])
        mixed = (1 - rate) * Q + rate * P
        removed = np.maximum(mixed - math.exp(x) * Q, 0).sum(axis=0).max()
        added = np.maximum(Q - math.exp(x) * mixed, 0).sum(axis=0).max()
        return float(removed), float(added)

    for x in (0.0, 0.05, 0.2, 0.4):
        want = max(sticks(x))
        assert want * (1 - 1e-6) <= accountant.get_delta(x) <= want * 1.02 + 1e-9
    top = math.log1p(rate * math.expm1(eps0))
    assert accountant.get_delta(top + 0.05) < 1e-9


@pytest.mark.parametrize("rate", [0.02, 0.3, 0.97])
def test_sampling_amplifies_and_all_rows_cost_as_much_as_no_sampling(rate):
    inner = [selections(0.2, 4), gaussian(6.0)]
    flat = [selections(0.2, 80), gaussian(6.0, 20)]
    first = gaussian(8.0)
    whole = ExactAccountant([first, *flat]).get_epsilon(1e-6)
    got = ExactAccountant([first, sampled(rate, 20, *inner)]).get_epsilon(1e-6)
    assert ExactAccountant([first]).get_epsilon(1e-6) < got <= whole
    assert got < 0.7 * whole or rate > 0.5
    every = ExactAccountant([first, sampled(1.0, 20, *inner)]).get_epsilon(1e-6)
    assert whole * (1 - 1e-3) <= every <= whole * (1 + 1e-2)


def test_several_sampled_trainings_compose():
    a, b = sampled(0.2, 30, gaussian(4.0)), sampled(0.05, 10, selections(0.5, 3), gaussian(1.5))
    first, second = (ExactAccountant([e]).get_epsilon(1e-6) for e in (a, b))
    both = ExactAccountant([a, gaussian(20.0), b]).get_epsilon(1e-6)
    assert max(first, second) < both < first + second + 1.0
    split = ExactAccountant([sampled(0.2, 10, gaussian(4.0)), sampled(0.2, 20, gaussian(4.0))])
    assert split.get_epsilon(1e-6) == pytest.approx(first, rel=1e-3)


def test_extremes_of_sampling_fall_back_to_all_rows():
    """What fits no grid is charged as if every row took part, never less."""
    events = [sampled(0.5, 3, gaussian(0.01))]
    flat = ExactAccountant([gaussian(0.01, 3)]).get_epsilon(1e-6)
    assert ExactAccountant(events).get_epsilon(1e-6) == pytest.approx(flat)
    assert ExactAccountant([sampled(0.1, 2, gaussian(4.0))]).get_epsilon(0.0) == math.inf


def test_the_bound_by_all_rows_is_looked_at_where_it_counts():
    """Near a rate of 1 it is the smaller one; it is not paid for where it is far above."""
    events = [sampled(0.999, 30, selections(0.3), gaussian(20.0))]
    whole = ExactAccountant([replace(e, count=30 * e.count) for e in events[0].events])
    assert ExactAccountant(events).get_epsilon(1e-6) <= whole.get_epsilon(1e-6)
