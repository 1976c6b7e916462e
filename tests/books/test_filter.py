"""The filter: charges bound curves, room bounds totals, and adaptive choices gain nothing."""

from __future__ import annotations

import math
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
    ParallelEvent,
    Repetitions,
    SampledEvent,
    SelectionEvent,
    make_accountant,
)
from xgb_dp.accounting.filter import Capacity, Charge, charge_of
from xgb_dp.accounting.gaussian import gaussian_delta, gaussian_mu

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
def test_a_charge_is_above_the_curve(name: str) -> None:
    events = LISTS[name]
    charge = charge_of(events, DELTA)
    assert charge.shift == 0.0
    assert charge.extra == pytest.approx(1e-4 * DELTA)
    mu = math.sqrt(charge.mu2)
    books = make_accountant("exact", events)
    for x in np.linspace(0.0, mu * mu / 2 + 7.3 * mu, 11 if name != "sampled" else 3):
        assert books.get_delta(float(x)) <= gaussian_delta(float(x), mu) + charge.extra


def test_a_charge_is_tight() -> None:
    for name in ("training", "gaussian"):
        epsilon = make_accountant("exact", LISTS[name]).get_epsilon(DELTA)
        charge = charge_of(LISTS[name], DELTA)
        assert charge.mu2 < 1.01 * gaussian_mu(epsilon, DELTA) ** 2


def test_nothing_costs_nothing_and_no_noise_costs_everything() -> None:
    assert charge_of((), DELTA) == Charge()
    assert charge_of((GaussianEvent("leaves", 0, 1, 0, 5),), DELTA) == Charge()
    naked = charge_of((GaussianEvent("leaves", 1, 0, 1, 1),), DELTA)
    assert not Capacity.of(1e6, 0.5, 1e6).holds(naked)


def test_a_selection_is_charged_plainly() -> None:
    score = (GaussianEvent("score", 1 << 20, 1 << 26, 2, 1),)
    event = SelectionEvent(Repetitions.of("logarithmic", 5.0), (TRAINING,), score, 1)
    charge = charge_of((event,), DELTA, 1e-8)
    epsilon = make_accountant("exact", [event]).get_epsilon(1e-8)
    assert (charge.mu2, charge.extra) == (0.0, 1e-8)
    assert charge.shift == pytest.approx(epsilon)


@pytest.mark.parametrize(
    "epsilon, delta, part", [(1.0, 1e-6, 0.0), (8.0, 1e-9, 3.0), (0.1, 1e-5, 0.1)]
)
def test_room_is_what_epsilon_and_delta_leave(epsilon: float, delta: float, part: float) -> None:
    room = Capacity.of(epsilon, delta, part)
    mu = math.sqrt(room.mu2)
    assert room.shift == part
    assert gaussian_delta(epsilon - part, mu) + room.extra <= delta
    assert gaussian_delta(epsilon - part, mu * 1.001) + room.extra > delta


def test_trainings_that_fill_the_room_meet_the_total() -> None:
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
def test_an_adversary_that_looks_before_choosing(seed: int, taste: float) -> None:
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
