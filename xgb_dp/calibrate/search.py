"""From (epsilon, delta) to the integers that every sampler is given, always on the safe side.

The scale of the plan (``noise.py``) is searched on the certified epsilon of the very integers
that the trainer will use, so no approximation enters the guarantee.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache

from ..accounting import ACCOUNTANTS, Event, GaussianEvent, make_accountant
from ..accounting.gaussian import gaussian_mu
from ..errors import BudgetError
from .mechanisms import SAMPLE_BITS, MechanismSpec, NoisePlan
from .noise import plan_noise

__all__ = ["calibrate"]

_LOWEST, _AIM, _HIGHEST = 0.998, 0.9994, 1.0  # certified epsilon / target


@lru_cache(maxsize=256)
def calibrate(
    spec: MechanismSpec, epsilon: float, delta: float, accountant: str = "exact"
) -> NoisePlan:
    """Smallest noise whose certified epsilon at `delta` is at most `epsilon`.

    A function of public numbers only, so what it has found before it answers from memory: many
    trainings with the same parameters are calibrated once.

    Args:
        spec: What is released.
        epsilon: Target in nats, > 0; infinite for a plan without noise.
        delta: In (0, 1); 0 too where no noise is Gaussian.
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
        return NoisePlan.without_noise(spec, math.inf, delta)
    _check_accountant(spec, accountant)
    if delta == 0.0 and spec.gaussian:
        raise ValueError(
            "`delta` is 0, but Gaussian noise is drawn, which has no finite epsilon at delta=0. "
            "Give a delta well below 1/rows, e.g. 1e-6."
        )
    if not 0.0 <= delta < 1.0:
        raise ValueError("`delta` must be at least 0 and below 1.")
    shares = spec.released_shares()
    if not shares:
        return NoisePlan.without_noise(spec, 0.0, delta)
    return _search(spec, shares, epsilon, delta, accountant)


def _check_accountant(spec: MechanismSpec, accountant: str) -> None:
    """Refuse an accountant that would answer infinity whatever the noise."""
    if accountant not in ACCOUNTANTS:
        raise ValueError(f"`accountant` must be one of {', '.join(ACCOUNTANTS)}.")
    if accountant == "pure" and spec.gaussian:
        raise BudgetError(
            "`dp_accountant`='pure' has no bound for Gaussian noise, which this training draws. "
            "Use 'exact', or Laplace noise throughout: dp_leaf_noise='laplace' or 'output', public "
            "or Laplace candidates, and a public base_score."
        )
    if accountant not in ("exact", "pure") and spec.sampling_num < 1 << SAMPLE_BITS:
        raise BudgetError(
            f"`dp_accountant`={accountant!r} has no bound for `subsample` below 1. Use 'exact'."
        )


def _search(
    spec: MechanismSpec,
    shares: Mapping[str, float],
    epsilon: float,
    delta: float,
    accountant: str,
) -> NoisePlan:
    """Root search for the total mu: epsilon grows with it, and below some mu noise fits no grid."""
    best: NoisePlan | None = None
    refusal: BudgetError | None = None
    low: tuple[float, float | None] | None = None  # (log mu, log of certified epsilon / target)
    high: tuple[float, float] | None = None
    linear = accountant == "pure"
    guess = math.log(epsilon if linear or delta == 0.0 else gaussian_mu(epsilon, delta))
    aim, slope, last = math.log(_AIM), 1.0, (guess - 1.0, -math.inf)
    for attempt in range(60):
        try:
            plan = _certified(spec, shares, guess, delta, accountant)
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


def _certified(
    spec: MechanismSpec, shares: Mapping[str, float], guess: float, delta: float, accountant: str
) -> NoisePlan:
    """The plan for a total of exp(guess), in mu or in pure epsilon, with what it costs."""
    linear = accountant == "pure"
    plan = plan_noise(spec, shares, math.exp(guess if linear else 2.0 * guess), linear=linear)
    events: list[Event] = list(plan.events)
    if spec.local_rows:  # the target is that of one row's report
        if not all(isinstance(e, GaussianEvent) and e.release == "leaves" for e in events):
            raise BudgetError("Local reports hold noisy leaf sums and nothing else.")
        # Any two rows may report: the sums of two leaves differ.
        events = [
            replace(
                e,
                sensitivity2=e.sensitivity2 * spec.local_factor,
                coordinates=2 * e.coordinates,
            )
            for e in events
            if isinstance(e, GaussianEvent)
        ]
    epsilon = make_accountant(accountant, events).get_epsilon(delta)
    return replace(plan, epsilon=epsilon, delta=delta)
