"""Pure differential privacy: the epsilons of all releases add up.

Proof: docs/proofs/accounting.md, "Pure ε". Source: Dwork and Roth (2014), theorem 3.16.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from .curve import Curve
from .events import Event, ExponentialEvent, GaussianEvent, LaplaceEvent, ThresholdEvent
from .rounds import ChoiceEvent, ParallelEvent, SampledEvent, SelectionEvent
from .simplify import parts_of_run

__all__ = ["PureCurve", "pure_curve", "pure_epsilon"]


class PureCurve(Curve):
    """What is epsilon-private at delta 0; for an infinite epsilon, what has no bound at all."""

    def __init__(self, epsilon: float) -> None:
        self._epsilon = epsilon

    def epsilon(self, delta: float) -> float:
        """See :class:`Curve`."""
        return self._epsilon

    def delta(self, epsilon: float) -> float:
        """See :class:`Curve`."""
        return 0.0 if epsilon >= self._epsilon else 1.0


def pure_curve(events: Sequence[Event], rows: int) -> PureCurve:
    """The curve of basic composition. k rows cost k times as much, as k steps of one row each."""
    return PureCurve(rows * math.fsum(map(pure_epsilon, events)) * (1.0 + 1e-14))


def pure_epsilon(event: Event) -> float:
    """Pure epsilon of a whole event for one row, in nats; infinite if there is none."""
    if not event.count:
        return 0.0
    if isinstance(event, GaussianEvent):
        return math.inf if event.sensitivity2 else 0.0
    if isinstance(event, ThresholdEvent):
        return math.inf
    if isinstance(event, ExponentialEvent):
        return event.count * event.eps0
    if isinstance(event, LaplaceEvent):
        return event.count * event.epsilon * (1.0 + 1e-15)
    if isinstance(event, SampledEvent):
        return event.count * _sampled(event.rate, _sum(event.events)) * (1.0 + 1e-13)
    if isinstance(event, ParallelEvent):  # what one row sees of an ensemble, once
        return event.count * _sum(event.events)
    if isinstance(event, ChoiceEvent):
        return event.count * max(map(_sum, event.ways)) * (1.0 + 1e-14)
    if isinstance(event, SelectionEvent):
        return event.count * _best_run(event) * (1.0 + 1e-13)
    raise TypeError(f"Accountants do not know what the event {type(event).__name__} costs.")


def _sum(events: Iterable[Event]) -> float:
    return math.fsum(map(pure_epsilon, events))


def _sampled(rate: float, inner: float) -> float:
    """A round that reads a Poisson sample costs log(1 + q (e^eps - 1))."""
    if inner < 30.0:
        return math.log1p(rate * math.expm1(inner))
    # The same, where e^inner may overflow.
    return inner + math.log(rate + (1.0 - rate) * math.exp(-inner))


def _best_run(event: SelectionEvent) -> float:
    """What the best of a random number of runs costs: docs/proofs/selection.md."""
    run, law = max(map(_sum, parts_of_run(event, 1))), event.repetitions
    if law.family == "poisson":
        return run - law.rate * math.expm1(-run)
    return (2.0 + law.shape) * run
