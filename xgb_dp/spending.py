"""What each kind of release of a model cost: the budget by mechanism, for reports and plots.

Epsilons of parts do not add up to that of the whole, so a part is told in two ways: by its share of
mu^2, the currency in which the budget was divided (``noise.py``), and by the certified epsilon
that it would have had alone. All of it is computed from the ledger and costs nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from .accounting import (
    Event,
    GaussianEvent,
    LaplaceEvent,
    ParallelEvent,
    SampledEvent,
    SelectionEvent,
    events_from_ledger,
    make_accountant,
)
from .accounting.events import PlainEvent
from .accounting.gaussian import gaussian_mu

__all__ = ["Spending", "spending"]


@dataclass(frozen=True)
class Spending:
    """What the releases of one kind cost, over all trainings of a model.

    Attributes:
        release: "intercept", "candidates", "splits", "histograms", "leaves" or "selection".
        mechanism: Name of the mechanism.
        count: Number of releases.
        noise: The noise of one release in words; of several trainings, of each of them.
        share: Part of mu^2 of the whole; the shares of a model sum to 1.
        epsilon: Certified epsilon of these releases alone, in nats, at the delta asked for.
            Infinite where the mechanism has none at that delta.
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
}
_Leaf: TypeAlias = PlainEvent | SelectionEvent


def spending(ledger: Mapping[str, Any], delta: float) -> list[Spending]:
    """The budget by mechanism.

    Args:
        ledger: A whole ledger, see ``xgb_dp.ledger``.
        delta: Failure probability at which the epsilons of the parts are stated.

    Returns:
        list of Spending: One for each kind of release, in the order of the first of them.
    """
    events = events_from_ledger(ledger)
    kinds = dict.fromkeys((e.release, _kind(e)) for event in events for e in _flat(event))
    costs = {kind: math.fsum(_mu2(event, kind) for event in events) for kind in kinds}
    total = math.fsum(costs.values())
    out = []
    for kind in kinds:
        own = [e for event in events for e in _only(event, kind)]
        plain = [e for event in own for e in _flat(event)]
        out.append(
            Spending(
                release=kind[0],
                mechanism=_NAMES[kind[1]],
                count=sum(_count(event) for event in own),
                noise="; ".join(dict.fromkeys(_noise(e) for e in plain)),
                share=costs[kind] / total if 0.0 < total < math.inf else 0.0,
                epsilon=make_accountant("exact", own).get_epsilon(delta),
            )
        )
    return out


_Kind = tuple[str, str]


def _kind(event: _Leaf) -> str:
    return str(event.to_json()["mechanism"])


def _flat(event: Event) -> tuple[_Leaf, ...]:
    return event.events if isinstance(event, SampledEvent | ParallelEvent) else (event,)


def _only(event: Event, kind: _Kind) -> Iterable[Event]:
    """The event with nothing but the releases of one kind."""
    if isinstance(event, SampledEvent | ParallelEvent):
        own = tuple(e for e in event.events if (e.release, _kind(e)) == kind)
        return (replace(event, events=own),) if own else ()
    return (event,) if (event.release, _kind(event)) == kind else ()


def _count(event: Event) -> int:
    if isinstance(event, SampledEvent | ParallelEvent):
        return event.count * sum(e.count for e in event.events)
    return event.count


def _loudness(event: _Leaf) -> float:
    """mu^2 of one release: see ``noise.py``. Of a selection that of a Gaussian as private."""
    if isinstance(event, SelectionEvent):
        epsilon = make_accountant("exact", [replace(event, count=1)]).get_epsilon(1e-6)
        return gaussian_mu(epsilon, 1e-6) ** 2 if math.isfinite(epsilon) else math.inf
    if isinstance(event, GaussianEvent):
        if not event.sensitivity2:
            return 0.0
        return event.sensitivity2 / event.sigma2 if event.sigma2 else math.inf
    if isinstance(event, LaplaceEvent):
        return event.epsilon**2
    return event.eps0**2 / 4.0


def _mu2(event: Event, kind: _Kind) -> float:
    """mu^2 of the releases of one kind; of a sampled round about q^2 (e^(mu^2) - 1) is left."""
    own = [e.count * _loudness(e) for e in _flat(event) if (e.release, _kind(e)) == kind]
    if isinstance(event, SampledEvent):
        round_mu2 = math.fsum(e.count * _loudness(e) for e in event.events)
        left = math.expm1(min(round_mu2, 700.0)) / round_mu2 if round_mu2 else 0.0
        return event.count * event.rate**2 * left * math.fsum(own)
    return (event.count if isinstance(event, ParallelEvent) else 1) * math.fsum(own)


def _noise(event: _Leaf) -> str:
    if isinstance(event, SelectionEvent):
        score = "; ".join(_noise(leaf) for e in event.score for leaf in _flat(e))
        return f"{event.repetitions.mean:.4g} runs expected; of the score: {score}"
    if isinstance(event, GaussianEvent):
        multiplier = math.sqrt(1.0 / _loudness(event)) if _loudness(event) else math.inf
        return f"noise multiplier {multiplier:.4g}"
    if isinstance(event, LaplaceEvent):
        return f"scale {1.0 / event.epsilon if event.epsilon else math.inf:.4g} sensitivities"
    return f"eps0 {event.eps0:.4g}"
