"""Finds the noise of every release for a division of the budget.

Budgets are divided in mu^2, in which Gaussians add up exactly. A selection of range eps0 costs
about eps0^2 / 4, and Laplace noise of pure epsilon costs about epsilon^2. Under the pure accountant
budgets are divided in epsilon itself. Every figure is rounded to more noise.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from ..accounting import PERSON, ROW, Event
from ..accounting.events import PlainEvent, counted, with_unit
from ..errors import BudgetError
from ..published.rounds import AllocatedEvent, SampledEvent, mu2_before_sampling, squared_parts
from ..releases.release import MAX_SIGMA2, Noise, Part
from .mechanisms import SAMPLE_BITS, NoisePlan, Releases

_MIN_GRID_BITS, _MAX_GRID_BITS = 4, 20


def _louder(
    asked: Releases, shares: Mapping[str, float], total: float, *, linear: bool, secret: bool
) -> float:
    """How much louder a round may be that reads a sample or a part."""
    share = math.fsum(shares[r.name] for r in asked.each if r.of_rounds)
    each = share * total / max(asked.charged_rounds, 1)
    rate = asked.sampling_num / 2**SAMPLE_BITS
    if each > 0.0 and rate < 1.0:
        if linear:
            return math.log1p(math.expm1(min(each, 700.0)) / rate) / each
        return mu2_before_sampling(each, rate) / each
    if each > 0.0 and asked.ensemble > 1 and secret and not linear:
        squares = squared_parts(asked.ensemble, halving=asked.ensemble_halving)
        return max(1.0, math.log1p(each / squares) / each)
    return 1.0


def plan_noise(
    asked: Releases,
    shares: Mapping[str, float],
    total: float,
    *,
    linear: bool = False,
    secret: bool = True,
) -> NoisePlan:
    """The integers for a total budget, rounded to more noise. Their epsilon is not known yet."""
    louder = _louder(asked, shares, total, linear=linear, secret=secret)
    parts = {
        r.name: Part(
            shares[r.name] * total * (louder if r.of_rounds else 1.0) / asked.draws(r), linear
        )
        for r in asked.each
    }
    grid_bits = _grid(asked, parts) if asked.rounds > 0 else asked.grid_bits
    noise: dict[str, Noise] = {}
    events: list[Event] = []
    of_round: list[PlainEvent] = []
    for release in asked.each:
        noise[release.name], event = release.noise(parts[release.name], grid_bits)
        (of_round if release.of_rounds else events).append(event)
    if asked.sampling_num < 1 << SAMPLE_BITS:
        events.append(SampledEvent(asked.sampling_num, SAMPLE_BITS, tuple(of_round), asked.rounds))
    elif asked.ensemble > 1:
        charged = asked.charged_rounds
        events.append(
            AllocatedEvent(asked.ensemble, tuple(of_round), charged, asked.ensemble_halving)
        )
    else:
        events += [counted(e, e.count * asked.rounds) for e in of_round]
    unit = PERSON if asked.of_persons else ROW
    return NoisePlan(grid_bits, noise=noise, events=tuple(with_unit(e, unit) for e in events))


def _grid(asked: Releases, parts: Mapping[str, Part]) -> int:
    """The finest grid on which the noise of Gaussian sums fits."""
    if not _MIN_GRID_BITS <= asked.grid_bits <= _MAX_GRID_BITS:
        raise ValueError(f"`grid_bits` must lie in [{_MIN_GRID_BITS}, {_MAX_GRID_BITS}].")
    for bits in range(asked.grid_bits, _MIN_GRID_BITS - 1, -1):
        if all(r.variance(parts[r.name], bits) <= MAX_SIGMA2 - 1 for r in asked.each):
            return bits
    raise BudgetError(
        "The noise of the leaves would not fit the coarsest grid: epsilon is too small for a "
        "useful result. Take fewer rounds or a larger epsilon."
    )
