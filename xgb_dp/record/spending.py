"""Privacy cost of each kind of release of a model, for reports and plots.

The epsilons of the parts do not add up to the total. Each part therefore has two figures: its share
of mu^2, the unit in which calibration divides the budget (``calibrate.py``), and the certified
epsilon of this part alone. Both are free post-processing of the ledger.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from ..accounting import (
    ChoiceEvent,
    Event,
    ExponentialEvent,
    GaussianEvent,
    LaplaceEvent,
    SelectionEvent,
    ThresholdEvent,
    make_accountant,
)
from ..accounting.events import RoundsEvent, release_counts
from ..accounting.gaussian import gaussian_mu


@dataclass(frozen=True)
class Spending:
    """Privacy cost of one kind of release, over all trainings of a model.

    Attributes:
        release: "intercept", "rows", "candidates", "splits", "histograms", "leaves" or "selection".
        mechanism: Name of the mechanism.
        count: Number of releases.
        noise: Description of the noise of one release; for several trainings, one description
            per training.
        share: Share of the total mu^2 of the model; the shares sum to 1.
        epsilon: Certified epsilon of these releases alone, in nats, at the chosen delta; infinite
            if the mechanism has no finite epsilon at that delta.

    Examples:
        >>> for spending in xgb_dp.privacy_report(model).spending():
        ...     print(spending.release, spending.mechanism)
        intercept discrete Gaussian noise
        candidates discrete Gaussian noise
        leaves discrete Gaussian noise
        splits exponential mechanism
    """

    release: str
    mechanism: str
    count: int
    noise: str
    share: float
    epsilon: float


_NAMES = {
    "gaussian": "discrete Gaussian noise",
    "laplace": "discrete Laplace noise",
    "exponential": "exponential mechanism",
    "selection": "best of a random number of runs",
    "choice": "choice among several plans",
    "threshold": "threshold on noisy counts",
}


def spending(events: Sequence[Event], delta: float, group_size: int = 1) -> list[Spending]:
    """Compute the privacy cost of each kind of release."""
    kinds = dict.fromkeys((e.label, e.mechanism) for event in events for e in _inner(event))
    costs = {kind: math.fsum(mu2_of_kind(event, kind) for event in events) for kind in kinds}
    total = math.fsum(costs.values())
    parts = []
    for kind, cost in costs.items():
        alone = _of_kind(events, kind)
        descriptions = dict.fromkeys(_describe_noise(e) for event in alone for e in _inner(event))
        parts.append(
            Spending(
                release=kind[0],
                mechanism=_NAMES[kind[1]],
                count=release_counts(alone)[kind[0]],
                noise="; ".join(descriptions),
                share=cost / total if 0.0 < total < math.inf else 0.0,
                epsilon=make_accountant("exact", alone).get_epsilon(delta, group_size),
            )
        )
    return parts


def _inner(event: Event) -> tuple[Event, ...]:
    """The event itself, or the events of one round."""
    return event.events if isinstance(event, RoundsEvent) else (event,)


def _of_kind(events: Iterable[Event], kind: tuple[str, str]) -> list[Event]:
    """Reduce the events to releases of one kind, a pair (label, mechanism)."""
    out: list[Event] = []
    for event in events:
        kept = tuple(e for e in _inner(event) if (e.label, e.mechanism) == kind)
        if kept:
            rounds = isinstance(event, RoundsEvent)
            out.append(replace(event, events=kept) if rounds else event)  # type: ignore[type-var]
    return out


def _describe_noise(event: Event) -> str:
    """Describe the noise of one release."""
    if isinstance(event, GaussianEvent):
        mu2 = _mu2(event)
        return f"noise multiplier {math.sqrt(1.0 / mu2) if mu2 else math.inf:.4g}"
    if isinstance(event, ExponentialEvent):
        return f"eps0 {event.eps0:.4g}"
    if isinstance(event, LaplaceEvent):
        epsilon = event.epsilon
        return f"scale {1.0 / epsilon if epsilon else math.inf:.4g} times the sensitivity"
    if isinstance(event, ThresholdEvent):
        return f"published if the noisy count is at least {event.threshold / event.sensitivity:.4g}"
    if isinstance(event, ChoiceEvent):
        return f"one of {len(event.options)} plans"
    if isinstance(event, SelectionEvent):
        score = "; ".join(_describe_noise(e) for part in event.score for e in _inner(part))
        return f"{event.repetitions.mean:.4g} expected runs; noise of the score: {score}"
    raise TypeError(f"{type(event).__name__} has no noise of its own; pass its inner events.")


def mu2_of_kind(event: Event, kind: tuple[str, str]) -> float:
    """Approximate mu^2 of the releases of one kind."""
    inner = [e for e in _inner(event) if (e.label, e.mechanism) == kind]
    return _factor(event) * _mu2_of(inner)


def _mu2_of(events: Iterable[Event]) -> float:
    """Approximate mu^2 of all these releases."""
    return math.fsum(event.count * _mu2(event) for event in events)


def _mu2(event: Event) -> float:
    """Approximate mu^2 of one release."""
    if isinstance(event, GaussianEvent):
        if not event.sensitivity2:
            return 0.0
        return event.sensitivity2 / event.sigma2 if event.sigma2 else math.inf
    if isinstance(event, ExponentialEvent):
        return event.eps0**2 / 4.0
    if isinstance(event, LaplaceEvent):
        return event.epsilon**2
    if isinstance(event, ChoiceEvent):
        ways = ([_factor(e) * _mu2_of(_inner(e)) for e in way] for way in event.ways)
        return max(map(math.fsum, ways))
    if isinstance(event, SelectionEvent):  # the Gaussian mechanism with the same epsilon
        epsilon = make_accountant("exact", [replace(event, count=1)]).get_epsilon(1e-6)
        return gaussian_mu(epsilon, 1e-6) ** 2 if math.isfinite(epsilon) else math.inf
    return 0.0  # a threshold costs only delta


def _factor(event: Event) -> float:
    """Approximate ratio of the mu^2 of an event to the mu^2 of its inner events."""
    return event.factor_of_mu2(_mu2_of(event.events)) if isinstance(event, RoundsEvent) else 1.0
