"""The filter: charges bound curves, room bounds totals, and adaptive choices gain nothing."""

import math
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from xgb_dp.accounting import (
    Event,
    ExponentialEvent,
    GaussianEvent,
    LaplaceEvent,
    Repetitions,
    SelectionEvent,
    make_accountant,
)
from xgb_dp.accounting.filter import Capacity, Charge, Filter, charge_of, plain_charge
from xgb_dp.accounting.gaussian import gaussian_delta, gaussian_mu
from xgb_dp.accounting.sampled_rounds import ParallelEvent, SampledEvent

TRAINING: tuple[Event, ...] = (
    GaussianEvent("candidates", 1 << 20, 1 << 30, 20, 1),
    ExponentialEvent("splits", 1 << 34, 40, 100),
    GaussianEvent("leaves", 1 << 20, 1 << 32, 2, 50),
)
LISTS: dict[str, tuple[Event, ...]] = {
    "training": TRAINING,
    "gaussian": (GaussianEvent("leaves", 1 << 20, 1 << 22, 2, 3),),
    "one selection": (ExponentialEvent("splits", 1 << 40, 40, 1),),
    "laplace": (LaplaceEvent("leaves", 1, 4, 3),),
    "parts": (ParallelEvent(5, TRAINING[1:], 2),),
    "loud": (GaussianEvent("leaves", 1 << 20, 1 << 18, 2, 5), ExponentialEvent("splits", 3, 0, 2)),
    "sampled": (SampledEvent(1 << 31, 32, (GaussianEvent("leaves", 1, 20, 1, 1),), 4),),
}
DELTA = 1e-6


@pytest.mark.parametrize("name", LISTS)
def test_a_charge_is_above_the_curve(name):
    events = LISTS[name]
    charge = charge_of(events, DELTA)
    assert charge.shift == 0.0
    assert charge.extra == pytest.approx(1e-4 * DELTA)
    mu = math.sqrt(charge.mu2)
    accountant = make_accountant("exact", events)
    for x in np.linspace(0.0, mu * mu / 2 + 7.3 * mu, 11 if name != "sampled" else 3):
        assert accountant.get_delta(float(x)) <= gaussian_delta(float(x), mu) + charge.extra


def test_a_charge_is_tight():
    for name in ("training", "gaussian"):
        epsilon = make_accountant("exact", LISTS[name]).get_epsilon(DELTA)
        charge = charge_of(LISTS[name], DELTA)
        assert charge.mu2 < 1.01 * gaussian_mu(epsilon, DELTA) ** 2


def test_nothing_costs_nothing_and_no_noise_costs_everything():
    assert charge_of((), DELTA) == Charge()
    assert charge_of((GaussianEvent("leaves", 0, 1, 0, 5),), DELTA) == Charge()
    naked = charge_of((GaussianEvent("leaves", 1, 0, 1, 1),), DELTA)
    assert not Capacity.of(1e6, 0.5, 1e6).holds(naked)


def test_a_selection_is_charged_plainly():
    score = (GaussianEvent("score", 1 << 20, 1 << 26, 2, 1),)
    event = SelectionEvent(Repetitions.of("logarithmic", 5.0), (TRAINING,), score, 1)
    charge = charge_of((event,), DELTA, 1e-8)
    epsilon = make_accountant("exact", [event]).get_epsilon(1e-8)
    assert (charge.mu2, charge.extra) == (0.0, 1e-8)
    assert charge.shift == pytest.approx(epsilon)


@pytest.mark.parametrize(
    "epsilon, delta, part", [(1.0, 1e-6, 0.0), (8.0, 1e-9, 3.0), (0.1, 1e-5, 0.1)]
)
def test_room_is_what_epsilon_and_delta_leave(epsilon, delta, part):
    room = Capacity.of(epsilon, delta, part)
    mu = math.sqrt(room.mu2)
    assert room.shift == part
    assert gaussian_delta(epsilon - part, mu) + room.extra <= delta
    assert gaussian_delta(epsilon - part, mu * 1.001) + room.extra > delta


def test_trainings_that_fill_the_room_meet_the_total():
    charge = charge_of(TRAINING, DELTA)
    room = Capacity.of(3.0, DELTA)
    count = 0
    while room.holds(Charge.total([charge] * (count + 1))):
        count += 1
    assert count > 5
    composed = make_accountant("exact", list(TRAINING) * count).get_epsilon(DELTA)
    assert composed <= 3.0
    more = make_accountant("exact", list(TRAINING) * (count + 2)).get_epsilon(DELTA)
    assert more > 0.99 * 3.0  # little is lost


# ------------------------------------------------------------------------- adaptive choices
EPSILONS = (0.05, 0.1, 0.2, 0.4)
TOTAL = (1.2, 1e-2, 0.3)


@cache
def response(epsilon: float) -> Charge:
    """Charge of a randomised response: a loss of epsilon or -epsilon."""
    return charge_of((LaplaceEvent("answer", round(epsilon * 1000), 1000, 1),), TOTAL[1])


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.floats(-1.0, 1.0))
def test_an_adversary_that_looks_before_choosing(seed, taste):
    """The exact curve over all paths is below that of the total, for every strategy."""
    rng = np.random.default_rng(seed)
    room, depth = Capacity.of(*TOTAL), 9
    paths: list[tuple[float, float]] = []  # (probability under P, under Q) of every ending

    def walk(p: float, q: float, charges: list[Charge], left: int) -> None:
        loss = math.log(p / q)
        bold = taste * loss + 0.3 * rng.normal() > 0.0
        for epsilon in sorted(EPSILONS, reverse=bold) if left else ():
            plain = bool(rng.random() < 0.3)
            charge = Charge(0.0, epsilon, 0.0) if plain else response(epsilon)
            if not room.holds(Charge.total([*charges, charge])):
                continue
            yes = 1.0 / (1.0 + math.exp(-epsilon))
            flip = bool(rng.random() < 0.5)  # which neighbour answers yes more often
            for up in (yes, 1.0 - yes):
                chance = (up, 1.0 - up) if not flip else (1.0 - up, up)
                walk(p * chance[0], q * chance[1], [*charges, charge], left - 1)
            return
        paths.append((p, q))

    walk(1.0, 1.0, [], depth)
    p, q = np.array(paths).T
    assert p.sum() == pytest.approx(1.0) and q.sum() == pytest.approx(1.0)
    epsilon, delta, part = TOTAL
    for x in np.linspace(0.0, epsilon, 7):
        bound = gaussian_delta(x - part, math.sqrt(room.mu2)) + room.extra
        for a, b in ((p, q), (q, p)):
            assert np.maximum(a - math.exp(x) * b, 0.0).sum() <= bound + 1e-12
    stick = np.maximum(p - math.exp(epsilon) * q, 0.0).sum()
    assert stick <= delta


# ---------------------------------------------------------------- the first charge chooses


SMALL = Filter(1.0, 1e-2)
CUTS = np.linspace(-3.0, 3.0, 7)


def binned(mu2: float) -> tuple[np.ndarray, np.ndarray]:
    """A Gaussian's answer in eight bins, on two neighbours."""

    def distribution(shift: float) -> np.ndarray:
        below = [0.0, *(0.5 * math.erfc(-(c - shift) / math.sqrt(2.0)) for c in CUTS), 1.0]
        return np.diff(below)

    mu = math.sqrt(mu2)
    return distribution(-mu / 2.0), distribution(mu / 2.0)


def answers(epsilon: float) -> tuple[np.ndarray, np.ndarray]:
    """Randomised response, which is epsilon-private and no better."""
    yes = 1.0 / (1.0 + math.exp(-epsilon))
    return np.array([yes, 1.0 - yes]), np.array([1.0 - yes, yes])


@cache
def catalogue() -> dict[str, tuple[Event, tuple[np.ndarray, np.ndarray]]]:
    """Releases whose laws are known exactly, between which an adversary chooses."""
    out: dict[str, tuple[Event, tuple[np.ndarray, np.ndarray]]] = {}
    for epsilon in (1.0, 0.7, 0.4):
        mu = gaussian_mu(epsilon, SMALL.delta) * (1.0 - 1e-6)
        event = GaussianEvent("leaves", 1 << 40, math.ceil((1 << 40) / mu**2), 1, 1)
        out[f"gaussian {epsilon}"] = (event, binned(mu * mu))
    for num in (4, 2, 1):
        # A whisker below: epsilons are rounded upwards.
        out[f"laplace {num}"] = (LaplaceEvent("leaves", 100 * num, 401, 1), answers(num / 4.01))
    return out


@cache
def charge_in_room(spent: Charge, name: str) -> Charge | None:
    events = (catalogue()[name][0],)
    return SMALL.charge(spent, events, charge_of(events, SMALL.delta))


@cache
def worst(spent: Charge, x: float, left: int) -> float:
    """The largest hockey stick at e^x of everything that may follow, over all adaptive choices."""
    best = max(0.0, 1.0 - math.exp(x))
    for name, (_, (p, q)) in catalogue().items() if left else ():
        charge = charge_in_room(spent, name)
        if charge is None:
            continue
        total = Charge.total([spent, charge])
        for one, other in ((p, q), (q, p)):
            losses = np.log(one / other)
            value = sum(
                float(a) * worst(total, round(x - float(loss), 12), left - 1)
                for a, loss in zip(one, losses, strict=True)
            )
            best = max(best, value)
    return best


def test_no_adaptive_choice_exceeds_the_total():
    largest = worst(Charge(), SMALL.epsilon, 3)
    assert 0.3 * SMALL.delta < largest <= SMALL.delta


def test_the_first_release_decides_on_the_rule():
    whole, half = "gaussian 1.0", "gaussian 0.4"
    first = charge_in_room(Charge(), whole)
    assert first is not None
    assert first.mu2 == 0.0
    assert first.shift <= 1.0
    assert SMALL.adds_up(first)
    assert charge_in_room(first, half) is None  # nothing is left
    other = charge_in_room(Charge(), half)
    assert other is not None
    assert other.mu2 > 0.0
    assert not SMALL.adds_up(other)
    assert charge_in_room(other, whole) is None
    pure = charge_in_room(Charge(), "laplace 4")
    assert pure is not None
    assert (pure.mu2, pure.extra) == (0.0, 0.0)
    assert pure.shift == pytest.approx(400 / 401)


def test_pure_releases_add_up_to_the_total():
    total = Filter(1.0, 1e-300)  # no Gaussian has room here
    event = (LaplaceEvent("leaves", 499, 1000, 1),)
    spent = Charge()
    for left in (1.0, 0.501):
        assert total.remaining(spent, 0.0) == pytest.approx(left)
        charge = total.charge(spent, event, charge_of(event, total.delta))
        assert charge is not None
        assert (charge.mu2, charge.extra) == (0.0, 0.0)
        assert charge.shift == pytest.approx(0.499)
        spent = Charge.total([spent, charge])
    assert total.charge(spent, event, charge_of(event, total.delta)) is None


@pytest.mark.parametrize("parts", [[0.5, 0.5], [0.1] * 10, [0.3, 0.7], [1 / 3] * 3, [1e-6] * 7])
def test_sums_of_charges_are_the_smallest_doubles_above_them(parts):
    exact = sum(map(Fraction, parts), Fraction(0))
    total = Charge.total([Charge(p, p, p) for p in parts])
    assert total.mu2 == total.shift == total.extra
    assert Fraction(total.shift) >= exact > Fraction(math.nextafter(total.shift, 0.0))


def test_two_halves_are_a_whole_and_no_hair_more_is_left():
    total = Filter(1.0, 1e-6)
    half = Charge(0.0, 0.5, 0.0)
    assert total.room(half).holds(Charge.total([half, half]))
    assert total.remaining(half, 1e-6) == 0.5
    assert total.remaining(Charge.total([half, half]), 1e-6) == 0.0
    more = Charge(0.0, math.nextafter(0.5, 1.0), 0.0)
    assert not total.room(half).holds(Charge.total([half, more]))


def test_all_of_the_delta_that_is_left_can_be_taken():
    """After a first release without any, and after one that took an odd part of it."""
    total = Filter(2.0, 1e-5)
    sums = [GaussianEvent("leaves", 1 << 40, 9 << 40, 2, 1)]
    for extra in (0.0, 1e-7 / 3, 7.7e-6):
        spent = Charge(0.0, 0.25, extra)
        charge = total.charge(spent, sums, charge_of(sums, total.delta))
        assert charge is not None
        both = Charge.total([spent, charge])
        assert 1e-5 * (1 - 1e-15) <= both.extra <= 1e-5


def test_a_part_for_selections_keeps_one_rule():
    part = Filter(1.0, 1e-2, 0.2)
    events = (catalogue()["gaussian 1.0"][0],)
    assert part.charge(Charge(), events, charge_of(events, part.delta)) is None
    assert not part.adds_up(Charge(0.0, 0.1, 1e-4))


def test_a_selection_does_not_decide_for_sums():
    score = (GaussianEvent("score", 1 << 20, 1 << 30, 2, 1),)
    event = SelectionEvent(Repetitions.of("logarithmic", 5.0), (score,), score, 1)
    charge = charge_of((event,), SMALL.delta, 1e-3)
    assert charge == plain_charge((event,), 1e-3)
    assert SMALL.charge(Charge(), (event,), charge) is None
