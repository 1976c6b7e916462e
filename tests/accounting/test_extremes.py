"""Events at the ends of their ranges: every list has a bound or an error of the package."""

import math

import pytest

from xgb_dp.accounting import GaussianEvent, make_accountant
from xgb_dp.accounting.gaussian import gaussian_delta
from xgb_dp.accounting.sampled_rounds import ParallelEvent, SampledEvent

from .events import gaussian, selections

FAINT = GaussianEvent("leaves", 1, 2**199, 2, 10**6)
RARE = [SampledEvent(1, bits, (gaussian(1.0),), 10) for bits in (40, 60)]
MANY = [ParallelEvent(parts, (gaussian(1.0),), 1) for parts in (2**60, 2**199)]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("event", [FAINT, *RARE, *MANY])
@pytest.mark.parametrize("name", ["exact", "gdp", "classic", "rdp"])
def test_extreme_events_have_a_bound(name, event):
    accountant = make_accountant(name, [event])
    epsilon = accountant.get_epsilon(1e-6)
    assert 0.0 <= epsilon < math.inf or (name != "exact" and isinstance(event, SampledEvent))
    assert 0.0 <= accountant.get_delta(0.5) <= 1.0


@pytest.mark.parametrize("delta", [1e-6, 1e-200, 1e-300])
@pytest.mark.parametrize("name", ["gdp", "classic"])
def test_faint_releases_cost_next_to_nothing(name, delta):
    assert make_accountant(name, [FAINT]).get_epsilon(delta) < 1e-9


def test_a_rare_selection_costs_next_to_nothing():
    rare = SampledEvent(1, 40, (selections(0.0625, 4),), 10)
    accountant = make_accountant("exact", [rare])
    assert accountant.get_epsilon(1e-6) <= accountant.get_epsilon(1e-12) < 1e-9


@pytest.mark.parametrize("mu", [1e-30, 1e-22, 1e-16])
def test_a_bound_is_never_zero_where_there_is_noise(mu):
    """The two terms of the curve are equal doubles; their rounding is what is left."""
    for epsilon in (0.0, mu, 5.0 * mu, 30.0 * mu):
        assert gaussian_delta(epsilon, mu) > 0.0
