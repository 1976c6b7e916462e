"""Every accountant against closed forms, against dp-accounting and against the others."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit, logit, ndtr, ndtri

from xgb_dp.accounting import (
    ACCOUNTANTS,
    Event,
    ExponentialEvent,
    GaussianEvent,
    LaplaceEvent,
    PureAccountant,
    make_accountant,
)
from xgb_dp.accounting.closed_form_bounds import bounded_range_rdp
from xgb_dp.accounting.published_accountants import RDPAccountant, bounded_range_mu
from xgb_dp.accounting.sampled_rounds import ParallelEvent
from xgb_dp.errors import LedgerError

from .events import UNIT, flat_events, gaussian, laplace, sampled, selections

SLOW = settings(max_examples=25, deadline=None)
MORE = settings(max_examples=60, deadline=None)


# ------------------------------------------------------------------------- one mechanism
@pytest.mark.parametrize("eps0", [1e-3, 0.1, 1.0, 5.0, 30.0])
@pytest.mark.parametrize("order", [1.001, 1.5, 2.0, 10.0, 300.0])
def test_bounded_range_rdp_is_the_largest_of_two_point_distribution(eps0, order):
    t = np.linspace(0.0, eps0, 200_001)[1:-1]
    upper = -np.expm1(t - eps0) / -np.expm1(-eps0)  # chance of the loss t; else t - eps0
    lower = np.exp(-eps0) * np.expm1(t) / -np.expm1(-eps0)
    moments = np.logaddexp(
        np.log(upper) + (order - 1) * t, np.log(lower) + (order - 1) * (t - eps0)
    )
    want = float(moments.max()) / (order - 1)
    got = float(bounded_range_rdp(eps0, np.array([order]))[0])
    rounding = 1e-13 * (1 + eps0) / (order - 1) + 1e-14
    assert want - rounding <= got <= want * (1 + 1e-6) + 20 * rounding


@pytest.mark.parametrize("eps0", [1e-4, 0.01, 0.3, 2.0, 10.0, 60.0])
def test_bounded_range_mu_covers_every_two_point_distribution(eps0):
    """The corner (1 - p, q) of a law's trade-off curve lies above the Gaussian one."""
    mu = bounded_range_mu(eps0)
    for shift in np.linspace(-30, 30, 4001):
        p, q = expit(shift + eps0 / 2), expit(shift - eps0 / 2)
        # type II error of the Gaussian test at type I error q: Phi(Phi^-1(1 - q) - mu)
        if q > 1e-300 and p < 1 - 1e-12:
            assert ndtr(-ndtri(q) - mu) <= (1 - p) * (1 + 1e-9)
    centre = ndtri(expit(eps0 / 2)) - ndtri(expit(-eps0 / 2))
    assert mu == pytest.approx(centre, rel=1e-6) or eps0 > 50
    assert logit(expit(eps0 / 2)) - logit(expit(-eps0 / 2)) == pytest.approx(eps0, rel=1e-3)


def test_bounded_range_mu_has_no_gap_where_its_formula_changes():
    eps0 = np.logspace(-7, -5, 41)
    ratio = np.array([bounded_range_mu(e) for e in eps0]) / eps0
    assert np.all(ratio >= math.sqrt(math.pi / 8))
    assert np.all(ratio <= math.sqrt(math.pi / 8) * (1 + 2e-8))


@pytest.mark.parametrize(("noise", "count"), [(30.0, 50), (2.0, 7), (0.8, 3)])
def test_rdp_against_dp_accounting(noise, count):
    dpa = pytest.importorskip("dp_accounting")
    from dp_accounting.rdp import rdp_privacy_accountant

    reference = rdp_privacy_accountant.RdpAccountant(1 + np.logspace(-2, 4, 3000))
    reference.compose(dpa.GaussianDpEvent(noise), count)
    got = RDPAccountant([gaussian(noise, count)])
    assert got.get_epsilon(1e-6) == pytest.approx(reference.get_epsilon(1e-6), rel=1e-4)
    assert got.get_delta(1.0) == pytest.approx(reference.get_delta(1.0), rel=1e-3, abs=1e-300)


def test_pure_closed_forms():
    events = [gaussian(4.0, 3), selections(0.5, 10)]
    assert PureAccountant(events).get_epsilon(0.1) == math.inf
    assert PureAccountant(events[1:]).get_epsilon(0.0) == pytest.approx(5.0, rel=1e-9)
    one = PureAccountant([sampled(0.1, 7, selections(0.5, 2))])
    assert one.get_epsilon() == pytest.approx(7 * math.log1p(0.1 * math.expm1(1.0)), rel=1e-9)


# --------------------------------------------------------------------- against each other
@SLOW
@given(
    flat_events(),
    st.sampled_from((1e-9, 1e-6, 1e-2)),
    st.integers(1, 3),
    st.sampled_from((0.01, 0.5, 3.0)),
)
def test_exact_is_the_smallest(events, delta, group, epsilon):
    known = {name: make_accountant(name, events) for name in ACCOUNTANTS}
    epsilons = {name: one.get_epsilon(delta, group) for name, one in known.items()}
    deltas = {name: one.get_delta(epsilon) for name, one in known.items()}
    for name in ("gdp", "rdp", "pure"):
        assert epsilons["exact"] <= epsilons[name] * (1 + 1e-3) + 1e-6, name
        assert deltas["exact"] <= deltas[name] * (1 + 2e-2) + 1e-12, name
    assert min(epsilons.values()) >= 0.0
    assert all(0.0 <= value <= 1.0 for value in deltas.values())


@MORE
@given(flat_events(), st.randoms(use_true_random=False), st.sampled_from(("rdp", "gdp", "pure")))
def test_order_of_composition_is_irrelevant(events, rng, name):
    shuffled = list(events)
    rng.shuffle(shuffled)
    one, other = (make_accountant(name, e).get_epsilon(1e-6) for e in (events, shuffled))
    assert one == pytest.approx(other, rel=1e-12)


@SLOW
@given(flat_events(), st.sampled_from(list(ACCOUNTANTS)), st.data())
def test_monotone_in_every_argument(events, name, data):
    """More of anything never costs less (up to the grid of the exact curve)."""
    room = 1 + (2e-3 if name == "exact" else 1e-9)
    cost = make_accountant(name, events).get_epsilon(1e-6)
    at = data.draw(st.integers(0, len(events) - 1))
    event = events[at]
    if isinstance(event, GaussianEvent):
        grown = data.draw(
            st.sampled_from(
                (
                    gaussian(math.sqrt(event.sigma2 / UNIT) / 1.5, event.count),
                    gaussian(math.sqrt(event.sigma2 / UNIT), event.count + 2),
                    GaussianEvent("leaves", 2 * UNIT, event.sigma2, 2, event.count),
                )
            )
        )
    else:
        assert isinstance(event, ExponentialEvent)
        grown = data.draw(
            st.sampled_from(
                (selections(event.eps0 * 1.5, event.count), selections(event.eps0, event.count + 2))
            )
        )
    more = make_accountant(name, [*events[:at], grown, *events[at + 1 :]])
    assert cost <= more.get_epsilon(1e-6) * room
    accountant = make_accountant(name, events)
    assert cost <= accountant.get_epsilon(1e-8) * room
    assert cost <= accountant.get_epsilon(1e-6, group_size=2) * room
    if math.isfinite(cost):
        assert accountant.get_delta(cost * room + 1e-9) <= 1e-6 * (1 + 1e-3)


@pytest.mark.parametrize("name", list(ACCOUNTANTS))
def test_nothing_costs_nothing(name):
    for events in ([], [gaussian(1.0, 0)], [selections(0.0, 5)]):
        assert make_accountant(name, events).get_epsilon(1e-6) == 0.0
        assert make_accountant(name, events).get_delta(0.0) == 0.0


@pytest.mark.parametrize("name", list(ACCOUNTANTS))
def test_bad_queries(name):
    accountant = make_accountant(name, [gaussian(1.0)])
    for bad in (
        {"delta": -1.0},
        {"delta": 2.0},
        {"delta": math.nan},
        {"delta": 0.1, "group_size": 0},
    ):
        with pytest.raises(ValueError, match=r"delta|group"):
            accountant.get_epsilon(**bad)
    with pytest.raises(ValueError, match="epsilon"):
        accountant.get_delta(-1.0)
    with pytest.raises(ValueError, match="accountant"):
        make_accountant("hope", [])


# ------------------------------------------------------------- Laplace noise, disjoint parts
@pytest.mark.parametrize(("epsilon", "count"), [(0.01, 400), (0.1, 50), (0.7, 6), (4.0, 2)])
def test_laplace_against_dp_accounting(epsilon, count):
    pld = pytest.importorskip("dp_accounting.pld.privacy_loss_distribution")
    distribution = pld.from_laplace_mechanism(1 / epsilon, value_discretization_interval=1e-4)
    for delta in (1e-9, 1e-5):
        want = distribution.self_compose(count).get_epsilon_for_delta(delta)
        got = make_accountant("exact", [laplace(epsilon, count)]).get_epsilon(delta)
        assert want * (1 - 1e-3) <= got <= want * (1 + 1e-3)
    pure = make_accountant("pure", [laplace(epsilon, count)]).get_epsilon(0.0)
    assert pure == pytest.approx(count * epsilon, rel=1e-4)
    alone = make_accountant("exact", [laplace(epsilon, count)]).get_epsilon(0.0)
    assert alone == pytest.approx(pure, rel=1e-12)


@pytest.mark.parametrize("name", [n for n in ACCOUNTANTS if n != "pure"])
def test_disjoint_parts_cost_one_round(name):
    inner = (selections(0.2, 4), gaussian(3.0))
    parts = make_accountant(name, [ParallelEvent(8, inner, 5)])
    flat = make_accountant(name, [selections(0.2, 20), gaussian(3.0, 5)])
    assert parts.get_epsilon(1e-6) == pytest.approx(flat.get_epsilon(1e-6), rel=1e-6)
    # k rows may be in k rounds, and all of them in each.
    three = make_accountant(name, [selections(0.2, 60), gaussian(3.0, 15)])
    many = make_accountant(name, [selections(0.2, 160), gaussian(3.0, 40)])
    for rows, whole in ((3, three), (9, many)):
        got, want = parts.get_epsilon(1e-6, rows), whole.get_epsilon(1e-6, rows)
        # Steps of one row each may cost less, which the exact accountant knows.
        assert got == pytest.approx(want, rel=1e-6) or (name == "exact" and got < want)
    # A row and the one that replaces it are in the same part.
    swapped, both = parts.get_epsilon(1e-6, replaced=True), flat.get_epsilon(1e-6, 2)
    assert swapped == pytest.approx(both, rel=1e-6) or (name == "exact" and swapped < both)


def test_ensembles_with_selections_of_unequal_range():
    """Merged over its rounds they would stand in an order that nothing released them in."""
    with pytest.raises(LedgerError, match="different ranges"):
        ParallelEvent(8, (selections(0.2, 4), gaussian(3.0), selections(0.4, 4)), 5)
    for alike in (selections(0.2, 2), selections(0.4, 0), selections(0.0, 2)):
        ParallelEvent(8, (selections(0.2, 4), gaussian(3.0), alike), 5)


def test_pure_groups_of_disjoint_parts():
    parts = PureAccountant([ParallelEvent(8, (laplace(0.5),), 5)])
    assert parts.get_epsilon() == pytest.approx(2.5, rel=1e-5)
    assert parts.get_epsilon(group_size=3) == pytest.approx(7.5, rel=1e-5)


class Unknown(Event):
    """A kind of event that no accountant knows."""

    count, unit = 1, "row"  # type: ignore[misc]


@pytest.mark.parametrize("name", list(ACCOUNTANTS))
def test_what_an_accountant_does_not_know_is_not_free(name):
    for event in (Unknown(), 0.5, None):
        with pytest.raises(TypeError, match="event"):
            make_accountant(name, [gaussian(1.0), event]).get_epsilon(1e-6)  # type: ignore[list-item]


@pytest.mark.parametrize("name", list(ACCOUNTANTS))
def test_releases_without_noise_cost_everything(name):
    for event in (LaplaceEvent("leaves", 1, 0, 1), GaussianEvent("leaves", 1, 0, 2, 1)):
        accountant = make_accountant(name, [event])
        assert accountant.get_epsilon(1e-6) == math.inf
        assert accountant.get_delta(100.0) == 1.0


@settings(max_examples=40, deadline=None)
@given(flat_events(), st.sampled_from((1e-9, 1e-6, 1e-3)), st.integers(1, 3))
def test_classic_is_looser_than_exact(events, delta, group):
    classic, exact = (make_accountant(n, events) for n in ("classic", "exact"))
    assert classic.get_epsilon(delta, group) >= exact.get_epsilon(delta, group) * (1 - 1e-6)
    epsilon = classic.get_epsilon(delta, group)
    assert classic.get_delta(epsilon * (1 + 1e-9), group) <= delta * (1 + 1e-6)


def test_classic_is_the_theorem():
    """Kairouz, Oh and Viswanath (2017), theorem 3.5, for equal selections."""
    epsilon, k, delta = 0.05, 400, 1e-6
    drift = k * epsilon * (math.exp(epsilon) - 1) / (math.exp(epsilon) + 1)
    want = drift + epsilon * math.sqrt(2 * k * math.log(2 / delta))
    got = make_accountant("classic", [selections(epsilon, k)]).get_epsilon(delta)
    assert got == pytest.approx(want, rel=1e-9)


@pytest.mark.parametrize("delta", [1e-240, 1e-252, 1e-300, 5e-324])
@pytest.mark.parametrize("name", ["exact", "rdp", "gdp", "classic"])
def test_no_delta_above_zero_is_too_small(name, delta):
    """The tails are Gaussian: against a closed form in the logarithm of delta."""
    events = [GaussianEvent("leaves", 1, 10**4, 2, 50), ExponentialEvent("splits", 1 << 52, 60, 9)]
    for listed in (events, events[:1]):
        got = make_accountant(name, listed).get_epsilon(delta)
        if name == "classic" and delta == 5e-324:  # of which no release can have a part
            assert got == math.inf
            continue
        mu = math.sqrt(50 / 10**4)
        # log of Phi(mu/2 - x/mu) - e^x Phi(-mu/2 - x/mu), by the first term of Mills' ratio
        t = got / mu - mu / 2
        reached = -t * t / 2 - math.log(math.sqrt(2 * math.pi) * t) + math.log(mu / t)
        assert reached <= math.log(delta) + 0.1
        assert got <= 8 * (mu**2 / 2 + mu * math.sqrt(-2 * math.log(delta)))
    assert make_accountant(name, events).get_epsilon(0.0) == math.inf
