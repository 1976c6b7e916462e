"""Selections of unequal range, and Laplace noise, do not commute: the order of events counts.

What an adaptive adversary reaches for certain is computed here by the recursion over the releases
as they really alternate, on grid points only. No certified figure may be below.
"""

import math
from typing import Any

import pytest

from xgb_dp.accounting import ExponentialEvent, LaplaceEvent, make_accountant
from xgb_dp.accounting.sampled_rounds import ParallelEvent, SampledEvent

from .oracle import Adversary

BITS = 40


def reaching(step: float, total: float) -> Adversary:
    """Of losses up to a total."""
    return Adversary(step, math.ceil(total / step) + 2)


def selections(eps0: float, count: int) -> ExponentialEvent:
    return ExponentialEvent("splits", round(eps0 * 2**BITS), BITS, count)


def adaptive_laplace(rounds: int, per_round: int, eps0: float, laplace: float, step: float) -> Any:
    """Rounds of selections and then one Laplace release, the last round first."""
    adversary = reaching(step, rounds * (per_round * eps0 + laplace))
    for _ in range(rounds):
        adversary.laplace(int(laplace / step + 1e-9))
        for _ in range(per_round):
            adversary.select(round(eps0 / step))
    return adversary


@pytest.mark.parametrize("eps0, laplace, delta", [(0.6, 0.05, 1e-6), (0.9, 0.06, 1e-4)])
@pytest.mark.parametrize("first", ["splits", "leaves"])
@pytest.mark.parametrize("disjoint", [False, True])
def test_laplace_between_selections(eps0, laplace, delta, first, disjoint):
    """Merged by mechanism, in whatever order the ledger has them."""
    rounds, step = 4, 0.006
    steps = int(laplace / step)
    events: list[Any] = [
        selections(eps0, 2 if disjoint else 2 * rounds),
        LaplaceEvent("leaves", steps * 6, 1000, 1 if disjoint else rounds),
    ]
    if first == "leaves":
        events.reverse()
    if disjoint:
        events = [ParallelEvent(3, tuple(events), rounds)]
    certified = make_accountant("exact", events).get_epsilon(delta)
    reached = adaptive_laplace(rounds, 2, eps0, steps * step, step).epsilon(delta)
    assert reached <= certified <= reached + 0.06


def test_the_merged_order_would_be_too_small():
    """What the front is for: all selections and then all Laplace noise is not an upper bound."""
    step, eps0, laplace, rounds, delta = 0.006, 0.9, 0.06, 4, 1e-4
    merged = reaching(step, rounds * (2 * eps0 + laplace))
    for _ in range(rounds):
        merged.laplace(round(laplace / step))
    for _ in range(2 * rounds):
        merged.select(round(eps0 / step))
    reached = adaptive_laplace(rounds, 2, eps0, laplace, step)
    assert merged.epsilon(delta) < reached.epsilon(delta)


@pytest.mark.parametrize("delta", [1e-2, 1e-6])
def test_a_round_that_reads_nearly_all_rows_before_costlier_selections(delta):
    """A continued model: its first training is a round of rate 1 - 2^-32."""
    quiet, costly = selections(0.2, 10), selections(1.0, 6)
    adversary = reaching(0.02, 10 * 0.2 + 6 * 1.0)
    for _ in range(6):
        adversary.select(50)
    for _ in range(10):
        adversary.select(10)
    nearly = SampledEvent(2**32 - 1, 32, (quiet,), 1)
    assert make_accountant("exact", [nearly, costly]).get_epsilon(delta) >= adversary.epsilon(delta)
    assert make_accountant("exact", [quiet, costly]).get_epsilon(delta) >= adversary.epsilon(delta)


def test_rounds_of_unequal_selections_have_no_merged_order():
    """Near a rate of 1 no better bound than that of the rounds themselves is claimed."""
    inner = (selections(0.2, 1), selections(1.0, 1))
    sampled = SampledEvent(2**32 - 1, 32, inner, 3)
    adversary = reaching(0.02, 3 * 1.2)
    for _ in range(3):
        adversary.select(50)
        adversary.select(10)
    assert make_accountant("exact", [sampled]).get_epsilon(1e-4) >= adversary.epsilon(1e-4)
