"""Finds the noise of every release for a division of the budget.

Budgets are divided in mu^2, in which Gaussians add up exactly. A selection of range eps0 costs
about eps0^2 / 4, and Laplace noise of pure epsilon costs about epsilon^2. Under the pure accountant
budgets are divided in epsilon itself. Every figure is rounded to more noise.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from ..accounting import (
    PERSON,
    ROW,
    AllocatedEvent,
    Event,
    ExponentialEvent,
    GaussianEvent,
    LaplaceEvent,
    SampledEvent,
    sensitivity,
)
from ..accounting.gaussian import mu2_before_sampling
from ..accounting.plain import PlainEvent
from ..accounting.rounds import squared_parts
from ..errors import BudgetError
from .mechanisms import SAMPLE_BITS, MechanismSpec, NoisePlan

__all__ = ["plan_noise", "shifted"]

_EPS_BITS = 40
_MAX_EPS_NUM = 2**47 - 1
_MIN_SIGMA2 = 2**20  # below, the discreteness slack would start to show
_MAX_SIGMA2 = 2**56
_MAX_SCALE = 2**48
_MAX_SHIFT = 26
# Noise of counts and its Laplace scale. The rows of a person share one of its counts, so that these
# have a finer grid: someone with a thousand rows must not vanish in its rounding.
_NOISE_BITS, _NOISE_BITS_OF_PERSONS = 17, 27
_SCALE_BITS, _SCALE_BITS_OF_PERSONS = 20, 40
_MAX_SENS2_BITS = 61
_CORRECTIONS = 2  # times that the mean of a regression is corrected after the last tree
_MIN_GRID_BITS, _MAX_GRID_BITS = 4, 20
_TOO_SMALL = "epsilon is too small for a useful result"


class _Budget:
    """How loud each release of a part of the budget may be.

    Args:
        spec: What is released.
        shares: Shares, which sum to 1.
        total: mu^2 of the whole, or its pure epsilon.
        linear: Whether shares are those of a pure epsilon.
        secret: Whether the accountant uses that the parts of an ensemble are secret.
    """

    def __init__(
        self,
        spec: MechanismSpec,
        shares: Mapping[str, float],
        total: float,
        *,
        linear: bool,
        secret: bool,
    ) -> None:
        self._shares, self._total, self._linear = shares, total, linear
        # How much louder a round may be that reads a sample or a part.
        rate = spec.sampling_num / 2**SAMPLE_BITS
        in_rounds = {"splits", "leaves", "histograms"}
        if spec.candidate_hessian:
            in_rounds.add("candidates")
        share = math.fsum(shares[name] for name in in_rounds & set(shares))
        each = share * total / max(spec.charged_rounds, 1)
        louder = 1.0
        if each > 0.0 and rate < 1.0:
            before = (
                math.log1p(math.expm1(min(each, 700.0)) / rate)
                if linear
                else mu2_before_sampling(each, rate)
            )
            louder = before / each
        elif each > 0.0 and spec.ensemble > 1 and secret and not linear:
            squares = squared_parts(spec.ensemble, halving=spec.ensemble_halving)
            louder = max(1.0, math.log1p(each / squares) / each)
        self._louder = {name: louder if name in in_rounds else 1.0 for name in shares}

    def _each(self, part: str, releases: int) -> float:
        return self._shares[part] * self._total * self._louder[part] / releases

    def mu2(self, part: str, releases: int) -> float:
        """sensitivity^2 / sigma^2 of one of so many Gaussian releases."""
        each = self._each(part, releases)
        return each * each if self._linear else each

    def laplace(self, part: str, releases: int) -> float:
        """Pure epsilon of one of so many releases."""
        each = self._each(part, releases)
        return each if self._linear else math.sqrt(each)

    def selection(self, part: str, releases: int) -> float:
        """Range eps0 of one of so many selections."""
        each = self._each(part, releases)
        return each if self._linear else math.sqrt(4.0 * each)


def plan_noise(
    spec: MechanismSpec,
    shares: Mapping[str, float],
    total: float,
    *,
    linear: bool = False,
    secret: bool = True,
) -> NoisePlan:
    """The integers for a total budget, rounded to more noise. Their epsilon is not known yet.

    Args:
        spec: What is released.
        shares: Result of :meth:`MechanismSpec.released_shares`.
        total: mu^2 of the whole, or its pure epsilon.
        linear: Whether shares are those of a pure epsilon.
        secret: Whether the accountant uses that the parts of an ensemble are secret.

    Raises:
        BudgetError: The noise fits no grid.
    """
    budget = _Budget(spec, shares, total, linear=linear, secret=secret)
    plan = NoisePlan(spec.grid_bits, eps_num=1)  # a plan has one, also without selections
    events: list[Event] = []
    rounds: list[PlainEvent] = []
    if spec.intercept is not None:
        unit = sensitivity.intercept_sens2(
            spec.intercept,
            0,
            n_public=spec.n_public,
            k=spec.n_class,
            presence=spec.presence,
            exposures=spec.exposures,
        )
        times = spec.intercepts
        shift, sigma2 = shifted(
            unit,
            budget.mu2("base_score", times),
            persons=spec.of_persons,
        )
        coordinates = sensitivity.intercept_coordinates(
            spec.intercept,
            n_public=spec.n_public,
            person=spec.of_persons,
            k=spec.n_class,
            presence=spec.presence,
            exposures=spec.exposures,
        )
        name = "rows" if spec.intercept == "rows" else "intercept"
        events.append(GaussianEvent(name, unit << (2 * shift), sigma2, coordinates, times))
        plan = replace(plan, intercept_shift=shift, intercept_sigma2=sigma2)
    if spec.columns > 0:
        unit = sensitivity.columns_sens2(0)
        shift, sigma2 = shifted(unit, budget.mu2("columns", 1), persons=False)
        sens2 = sensitivity.columns_sens2(shift)
        events.append(GaussianEvent("columns", sens2, sigma2, spec.columns, 1))
        plan = replace(plan, columns_shift=shift, columns_sigma2=sigma2)
    if spec.rounds > 0:
        plan = replace(plan, grid_bits=_grid(spec, budget))
    if spec.candidate_features > 0:
        plan, event = _candidates(spec, budget, plan)
        if spec.candidate_hessian and spec.candidate_rounds == spec.rounds:
            rounds.append(replace(event, count=1))
        else:
            events.append(event)
    charged = spec.charged_rounds
    if spec.rounds > 0 and spec.selections > 0:
        eps0 = budget.selection("splits", spec.selections * charged)
        eps_num = min(max(1, math.floor(eps0 * 2**_EPS_BITS)), _MAX_EPS_NUM)
        rounds.append(ExponentialEvent("splits", eps_num, _EPS_BITS, spec.selections))
        plan = replace(plan, eps_num=eps_num)
    if spec.rounds > 0:
        plan, event = _leaves(spec, budget, plan)
        rounds.append(event)
    if spec.rounds > 0 and spec.correction:
        sens2 = sensitivity.correction_sens2()
        sigma2 = max(math.ceil(sens2 / budget.mu2("correction", _CORRECTIONS)), _MIN_SIGMA2)
        if sigma2 > _MAX_SIGMA2:
            raise BudgetError(
                "The noise of `dp_mean_correction` would be above half a million rows: "
                f"{_TOO_SMALL}. Take dp_mean_correction=False or a larger epsilon."
            )
        events.append(GaussianEvent("correction", sens2, sigma2, 2, _CORRECTIONS))
        plan = replace(plan, correction_sigma2=sigma2)
    if spec.sampling_num < 1 << SAMPLE_BITS:
        events.append(SampledEvent(spec.sampling_num, SAMPLE_BITS, tuple(rounds), spec.rounds))
    elif spec.ensemble > 1:
        events.append(AllocatedEvent(spec.ensemble, tuple(rounds), charged, spec.ensemble_halving))
    else:
        events += [e.counted(e.count * spec.rounds) for e in rounds]
    whose = PERSON if spec.of_persons else ROW
    return replace(plan, events=tuple(e.of_unit(whose) for e in events))


def _candidates(
    spec: MechanismSpec, budget: _Budget, plan: NoisePlan
) -> tuple[NoisePlan, GaussianEvent | LaplaceEvent]:
    touched = spec.candidate_features * spec.candidate_levels
    releases = spec.candidate_rounds
    if spec.candidate_hessian and spec.candidate_rounds == spec.rounds:
        releases = spec.charged_rounds
    if spec.candidate_laplace:
        epsilon = budget.laplace("candidates", releases)
        if spec.candidate_hessian:
            shift, unit = 0, spec.row_bound.most_hessian(plan.grid_bits)
        else:
            bits = _SCALE_BITS_OF_PERSONS if spec.of_persons else _SCALE_BITS
            shift = min(max(0, bits - math.floor(math.log2(touched / epsilon))), _MAX_SHIFT)
            unit = 1 << shift
        scale = _scale(touched * unit, epsilon)
        return (
            replace(plan, candidates_shift=shift, candidates_scale=scale),
            LaplaceEvent("candidates", touched * unit, scale, releases),
        )
    mu2 = budget.mu2("candidates", releases)
    if spec.candidate_hessian:
        shift = 0
        sens2 = touched * spec.row_bound.most_hessian(plan.grid_bits) ** 2
        sigma2 = max(math.ceil(sens2 / mu2), _MIN_SIGMA2)
    else:
        shift, sigma2 = shifted(touched, mu2, persons=spec.of_persons)
        sens2 = touched << (2 * shift)
    coordinates = spec.candidate_cells if spec.of_persons else touched
    return (
        replace(plan, candidates_shift=shift, candidates_sigma2=sigma2),
        GaussianEvent("candidates", sens2, sigma2, coordinates, releases),
    )


def _leaves(
    spec: MechanismSpec, budget: _Budget, plan: NoisePlan
) -> tuple[NoisePlan, GaussianEvent | LaplaceEvent]:
    """The leaf release of one round, or that of its noisy sums."""
    charged = spec.charged_rounds
    if spec.leaf_noise != "gaussian":
        sens = sensitivity.leaf_sens(spec.leaf_noise, spec.row_bound, plan.grid_bits, spec.n_class)
        scale = _scale(sens, budget.laplace("leaves", charged * spec.parallel_trees))
        return (
            replace(plan, leaf_scale=scale),
            LaplaceEvent("leaves", sens, scale, spec.parallel_trees),
        )
    name, count = _sums(spec)
    sens2 = spec.sums_sens2(plan.grid_bits)
    variance = sens2 * spec.local_factor / budget.mu2(name, charged * count)
    sigma2 = max(math.ceil(variance), _MIN_SIGMA2 * max(spec.local_rows, 1))
    coordinates = spec.touched_cells * sensitivity.leaf_coordinates(spec.n_class)
    noise = {"histogram_sigma2" if spec.noisy_sums else "leaf_sigma2": sigma2}
    return (
        replace(plan, **noise),  # type: ignore[arg-type]
        GaussianEvent(name, sens2, sigma2, coordinates, count),
    )


def _sums(spec: MechanismSpec) -> tuple[str, int]:
    """Name of the Gaussian sums of a round, and how often they are released."""
    if spec.noisy_sums:
        return "histograms", spec.parallel_trees * spec.depth
    return "leaves", 1 if spec.split == "additive" else spec.parallel_trees


def _grid(spec: MechanismSpec, budget: _Budget) -> int:
    """The finest grid on which the noise of Gaussian sums fits."""
    if not _MIN_GRID_BITS <= spec.grid_bits <= _MAX_GRID_BITS:
        raise ValueError(f"`grid_bits` must lie in [{_MIN_GRID_BITS}, {_MAX_GRID_BITS}].")
    for bits in range(spec.grid_bits, _MIN_GRID_BITS - 1, -1):
        largest = 0.0
        if spec.leaf_noise == "gaussian":
            name, count = _sums(spec)
            sens2 = spec.sums_sens2(bits) * spec.local_factor
            largest = sens2 / budget.mu2(name, spec.charged_rounds * count)
        if spec.candidate_features and spec.candidate_hessian and not spec.candidate_laplace:
            touched = spec.candidate_features * spec.candidate_levels
            sens2 = touched * spec.row_bound.most_hessian(bits) ** 2
            releases = min(spec.candidate_rounds, spec.charged_rounds)
            largest = max(largest, sens2 / budget.mu2("candidates", releases))
        if largest <= _MAX_SIGMA2 - 1:
            return bits
    raise BudgetError(
        f"The noise of the leaves would not fit the coarsest grid: {_TOO_SMALL}. Take fewer "
        "rounds or a larger epsilon."
    )


def _scale(sens: int, epsilon: float) -> int:
    scale = max(math.ceil(sens / epsilon * (1.0 + 1e-15)), 1)
    if scale > _MAX_SCALE:
        raise BudgetError(
            f"The Laplace noise would be above 2^48 grid units: {_TOO_SMALL}. Take fewer rounds "
            "or a larger epsilon."
        )
    return scale


def shifted(sens2: int, mu2: float, *, persons: bool) -> tuple[int, int]:
    """Shift and integer noise of counts. The noise is near 2^17 if possible, or 2^27 for persons.

    Args:
        sens2: Squared sensitivity of the counts, in rows.
        mu2: sensitivity^2 / sigma^2 of their release.
        persons: Whether the unit of privacy is a person, whose rows weigh a part each.

    Raises:
        BudgetError: The noise fits no grid.
    """
    variance = sens2 / mu2
    bits = math.ceil(math.log2(max(variance, 1e-300)))
    noise = _NOISE_BITS_OF_PERSONS if persons else _NOISE_BITS
    room = (_MAX_SENS2_BITS - sens2.bit_length()) // 2
    shift = min(max(0, (2 * noise - bits) // 2), _MAX_SHIFT, room)
    sigma2 = max(math.ceil(variance * 4.0**shift), _MIN_SIGMA2)
    if sigma2 > _MAX_SIGMA2:
        raise BudgetError(
            f"The noise would be above 2^28 rows: {_TOO_SMALL}. Take fewer rounds or a larger "
            "epsilon."
        )
    return shift, sigma2
