"""What reports and ledgers ask about events, besides their cost. Nothing here bounds anything."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from functools import singledispatch

from .events import Event, ExponentialEvent, GaussianEvent, LaplaceEvent, ThresholdEvent
from .exact import ExactAccountant
from .gaussian import gaussian_mu
from .nested import ChoiceEvent, RoundsEvent, SelectionEvent


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
    return factor_of_mu2(event) * mu2_of(inner)


def mu2_of(events: Iterable[Event]) -> float:
    """About mu^2 of all these releases."""
    return math.fsum(event.count * _mu2(event) for event in events)


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
        ways = ([factor_of_mu2(e) * mu2_of(inner_events(e)) for e in way] for way in event.ways)
        return max(map(math.fsum, ways))
    if isinstance(event, SelectionEvent):  # of a Gaussian that is as private
        epsilon = ExactAccountant([replace(event, count=1)]).get_epsilon(1e-6)
        return gaussian_mu(epsilon, 1e-6) ** 2 if math.isfinite(epsilon) else math.inf
    return 0.0  # thresholds cost no mu


@singledispatch
def factor_of_mu2(event: Event) -> float:
    """About the factor by which the event multiplies mu^2 of all that it consists of."""
    return float(event.count) if isinstance(event, RoundsEvent) else 1.0


COVERED_BY_MORE: dict[type[Event], tuple[str, ...]] = {
    GaussianEvent: ("sensitivity2", "coordinates"),
    ExponentialEvent: ("eps_num",),
    LaplaceEvent: ("sensitivity",),
}
"""Fields of which an event with more costs at least as much. All other fields must be the same."""


def is_within(event: Event, limit: Event) -> bool:
    """Whether the event costs no more than another one with the same noise."""
    same = [(e.mechanism, e.label, e.unit) for e in (event, limit)]
    if same[0] != same[1] or event.count > limit.count:
        return False
    return all(_is_covered(event, limit, name) for name in event._names() if name != "count")


def _is_covered(event: Event, limit: Event, name: str) -> bool:
    value, most = getattr(event, name), getattr(limit, name)
    if name in COVERED_BY_MORE.get(type(event), ()):
        return bool(value <= most)
    if name == "threshold":  # below a lower one more cells are shown
        return bool(value >= most)
    if name == "events":
        return len(value) == len(most) and all(map(is_within, value, most))
    return bool(value == most)
