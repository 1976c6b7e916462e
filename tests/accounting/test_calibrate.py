import math

import numpy as np
import pytest

from xgb_dp.accounting import ExactAccountant, ExponentialEvent, GaussianEvent, make_accountant
from xgb_dp.accounting.sampled_rounds import SampledEvent
from xgb_dp.accounting.sensitivity import RowBound
from xgb_dp.calibrate import calibrate, noise_of_total
from xgb_dp.errors import BudgetError

from ..releases import ROW, releases

SQUARED = RowBound("clip", 0.3, 0.005625, 1.0)


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 100.0])
@pytest.mark.parametrize("delta", [1e-12, 1e-6, 1e-2])
@pytest.mark.parametrize(("rounds", "depth"), [(1, 1), (2, 6), (20, 3)])
def test_hits_the_target_from_below(epsilon, delta, rounds, depth):
    plan = calibrate(*releases(rounds, depth), epsilon, delta)
    assert 0.99 * epsilon <= plan.epsilon <= epsilon
    again = ExactAccountant(plan.events, work=2e8).get_epsilon(delta)
    assert again <= epsilon
    for event in plan.events:
        if isinstance(event, GaussianEvent):
            assert 2**20 <= event.sigma2 <= 2**56


@pytest.mark.parametrize(
    "case",
    [
        {"depth": 0},
        {"features": 0},
        {"intercept": None},
        {"depth": 0, "features": 0, "intercept": None},
        {"outputs": 7, "intercept": "multiclass"},
        {"bound": SQUARED, "intercept": "regression"},
        {"features": 1000},
        {"rounds": 0},
        {"shares": {"candidates": 0.1, "base_score": 0.01, "splits": 0.88, "leaves": 0.01}},
    ],
)
def test_whatever_is_released(case):
    case = {"rounds": 30, "depth": 3} | case
    plan = calibrate(*releases(**case), 1.0, 1e-6)
    assert 0.99 <= plan.epsilon <= 1.0
    names = {e.release for e in plan.events}
    assert ("splits" in names) == (case["depth"] > 0 and case["rounds"] > 0)
    assert ("candidates" in names) == (case.get("features", 14) > 0)
    assert ("leaves" in names) == (case["rounds"] > 0)


def test_shares_are_what_was_asked_for():
    plan = calibrate(*releases(), 1.0, 1e-6)
    mu2 = {}
    for event in plan.events:
        if isinstance(event, ExponentialEvent):
            mu2[event.release] = event.count * event.eps0**2 / 4
        else:
            mu2[event.release] = event.count * event.sensitivity2 / event.sigma2
    total = sum(mu2.values())
    for release, share in (("candidates", 0.1), ("intercept", 0.009), ("splits", 0.2673)):
        assert mu2[release] / total == pytest.approx(share, rel=1e-3)


def test_events_are_the_plan():
    plan = calibrate(*releases(outputs=3, intercept="multiclass"), 1.0, 1e-6)
    intercept, candidates, splits, leaves = plan.events
    assert (intercept.sigma2, intercept.sensitivity2) == (
        plan["intercept"].sigma2,
        4 ** plan["intercept"].shift,
    )
    assert candidates.sensitivity2 == 14 * 17 * 4 ** plan["candidates"].shift
    assert splits == ExponentialEvent("splits", plan["splits"].eps_num, 40, 50 * 4 * 3)
    assert leaves == GaussianEvent(
        "leaves", ROW.round_sens2(plan.grid_bits, 3), plan["leaves"].sigma2, 6, 50
    )


def test_large_noise_takes_a_coarser_grid():
    plan = calibrate(*releases(3000, 0), 0.01, 1e-12)
    assert plan.grid_bits < 18
    assert plan["leaves"].sigma2 <= 2**56


def test_without_noise():
    plan = calibrate(*releases(), math.inf, 1e-6)
    assert plan.epsilon == math.inf
    drawn = [n for noise in plan.noise.values() for n in (noise.sigma2, noise.scale, noise.eps_num)]
    assert (set(drawn), plan.events) == ({0}, ())


@pytest.mark.parametrize(
    ("epsilon", "delta", "match"),
    [
        (0.0, 1e-6, "epsilon"),
        (math.nan, 1e-6, "epsilon"),
        (1.0, 0.0, "Gaussian"),
        (1.0, 1.0, "delta"),
    ],
)
def test_targets_out_of_range(epsilon, delta, match):
    with pytest.raises(ValueError, match=match):
        calibrate(*releases(), epsilon, delta)


@pytest.mark.parametrize(
    "shares",
    [
        {"splits": 0.5, "leaves": 0.0, "candidates": 0.1, "base_score": 0.1},
        {"splits": 0.5, "leaves": 0.5},
        {"splits": 0.5, "leaves": 0.5, "candidates": 0.1, "base_score": 0.1, "other": 0.1},
        {"splits": -0.5, "leaves": 0.5, "candidates": 0.1, "base_score": 0.1},
    ],
)
def test_shares_that_do_not_fit(shares):
    with pytest.raises(BudgetError, match=r"[Ss]hare"):
        calibrate(*releases(shares=shares), 1.0, 1e-6)


def test_an_epsilon_of_no_use():
    with pytest.raises(BudgetError, match="too small"):
        calibrate(*releases(), 1e-9, 1e-12)


def test_the_least_noise_there_is():
    plan = calibrate(*releases(), 1e20, 1e-6)
    assert plan.epsilon < 1e20
    assert plan["leaves"].sigma2 == 2**20


@pytest.mark.parametrize(
    ("epsilon", "case", "least"),
    [
        *((1.0, {"rounds": n, "depth": d}, 0.99) for n, d in ((300, 6), (10000, 1))),
        *((e, {}, 0.99) for e in (1e3, 1e6, 1e8)),
        (1.0, {}, 0.998),
        *(
            (e, {"rounds": n, "depth": 6, "outputs": k, "intercept": "multiclass"}, 0.998)
            for e, n, k in ((40.0, 300, 20), (0.1, 300, 20), (40.0, 1000, 20), (10.0, 300, 7))
        ),
    ],
)
def test_trainings_of_any_size(epsilon, case, least):
    plan = calibrate(*releases(**case), epsilon, 1e-6)
    assert least * epsilon <= plan.epsilon <= epsilon


@pytest.mark.parametrize("share", [1e-9, 1e-6, 1e-3])
@pytest.mark.parametrize(("epsilon", "delta"), [(0.01, 0.01), (1e-3, 0.01), (0.01, 1e-12)])
def test_shares_of_next_to_nothing(share, epsilon, delta):
    shares = {"splits": 1 - share, "leaves": share}
    one = releases(1, 1, features=0, intercept=None, shares=shares)
    plan = calibrate(*one, epsilon, delta)
    assert 0.998 * epsilon <= plan.epsilon <= epsilon


def test_certified_epsilon_grows_with_the_scale():
    shares = {"splits": 1 - 1e-9, "leaves": 1e-9}
    one = releases(1, 1, features=0, intercept=None, shares=shares)
    scales = [*np.linspace(0.0285, 0.0295, 41), *(0.0295 + np.arange(1, 9) * 1e-12)]
    noises = [noise_of_total(one.mechanisms, tuple(shares.items()), s * s) for s in scales]
    got = np.array([ExactAccountant(noise.events).get_epsilon(0.01) for noise in noises])
    assert np.all(got[1:] >= got[:-1] * (1 - 1e-9))
    assert np.all(got[1:] <= got[:-1] * 1.03)


# -------------------------------------------------------------- other accountants, samples
@pytest.mark.parametrize("name", ["exact", "rdp", "gdp", "classic"])
@pytest.mark.parametrize(("epsilon", "group"), [(0.1, 1), (1.0, 1), (10.0, 1), (1.0, 2), (1.0, 7)])
def test_every_accountant_certifies_its_plans(name, epsilon, group):
    plan = calibrate(*releases(), epsilon, 1e-6, name, group)
    assert 0.998 * epsilon <= plan.epsilon <= epsilon
    assert make_accountant(name, plan.events).get_epsilon(1e-6, group) == plan.epsilon
    accountant = ExactAccountant(plan.events)
    assert accountant.get_epsilon(1e-6, group) <= epsilon
    assert group == 1 or accountant.get_epsilon(1e-6) < epsilon / group
    exact = calibrate(*releases(), epsilon, 1e-6, group_size=group)
    assert name == "exact" or plan["leaves"].sigma2 > exact["leaves"].sigma2


@pytest.mark.parametrize(
    ("name", "case", "match"),
    [
        ("pure", {}, "pure"),
        ("rdp", {"sampling_num": 1 << 31}, "subsample"),
        ("gdp", {"sampling_num": 1 << 31}, "subsample"),
        ("pure", {"sampling_num": 1 << 31}, "pure"),
    ],
)
def test_accountants_without_a_bound_are_refused(name, case, match):
    with pytest.raises(BudgetError, match=match) as refusal:
        calibrate(*releases(**case), 1.0, 1e-6, name)
    assert "exact" in str(refusal.value)
    with pytest.raises(ValueError, match="accountant"):
        calibrate(*releases(), 1.0, 1e-6, "hope")


@pytest.mark.parametrize(
    ("rate", "epsilon"),
    [(1e-5, 8.0), (1e-3, 8.0), (1e-3, 0.3), (0.03, 0.3), (0.5, 8.0), (0.99, 0.3)],
)
def test_samples_of_any_size(rate, epsilon):
    plan = calibrate(*releases(sampling_num=round(rate * 2**32)), epsilon, 1e-6)
    assert 0.99 * epsilon <= plan.epsilon <= epsilon
    *others, rounds = plan.events
    assert [e.release for e in others] == ["intercept", "candidates"]
    assert (rounds.rate_num, rounds.rate_bits, rounds.count) == (round(rate * 2**32), 32, 50)
    assert [e.release for e in rounds.events] == ["splits", "leaves"]
    assert [e.count for e in rounds.events] == [4, 1]
    flat = calibrate(*releases(), epsilon, 1e-6)
    assert plan["leaves"].sigma2 < flat["leaves"].sigma2
    assert plan["splits"].eps_num > flat["splits"].eps_num


def test_shares_of_sampled_rounds_keep_their_meaning():
    """What reads all rows has about the noise that it has without sampling."""
    flat = calibrate(*releases(), 1.0, 1e-6)
    for rate in (0.1, 0.5, 0.9):
        plan = calibrate(*releases(sampling_num=round(rate * 2**32)), 1.0, 1e-6)
        for name in ("candidates", "intercept"):
            noise, usual = (p[name].sigma2 / 4.0 ** p[name].shift for p in (plan, flat))
            assert 0.7 < math.sqrt(noise / usual) < 1.4


def test_all_rows_is_no_sample():
    plan = calibrate(*releases(sampling_num=1 << 32), 1.0, 1e-6)
    assert not any(isinstance(e, SampledEvent) for e in plan.events)
    assert plan == calibrate(*releases(), 1.0, 1e-6)
