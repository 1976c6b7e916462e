"""A plan that is chosen after a release: the envelope against the worst strategy there is."""

import math
from functools import lru_cache
from itertools import combinations_with_replacement

import numpy as np
import pytest

from xgb_dp.accounting import (
    ChoiceEvent,
    Event,
    ExponentialEvent,
    GaussianEvent,
    LaplaceEvent,
    Repetitions,
    SelectionEvent,
    make_accountant,
)
from xgb_dp.accounting.filter import charge_of
from xgb_dp.accounting.gaussian import gaussian_delta
from xgb_dp.accounting.sampled_rounds import SampledEvent

BITS = 40


def gaussian(mu: float, sigma: float = 2.0**12, name: str = "leaves", count: int = 1) -> Event:
    sigma2 = round(sigma * sigma)
    return GaussianEvent(name, math.floor(mu * mu * sigma2), sigma2, 1, count)


def selections(eps0: float, count: int) -> Event:
    return ExponentialEvent("splits", math.floor(eps0 * 2**BITS), BITS, count)


def plain(size: float = 1.0) -> ChoiceEvent:
    """Plans like those of the default: the same mu^2, few or many selections."""
    plans = [
        (
            selections(2.0 * size * math.sqrt(0.3 / k), k),
            gaussian(size * math.sqrt(0.7 / k), count=k),
        )
        for k in (10, 40, 200)
    ]
    return ChoiceEvent((gaussian(0.1 * size, name="intercept"),), tuple(plans))


# The second derivation: sums over all outcomes of small mechanisms, and for each outcome of the
# first one the plan that is worst there.


@lru_cache
def distribution(sigma2: int, shift: int) -> np.ndarray:
    """Discrete Gaussian noise around a shift, on a range that holds all but 1e-20 of it."""
    k = np.arange(-10 * math.isqrt(sigma2) - 40, 10 * math.isqrt(sigma2) + 41)
    mass = np.exp(-((k - shift) ** 2) / (2.0 * sigma2))
    return mass / mass.sum()


def pairs(event: Event) -> list[tuple[np.ndarray, np.ndarray]]:
    """Laws of one release on neighbours: all that an adversary may choose among."""
    if isinstance(event, GaussianEvent):
        shift = math.isqrt(event.sensitivity2)
        assert shift**2 == event.sensitivity2
        return [
            (distribution(event.sigma2, 0), distribution(event.sigma2, s)) for s in (shift, -shift)
        ]
    assert isinstance(event, ExponentialEvent)
    out = []
    for t in np.linspace(0.0, event.eps0, 41):
        q = math.expm1(t - event.eps0) / math.expm1(-event.eps0)
        p = np.array([q, 1.0 - q])
        out.append((p, p * np.exp([-t, event.eps0 - t])))
    return out


def largest(plan: tuple[Event, ...], x: float) -> float:
    """The largest hockey stick of a plan of one release, over the laws it may have."""
    [event] = plan
    return max(np.maximum(p - math.exp(x) * q, 0.0).sum() for p, q in pairs(event))


def worst(choice: ChoiceEvent, epsilon: float) -> float:
    """delta of the strategy that takes the worst plan after every outcome."""
    [first] = choice.first
    value = 0.0
    for p, q in pairs(first):
        total = 0.0
        for a, b in zip(p, q, strict=True):
            if a > 1e-14:
                total += a * max(largest(o, epsilon - math.log(a / b)) for o in choice.options)
        value = max(value, total)
    return value


CROSSING = ChoiceEvent(
    (GaussianEvent("intercept", 25, 100, 1, 1),),
    (
        (GaussianEvent("leaves", 81, 100, 1, 1),),
        (ExponentialEvent("splits", round(1.6 * 2**BITS), BITS, 1),),
    ),
)


@pytest.mark.parametrize("epsilon", [0.0, 0.3, 0.8, 1.5, 2.5])
def test_the_worst_strategy_is_covered_and_nearly_attained(epsilon):
    """The noise here is coarse, so that its discreteness costs; the rest is tight."""
    reached = worst(CROSSING, epsilon)
    claimed = make_accountant("exact", [CROSSING]).get_delta(epsilon)
    assert reached <= claimed
    # By how much the slack of discrete noise moves epsilon, at most.
    assert claimed <= worst(CROSSING, max(0.0, epsilon - 0.12)) * 1.05 + 1e-3


@pytest.mark.parametrize("epsilon", [0.05, 0.5, 1.5])
@pytest.mark.parametrize("name", ["rdp", "gdp", "classic"])
def test_other_accountants_cover_the_worst_strategy(name, epsilon):
    assert worst(CROSSING, epsilon) <= make_accountant(name, [CROSSING]).get_delta(epsilon)


def test_pure_covers_the_worst_strategy():
    choice = ChoiceEvent((), ((selections(0.3, 4),), (selections(0.5, 3),)))
    assert make_accountant("pure", [choice]).get_epsilon(0.0) == pytest.approx(1.5)
    assert make_accountant("exact", [choice]).get_epsilon(0.0) == pytest.approx(1.5)


def test_gaussian_plans_have_a_closed_form():
    choice = ChoiceEvent((gaussian(0.3),), ((gaussian(1.0),), (gaussian(0.7),)))
    accountant = make_accountant("exact", [choice])
    for epsilon in (0.5, 2.0, 4.0):
        exact = gaussian_delta(epsilon, math.hypot(0.3, 1.0))
        assert exact <= accountant.get_delta(epsilon) <= exact * 1.02


@pytest.mark.parametrize("size", [0.05, 0.25, 1.0])
def test_a_choice_costs_little_more_than_its_worst_plan(size):
    choice = plain(size)
    accountant = make_accountant("exact", [choice])
    for delta in (1e-4, 1e-6, 1e-10):
        each = [make_accountant("exact", way).get_epsilon(delta) for way in choice.ways]
        assert max(each) * (1.0 - 1e-4) <= accountant.get_epsilon(delta) <= max(each) * 1.003


def test_epsilon_and_delta_belong_together():
    accountant = make_accountant("exact", [plain()])
    epsilons = [accountant.get_epsilon(d) for d in (1e-2, 1e-4, 1e-6, 1e-8, 1e-12)]
    assert epsilons == sorted(epsilons)
    for delta in (1e-3, 1e-6, 1e-9):
        epsilon = accountant.get_epsilon(delta)
        assert delta * 0.99 <= accountant.get_delta(epsilon) <= delta * 1.01
    assert accountant.get_epsilon(1.0) == 0.0
    assert accountant.get_epsilon(0.0) == math.inf
    assert 0.0 < accountant.get_epsilon(1e-300) < math.inf
    assert accountant.get_delta(math.inf) == 0.0
    assert 0.0 < accountant.get_delta(0.0) < 1.0


@pytest.mark.parametrize("name", ["exact", "rdp", "gdp", "classic"])
@pytest.mark.parametrize("group", [1, 3])
def test_a_plan_more_never_costs_less(name, group):
    choice = plain()
    fewer = ChoiceEvent(choice.first, choice.options[:1])
    more, less = (make_accountant(name, [c]).get_epsilon(1e-6, group) for c in (choice, fewer))
    assert more >= less * (1.0 - 1e-3)
    for way in choice.ways:
        one = make_accountant(name, way).get_epsilon(1e-6, group)
        # "classic" charges the choice as a single release, and a plan release by release.
        assert more >= one * (1.0 - 1e-3) or name == "classic"


@pytest.mark.parametrize("group", [1, 2])
def test_with_other_releases(group):
    """Before or after, and several choices: at least what any way through them costs."""
    choice, other = plain(0.4), (selections(0.05, 30), gaussian(0.5))
    accountant = make_accountant("exact", [*other, choice, choice])
    value = accountant.get_epsilon(1e-6, group)
    for one, two in combinations_with_replacement(choice.ways[::2], 2):
        way = make_accountant("exact", [*other, *one, *two])
        epsilon = way.get_epsilon(1e-6, group)
        assert epsilon <= value <= 1.02 * epsilon
    delta = way.get_delta(1.0, group)
    assert delta <= accountant.get_delta(1.0, group) <= 1.2 * delta
    doubled = make_accountant("exact", [*other, ChoiceEvent(choice.first, choice.options, 2)])
    assert doubled.get_epsilon(1e-6, group) == value


@pytest.mark.parametrize("delta", [1e-3, 1e-14, 1e-200])
def test_epsilon_and_delta_belong_together_beside_others(delta):
    """What a choice may exceed its Gaussian by is a share of delta, however small delta is."""
    for others in ([selections(0.05, 30), gaussian(0.5)], [plain(0.3)]):
        accountant = make_accountant("exact", [*others, plain(0.4)])
        assert 0.99 * delta <= accountant.get_delta(accountant.get_epsilon(delta)) <= 1.01 * delta


def test_laplace_plans():
    choice = ChoiceEvent(
        (gaussian(0.2),), ((LaplaceEvent("leaves", 1, 4, 3),), (selections(0.4, 5),))
    )
    value = make_accountant("exact", [choice]).get_epsilon(1e-6)
    for way in choice.ways:
        assert value >= make_accountant("exact", way).get_epsilon(1e-6) * 0.999
    assert math.isfinite(value)


def test_sampled_plans_have_no_bound():
    sampled = SampledEvent(1 << 30, 32, (gaussian(0.5),), 10)  # type: ignore[arg-type]
    choice = ChoiceEvent((gaussian(0.2),), ((sampled,), (gaussian(0.5),)))
    for name in ("exact", "rdp", "gdp", "classic", "pure"):
        accountant = make_accountant(name, [choice])
        assert accountant.get_epsilon(1e-6) == math.inf
        assert accountant.get_delta(10.0) == 1.0
        assert make_accountant(name, [choice, gaussian(0.1)]).get_epsilon(1e-6) == math.inf
    assert not math.isfinite(charge_of([choice], 1e-6).mu2 + charge_of([choice], 1e-6).shift)


def test_exact_releases_cost_everything():
    for sigma2, place in ((0, "first"), (0, "plan")):
        known = GaussianEvent("leaves", 1, sigma2, 1, 1)
        first, plan = (known, gaussian(1.0)) if place == "first" else (gaussian(1.0), known)
        for name in ("exact", "rdp", "gdp", "classic", "pure"):
            accountant = make_accountant(name, [ChoiceEvent((first,), ((plan,), (gaussian(0.1),)))])
            assert accountant.get_epsilon(1e-6) == math.inf, (name, place)
            assert accountant.get_delta(1.0) == 1.0, (name, place)


def test_charge_covers_the_curve():
    choice = plain(0.5)
    charge = charge_of([choice, gaussian(0.3)], 1e-6)
    accountant = make_accountant("exact", [choice, gaussian(0.3)])
    for x in (0.0, 0.5, 1.5, 3.0):
        assert (
            accountant.get_delta(x)
            <= (gaussian_delta(x, math.sqrt(charge.mu2)) + charge.extra) * 1.001
        )
    assert charge.shift == 0.0
    tiny = charge_of([plain(1e-10)], 1e-6)  # below what is allowed beyond a Gaussian
    assert 0.0 < tiny.mu2 < 1e-12
    assert 0.0 < tiny.extra <= 1e-9
    plans = [charge_of([*way, gaussian(0.3)], 1e-6).mu2 for way in choice.ways]
    assert max(plans) * 0.999 <= charge.mu2 <= max(plans) * 1.005


@pytest.mark.parametrize("others", [(), (selections(0.05, 30), gaussian(0.3))])
@pytest.mark.parametrize("options", [{}, {"group_size": 2}, {"group_size": 1, "replaced": True}])
def test_a_curve_of_many_points_is_that_of_each(others, options):
    """It is asked for by selections, in one go: each point by itself would take too long."""
    accountant = make_accountant("exact", [*others, plain(0.3)])
    points = [0.1 * i for i in range(20)]
    deltas = accountant.privacy_curve(**options).deltas(points, 1e-9)
    assert deltas == sorted(deltas, reverse=True)
    for x, delta in list(zip(points, deltas, strict=True))[::6]:
        assert delta == pytest.approx(accountant.get_delta(x, **options), rel=0.02, abs=2e-9)


def test_runs_of_a_selection_may_choose():
    choice, score = plain(0.3), gaussian(0.3, name="score")
    selection = SelectionEvent(Repetitions.of("poisson", 3.0), ((choice,),), (score,), 1)
    for group in (1, 2):
        value = make_accountant("exact", [selection]).get_epsilon(1e-6, group)
        for way in choice.ways:
            one = SelectionEvent(selection.repetitions, (way,), (score,), 1)
            fixed = make_accountant("exact", [one]).get_epsilon(1e-6, group)
            assert fixed * 0.999 <= value <= fixed * 1.01
    distribution = Repetitions.of("geometric", 3.0)
    named = SelectionEvent(distribution, ((choice,),), (score,), 1)
    assert math.isfinite(make_accountant("rdp", [named]).get_epsilon(1e-6))


def test_no_choice_costs_nothing():
    """None happened: neither an error nor a price, beside others or alone."""
    none, other = ChoiceEvent(plain().first, plain().options, 0), gaussian(0.5)
    for name in ("exact", "rdp", "gdp", "classic"):
        assert make_accountant(name, [none]).get_epsilon(1e-6) == 0.0
        alone = make_accountant(name, [other]).get_epsilon(1e-6)
        assert make_accountant(name, [none, other]).get_epsilon(1e-6) == alone
    assert charge_of([none, other], 1e-6) == charge_of([other], 1e-6)
