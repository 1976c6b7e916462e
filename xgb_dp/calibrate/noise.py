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
from ..releases.release import MAX_SIGMA2, Noise, Part, Reading
from ..request.registry import READINGS
from .mechanisms import NoisePlan, Releases

_MIN_GRID_BITS, _MAX_GRID_BITS = 4, 20


def _louder(
    reading: type[Reading] | None,
    asked: Releases,
    shares: Mapping[str, float],
    total: float,
    *,
    linear: bool,
) -> float:
    """How much louder a round may be that reads some of the rows."""
    share = math.fsum(shares[r.name] for r in asked.each if r.of_rounds)
    each = share * total / max(asked.charged_rounds, 1)
    if reading is None or each <= 0.0:
        return 1.0
    return reading.louder(asked, each, linear=linear)


def plan_noise(
    asked: Releases,
    shares: Mapping[str, float],
    total: float,
    *,
    linear: bool = False,
) -> NoisePlan:
    """The integers for a total budget, rounded to more noise. Their epsilon is not known yet."""
    reading = next((kind for kind in READINGS if kind.wanted(asked)), None)
    louder = _louder(reading, asked, shares, total, linear=linear)
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
    if reading is not None:
        events.append(reading.event(asked, of_round))
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
