"""Rounds that read a Poisson sample: against dp-accounting, against laws written out, and alone."""

import logging
import math
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from xgb_dp.accounting import ExactAccountant, GaussianEvent, PureAccountant, make_accountant
from xgb_dp.accounting import sampled_selection as module
from xgb_dp.accounting.gaussian import Slack

from .events import gaussian, sampled, selections
from .oracle import Composed

FEW = settings(max_examples=10, deadline=None)


@pytest.fixture
def pld() -> Any:
    logging.getLogger("absl").setLevel(logging.ERROR)
    return pytest.importorskip("dp_accounting.pld.privacy_loss_distribution")


@pytest.mark.parametrize(
    ("rate", "noise", "count"), [(0.3, 2.0, 20), (0.02, 1.0, 200), (0.9, 10.0, 40)]
)
def test_each_neighbour_by_itself(pld, rate, noise, count):
    """A row removed and a row added have different laws; each is met."""
    reference = pld.from_gaussian_mechanism(
        noise, sampling_prob=rate, value_discretization_interval=2e-4
    ).self_compose(count)

    def curve(x: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        accountant = ExactAccountant([gaussian(noise)])
        return np.array([accountant.get_delta(float(e)) for e in x])

    nodes = np.arange(0.0, 0.5 / noise**2 + 9.0 / noise, 1 / (48 * noise))
    table = dict(zip(nodes, curve(nodes), strict=True))

    def known(x: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        s, at, v = np.exp(x), np.exp(nodes), np.array(list(table.values()))
        return np.interp(s, at, v)

    rounds = module.Rounds(rate, 1 / noise, known, nodes, count)
    pairs = module.sampled_pairs(rounds, min(rate / noise / 16, 0.1), 1e-14)
    scale = rate / noise * math.sqrt(count)
    for pair, distribution in zip(pairs, (reference._pmf_remove, reference._pmf_add), strict=True):
        for epsilon in (0.5 * scale, 2 * scale, 4 * scale):
            want = distribution.get_delta_for_epsilon(epsilon)
            tilt = module.best_tilt([(pair, count)], 0.0, delta=1e-9, epsilon=epsilon)
            composed = module.Composed([(pair, count)], tilt, want * 1e-6)
            got = composed.expect(np.clip(-np.expm1(epsilon - composed.losses), 0.0, 1.0))
            assert want * (1 - 5e-3) <= got  # their grid rounds up as well
            assert got <= distribution.get_delta_for_epsilon(0.995 * epsilon)


@FEW
@given(
    st.floats(-3.5, -0.05),
    st.integers(1, 400),
    st.floats(-0.2, 1.2),
    st.floats(-9, -3),
    st.sampled_from((0.0, 0.1, 0.8)),
)
def test_between_the_bounds_of_dp_accounting(log_rate, count, log_noise, log_delta, mu):
    """With releases from all rows beside the sampled ones."""
    pld = pytest.importorskip("dp_accounting.pld.privacy_loss_distribution")
    rate, noise, delta = 10**log_rate, 10**log_noise, 10**log_delta
    event = sampled(rate, count, gaussian(noise))
    step = max(event.rate / noise / 20, 1e-4)
    logging.disable(logging.WARNING)  # it says that the lower bound is not its best one
    low, high = (
        pld.from_gaussian_mechanism(
            noise,
            sampling_prob=event.rate,
            pessimistic_estimate=upper,
            value_discretization_interval=step,
        ).self_compose(count)
        for upper in (False, True)
    )
    if mu:
        low, high = (
            pair.compose(
                pld.from_gaussian_mechanism(
                    1 / mu, pessimistic_estimate=upper, value_discretization_interval=step
                )
            )
            for upper, pair in ((False, low), (True, high))
        )
    logging.disable(logging.NOTSET)
    events = [gaussian(1 / mu), event] if mu else [event]
    got = ExactAccountant(events).get_epsilon(delta)
    assert got >= low.get_epsilon_for_delta(delta) * (1 - 1e-6)
    assert got <= high.get_epsilon_for_delta(delta) * (1 + 1e-2) + 5e-4


# ------------------------------------------------------------------------------- selections
@pytest.mark.parametrize(
    ("rate", "eps0", "inner", "count"), [(0.3, 0.6, 1, 15), (0.05, 1.0, 2, 60), (0.7, 0.2, 3, 20)]
)
def test_selections_of_a_fixed_adversary(rate, eps0, inner, count):
    """Laws of two points, written out and composed: below the bound, and not far."""
    accountant = ExactAccountant([sampled(rate, count, selections(eps0, inner))])
    scale = rate * eps0 * math.sqrt(inner * count) / 2
    best = dict.fromkeys((0.5 * scale, 2 * scale, 3 * scale), 0.0)
    for part in np.linspace(0.05, 0.95, 19):
        t = part * eps0
        a = math.expm1(t - eps0) / math.expm1(-eps0)
        p1, q1 = np.array([a, 1 - a]), np.array([a * math.exp(-t), 1 - a * math.exp(-t)])
        p, q = p1, q1
        for _ in range(inner - 1):
            p, q = np.outer(p, p1).ravel(), np.outer(q, q1).ravel()
        mixed = (1 - rate) * q + rate * p
        for x, y in ((mixed, q), (q, mixed)):
            distribution = Composed(x, y, count, scale / 2000)
            for epsilon in best:
                best[epsilon] = max(best[epsilon], distribution.delta(epsilon))
    for epsilon, want in best.items():
        assert want <= accountant.get_delta(epsilon) * (1 + 1e-9)
        # One selection a round may be the worst one for each loss, which no single law is.
        assert accountant.get_delta(1.2 * epsilon + 0.2 * scale) <= want


@FEW
@given(
    st.floats(0.01, 0.95),
    st.lists(st.floats(0.01, 2.0), min_size=1, max_size=3),
    st.integers(1, 40),
    st.sampled_from((0.0, 1e-9, 1e-3)),
    st.integers(1, 3),
)
def test_never_above_pure(rate, ranges, count, delta, group):
    events = [sampled(rate, count, *map(selections, ranges)), selections(0.3)]
    pure = PureAccountant(events).get_epsilon(group_size=group)
    exact = ExactAccountant(events)
    assert exact.get_epsilon(delta, group) <= pure
    assert exact.get_delta(pure, group) == 0.0
    assert math.isfinite(exact.get_epsilon(0.0, group))


@pytest.mark.parametrize("rate", [1e-9, 0.1, 0.999, 1.0])
def test_pure_rounds_of_any_size(rate):
    """All of them count, also where e^epsilon is no double any more."""
    event = sampled(rate, 5, selections(100.0, 10))
    want = 5 * (1000.0 + math.log(event.rate))
    assert PureAccountant([event]).get_epsilon() == pytest.approx(want, rel=1e-12)
    costs = [
        PureAccountant([sampled(rate, 5, selections(e))]).get_epsilon()
        for e in (29.0, 29.999999, 30.0, 30.000001, 31.0)
    ]
    assert costs == sorted(costs)
    assert costs[3] - costs[1] < 1e-4
    assert PureAccountant([sampled(rate, 0, selections(100.0, 10))]).get_epsilon() == 0.0
    assert PureAccountant([sampled(rate, 5, gaussian(1.0))]).get_epsilon() == math.inf


# ------------------------------------------------------------------------- any composition
@FEW
@given(
    st.floats(-2, -0.1), st.integers(1, 60), st.floats(0.7, 20.0), st.floats(0.01, 0.5), st.data()
)
def test_more_of_anything_costs_more(log_rate, count, noise, eps0, data):
    def cost(
        rate: float = 10**log_rate, n: int = count, sigma: float = noise, e: float = eps0, **kw: Any
    ) -> float:
        events = [gaussian(9.0), sampled(rate, n, selections(e, 2), gaussian(sigma))]
        return ExactAccountant(events).get_epsilon(kw.get("delta", 1e-6), kw.get("group_size", 1))

    change = data.draw(
        st.sampled_from(
            (
                {"rate": min(1.0, 1.1 * 10**log_rate)},
                {"n": count + 5},
                {"sigma": 0.9 * noise},
                {"e": 1.2 * eps0},
                {"delta": 1e-7},
                {"group_size": 2},
            )
        )
    )
    base = cost()
    assert base <= cost(**change) * (1 + 2e-3)
    assert ExactAccountant([gaussian(9.0)]).get_epsilon(1e-6) <= base


@pytest.mark.parametrize(
    ("delta", "group"), [(1e-20, 1), (1e-20, 2), (1e-6, 1), (1e-6, 2), (1e-2, 2), (0.05, 1)]
)
def test_epsilon_and_delta_agree(delta, group):
    accountant = ExactAccountant(
        [sampled(0.1, 30, selections(0.1, 4), gaussian(3.0)), gaussian(9.0)]
    )
    epsilon = accountant.get_epsilon(delta, group)
    assert 0.0 < epsilon < math.inf
    assert accountant.get_delta(epsilon, group) <= delta * (1 + 1e-3)
    assert accountant.get_delta(0.95 * epsilon, group) > delta


@pytest.mark.parametrize("rate", [1e-3, 0.2])
def test_a_generous_delta_pays_for_everything(rate):
    """One round moves the law by rate * (2 Phi(mu/2) - 1) in all, which delta may exceed."""
    event = sampled(rate, 1, gaussian(1.0))
    whole = event.rate * math.erf(0.5 / math.sqrt(2.0))
    accountant = ExactAccountant([event])
    assert whole <= accountant.get_delta(0.0) <= whole * (1 + 1e-3)
    assert accountant.get_epsilon(1.01 * whole) == 0.0
    assert accountant.get_epsilon(0.5 * whole) > 0.0


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1), (1, 2, 0)])
def test_order_of_sampled_rounds_is_irrelevant(order):
    parts = [sampled(0.2, 9, gaussian(4.0)), gaussian(9.0), sampled(0.05, 30, selections(0.5))]
    want = ExactAccountant(parts).get_epsilon(1e-6)
    assert ExactAccountant([parts[i] for i in order]).get_epsilon(1e-6) == pytest.approx(want)


@pytest.mark.parametrize("points", [1 << 10, 1 << 12])
def test_a_coarser_grid_only_raises_the_bound(monkeypatch, points):
    events = [sampled(0.05, 50, gaussian(1.5)), gaussian(9.0)]
    fine = ExactAccountant(events).get_epsilon(1e-6)
    monkeypatch.setattr(module, "_MOST_POINTS", points)
    assert fine <= ExactAccountant(events).get_epsilon(1e-6) <= fine * 1.2


def test_dominating_distributions_lie_above_their_curve():
    """The hull of bounds is at least the bounds' curve, also between and beyond the points."""
    points = np.arange(0.0, 4.0, 0.05)

    def curve(x: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        return np.asarray(np.maximum(0.0, 1.0 - np.exp((x - 2.0) / 2.0)) ** 2 / (1 - math.exp(-2)))

    def several(x: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        return np.asarray(0.7 * curve(1.3 * x))

    one = module.Rounds(0.3, 1.0, curve, points, 1)
    more = module.Rounds(0.3, 1.0, curve, points, 1, several)
    ways: list[tuple[module.Rounds, list[Any]]] = [
        (one, [partial(module.removed_curve, one), partial(module.added_curve, one)]),
        (more, [partial(module.both_signs, several)]),
    ]
    for rounds, curves in ways:
        for way, pair in zip(curves, module.sampled_pairs(rounds, 0.013, 1e-9), strict=True):
            for x in np.linspace(-1.0, 2.0, 301):
                stick = np.sum(pair.p * np.maximum(0.0, -np.expm1(x - pair.losses)))
                assert stick + pair.infinite >= way(np.array([x]))[0] * (1 - 1e-9)
            assert np.sum(pair.p) + pair.infinite == pytest.approx(1.0, abs=1e-6)


def test_slack_beyond_a_double_gives_up():
    assert Slack(800.0, 0.0).raised(1e-300, 0.0) == 1.0
    assert Slack(1.0, 0.0).raised(0.1, 0.2) == pytest.approx(0.1 * math.e + 0.2)
    rough = GaussianEvent("leaves", 1, 1, 2, 10**5)
    for name in ("exact", "gdp"):
        assert make_accountant(name, [rough]).get_delta(1e4) > 0.999


# ---------------------------------------------------------------- closed forms, dp-accounting
SAMPLED = [
    (0.5, 30.0, 50, 1e-6),
    (0.1, 5.0, 50, 1e-6),
    (0.01, 1.0, 1000, 1e-6),
    (0.1, 2.0, 100, 1e-9),
    (0.9, 20.0, 300, 1e-5),
    (0.001, 0.7, 2000, 1e-8),
    (0.3, 0.5, 3, 1e-4),
    # Losses that are rare and a thousand times larger than the usual ones.
    (2.2e-4, 0.78, 133, 2e-9),
    (1e-3, 0.5, 200, 1e-6),
    (1e-4, 0.5, 5000, 1e-8),
]


@pytest.mark.parametrize(("rate", "noise", "count", "delta"), SAMPLED)
def test_sampled_gaussians_against_dp_accounting(rate, noise, count, delta):
    """Theirs is the larger of a row added and a row removed, too."""
    dpa = pytest.importorskip("dp_accounting")
    from dp_accounting.pld import pld_privacy_accountant

    reference = pld_privacy_accountant.PLDAccountant(value_discretization_interval=1e-4)
    reference.compose(dpa.PoissonSampledDpEvent(rate, dpa.GaussianDpEvent(noise)), count)
    want = reference.get_epsilon(delta)
    accountant = ExactAccountant([sampled(rate, count, gaussian(noise))])
    got = accountant.get_epsilon(delta)
    assert want * (1 - 3e-4) <= got <= want * (1 + 2e-3)  # their grid rounds up as well
    assert accountant.get_delta(got) == pytest.approx(delta, rel=1e-3)


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
