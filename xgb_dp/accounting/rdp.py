"""Rényi differential privacy: each mechanism has a curve over orders, and the curves add up.

Selections have the curve of bounded range (Dong, Durfee and Rogers 2020; theorem 1 of the DP-XGB
paper), and Gaussian sums have that of their noise. Proof: docs/proofs/accounting.md, "Rényi".
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from .accountant import Accountant
from .choice import ChoiceEvent
from .events import Event
from .plain import ExponentialEvent, GaussianEvent, LaplacePair
from .rounds import AllocatedEvent, Mixture, SampledEvent
from .selection import SelectionEvent

__all__ = ["RDPAccountant", "bounded_range_rdp"]

# One grid for every query: a smallest over a fixed set is monotone in all that the curves are.
_ORDERS = 1.0 + np.logspace(-3.0, 7.0, 4001)
_UP = 1.0 + 1e-12

Array = npt.NDArray[np.float64]


def bounded_range_rdp(eps0: float, orders: Array) -> Array:
    """Rényi divergence of a selection of bounded range.

    It is the largest over pairs of distributions whose loss is in an interval of length eps0. The
    worst pair has a loss of two values, and the upper one is t with e^t = (a - 1) A / (a B).

    Args:
        eps0: Range in nats, > 0.
        orders: Orders a > 1.

    Returns:
        An upper bound for each order, at most eps0 and at most a eps0^2 / 8.
    """
    a = orders
    log_whole = np.log(-np.expm1(-a * eps0))  # log A, A = 1 - e^{-a eps0}
    log_b = -eps0 + np.log(-np.expm1(-(a - 1.0) * eps0))  # log B
    t = np.log((a - 1.0) / a) + log_whole - log_b
    value = t + (log_whole - np.log(a) - math.log(-math.expm1(-eps0))) / (a - 1.0)
    # Differences of numbers of about these sizes; the rounding counts upwards.
    size = np.abs(t) + eps0 + np.abs(np.log(a)) + np.abs(log_whole) + abs(math.log(eps0)) + 1.0
    value = value + 1e-15 * size * (1.0 + 1.0 / (a - 1.0))
    return np.minimum(np.minimum(value, eps0), a * eps0 * eps0 / 8.0) * _UP


class RDPAccountant(Accountant):
    """(epsilon, delta) by Rényi divergences of all orders.

    Source of the conversion: Canonne, Kamath and Steinke (2020), proposition 12.

    Args:
        events: In any order. With sampled rounds, which have no curve here, the answer is infinite.

    Examples:
        >>> from xgb_dp.accounting.plain import GaussianEvent
        >>> event = GaussianEvent("leaves", sensitivity2=1, sigma2=400, coordinates=1, count=10)
        >>> accountant = xgb_dp.accounting.RDPAccountant([event])
        >>> round(accountant.get_epsilon(1e-6), 2)
        0.7
    """

    def __init__(self, events: Sequence[Event]) -> None:
        self._events = tuple(events)
        composed = (SelectionEvent.mechanism, ChoiceEvent.mechanism)
        Mixture.of(e for e in events if e.mechanism not in composed)
        self._curves: dict[int, Array] = {}

    def _epsilon(self, delta: float, group: int) -> float:
        curve = self._curve(group)
        if delta >= 1.0 or not curve.any():
            return 0.0
        if delta == 0.0:
            return math.inf
        a = _ORDERS
        values = curve + np.log((a - 1.0) / a) - (math.log(delta) + np.log(a)) / (a - 1.0)
        return max(0.0, float(np.min(values + 1e-13 * (1.0 + np.abs(values)))))

    def _delta(self, epsilon: float, group: int) -> float:
        curve = self._curve(group)
        if not curve.any() or math.isinf(epsilon):
            return 0.0
        a = _ORDERS
        with np.errstate(invalid="ignore"):
            log_delta = (a - 1.0) * (curve - epsilon) - np.log(a - 1.0) + a * np.log1p(-1.0 / a)
            log_delta += 1e-13 * (1.0 + (a - 1.0) * (curve + epsilon))
        best = float(np.min(np.where(np.isnan(log_delta), np.inf, log_delta)))
        return min(1.0, math.exp(min(best, 0.0)) * _UP)

    def _curve(self, group: int) -> Array:
        if group not in self._curves:
            self._curves[group] = self._sum(group)
        return self._curves[group]

    def _sum(self, group: int) -> Array:
        total = np.zeros_like(_ORDERS)
        for event in self._events:
            if event.count:
                total += _CURVES[event.mechanism](event, group)
        return total


def _gaussian_rdp(event: GaussianEvent, group: int) -> Array:
    if not event.sensitivity2:
        return np.zeros_like(_ORDERS)
    if not event.sigma2:
        return np.full_like(_ORDERS, math.inf)
    rho = event.count * group**2 * event.sensitivity2 / event.sigma2 / 2.0
    return _ORDERS * rho * _UP


def _exponential_rdp(event: ExponentialEvent, group: int) -> Array:
    if not event.eps_num:
        return np.zeros_like(_ORDERS)
    return event.count * bounded_range_rdp(group * event.eps0, _ORDERS)


def _laplace_rdp(event: LaplacePair, group: int) -> Array:
    """Rényi divergence of continuous Laplace noise.

    Source: Mironov (2017), proposition 6.
    """
    if not event.eps_num:
        return np.zeros_like(_ORDERS)
    epsilon, a = event.size(group), _ORDERS
    log_value = np.logaddexp(
        np.log(a / (2.0 * a - 1.0)) + (a - 1.0) * epsilon,
        np.log((a - 1.0) / (2.0 * a - 1.0)) - a * epsilon,
    )
    rounding = 4e-16 * (4.0 + np.abs(np.log(a - 1.0)) + a * epsilon)
    value = (log_value + rounding) / (a - 1.0)
    return event.count * np.asarray(np.minimum(value, epsilon) * _UP)


def _sampled_rdp(event: SampledEvent | AllocatedEvent, group: int) -> Array:
    del event, group
    return np.full_like(_ORDERS, math.inf)


def _selection_rdp(event: SelectionEvent, group: int) -> Array:
    """Rényi divergence of the best of a random number of runs.

    Source: Papernot and Steinke (2022), theorem 2, for the truncated negative binomial law. There
    is no curve for Poisson repetitions here.
    """
    law = event.repetitions
    if law.family == "poisson":
        return np.full_like(_ORDERS, math.inf)
    curves = [RDPAccountant(part)._curve(group) for part in event.parts(group)]
    run = np.max(curves, axis=0)
    a = _ORDERS
    raised = float(np.min((1.0 - 1.0 / a) * run - math.log(law.rate) / a))
    value = run + (1.0 + law.shape) * raised + math.log(law.mean) / (a - 1.0)
    return event.count * np.asarray(value * _UP + 1e-13)


def _choice_rdp(event: ChoiceEvent, group: int) -> Array:
    """Rényi divergence of a choice: at each order that of the first release and the worst plan.

    Proof: docs/proofs/choice.md
    """
    plans = [RDPAccountant(way)._curve(group) for way in event.ways]
    return event.count * np.max(plans, axis=0) * _UP


_CURVES: dict[str, Callable[[Any, int], Array]] = {
    GaussianEvent.mechanism: _gaussian_rdp,
    ExponentialEvent.mechanism: _exponential_rdp,
    LaplacePair.mechanism: _laplace_rdp,
    AllocatedEvent.mechanism: _sampled_rdp,
    SampledEvent.mechanism: _sampled_rdp,
    SelectionEvent.mechanism: _selection_rdp,
    ChoiceEvent.mechanism: _choice_rdp,
}
