"""The noise of a discovery: events that meet the target, and the integers of the samplers.

Proof: docs/proofs/discovery.md
"""

from __future__ import annotations

import math
from dataclasses import replace

from ..accounting import ThresholdEvent, make_accountant
from ..accounting.curve import narrow
from ..accounting.threshold import failure_of
from ..accounting.units import ONE_ROW, Unit
from ..errors import BudgetError
from ..mechanisms.mechanism import count_noise
from ..noisy_sums import LEVELS, ColumnPlan

_THRESHOLD_SHARE = 0.25  # of delta


def epsilon_of(plan: ColumnPlan, delta: float, group: int = 1) -> float:
    """Certified epsilon of all of it, in nats, for so many rows or persons."""
    return make_accountant("exact", plan.events).get_epsilon(delta, group)


def plan_discovery(
    texts: int, numbers: int, epsilon: float, delta: float, unit: Unit = ONE_ROW
) -> ColumnPlan:
    """The least noise that meets the target; every column has the same part of the budget."""

    def of(mu: float) -> ColumnPlan:
        return _with_noise(texts, numbers, unit, mu * mu / (texts + numbers), delta)

    def fits(mu: float) -> bool:
        try:
            return epsilon_of(of(mu), delta, unit.group) <= epsilon
        except BudgetError:  # so much noise that no grid holds it
            return True

    # The noise of mu = epsilon / 100 would do for any delta that is of use.
    low = high = max(epsilon, 1e-6) / (100.0 * unit.group)
    while fits(high) and high < 1e4:
        low, high = high, 2.0 * high
    mu, _ = narrow(fits, low, high, 40)
    plan = of(mu)
    if epsilon_of(plan, delta, unit.group) > epsilon:
        raise BudgetError(
            f"No noise meets epsilon={epsilon:g} at delta={delta:g} for so many columns. Look at "
            "fewer columns, or spend more."
        )
    return plan


def _with_noise(texts: int, numbers: int, unit: Unit, each: float, delta: float) -> ColumnPlan:
    """The integers for a mu^2 of each column, rounded to more noise."""
    plan, persons = ColumnPlan(texts, numbers, unit.name), unit.of_persons
    if numbers:
        touched = numbers * LEVELS
        noise = count_noise(touched, numbers * each, persons=persons)
        plan = replace(plan, number_shift=noise.shift, number_sigma2=noise.sigma2)
    if texts:
        noise = count_noise(texts, texts * each, persons=False)  # a vote is one
        plan = replace(plan, text_shift=noise.shift, text_sigma2=noise.sigma2)
        share = _THRESHOLD_SHARE * delta
        least = _threshold(noise.shift, noise.sigma2, texts, share, unit.group)
        plan = replace(plan, threshold=least)
    return plan


def _threshold(shift: int, sigma2: int, texts: int, delta: float, group: int) -> int:
    """The least count that may be shown: of `texts` cells of a row of each of a group, all fail.

    Their rows may all be in one cell, so a count of a group's own is as large as the group.
    """
    unit = 1 << shift

    def fails(count: int) -> bool:
        return failure_of(ThresholdEvent("categories", unit, sigma2, count, texts), group) > delta

    low, high = 0, group * unit + math.isqrt(sigma2) + 1
    while fails(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fails(middle) else (low, middle)
    return high
