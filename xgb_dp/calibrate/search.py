"""Finds the integers of every sampler for an (epsilon, delta), always on the safe side.

The search for the scale of the plan (``noise.py``) certifies the epsilon of the very integers that
the trainer will use, so no approximation enters the guarantee.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import TypeVar

from ..accounting import ACCOUNTANTS, ChoiceEvent, make_accountant
from ..accounting.gaussian import gaussian_mu
from ..engine.progress import Step, progress
from ..errors import BudgetError, named
from .mechanisms import SAMPLE_BITS, FamilyNoise, NoisePlan, Releases
from .noise import plan_noise

# Log epsilon grows about as log mu while mu is small, and twice as fast where mu is large.
_STEEPEST, _STEEPEST_LOUD, _LOUD = 1.0, 2.0, math.log(10.0)
_LOWEST, _AIM, _HIGHEST = 0.998, 0.9994, 1.0  # certified epsilon / target
_BELOW = -0.0015  # log of where the search for a family begins: its curve takes long

Noise = TypeVar("Noise", "NoisePlan", "FamilyNoise")


@lru_cache(maxsize=256)
def calibrate(
    asked: Releases, epsilon: float, delta: float, accountant: str = "exact", group: int = 1
) -> NoisePlan:
    """Smallest noise whose certified epsilon at `delta` is at most `epsilon`.

    It is a function of public numbers only, so it answers from memory what it has found before.
    Many trainings with the same parameters are calibrated once.

    Args:
        asked: What is released.
        epsilon: Target in nats, > 0; infinite for a plan without noise.
        delta: In (0, 1); 0 too where no noise is Gaussian.
        accountant: Name of the accountant that certifies it, see
            :data:`xgb_dp.accounting.ACCOUNTANTS`.
        group: Rows added or removed together for which it is the target, >= 1.

    Returns:
        NoisePlan: Its certified epsilon is within [0.99, 1] of the target, as a rule above 0.998.

    Raises:
        BudgetError: No noise on the supported grids meets the target, shares do not fit, or the
            accountant has no bound for these mechanisms.
        ValueError: ``epsilon`` or ``delta`` is out of range.

    Examples:
        >>> from xgb_dp.calibrate import Releases, calibrate
        >>> from xgb_dp.releases.splits import Splits
        >>> asked = Releases((Splits(False, 3),), {"splits": 1.0}, rounds=10)
        >>> plan = calibrate(asked, epsilon=1.0, delta=1e-6)
        >>> 0.99 <= plan.epsilon <= 1.0
        True
    """
    if not epsilon > 0.0:
        raise ValueError("`epsilon` must be above 0; infinity trains without noise.")
    if math.isinf(epsilon):
        return NoisePlan.without_noise(asked, math.inf, delta)
    if not 0.0 <= delta < 1.0:
        raise ValueError("`delta` must be at least 0 and below 1.")
    shares = asked.released_shares()
    if not shares:
        return NoisePlan.without_noise(asked, 0.0, delta)
    _check_accountant(asked, accountant)
    if delta == 0.0 and asked.gaussian:
        raise ValueError(
            "`delta` is 0, but Gaussian noise is drawn, which has no finite epsilon at delta=0. "
            "Give a delta well below 1/rows, e.g. 1e-6."
        )

    def certified(guess: float) -> NoisePlan:
        return _certified(asked, shares, guess, delta, accountant, group)

    return _search(certified, epsilon, delta, linear=accountant == "pure")


@lru_cache(maxsize=64)
def calibrate_family(
    choices: tuple[Releases, ...],
    epsilon: float,
    delta: float,
    accountant: str = "exact",
    group: int = 1,
) -> FamilyNoise:
    """Smallest noise for which one of several plans may be taken once a first release is known.

    All of them have the same mu^2 in total, and the first release takes the same part of it. So it
    has the same noise whichever plan follows.

    Proof: docs/proofs/choice.md
    """
    if not 0.0 < epsilon < math.inf or not 0.0 < delta < 1.0:
        raise ValueError("A choice among plans needs a finite `epsilon` and a `delta` above 0.")
    shares = [asked.released_shares() for asked in choices]
    before = sum(release.decides for release in choices[0].each)
    for asked in choices:
        _check_accountant(asked, accountant)

    def certified(guess: float) -> FamilyNoise:
        total = math.exp(2.0 * guess) / group**2
        plans = [plan_noise(c, share, total) for c, share in zip(choices, shares, strict=True)]
        firsts = {plan.events[:before] for plan in plans}
        if len(firsts) != 1:
            raise BudgetError(
                "The plans of a family must begin with the same release. This is a defect of "
                "xgb_dp: please report it."
            )
        event = ChoiceEvent(firsts.pop(), tuple(plan.events[before:] for plan in plans))
        cost = make_accountant(accountant, [event]).get_epsilon(delta, group)
        return FamilyNoise(
            tuple(replace(plan, epsilon=cost, delta=delta) for plan in plans), event, cost
        )

    return _search(certified, epsilon, delta, below=_BELOW)


def _check_accountant(asked: Releases, accountant: str) -> None:
    """Refuse an accountant that would answer infinity whatever the noise."""
    if accountant not in ACCOUNTANTS:
        raise ValueError(f"`accountant` must be one of {', '.join(ACCOUNTANTS)}.")
    if accountant == "pure" and asked.gaussian:
        raise BudgetError(
            f"{named.dp_accountant}='pure' has no bound for Gaussian noise, which this training "
            "draws. "
            "Use 'exact', or Laplace noise throughout: dp_leaf_noise='laplace' or 'output', public "
            "or Laplace candidates, and a public base_score."
        )
    if accountant not in ("exact", "pure") and asked.sampling_num < 1 << SAMPLE_BITS:
        raise BudgetError(
            f"{named.dp_accountant}={accountant!r} has no bound for `subsample` below 1. Use "
            "'exact'."
        )


def _search(
    certified: Callable[[float], Noise],
    epsilon: float,
    delta: float,
    *,
    linear: bool = False,
    below: float = 0.0,
) -> Noise:
    """Root search for the mu of the group, or its pure epsilon, with its progress."""
    guess = math.log(epsilon if linear or delta == 0.0 else gaussian_mu(epsilon, delta)) + below
    with progress("calibrate") as step:
        return _searched(certified, guess, epsilon, delta, step)


def _searched(
    certified: Callable[[float], Noise], guess: float, epsilon: float, delta: float, step: Step
) -> Noise:
    """Search a log mu; epsilon grows with it, and some mu fits no grid."""
    best: Noise | None = None
    refusal: BudgetError | None = None
    low: tuple[float, float | None] | None = None  # (log mu, log of certified epsilon / target)
    high: tuple[float, float] | None = None
    aim, slope, last = math.log(_AIM), 1.0, (guess - 1.0, -math.inf)
    for attempt in range(60):
        step(f"noise {attempt + 1}")
        try:
            plan = certified(guess)
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
                steepest = _STEEPEST_LOUD if guess > _LOUD else _STEEPEST
                slope = min(max((log_ratio - last[1]) / (guess - last[0]), 0.02), steepest)
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


def _certified(
    asked: Releases,
    shares: Mapping[str, float],
    guess: float,
    delta: float,
    accountant: str,
    group: int = 1,
) -> NoisePlan:
    """The plan for a total of exp(guess), in mu or in pure epsilon, with what a group pays."""
    linear = accountant == "pure"
    total = math.exp(guess) / group  # mu and pure epsilon grow with the group, about
    plan = plan_noise(asked, shares, total if linear else total * total, linear=linear)
    epsilon = make_accountant(accountant, plan.events).get_epsilon(delta, group)
    return replace(plan, epsilon=epsilon, delta=delta)
