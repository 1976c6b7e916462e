"""What a training releases, and the noise of every release for a division of the budget.

Budgets are divided in mu^2, in which Gaussians add up exactly, a selection of range eps0 costs
about eps0^2 / 4 and Laplace noise of pure epsilon about epsilon^2; or, under the pure accountant,
in epsilon itself. Every figure is rounded to more noise.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from . import sensitivity
from .accounting import (
    Event,
    ExponentialEvent,
    GaussianEvent,
    LaplaceEvent,
    ParallelEvent,
    SampledEvent,
)
from .accounting.events import PlainEvent
from .accounting.gaussian import mu2_before_sampling
from .errors import BudgetError
from .sensitivity import RowBound

if TYPE_CHECKING:
    from .settings import Settings

__all__ = ["DEFAULT_SHARES", "SAMPLE_BITS", "MechanismSpec", "NoisePlan", "plan_noise"]

DEFAULT_SHARES: Mapping[str, float] = {
    "candidates": 0.1,
    "base_score": 0.01,
    "splits": 0.267,
    "leaves": 0.623,
}

SAMPLE_BITS = 32
_EPS_BITS = 40
_MAX_EPS_NUM = 2**47 - 1
_MIN_SIGMA2 = 2**20  # below, the discreteness slack would start to show
_MAX_SIGMA2 = 2**56
_MAX_SCALE = 2**48
_MAX_SHIFT = 26
_MIN_GRID_BITS, _MAX_GRID_BITS = 4, 20
_TOO_SMALL = "the target is too small to be of use"


@dataclass(frozen=True)
class MechanismSpec:
    """What a training will release, without noise levels. Everything here is public.

    Attributes:
        rounds: Boosting rounds T >= 0.
        depth: Levels of selection of each tree, >= 0.
        row_bound: Bound of one row.
        n_class: Classes with a tree of their own, K >= 1.
        parallel_trees: Trees of each class in one round, on the same gradients.
        split: How splits are chosen: "exponential", "random" (reads no data), or "histogram" and
            "partial" (from noisy sums, which give the leaves too).
        tree_features: Features of one tree, of which noisy sums hold one cell each for a row.
        leaf_release: "gaussian" or "laplace" sums, or "output", the leaf value with Laplace noise.
        ensemble: Rounds of an ensemble, which read disjoint parts of the rows; 1 for none.
        candidate_features: Features with private candidates, F >= 0.
        candidate_levels: Cells of one feature that a row is in: released levels of each quantile
            tree, L >= 1, or 1 for histograms.
        candidate_rounds: Rounds that release candidates, from the first one on.
        candidate_hessian: Whether rows weigh their bounded Hessian in them, instead of one.
        candidate_laplace: Whether their noise is Laplace instead of Gaussian.
        split_levels: Levels that one selection fills.
        local_rows: Rows that each report their leaf sums with noise of their own; 0 for noise on
            sums. The target epsilon is then that of one report, for any two rows.
        intercept: "binary", "regression", "multiclass", or None if it is public.
        n_public: Whether the number of rows is public (then the intercept needs one sum less).
        shares: Fractions of mu^2 for "candidates", "base_score", "splits" and "leaves", >= 0. What
            releases nothing gives its share to the others in proportion.
        grid_bits: Grid of the gradients, 4 to 20; reduced where the noise would not fit.
        sampling_num: A round reads each row with probability sampling_num / 2**32; 2**32 for all.
    """

    rounds: int
    depth: int
    row_bound: RowBound
    n_class: int = 1
    candidate_features: int = 0
    candidate_levels: int = 17
    intercept: str | None = None
    n_public: bool = False
    shares: Mapping[str, float] = field(default_factory=lambda: dict(DEFAULT_SHARES))
    grid_bits: int = 18
    sampling_num: int = 1 << SAMPLE_BITS
    parallel_trees: int = 1
    split: str = "exponential"
    tree_features: int = 1
    leaf_release: str = "gaussian"
    ensemble: int = 1
    candidate_rounds: int = 1
    candidate_hessian: bool = False
    candidate_laplace: bool = False
    local_rows: int = 0
    split_levels: int = 1

    @classmethod
    def from_settings(cls, s: Settings) -> MechanismSpec:
        """What the checked settings of a training release."""
        bound = RowBound(s.mode, s.gradient_bound, s.hessian_weight, s.hessian_bound, s.max_weight)
        return cls(
            rounds=s.rounds,
            depth=s.depth,
            row_bound=bound,
            grid_bits=sensitivity.largest_grid_bits(s.score, bound, s.score_clip),
            n_class=s.trees_per_round,
            candidate_features=s.private_features,
            candidate_levels=s.candidate_levels if s.candidates == "quantile_tree" else 1,
            candidate_rounds=s.candidate_rounds,
            candidate_hessian=s.candidate_weight == "hessian",
            candidate_laplace=s.candidate_noise == "laplace",
            leaf_release=s.leaf_noise,
            ensemble=s.ensemble,
            split_levels=s.split_levels,
            local_rows=(s.n_public or 0) if s.local else 0,
            intercept=s.kind if s.intercept == "released" else None,
            n_public=s.n_public is not None,
            shares=s.shares,
            sampling_num=s.sampling_num,
            parallel_trees=s.parallel_trees,
            split=s.split,
            tree_features=s.features_per_tree,
        )

    @property
    def selections(self) -> int:
        """Selections of one round that a row takes part in, on its way down every tree."""
        per_tree = -(-self.depth // self.split_levels) if self.split == "exponential" else 0
        return self.parallel_trees * per_tree * self.n_class

    @property
    def noisy_sums(self) -> bool:
        """Whether splits and leaves are read from the same noisy sums."""
        return self.split in ("histogram", "partial")

    @property
    def local_factor(self) -> int:
        """By how much sensitivity^2 / sigma^2 of one report exceeds that of the sum of all.

        Two rows differ by twice the norm of one, and a report has one part in n of the noise.
        """
        return 4 * self.local_rows if self.local_rows else 1

    @property
    def charged_rounds(self) -> int:
        """Rounds that a row takes part in: one of each ensemble."""
        return -(-self.rounds // self.ensemble)

    @property
    def gaussian(self) -> bool:
        """Whether any noise is Gaussian, which no pure epsilon bounds."""
        return (
            self.intercept is not None
            or (self.candidate_features > 0 and not self.candidate_laplace)
            or (self.rounds > 0 and self.leaf_release == "gaussian")
        )

    def parts(self) -> dict[str, float]:
        """Shares of what is released, which sum to 1.

        Raises:
            BudgetError: A share is unknown, negative, or 0 for something that is released.
        """
        released = {
            "candidates": self.candidate_features > 0,
            "base_score": self.intercept is not None,
            "splits": self.rounds > 0 and self.selections > 0,
            "histograms": self.rounds > 0 and self.noisy_sums,
            "leaves": self.rounds > 0 and not self.noisy_sums,
        }
        if not set(self.shares) <= set(released):
            raise BudgetError(f"Shares of the budget are {', '.join(released)}; no others.")
        parts = {
            # Noisy histograms stand in for splits and leaves.
            name: float(self.shares.get("leaves" if name == "histograms" else name, 0.0))
            for name, is_on in released.items()
            if is_on
        }
        for name, share in parts.items():
            if not (math.isfinite(share) and share > 0.0):
                raise BudgetError(
                    f"The share of the budget for `{name}` must be above 0, since it is released."
                )
        total = math.fsum(parts.values())
        return {name: share / total for name, share in parts.items()}


@dataclass(frozen=True)
class NoisePlan:
    """Noise of every mechanism, as the integers that the samplers take.

    Attributes:
        epsilon: Certified epsilon of the whole, at most the target; infinite without noise.
        delta: Target failure probability.
        eps_num: Range eps0 of one selection in units of 2**-40 nats.
        grid_bits: Gradients are integers in units of C / 2**grid_bits.
        leaf_sigma2: Gaussian noise of G and of H, in grid units squared.
        leaf_scale: Scale of the Laplace noise of leaves.
        histogram_sigma2: The same for each cell of noisy histograms.
        candidates_shift: Counts are multiplied by 2**shift.
        candidates_sigma2: Gaussian noise of the counts, in 2**-shift rows squared; with Hessian
            weights in grid units squared.
        candidates_scale: Scale of their Laplace noise.
        intercept_shift: Label sums are multiplied by 2**shift.
        intercept_sigma2: Noise of the label sums, in 2**-shift rows squared.
        events: What the ledger will hold when the training is complete.

    What is not released has noise 0. A noise-free plan has 0 everywhere and no events.
    """

    epsilon: float
    delta: float
    eps_num: int
    grid_bits: int
    leaf_sigma2: int
    candidates_shift: int
    candidates_sigma2: int
    intercept_shift: int
    intercept_sigma2: int
    events: tuple[Event, ...]
    histogram_sigma2: int = 0
    leaf_scale: int = 0
    candidates_scale: int = 0


class _Budget:
    """How loud each release of a part of the budget may be.

    Args:
        spec: What is released.
        parts: Shares, which sum to 1.
        total: mu^2 of the whole, or its pure epsilon.
        linear: Whether shares are those of a pure epsilon.
    """

    def __init__(
        self, spec: MechanismSpec, parts: Mapping[str, float], total: float, *, linear: bool
    ) -> None:
        self._parts, self._total, self._linear = parts, total, linear
        # How much louder a round may be that reads a sample.
        rate = spec.sampling_num / 2**SAMPLE_BITS
        in_rounds = {"splits", "leaves", "histograms"}
        if spec.candidate_hessian:
            in_rounds.add("candidates")
        share = math.fsum(parts[name] for name in in_rounds & set(parts))
        each = share * total / max(spec.charged_rounds, 1)
        louder = 1.0
        if each > 0.0 and rate < 1.0:
            before = (
                math.log1p(math.expm1(min(each, 700.0)) / rate)
                if linear
                else mu2_before_sampling(each, rate)
            )
            louder = before / each
        self._louder = {name: louder if name in in_rounds else 1.0 for name in parts}

    def _each(self, part: str, releases: int) -> float:
        return self._parts[part] * self._total * self._louder[part] / releases

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
    spec: MechanismSpec, parts: Mapping[str, float], total: float, *, linear: bool = False
) -> NoisePlan:
    """The integers for a total budget, rounded to more noise; their epsilon is not known yet.

    Args:
        spec: What is released.
        parts: Result of :meth:`MechanismSpec.parts`.
        total: mu^2 of the whole, or its pure epsilon.
        linear: Whether shares are those of a pure epsilon.

    Raises:
        BudgetError: The noise fits no grid.
    """
    budget = _Budget(spec, parts, total, linear=linear)
    plan = NoisePlan(math.inf, 0.0, 1, spec.grid_bits, 0, 0, 0, 0, 0, ())
    events: list[Event] = []
    rounds: list[PlainEvent] = []
    if spec.intercept is not None:
        unit = sensitivity.intercept_sens2(spec.intercept, 0, n_public=spec.n_public)
        shift, sigma2 = _shifted(unit / budget.mu2("base_score", 1))
        coordinates = sensitivity.intercept_coordinates(spec.intercept, n_public=spec.n_public)
        events.append(GaussianEvent("intercept", unit << (2 * shift), sigma2, coordinates, 1))
        plan = replace(plan, intercept_shift=shift, intercept_sigma2=sigma2)
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
    if spec.sampling_num < 1 << SAMPLE_BITS:
        events.append(SampledEvent(spec.sampling_num, SAMPLE_BITS, tuple(rounds), spec.rounds))
    elif spec.ensemble > 1:
        events.append(ParallelEvent(spec.ensemble, tuple(rounds), charged))
    else:
        events += [replace(e, count=e.count * spec.rounds) for e in rounds]
    return replace(plan, events=tuple(events))


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
            shift, unit = 0, spec.row_bound.max_hessian(plan.grid_bits)
        else:
            shift = min(max(0, 20 - math.floor(math.log2(touched / epsilon))), _MAX_SHIFT)
            unit = 1 << shift
        scale = _scale(touched * unit, epsilon)
        return (
            replace(plan, candidates_shift=shift, candidates_scale=scale),
            LaplaceEvent("candidates", touched * unit, scale, releases),
        )
    mu2 = budget.mu2("candidates", releases)
    if spec.candidate_hessian:
        shift = 0
        sens2 = touched * spec.row_bound.max_hessian(plan.grid_bits) ** 2
        sigma2 = max(math.ceil(sens2 / mu2), _MIN_SIGMA2)
    else:
        shift, sigma2 = _shifted(touched / mu2)
        sens2 = touched << (2 * shift)
    return (
        replace(plan, candidates_shift=shift, candidates_sigma2=sigma2),
        GaussianEvent("candidates", sens2, sigma2, touched, releases),
    )


def _leaves(
    spec: MechanismSpec, budget: _Budget, plan: NoisePlan
) -> tuple[NoisePlan, GaussianEvent | LaplaceEvent]:
    """The leaf release of one round, or that of its noisy sums."""
    charged = spec.charged_rounds
    if spec.leaf_release != "gaussian":
        sens = sensitivity.leaf_sens(
            spec.leaf_release, spec.row_bound, plan.grid_bits, spec.n_class
        )
        scale = _scale(sens, budget.laplace("leaves", charged * spec.parallel_trees))
        return (
            replace(plan, leaf_scale=scale),
            LaplaceEvent("leaves", sens, scale, spec.parallel_trees),
        )
    name, cells, count = _sums(spec)
    sens2 = cells * spec.row_bound.round_sens2(plan.grid_bits, spec.n_class)
    variance = sens2 * spec.local_factor / budget.mu2(name, charged * count)
    sigma2 = max(math.ceil(variance), _MIN_SIGMA2 * max(spec.local_rows, 1))
    coordinates = cells * sensitivity.leaf_coordinates(spec.n_class)
    noise = {"histogram_sigma2" if spec.noisy_sums else "leaf_sigma2": sigma2}
    return (
        replace(plan, **noise),  # type: ignore[arg-type]
        GaussianEvent(name, sens2, sigma2, coordinates, count),
    )


def _sums(spec: MechanismSpec) -> tuple[str, int, int]:
    """Name of the Gaussian sums of a round, cells that a row is in, and how often."""
    if spec.noisy_sums:
        # A row is in one cell of each feature in each level.
        return "histograms", spec.tree_features, spec.parallel_trees * spec.depth
    return "leaves", 1, spec.parallel_trees


def _grid(spec: MechanismSpec, budget: _Budget) -> int:
    """The finest grid on which the noise of Gaussian sums fits."""
    if not _MIN_GRID_BITS <= spec.grid_bits <= _MAX_GRID_BITS:
        raise ValueError(f"`grid_bits` must lie in [{_MIN_GRID_BITS}, {_MAX_GRID_BITS}].")
    for bits in range(spec.grid_bits, _MIN_GRID_BITS - 1, -1):
        largest = 0.0
        if spec.leaf_release == "gaussian":
            name, cells, count = _sums(spec)
            sens2 = cells * spec.row_bound.round_sens2(bits, spec.n_class) * spec.local_factor
            largest = sens2 / budget.mu2(name, spec.charged_rounds * count)
        if spec.candidate_features and spec.candidate_hessian and not spec.candidate_laplace:
            touched = spec.candidate_features * spec.candidate_levels
            sens2 = touched * spec.row_bound.max_hessian(bits) ** 2
            releases = min(spec.candidate_rounds, spec.charged_rounds)
            largest = max(largest, sens2 / budget.mu2("candidates", releases))
        if largest <= _MAX_SIGMA2 - 1:
            return bits
    raise BudgetError(
        "The noise of the leaves for this epsilon exceeds the coarsest grid: "
        f"{_TOO_SMALL}. Take fewer rounds or a larger epsilon."
    )


def _scale(sens: int, epsilon: float) -> int:
    scale = max(math.ceil(sens / epsilon * (1.0 + 1e-15)), 1)
    if scale > _MAX_SCALE:
        raise BudgetError(
            f"The Laplace noise for this epsilon is above 2^48 grid units: {_TOO_SMALL}."
        )
    return scale


def _shifted(variance: float) -> tuple[int, int]:
    """Shift and integer noise for a variance in rows^2; the noise is near 2^17 where it can."""
    bits = math.ceil(math.log2(max(variance, 1e-300)))
    shift = min(max(0, (34 - bits) // 2), _MAX_SHIFT)
    sigma2 = max(math.ceil(variance * 4.0**shift), _MIN_SIGMA2)
    if sigma2 > _MAX_SIGMA2:
        raise BudgetError(f"The noise for this epsilon is above 2^28 rows: {_TOO_SMALL}.")
    return shift, sigma2
