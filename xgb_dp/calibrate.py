"""Calibrate the noise of every mechanism to a target (epsilon, delta), never exceeding it.

Budget shares are shares of mu^2, in which Gaussians add up exactly. A selection of range eps0 costs
about eps0^2 / 4, and Laplace noise with pure epsilon costs about epsilon^2. The pure accountant
divides epsilon itself. Every integer is rounded towards more noise. The search certifies epsilon
for exactly the integers that the trainer uses, so no approximation enters the guarantee.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TypeVar

from .accounting import ACCOUNTANTS, ChoiceEvent, Event, make_accountant
from .accounting.gaussian import gaussian_mu
from .engine.progress import progress
from .errors import BudgetError, named
from .mechanisms.mechanism import MAX_SIGMA2, DrawBudget, Mechanism, Noise
from .mechanisms.plan import SAMPLE_BITS, SHARE_NAMES, Mechanisms, choice_event

_MIN_GRID_BITS, _MAX_GRID_BITS = 4, 20
# The slope of log epsilon over log mu is about 1 for small mu and 2 for large mu.
_STEEPEST, _STEEPEST_LARGE, _LARGE = 1.0, 2.0, math.log(10.0)
_LOWEST, _GOAL, _HIGHEST = 0.998, 0.9994, 1.0  # certified epsilon / target
_BELOW = -0.0015  # offset of the first log mu for families, whose curves are expensive

Found = TypeVar("Found", "Calibration", "FamilyCalibration")
Shares = tuple[tuple[str, float], ...]
"""Pairs of names and fractions of mu^2; hashable."""


@dataclass(frozen=True)
class Calibration:
    """Noise of every mechanism, as integer parameters of the samplers.

    ``calibration["leaves"].sigma2`` is the noise variance of the leaves; disabled mechanisms have
    noise 0.

    Attributes:
        grid_bits: Gradients are integers in units of C / 2**grid_bits.
        epsilon: Certified epsilon of the training, at most the target; infinite without noise.
        delta: Target failure probability.
        noise: Noise by name of the mechanism.
        events: The ledger events of the complete training.

    Examples:
        >>> from xgb_dp.accounting.sensitivity import RowBound
        >>> from xgb_dp.calibrate import calibrate
        >>> from xgb_dp.mechanisms.plan import Mechanisms
        >>> from xgb_dp.mechanisms.splits import Splits
        >>> bound = RowBound("row_weight", 0.5, 1.0)
        >>> one = Mechanisms((Splits(bound, 3),), bound, rounds=10)
        >>> noise = calibrate(one, {"splits": 1.0}, epsilon=1.0, delta=1e-6)
        >>> noise["splits"].eps_num > 0, noise["leaves"].sigma2
        (True, 0)
    """

    grid_bits: int
    epsilon: float = math.inf
    delta: float = 0.0
    noise: Mapping[str, Noise] = field(default_factory=dict)
    events: tuple[Event, ...] = ()

    def __getitem__(self, name: str) -> Noise:
        return self.noise.get(name, Noise())


@dataclass(frozen=True)
class FamilyCalibration:
    """Noise of alternative plans with a common first release, from which the plan is chosen."""

    plans: tuple[Calibration, ...]  # noise of each plan, equal for the first release
    event: ChoiceEvent  # event of the ledger, for every choice
    epsilon: float  # certified epsilon of the choice

    @property
    def events(self) -> tuple[Event, ...]:
        """The events that the ledger records."""
        return (self.event,)


def calibrate(
    mechanisms: Mechanisms,
    shares: Mapping[str, float],
    epsilon: float,
    delta: float,
    accountant: str = "exact",
    group_size: int = 1,
) -> Calibration:
    """Find the smallest noise with a certified epsilon of at most `epsilon` at `delta`.

    All arguments are public, so results are cached: trainings with equal parameters are calibrated
    once.

    Args:
        mechanisms: All mechanisms of the training.
        shares: Fractions of mu^2 by name of a share, >= 0. Shares of disabled mechanisms go to the
            others in proportion.
        epsilon: Target in nats, > 0; infinite for a plan without noise.
        delta: In (0, 1); 0 is also valid without Gaussian noise.
        accountant: Name of the certifying accountant, see
            :data:`xgb_dp.accounting.ACCOUNTANTS`.
        group_size: Number of rows added or removed together, to which the target applies; >= 1.

    Returns:
        Calibration: Its certified epsilon / target is in [0.99, 1], usually above 0.998.

    Raises:
        BudgetError: No noise on the supported grids meets the target, shares do not fit, or the
            accountant has no bound for these mechanisms.
        ValueError: ``epsilon`` or ``delta`` is out of range.

    Examples:
        >>> from xgb_dp.accounting.sensitivity import RowBound
        >>> from xgb_dp.calibrate import calibrate
        >>> from xgb_dp.mechanisms.plan import Mechanisms
        >>> from xgb_dp.mechanisms.splits import Splits
        >>> bound = RowBound("row_weight", 0.5, 1.0)
        >>> one = Mechanisms((Splits(bound, 3),), bound, rounds=10)
        >>> noise = calibrate(one, {"splits": 1.0}, epsilon=1.0, delta=1e-6)
        >>> 0.99 <= noise.epsilon <= 1.0
        True
    """
    if not epsilon > 0.0:
        raise ValueError("`epsilon` must be above 0; infinity trains without noise.")
    if math.isinf(epsilon) or not mechanisms.each:
        exact = {mechanism.name: mechanism.exact() for mechanism in mechanisms.each}
        certain = epsilon if mechanisms.each or math.isinf(epsilon) else 0.0
        return Calibration(mechanisms.grid_bits, certain, delta, exact)
    if not 0.0 <= delta < 1.0:
        raise ValueError("`delta` must be at least 0 and below 1.")
    _check_accountant(mechanisms, accountant)
    if delta == 0.0 and mechanisms.gaussian:
        raise ValueError(
            "`delta` is 0, but the training draws Gaussian noise, which has no finite epsilon at "
            "delta=0. Pass a delta well below 1/rows, e.g. 1e-6."
        )
    divided = _shares_of(mechanisms, shares)
    return _calibrate(mechanisms, divided, epsilon, delta, accountant, group_size)


@lru_cache(maxsize=256)
def _calibrate(
    mechanisms: Mechanisms,
    shares: Shares,
    epsilon: float,
    delta: float,
    accountant: str,
    group_size: int,
) -> Calibration:
    linear = accountant == "pure"

    def certified(guess: float) -> Calibration:
        # mu and pure epsilon are about proportional to the group
        total = math.exp(guess) / group_size
        noise = noise_of_total(mechanisms, shares, total if linear else total**2, linear=linear)
        return replace(
            noise, epsilon=_epsilon(noise.events, delta, accountant, group_size), delta=delta
        )

    return _search(certified, epsilon, delta, linear=linear)


def calibrate_family(
    choices: Sequence[Mechanisms],
    shares: Sequence[Mapping[str, float]],
    epsilon: float,
    delta: float,
    accountant: str = "exact",
    group_size: int = 1,
) -> FamilyCalibration:
    """Find the smallest noise for alternative plans, if the first release selects the plan.

    All plans have the same total mu^2, and the first release has the same share in each plan.
    Therefore its noise does not depend on the plan.

    Proof: docs/proofs/choice.md
    """
    if not 0.0 < epsilon < math.inf or not 0.0 < delta < 1.0:
        raise ValueError("A choice among plans requires a finite `epsilon` and a `delta` above 0.")
    for mechanisms in choices:
        _check_accountant(mechanisms, accountant)
    divided = tuple(map(_shares_of, choices, shares))
    return _calibrate_family(tuple(choices), divided, epsilon, delta, accountant, group_size)


@lru_cache(maxsize=64)
def _calibrate_family(
    choices: tuple[Mechanisms, ...],
    shares: tuple[Shares, ...],
    epsilon: float,
    delta: float,
    accountant: str,
    group_size: int,
) -> FamilyCalibration:
    def certified(guess: float) -> FamilyCalibration:
        total = math.exp(2.0 * guess) / group_size**2
        plans = [noise_of_total(c, share, total) for c, share in zip(choices, shares, strict=True)]
        event = choice_event([plan.events for plan in plans], choices[0].deciding)
        cost = _epsilon([event], delta, accountant, group_size)
        return FamilyCalibration(
            tuple(replace(plan, epsilon=cost, delta=delta) for plan in plans), event, cost
        )

    return _search(certified, epsilon, delta, below=_BELOW)


def _epsilon(events: Sequence[Event], delta: float, accountant: str, group_size: int) -> float:
    return make_accountant(accountant, events).get_epsilon(delta, group_size)


def _check_accountant(mechanisms: Mechanisms, accountant: str) -> None:
    """Refuse an accountant whose epsilon would be infinite no matter how much noise is added."""
    if accountant not in ACCOUNTANTS:
        raise ValueError(f"`accountant` must be one of {', '.join(ACCOUNTANTS)}.")
    if accountant == "pure" and mechanisms.gaussian:
        raise BudgetError(
            f"{named.dp_accountant}='pure' has no bound for the Gaussian noise of this training. "
            "Use 'exact', or only Laplace noise: dp_leaf_noise='laplace' or 'output', public "
            "or Laplace candidates, and a public base_score."
        )
    if accountant not in ("exact", "pure") and mechanisms.sampling_num < 1 << SAMPLE_BITS:
        raise BudgetError(
            f"{named.dp_accountant}={accountant!r} has no bound for `subsample` below 1. Use "
            "'exact'."
        )


def _search(
    certified: Callable[[float], Found],
    epsilon: float,
    delta: float,
    *,
    linear: bool = False,
    below: float = 0.0,
) -> Found:
    """Search for the log mu (or pure epsilon) of the group, and report progress.

    Epsilon increases with mu, and a small mu may fit no grid.
    """
    guess = math.log(epsilon if linear or delta == 0.0 else gaussian_mu(epsilon, delta)) + below
    best: Found | None = None
    refusal: BudgetError | None = None
    low: tuple[float, float | None] | None = None  # (log mu, log of certified epsilon / target)
    high: tuple[float, float] | None = None
    goal, slope, last = math.log(_GOAL), 1.0, (guess - 1.0, -math.inf)
    with progress("calibrate") as step:
        for attempt in range(60):
            step(f"noise {attempt + 1}")
            try:
                plan = certified(guess)
            except BudgetError as error:
                # Drop the traceback: its frames would keep the training data alive.
                refusal, low = error.with_traceback(None), (guess, None)
            else:
                ratio = plan.epsilon / epsilon
                if ratio <= _HIGHEST and (best is None or plan.epsilon > best.epsilon):
                    best = plan
                if _LOWEST <= ratio <= _HIGHEST:
                    return plan
                log_ratio = math.log(max(ratio, 1e-300))
                if guess != last[0]:
                    steepest = _STEEPEST_LARGE if guess > _LARGE else _STEEPEST
                    slope = min(max((log_ratio - last[1]) / (guess - last[0]), 0.02), steepest)
                last = (guess, log_ratio)
                if ratio > _HIGHEST:
                    high = (guess, log_ratio)
                elif best is not None and best is not plan and best.events == plan.events:
                    break  # the noise has reached its minimum
                else:
                    low = (guess, log_ratio)
            guess = _next_guess(low, high, goal, slope, bisect=attempt % 3 == 2)
            if low and high and high[0] - low[0] < (1e-10 if best else 1e-3):
                break
    if best is None:
        raise refusal or BudgetError(
            f"No noise level meets epsilon={epsilon:g}, delta={delta:g} for this training. Use "
            "fewer rounds or a larger epsilon."
        )
    return best


def _next_guess(
    low: tuple[float, float | None] | None,
    high: tuple[float, float] | None,
    goal: float,
    slope: float,
    *,
    bisect: bool,
) -> float:
    """The next log mu, from the best points on either side."""
    if low is None or high is None:
        # Extrapolate with the slope of the last two points, initially 1.
        mu, log_ratio = low or high or (0.0, goal)
        return mu + (2.0 if log_ratio is None else max(-2.0, min(2.0, (goal - log_ratio) / slope)))
    width = high[0] - low[0]
    if low[1] is not None and not bisect:
        slope = (high[1] - low[1]) / max(width, 1e-12)
        secant = low[0] + (goal - low[1]) / slope if slope > 0.0 else math.nan
        if low[0] + 0.02 * width < secant < high[0] - 0.02 * width:
            return secant
    return low[0] + 0.5 * width


def _shares_of(mechanisms: Mechanisms, shares: Mapping[str, float]) -> Shares:
    """Shares by name of the mechanism, which sum to 1."""
    if not set(shares) <= set(SHARE_NAMES):
        raise BudgetError(
            "`dp_budget_shares` contains an unknown release. Valid names are "
            f"{', '.join(SHARE_NAMES)}."
        )
    divided = {m.name: float(shares.get(m.share, 0.0)) for m in mechanisms.each}
    for name, share in divided.items():
        if not (math.isfinite(share) and share > 0.0):
            raise BudgetError(
                f"`dp_budget_shares` has no share for `{name}`, which this training releases. "
                "Add a share above 0."
            )
    total = math.fsum(divided.values())
    return tuple((name, share / total) for name, share in divided.items())


def noise_of_total(
    mechanisms: Mechanisms, shares: Shares, total: float, *, linear: bool = False
) -> Calibration:
    """Noise parameters for a total budget, rounded towards more noise; not certified yet.

    Args:
        mechanisms: All mechanisms of the training.
        shares: Fractions of the total by name of the mechanism.
        total: mu^2, or a pure epsilon.
        linear: Whether the total is a pure epsilon.
    """
    of, rounds = dict(shares), max(mechanisms.charged_rounds, 1)
    each = math.fsum(of[m.name] for m in mechanisms.each if m.of_rounds) * total / rounds
    factor = _amplification(mechanisms, each, linear=linear)

    def budget(m: Mechanism) -> DrawBudget:
        draws = m.draws * (mechanisms.charged_rounds if m.of_rounds else 1)
        return DrawBudget(of[m.name] * total * (factor if m.of_rounds else 1.0) / draws, linear)

    budgets = {m.name: budget(m) for m in mechanisms.each}
    bits = _finest_grid(mechanisms, budgets) if mechanisms.rounds > 0 else mechanisms.grid_bits
    noise = {m.name: m.noise(budgets[m.name], bits) for m in mechanisms.each}
    return Calibration(bits, noise=noise, events=replace(mechanisms, grid_bits=bits).events(noise))


def _amplification(mechanisms: Mechanisms, each: float, *, linear: bool) -> float:
    """Approximate factor by which sampling increases the budget of a round; not a bound.

    Over many rounds, sampling reduces mu^2 to q^2 (e^(mu^2) - 1) (Bu, Dong, Long and Su 2020). In
    an ensemble, a row is in one round and only this round counts.
    """
    rate = mechanisms.sampling_num / 2**SAMPLE_BITS
    if rate == 1.0 or each <= 0.0:
        return 1.0
    if linear:
        return math.log1p(math.expm1(min(each, 700.0)) / rate) / each
    return math.log1p(each / rate**2) / each


def _finest_grid(mechanisms: Mechanisms, budgets: Mapping[str, DrawBudget]) -> int:
    """Bits of the finest grid that can represent the noise of all Gaussian sums."""
    if not _MIN_GRID_BITS <= mechanisms.grid_bits <= _MAX_GRID_BITS:
        raise ValueError(f"`grid_bits` must lie in [{_MIN_GRID_BITS}, {_MAX_GRID_BITS}].")
    for bits in range(mechanisms.grid_bits, _MIN_GRID_BITS - 1, -1):
        if all(m.variance(budgets[m.name], bits) <= MAX_SIGMA2 - 1 for m in mechanisms.each):
            return bits
    raise BudgetError(
        "The noise of the leaves does not fit the coarsest grid: epsilon is too small for a useful "
        "result. Use fewer rounds or a larger epsilon."
    )
