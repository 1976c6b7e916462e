"""From (epsilon, delta) to the integers that every sampler is given, always on the safe side.

The budget is planned in mu^2, in which Gaussians add up exactly and a selection of range eps0 costs
about eps0^2 / 4. The plan's scale is then searched on the certified epsilon of the very
integers that the trainer will use, so no approximation enters the guarantee.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from . import sensitivity
from .accounting import (
    ACCOUNTANTS,
    Event,
    ExponentialEvent,
    GaussianEvent,
    SampledEvent,
    make_accountant,
)
from .accounting.gaussian import gaussian_mu, mu2_before_sampling
from .errors import BudgetError
from .sensitivity import RowBound

if TYPE_CHECKING:
    from .settings import Settings

__all__ = ["DEFAULT_SHARES", "MechanismSpec", "NoisePlan", "calibrate"]

DEFAULT_SHARES: Mapping[str, float] = {
    "candidates": 0.1,
    "base_score": 0.01,
    "splits": 0.267,
    "leaves": 0.623,
}

_ROUND_PARTS = {"splits", "leaves", "histograms"}  # read the sample of a round
_EPS_BITS = 40
_SAMPLE_BITS = 32
_MAX_EPS_NUM = 2**47 - 1
_MIN_SIGMA2 = 2**20  # below, the discreteness slack would start to show
_MAX_SIGMA2 = 2**56
_MAX_SHIFT = 26
_MIN_GRID_BITS, _MAX_GRID_BITS = 4, 20
_LOWEST, _AIM, _HIGHEST = 0.998, 0.9994, 1.0  # certified epsilon / target


@dataclass(frozen=True)
class MechanismSpec:
    """What a training will release, without noise levels. Everything here is public.

    Attributes:
        rounds: Boosting rounds T >= 0.
        depth: Levels of selection of each tree, >= 0.
        row_bound: Bound of one row.
        n_class: Classes with a tree of their own, K >= 1.
        parallel_trees: Trees of each class in one round, on the same gradients.
        split: How splits are chosen: "exponential", "random" (reads no data) or "histogram"
            (from noisy histograms, which give the leaves too).
        tree_features: Features of one tree, of which noisy histograms hold one cell each for a row.
        candidate_features: Features with private candidates, F >= 0.
        candidate_levels: Released levels of each candidate tree, L >= 1.
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
    sampling_num: int = 1 << _SAMPLE_BITS
    parallel_trees: int = 1
    split: str = "exponential"
    tree_features: int = 1

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
            candidate_levels=s.candidate_levels,
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
        """Selections that one row takes part in: one per level and tree."""
        per_tree = self.depth if self.split == "exponential" else 0
        return self.rounds * self.parallel_trees * per_tree * self.n_class

    def parts(self) -> dict[str, float]:
        """Shares of what is released, which sum to 1.

        Raises:
            BudgetError: A share is unknown, negative, or 0 for something that is released.
        """
        released = {
            "candidates": self.candidate_features > 0,
            "base_score": self.intercept is not None,
            "splits": self.selections > 0,
            "histograms": self.rounds > 0 and self.split == "histogram",
            "leaves": self.rounds > 0 and self.split != "histogram",
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
        leaf_sigma2: Noise of G and of H, in grid units squared.
        histogram_sigma2: The same for each cell of noisy histograms.
        candidates_shift: Counts are multiplied by 2**shift.
        candidates_sigma2: Noise of the counts, in 2**-shift rows squared.
        intercept_shift: Label sums are multiplied by 2**shift.
        intercept_sigma2: Noise of the label sums, in 2**-shift rows squared.
        events: What the ledger will hold when the training is complete.

    What is not released has sigma2 0. A noise-free plan has 0 everywhere and no events.
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


def calibrate(
    spec: MechanismSpec, epsilon: float, delta: float, accountant: str = "exact"
) -> NoisePlan:
    """Smallest noise whose certified epsilon at `delta` is at most `epsilon`.

    Args:
        spec: What is released.
        epsilon: Target in nats, > 0; infinite for a plan without noise.
        delta: In (0, 1).
        accountant: Name of the accountant that certifies it, see
            :data:`xgb_dp.accounting.ACCOUNTANTS`.

    Returns:
        NoisePlan: Its certified epsilon is within [0.99, 1] of the target, as a rule above 0.998.

    Raises:
        BudgetError: No noise on the supported grids meets the target, shares do not fit, or the
            accountant has no bound for these mechanisms.
        ValueError: ``epsilon`` or ``delta`` is out of range.
    """
    if not epsilon > 0.0:
        raise ValueError("`epsilon` must be above 0; infinity trains without noise.")
    if math.isinf(epsilon):
        return NoisePlan(math.inf, delta, 0, spec.grid_bits, 0, 0, 0, 0, 0, ())
    if delta == 0.0:
        raise ValueError(
            "`delta` is 0, but leaves and counts are released with Gaussian noise, which has no "
            "finite epsilon at delta=0. Give a delta well below 1/rows, e.g. 1e-6."
        )
    if not 0.0 < delta < 1.0:
        raise ValueError("`delta` must lie strictly between 0 and 1.")
    parts = spec.parts()
    if not parts:
        return NoisePlan(0.0, delta, 0, spec.grid_bits, 0, 0, 0, 0, 0, ())
    _check_accountant(spec, parts, accountant)
    return _search(spec, parts, epsilon, delta, accountant)


def _check_accountant(spec: MechanismSpec, parts: Mapping[str, float], accountant: str) -> None:
    """Refuse an accountant that would answer infinity whatever the noise."""
    if accountant not in ACCOUNTANTS:
        raise ValueError(f"`accountant` must be one of {', '.join(ACCOUNTANTS)}.")
    if accountant == "pure" and set(parts) != {"splits"}:
        raise BudgetError(
            "`dp_accountant`='pure' has no bound for Gaussian noise, which this training draws. "
            "Use 'exact'."
        )
    if accountant not in ("exact", "pure") and spec.sampling_num < 1 << _SAMPLE_BITS:
        raise BudgetError(
            f"`dp_accountant`={accountant!r} has no bound for `subsample` below 1. Use 'exact'."
        )


def _search(
    spec: MechanismSpec,
    parts: Mapping[str, float],
    epsilon: float,
    delta: float,
    accountant: str,
) -> NoisePlan:
    """Root search for the total mu: epsilon grows with it, and below some mu noise fits no grid."""
    best: NoisePlan | None = None
    refusal: BudgetError | None = None
    low: tuple[float, float | None] | None = None  # (log mu, log of certified epsilon / target)
    high: tuple[float, float] | None = None
    guess = math.log(gaussian_mu(epsilon, delta))
    aim, slope, last = math.log(_AIM), 1.0, (guess - 1.0, -math.inf)
    for attempt in range(60):
        try:
            plan = _plan(spec, parts, math.exp(2.0 * guess), delta, accountant)
        except BudgetError as error:
            refusal, low = error, (guess, None)
        else:
            ratio = plan.epsilon / epsilon
            if ratio <= _HIGHEST and (best is None or plan.epsilon > best.epsilon):
                best = plan
            if _LOWEST <= ratio <= _HIGHEST:
                return plan
            log_ratio = math.log(max(ratio, 1e-300))
            if guess != last[0]:
                slope = min(max((log_ratio - last[1]) / (guess - last[0]), 0.02), 1.0)
            last = (guess, log_ratio)
            if ratio > _HIGHEST:
                high = (guess, log_ratio)
            elif best is not None and best is not plan and best.events == plan.events:
                break  # the least noise there is
            else:
                low = (guess, log_ratio)
        guess = _next_guess(low, high, aim, slope, bisect=attempt % 3 == 2)
        if low and high and high[0] - low[0] < (1e-10 if best else 1e-3):
            break
    if best is None:
        raise refusal or BudgetError(
            f"No noise meets epsilon={epsilon:g}, delta={delta:g} for this training. Take fewer "
            "rounds or a larger epsilon."
        )
    return best


def _next_guess(
    low: tuple[float, float | None] | None,
    high: tuple[float, float] | None,
    aim: float,
    slope: float,
    *,
    bisect: bool,
) -> float:
    """The next log mu to try, from the best points on either side."""
    if low is None or high is None:
        # Epsilon grows about in proportion to mu, or as it did from the last two.
        mu, log_ratio = low or high or (0.0, aim)
        return mu + (2.0 if log_ratio is None else max(-2.0, min(2.0, (aim - log_ratio) / slope)))
    width = high[0] - low[0]
    if low[1] is not None and not bisect:
        slope = (high[1] - low[1]) / max(width, 1e-12)
        secant = low[0] + (aim - low[1]) / slope if slope > 0.0 else math.nan
        if low[0] + 0.02 * width < secant < high[0] - 0.02 * width:
            return secant
    return low[0] + 0.5 * width


def _plan(
    spec: MechanismSpec, parts: Mapping[str, float], mu2: float, delta: float, accountant: str
) -> NoisePlan:
    """The integers for a total of mu^2, rounded to more noise, and what they cost."""
    events: list[Event] = []
    rounds: list[ExponentialEvent | GaussianEvent] = []
    # How much louder a round may be that reads a sample.
    rate = spec.sampling_num / 2**_SAMPLE_BITS
    each = math.fsum(parts[name] for name in _ROUND_PARTS & set(parts)) * mu2 / max(spec.rounds, 1)
    louder = mu2_before_sampling(each, rate) / each if each > 0.0 else 1.0
    intercept_shift = intercept_sigma2 = candidates_shift = candidates_sigma2 = 0
    eps_num, grid_bits, leaf_sigma2 = 1, spec.grid_bits, 0  # no selection: any range will do
    if spec.intercept is not None:
        unit = sensitivity.intercept_sens2(spec.intercept, 0, n_public=spec.n_public)
        intercept_shift, intercept_sigma2 = _shifted(unit / (parts["base_score"] * mu2))
        events.append(
            GaussianEvent(
                "intercept",
                unit << (2 * intercept_shift),
                intercept_sigma2,
                sensitivity.intercept_coordinates(spec.intercept, n_public=spec.n_public),
                1,
            )
        )
    if spec.candidate_features > 0:
        f, n_levels = spec.candidate_features, spec.candidate_levels
        unit = sensitivity.candidates_sens2(f, n_levels, 0)
        candidates_shift, candidates_sigma2 = _shifted(unit / (parts["candidates"] * mu2))
        events.append(
            GaussianEvent(
                "candidates", unit << (2 * candidates_shift), candidates_sigma2, f * n_levels, 1
            )
        )
    if spec.selections > 0:
        eps0 = math.sqrt(4.0 * parts["splits"] * mu2 * louder / spec.selections)
        eps_num = min(max(1, math.floor(eps0 * 2**_EPS_BITS)), _MAX_EPS_NUM)
        rounds.append(
            ExponentialEvent("splits", eps_num, _EPS_BITS, spec.selections // spec.rounds)
        )
    histogram_sigma2 = 0
    if spec.rounds > 0:
        name = "histograms" if spec.split == "histogram" else "leaves"
        # A row is in one leaf of a tree, or in one cell of each feature in each level.
        cells = spec.tree_features if spec.split == "histogram" else 1
        count = spec.parallel_trees * (spec.depth if spec.split == "histogram" else 1)
        grid_bits, sens2, sigma2 = _leaf_grid(
            spec, cells, spec.rounds * count / (parts[name] * mu2 * louder)
        )
        coordinates = cells * sensitivity.leaf_coordinates(spec.n_class)
        rounds.append(GaussianEvent(name, sens2, sigma2, coordinates, count))
        if spec.split == "histogram":
            histogram_sigma2 = sigma2
        else:
            leaf_sigma2 = sigma2
    if spec.sampling_num < 1 << _SAMPLE_BITS:
        events.append(SampledEvent(spec.sampling_num, _SAMPLE_BITS, tuple(rounds), spec.rounds))
    else:
        events += [replace(event, count=event.count * spec.rounds) for event in rounds]
    certified = make_accountant(accountant, events).get_epsilon(delta)
    return NoisePlan(
        epsilon=certified,
        delta=delta,
        eps_num=eps_num,
        grid_bits=grid_bits,
        leaf_sigma2=leaf_sigma2,
        candidates_shift=candidates_shift,
        candidates_sigma2=candidates_sigma2,
        intercept_shift=intercept_shift,
        intercept_sigma2=intercept_sigma2,
        events=tuple(events),
        histogram_sigma2=histogram_sigma2,
    )


def _shifted(variance: float) -> tuple[int, int]:
    """Shift and integer noise for a variance in rows^2; the noise is near 2^17 where it can."""
    bits = math.ceil(math.log2(max(variance, 1e-300)))
    shift = min(max(0, (34 - bits) // 2), _MAX_SHIFT)
    sigma2 = max(math.ceil(variance * 4.0**shift), _MIN_SIGMA2)
    if sigma2 > _MAX_SIGMA2:
        raise BudgetError(
            "The noise for this epsilon is above 2^28 rows: the target is too small to be of use."
        )
    return shift, sigma2


def _leaf_grid(spec: MechanismSpec, cells: int, per_sens2: float) -> tuple[int, int, int]:
    """Finest grid on which the noise of sums fits: (grid_bits, sens2 of a release, sigma2)."""
    if not _MIN_GRID_BITS <= spec.grid_bits <= _MAX_GRID_BITS:
        raise ValueError(f"`grid_bits` must lie in [{_MIN_GRID_BITS}, {_MAX_GRID_BITS}].")
    for bits in range(spec.grid_bits, _MIN_GRID_BITS - 1, -1):
        sens2 = cells * spec.row_bound.round_sens2(bits, spec.n_class)
        sigma2 = max(math.ceil(sens2 * per_sens2), _MIN_SIGMA2)
        if sigma2 <= _MAX_SIGMA2:
            return bits, sens2, sigma2
    raise BudgetError(
        "The noise of the leaves for this epsilon exceeds the coarsest grid: the target is too "
        "small to be of use. Take fewer rounds or a larger epsilon."
    )
