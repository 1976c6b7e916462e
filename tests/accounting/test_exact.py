import math

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import log_ndtr

from xgb_dp.accounting import ExactAccountant, GaussianEvent, PureAccountant, make_accountant
from xgb_dp.accounting import gaussian as gaussian_module
from xgb_dp.accounting.closed_form_bounds import ZCDPCurve
from xgb_dp.accounting.gaussian import GaussianTotals

from .events import UNIT, selections


def gaussian(noise_multiplier, count=1, coordinates=2, unit=UNIT):
    return GaussianEvent("leaves", unit, round(unit * noise_multiplier**2), coordinates, count)


def zcdp_epsilon(rho, delta):
    """Best conversion by the Renyi orders (Canonne, Kamath and Steinke 2020)."""
    a = 1 + np.logspace(-3, 4, 4000)
    return float(np.min(a * rho + np.log1p(-1 / a) - np.log(delta * a) / (a - 1)))


# Composed selections at delta = 1e-5: what an adversary reaches, and a coarser bound.
TABLE = [
    (0.01, 20, 0.0667, 0.0670),
    (0.01, 300, 0.2915, 0.2931),
    (0.05, 100, 0.9269, 0.9320),
    (0.1, 20, 0.8182, 0.8227),
    (0.1, 300, 3.7083, 3.7296),
    (0.3, 20, 2.7493, 2.7648),
    (0.3, 100, 7.0327, 7.0748),
    (1.0, 20, 11.1199, 11.1874),
    (1.0, 300, 72.5084, 73.0510),
]


@pytest.mark.parametrize(("eps0", "k", "reached", "bound"), TABLE)
def test_published_table(eps0, k, reached, bound):
    epsilon = ExactAccountant([selections(eps0, k)]).get_epsilon(1e-5)
    # 5e-5 is the rounding of the table.
    assert reached - 5e-5 <= epsilon <= bound + 5e-5
    assert epsilon < zcdp_epsilon(k * eps0**2 / 8, 1e-5)


@pytest.mark.parametrize("delta", [1e-12, 1e-8, 1e-5, 1e-2])
@pytest.mark.parametrize("mu", [0.003, 0.05, 0.5, 2.0, 9.0])
@pytest.mark.parametrize("name", ["exact", "gdp"])
def test_gaussian_closed_form(name, delta, mu):
    accountant = make_accountant(name, [gaussian(math.sqrt(8) / mu, 8)])
    got = accountant.get_epsilon(delta)

    def excess(epsilon):
        a, b = log_ndtr(mu / 2 - epsilon / mu), epsilon + log_ndtr(-mu / 2 - epsilon / mu)
        return a + math.log(max(-math.expm1(b - a), 1e-300)) - math.log(delta)

    want = brentq(excess, 0, 200) if excess(0) > 0 else 0.0
    assert want * (1 - 1e-9) <= got <= want * (1 + 1e-4) + 1e-6
    if want:
        assert delta * (1 - 1e-9) <= accountant.get_delta(want) <= delta * (1 + 2e-3)


@pytest.mark.parametrize("delta", [1e-12, 1e-6, 1e-2])
@pytest.mark.parametrize(
    ("eps0", "mu"),
    [(0.7, 0.4), (0.7, 0.03), (0.7, 0.008), (0.4, 1 / 3), (1.5, 1 / 0.8), (0.05, 1 / 20)],
)
def test_convolution_by_quadrature(delta, eps0, mu):
    """Brute force: the Gaussian loss on a fine grid against the exact envelope of one selection."""
    y = np.linspace(mu**2 / 2 - 12 * mu, mu**2 / 2 + 12 * mu, 400001)
    density = np.exp(-((y - mu**2 / 2) ** 2) / (2 * mu**2)) / (mu * math.sqrt(2 * math.pi))

    def exact(epsilon):
        v = epsilon - y
        inner = np.clip(v, -eps0, eps0)
        value = (1 - np.exp((inner - eps0) / 2)) ** 2 / (1 - np.exp(-eps0))
        value = np.where(v < -eps0, -np.expm1(v), value)
        return float(np.sum(value * density) * (y[1] - y[0]))

    want = (
        brentq(lambda e: math.log(max(exact(e), 1e-300)) - math.log(delta), 0, 20)
        if exact(0) > delta
        else 0
    )
    got = ExactAccountant([selections(eps0, 1), gaussian(1 / mu)]).get_epsilon(delta)
    assert want * (1 - 1e-7) <= got <= want * (1 + (1e-3 if mu > 0.04 else 5e-3)) + 1e-5


def test_more_work_is_tighter():
    events = [selections(0.1, 200), gaussian(8.0, 50)]
    coarse, fine = (ExactAccountant(events, work=w).get_epsilon(1e-6) for w in (1e6, 3e8))
    assert fine < coarse < fine * 1.05


@pytest.mark.parametrize("group", [2, 3, 10])
def test_group_scales_ranges_and_shifts(group):
    events = [selections(0.05, 40), gaussian(20.0, 10)]
    scaled = [selections(0.05 * group, 40), gaussian(20.0 / group, 10)]
    got = ExactAccountant(events).get_epsilon(1e-6, group_size=group)
    assert got == pytest.approx(ExactAccountant(scaled).get_epsilon(1e-6), rel=1e-3)
    assert got > group * 0.9 * ExactAccountant(events).get_epsilon(1e-6)


def test_edges():
    only = ExactAccountant([selections(0.25, 4)])
    assert only.get_epsilon(0.0) == pytest.approx(1.0)
    assert only.get_delta(1.0 + 1e-9) == 0.0
    assert ExactAccountant([gaussian(3.0)]).get_epsilon(0.0) == math.inf
    assert ExactAccountant([gaussian(3.0)]).get_epsilon(1.0) == 0.0
    assert ExactAccountant([selections(0.1, 3)]).get_delta(math.inf) == 0.0


def test_pure():
    events = [selections(0.25, 4), selections(0.5, 1)]
    assert PureAccountant(events).get_epsilon() == pytest.approx(1.5)
    assert PureAccountant(events).get_epsilon(group_size=2) == pytest.approx(3.0)
    assert PureAccountant([*events, gaussian(1.0)]).get_epsilon() == math.inf
    assert PureAccountant(events).get_delta(1.6) == 0.0
    assert ExactAccountant(events).get_epsilon(1e-300) == pytest.approx(1.5)


@pytest.mark.parametrize("sigma", [1, 2, 5, 32, 1024])
def test_discrete_noise_costs_at_most_the_slack(sigma):
    """Exact hockey stick of one discrete Gaussian against the certified bound."""
    shift = max(1, sigma // 2)
    k = np.arange(-45 * sigma, 45 * sigma + 1, dtype=float)
    log_p = -(k**2) / (2 * sigma**2)
    log_p -= math.log(np.sum(np.exp(log_p)))
    log_q = -((k - shift) ** 2) / (2 * sigma**2)
    log_q -= math.log(np.sum(np.exp(log_q)))
    event = GaussianEvent("leaves", shift**2, sigma**2, 1, 1)
    for epsilon in (0.0, 0.3, 1.0, 2.5):
        exact = float(np.sum(np.maximum(np.exp(log_p) - np.exp(epsilon + log_q), 0.0)))
        bound = ExactAccountant([event]).get_delta(epsilon)
        assert bound >= exact
        if sigma >= 1024 and exact > 1e-9:
            assert bound <= exact * 1.002


@pytest.mark.parametrize("sigma", [1.0, 3.0, 100.0])
def test_the_two_ratios_of_the_proof(sigma):
    """log of (rounded continuous / discrete) lies between -1/(24 s^2) and k^2/(24 s^4)."""
    k = np.arange(0, int(10 * sigma) + 1, dtype=float)
    u = (np.arange(2000) + 0.5) / 2000 - 0.5
    rounded = np.mean(np.exp(-((k[:, None] + u) ** 2) / (2 * sigma**2)), axis=1)
    theta = 1 + 2 * math.exp(-2 * math.pi**2 * sigma**2)
    ratio = np.log(rounded) + k**2 / (2 * sigma**2) + math.log(theta)
    assert np.all(ratio >= -1 / (24 * sigma**2) - 1e-7)
    assert np.all(ratio <= k**2 / (24 * sigma**4) + 1e-8 / sigma**2 + 1e-7)
    # What the accountant charges for them, with three such sums that one row touches.
    total = GaussianTotals.of([GaussianEvent("leaves", 1, round(sigma**2), 3, 1)], 1)
    slack = total.slack(math.log(1e-9))
    assert slack.eta_to >= -3 * ratio.min() - 1e-7
    assert slack.eta_from >= ratio[k <= 6 * sigma].max() - 1e-7  # 6 sigma: about once in 1e9
    # Where a row moves the sum, the noise is that much farther from the middle.
    shift = math.ceil(4 * sigma)
    moved = GaussianTotals.of([GaussianEvent("leaves", shift**2, round(sigma**2), 1, 1)], 1)
    reached = ratio[k <= 6 * sigma + shift].max()
    assert moved.slack(math.log(1e-9)).eta_from >= reached - 1e-7


def test_slack_is_negligible_on_the_grids_in_use():
    events = [GaussianEvent("leaves", 2**20 // 900, 2**20, 2, 50)]
    slack = GaussianTotals.of(events, 1).slack(math.log(1e-12))
    assert 0 < slack.eta_to + slack.eta_from < 2e-5


@pytest.mark.parametrize(
    ("events", "delta", "group", "low", "high"),
    [
        ([selections(10.0, 3), gaussian(2.0)], 1e-12, 1, 32.0, 33.5),
        ([selections(60.0, 2)], 1e-6, 1, 119.0, 120.001),
        ([selections(60.0, 2), gaussian(2.0)], 1e-6, 1, 119.0, 124.0),
        ([selections(3.0, 5)], 1e-6, 5, 70.0, 75.001),
        ([selections(1e-4, 2000), gaussian(1 / 12)], 1e-12, 5, 2221.0, 2222.0),
        ([selections(1e-4, 900), gaussian(1 / 12)], 1e-12, 5, 2221.0, 2222.0),
    ],
)
def test_large_ranges_and_fine_ranges(events, delta, group, low, high):
    assert low <= ExactAccountant(events).get_epsilon(delta, group_size=group) <= high


def test_any_group_has_a_bound():
    events = [selections(0.045, 1800), gaussian(10.0, 300)]
    accountant = ExactAccountant(events)
    groups = [1, 3, 10, 50, 200, 1000, 10**6, 10**9]
    got = [accountant.get_epsilon(1e-6, group_size=k) for k in groups]
    assert got == sorted(got)
    assert got[-1] < math.inf
    mu2 = 3.0 + 1800 * 0.045**2 / 4
    for k, epsilon in zip(groups, got, strict=True):
        closed = zcdp_epsilon(k * k * mu2 / 2, 1e-6) if k < 1000 else math.inf
        assert epsilon <= min(closed, k * k * mu2 / 2 + k * math.sqrt(2 * mu2 * 13.82) * 1.001)
        if k <= 10:
            assert accountant.get_delta(epsilon, group_size=k) <= 1.01e-6
    assert accountant.get_delta(1e6, group_size=10**6) == 1.0
    pure = ExactAccountant([selections(36.0, 1800)])
    # Losses of 36 are too rare to have 1800 of them; those of 31 are common.
    assert 31.0 * 1800 < pure.get_epsilon(1e-6) <= 36.0 * 1800
    assert pure.get_delta(6e5) == 0.0


def test_zcdp_bounds_what_is_exact():
    for eps0, k, mu in ((0.1, 50, 0.3), (1.0, 9, 2.0), (9.0, 4, 0.5), (0.2, 30, 0.0)):
        events = [selections(eps0, k)] + ([gaussian(1 / mu)] if mu else [])
        coarse = ZCDPCurve(mu, [(eps0, k)])
        exact = ExactAccountant(events, work=1e7)
        for delta in (1e-12, 1e-6, 1e-2):
            epsilon = coarse.epsilon(delta)
            assert exact.get_epsilon(delta) <= epsilon
            assert coarse.delta(epsilon) <= delta * (1 + 1e-6)
    assert ZCDPCurve(0.0, [(9.0, 2)]).epsilon(1e-6) == pytest.approx(18.0)
    assert ZCDPCurve(0.0, [(9.0, 2)]).delta(18.1) == 0.0
    assert ZCDPCurve(1.0, []).delta(0.4) == 1.0


@pytest.mark.parametrize(("eps0", "k", "reached", "bound"), TABLE)
def test_blocks_against_the_published_table(monkeypatch, eps0, k, reached, bound):
    monkeypatch.setattr(gaussian_module, "_FEW", 10)
    monkeypatch.setattr(gaussian_module, "_FEWEST", 10)
    for size in (20, 300):
        monkeypatch.setattr(gaussian_module, "_BLOCK_SIZES", (size,))
        epsilon = ExactAccountant([selections(eps0, k)]).get_epsilon(1e-5)
        assert reached - 5e-5 <= epsilon <= bound * 1.045


@pytest.mark.parametrize("mu", [1e-9, 1e-6, 1e-4])
def test_a_faint_gaussian_changes_nothing(mu):
    """Its deviation is far below a step of the grid."""
    one = selections(0.042, 1)
    alone = ExactAccountant([one]).get_epsilon(0.01)
    both = ExactAccountant([one, GaussianEvent("leaves", 2**20, round(2**20 / mu**2), 2, 1)])
    assert alone * (1 - 1e-9) <= both.get_epsilon(0.01) <= alone + 4e-4 * 0.042 + 3 * mu
    for epsilon in (0.0, 3e-4, 1e-3, 0.02):
        exact = (1 - math.exp((epsilon - 0.042) / 2)) ** 2 / -math.expm1(-0.042)
        assert exact <= both.get_delta(epsilon) <= exact * 1.001 + mu
