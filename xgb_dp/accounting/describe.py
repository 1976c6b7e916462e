"""What reports and ledgers ask about events, besides their cost. Nothing here bounds anything."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from .events import Event, ExponentialEvent, GaussianEvent, LaplaceEvent, ThresholdEvent
from .exact import ExactAccountant
from .gaussian import gaussian_mu
from .rounds import (
    AllocatedEvent,
    ChoiceEvent,
    ParallelEvent,
    RoundsEvent,
    SampledEvent,
    SelectionEvent,
)

__all__ = ["inner_events", "is_within", "mu2_of_kind", "noise_in_words", "of_kind", "squared_parts"]


def inner_events(event: Event) -> tuple[Event, ...]:
    """The releases that the event consists of: itself, or those of one round."""
    return event.events if isinstance(event, RoundsEvent) else (event,)


def of_kind(events: Iterable[Event], kind: tuple[str, str]) -> list[Event]:
    """The events with the releases of one kind only, (label, mechanism)."""
    out: list[Event] = []
    for event in events:
        kept = tuple(e for e in inner_events(event) if (e.label, e.mechanism) == kind)
        if kept:
            rounds = isinstance(event, RoundsEvent)
            out.append(replace(event, events=kept) if rounds else event)  # type: ignore[type-var]
    return out


def noise_in_words(event: Event) -> str:
    """The noise of one release."""
    if isinstance(event, GaussianEvent):
        mu2 = _mu2(event)
        return f"noise multiplier {math.sqrt(1.0 / mu2) if mu2 else math.inf:.4g}"
    if isinstance(event, ExponentialEvent):
        return f"eps0 {event.eps0:.4g}"
    if isinstance(event, LaplaceEvent):
        epsilon = event.epsilon
        return f"scale {1.0 / epsilon if epsilon else math.inf:.4g} sensitivities"
    if isinstance(event, ThresholdEvent):
        return f"shown from {event.threshold / event.sensitivity:.4g} on"
    if isinstance(event, ChoiceEvent):
        return f"one of {len(event.options)} plans"
    if isinstance(event, SelectionEvent):
        score = "; ".join(noise_in_words(e) for part in event.score for e in inner_events(part))
        return f"{event.repetitions.mean:.4g} runs expected; of the score: {score}"
    raise TypeError(f"The noise of {type(event).__name__} is that of its releases.")


def mu2_of_kind(event: Event, kind: tuple[str, str]) -> float:
    """About mu^2 of the releases of one kind, in which budgets are divided."""
    inner = [e for e in inner_events(event) if (e.label, e.mechanism) == kind]
    return _kept(event) * math.fsum(e.count * _mu2(e) for e in inner)


def _mu2(event: Event) -> float:
    """About mu^2 of one such release."""
    if isinstance(event, GaussianEvent):
        if not event.sensitivity2:
            return 0.0
        return event.sensitivity2 / event.sigma2 if event.sigma2 else math.inf
    if isinstance(event, ExponentialEvent):
        return event.eps0**2 / 4.0
    if isinstance(event, LaplaceEvent):
        return event.epsilon**2
    if isinstance(event, ChoiceEvent):
        return max(math.fsum(_kept(e) * _sum_mu2(inner_events(e)) for e in w) for w in event.ways)
    if isinstance(event, SelectionEvent):  # of a Gaussian that is as private
        epsilon = ExactAccountant([replace(event, count=1)]).get_epsilon(1e-6)
        return gaussian_mu(epsilon, 1e-6) ** 2 if math.isfinite(epsilon) else math.inf
    return 0.0  # thresholds cost no mu


def _sum_mu2(events: Sequence[Event]) -> float:
    return math.fsum(e.count * _mu2(e) for e in events)


def _kept(event: Event) -> float:
    """About the factor by which the event multiplies mu^2 of all that it consists of."""
    if not isinstance(event, (SampledEvent, AllocatedEvent)):
        return float(event.count) if isinstance(event, RoundsEvent) else 1.0
    mu2 = _sum_mu2(event.events)
    left = math.expm1(min(mu2, 700.0)) / mu2 if mu2 else 0.0
    if isinstance(event, SampledEvent):  # about q^2 (e^(mu^2) - 1) is left of a round
        return event.count * event.rate**2 * left
    return event.count * min(1.0, squared_parts(event.parts, halving=event.halving) * left)


def squared_parts(parts: int, *, halving: bool) -> float:
    """Sum of the squares of the parts of an ensemble, each as a share of the whole."""
    if not halving:
        return 1.0 / parts
    last = 0.25 ** (parts - 1)
    return (1.0 - last) / 3.0 + last


def is_within(event: Event, limit: Event) -> bool:
    """Whether the event costs no more than another one with the same noise."""
    same = [(e.mechanism, e.label, e.unit) for e in (event, limit)]
    return same[0] == same[1] and event.count <= limit.count and _is_covered(event, limit)


def _is_covered(event: Event, limit: Any) -> bool:
    """Whether a single event costs no more than a single `limit`, both of one kind."""
    if isinstance(event, GaussianEvent):
        return (
            event.sigma2 == limit.sigma2
            and event.sensitivity2 <= limit.sensitivity2
            and event.coordinates <= limit.coordinates
        )
    if isinstance(event, ExponentialEvent):
        return event.eps_bits == limit.eps_bits and event.eps_num <= limit.eps_num
    if isinstance(event, LaplaceEvent):
        return event.scale == limit.scale and event.sensitivity <= limit.sensitivity
    if isinstance(event, ThresholdEvent):
        same = (event.sigma2, event.sensitivity) == (limit.sigma2, limit.sensitivity)
        return same and event.threshold >= limit.threshold
    if not isinstance(event, RoundsEvent):
        return bool(replace(event, count=0) == replace(limit, count=0))  # type: ignore[type-var]
    if isinstance(event, SampledEvent):
        same = event.rate_bits == limit.rate_bits and event.rate_num <= limit.rate_num
    elif isinstance(event, AllocatedEvent):  # more parts hide more of one row, and less of several
        same = event.parts == limit.parts and event.halving == limit.halving
    else:
        same = isinstance(event, ParallelEvent) and event.parts <= limit.parts
    return (
        same
        and len(event.events) == len(limit.events)
        and all(is_within(e, most) for e, most in zip(event.events, limit.events, strict=True))
    )
