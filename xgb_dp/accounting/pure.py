"""Pure differential privacy: the epsilons of all releases add up.

Proof: docs/proofs/accounting.md, "Pure ε". Source: Dwork and Roth (2014), theorem 3.16.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import singledispatch

from .accountant import Accountant
from .curve import Curve
from .events import (
    ChoiceEvent,
    Event,
    ExponentialEvent,
    GaussianEvent,
    LaplaceEvent,
    SelectionEvent,
    ThresholdEvent,
)
from .simplify import Neighbours, parts_of_run


class PureCurve(Curve):
    """The curve of pure epsilon-differential privacy; an infinite epsilon means no bound."""

    def __init__(self, epsilon: float) -> None:
        self._epsilon = epsilon

    def epsilon(self, delta: float) -> float:
        """See :class:`Curve`."""
        return self._epsilon

    def delta(self, epsilon: float) -> float:
        """See :class:`Curve`."""
        return 0.0 if epsilon >= self._epsilon else 1.0


def pure_curve(events: Sequence[Event], rows: int) -> PureCurve:
    """The curve of basic composition. Group privacy multiplies epsilon by the number of rows."""
    return PureCurve(rows * pure_sum(events) * (1.0 + 1e-14))


def pure_sum(events: Iterable[Event]) -> float:
    """Pure epsilon of these events for one row, in nats; infinite if there is no bound."""
    return math.fsum(pure_of(event) if event.count else 0.0 for event in events)


@singledispatch
def pure_of(event: Event) -> float:
    """Pure epsilon of an event with count > 0. Modules that define other kinds register them."""
    if isinstance(event, GaussianEvent):
        return math.inf if event.sensitivity2 else 0.0
    if isinstance(event, ThresholdEvent):
        return math.inf
    if isinstance(event, ExponentialEvent):
        return event.count * event.eps0
    if isinstance(event, LaplaceEvent):
        return event.count * event.epsilon * (1.0 + 1e-15)
    if isinstance(event, ChoiceEvent):
        return event.count * max(map(pure_sum, event.ways)) * (1.0 + 1e-14)
    if isinstance(event, SelectionEvent):
        return event.count * _best_run(event) * (1.0 + 1e-13)
    raise TypeError(f"Accountants have no privacy loss for events of type {type(event).__name__}.")


def _best_run(event: SelectionEvent) -> float:
    """Pure epsilon of the best of a random number of runs: docs/proofs/selection.md."""
    run, distribution = max(map(pure_sum, parts_of_run(event, 1))), event.repetitions
    if distribution.family == "poisson":
        return run - distribution.rate * math.expm1(-run)
    return (2.0 + distribution.shape) * run


class PureAccountant(Accountant):
    """(epsilon, 0) of a list of events by basic composition.

    A selection of range eps0 is eps0-private, and so is Laplace noise of scale sensitivity / eps0.
    Rounds on disjoint parts cost as much as one round (parallel composition). A round on a Poisson
    sample of rate q costs log(1 + q (e^eps - 1)) (docs/proofs/sampling.md).

    Args:
        events: In any order.

    Examples:
        >>> from xgb_dp.accounting import LaplaceEvent
        >>> event = LaplaceEvent("leaves", sensitivity=1, scale=20, count=10)
        >>> round(xgb_dp.accounting.PureAccountant([event]).get_epsilon(0.0), 6)
        0.5
    """

    name = "pure"

    def get_epsilon(
        self, delta: float = 0.0, group_size: int = 1, *, replaced: bool = False
    ) -> float:
        """Epsilon, which does not depend on delta and is infinite with Gaussian noise."""
        return super().get_epsilon(delta, group_size, replaced=replaced)

    def _composed(self, events: Sequence[Event], neighbours: Neighbours) -> Curve:
        return pure_curve(events, neighbours.rows)
