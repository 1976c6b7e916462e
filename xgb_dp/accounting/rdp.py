"""Rényi differential privacy: each mechanism has a curve over orders, and the curves add up.

Selections have the curve of bounded range (Dong, Durfee and Rogers 2020; theorem 1 of the DP-XGB
paper), and Gaussian sums have that of their noise. Proof: docs/proofs/accounting.md, "Rényi".
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from .curve import Curve
from .events import GaussianEvent
from .simplify import BoundedRange, Choice, PrivateSelection, Terms

__all__ = ["RDPCurve", "bounded_range_rdp"]

# One grid for every query: a smallest over a fixed set is monotone in all that the curves are.
_ORDERS = 1.0 + np.logspace(-3.0, 7.0, 4001)
_NOTHING = np.zeros_like(_ORDERS)
_UP = 1.0 + 1e-12

Array = npt.NDArray[np.float64]


def bounded_range_rdp(eps0: float, orders: Array) -> Array:
    """Rényi divergence of a selection of bounded range.

    It is the largest over pairs of distributions whose loss is in an interval of length eps0. The
    worst pair has a loss of two values, and the upper one is t with e^t = (a - 1) A / (a B).
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


class RDPCurve(Curve):
    """(epsilon, delta) by Rényi divergences of all orders; infinite with sampled rounds.

    Source of the conversion: Canonne, Kamath and Steinke (2020), proposition 12.
    """

    def __init__(self, terms: Terms, rows: int) -> None:
        self._terms, self._rows = terms, rows

    @cached_property
    def divergences(self) -> Array:
        """The sum of the divergences of all releases at each order."""
        total = np.zeros_like(_ORDERS)
        for term in self._terms.listed:
            total += _divergences(term, self._rows)
        return total

    def epsilon(self, delta: float) -> float:
        """See :class:`Curve`."""
        if delta >= 1.0 or not self.divergences.any():
            return 0.0
        if delta == 0.0:
            return math.inf
        a = _ORDERS
        values = (
            self.divergences + np.log((a - 1.0) / a) - (math.log(delta) + np.log(a)) / (a - 1.0)
        )
        return max(0.0, float(np.min(values + 1e-13 * (1.0 + np.abs(values)))))

    def delta(self, epsilon: float) -> float:
        """See :class:`Curve`."""
        curve, a = self.divergences, _ORDERS
        if not curve.any() or math.isinf(epsilon):
            return 0.0
        with np.errstate(invalid="ignore"):
            log_delta = (a - 1.0) * (curve - epsilon) - np.log(a - 1.0) + a * np.log1p(-1.0 / a)
            log_delta += 1e-13 * (1.0 + (a - 1.0) * (curve + epsilon))
        best = float(np.min(np.where(np.isnan(log_delta), np.inf, log_delta)))
        return min(1.0, math.exp(min(best, 0.0)) * _UP)


def _divergences(term: Any, rows: int) -> Array:
    """Of one term, at each order."""
    if isinstance(term, GaussianEvent):
        return _gaussian(term, rows)
    if isinstance(term, BoundedRange):
        return _range(term, rows)
    if isinstance(term, Choice):  # docs/proofs/choice.md: at each order the worst plan
        plans = [RDPCurve(way, rows).divergences for way in term.ways]
        return np.asarray(term.count * np.max(plans, axis=0) * _UP) if term.count else _NOTHING
    if isinstance(term, PrivateSelection):
        return _selection(term, rows)
    return np.full_like(_ORDERS, math.inf) if term.event.count else _NOTHING  # sampled rounds


def _gaussian(event: GaussianEvent, rows: int) -> Array:
    if not event.count or not event.sensitivity2:
        return _NOTHING
    if not event.sigma2:
        return np.full_like(_ORDERS, math.inf)
    rho = event.count * rows**2 * event.sensitivity2 / event.sigma2 / 2.0
    return _ORDERS * rho * _UP


def _range(term: BoundedRange, rows: int) -> Array:
    if not term.count or not term.eps0:
        return _NOTHING
    one = _laplace(term, rows) if term.scale else bounded_range_rdp(rows * term.eps0, _ORDERS)
    return np.asarray(term.count * one)


def _laplace(term: BoundedRange, rows: int) -> Array:
    """Of continuous Laplace noise. Source: Mironov (2017), proposition 6."""
    epsilon, a = term.laplace_epsilon(rows), _ORDERS
    log_value = np.logaddexp(
        np.log(a / (2.0 * a - 1.0)) + (a - 1.0) * epsilon,
        np.log((a - 1.0) / (2.0 * a - 1.0)) - a * epsilon,
    )
    rounding = 4e-16 * (4.0 + np.abs(np.log(a - 1.0)) + a * epsilon)
    value = (log_value + rounding) / (a - 1.0)
    return np.asarray(np.minimum(value, epsilon) * _UP)


def _selection(term: PrivateSelection, rows: int) -> Array:
    """Of the best of a random number of runs.

    Source: Papernot and Steinke (2022), theorem 2, for the truncated negative binomial law. There
    is no curve for Poisson repetitions here.
    """
    law, count = term.event.repetitions, term.event.count
    if not count:
        return _NOTHING
    if law.family == "poisson":
        return np.full_like(_ORDERS, math.inf)
    run = np.max([RDPCurve(part, rows).divergences for part in term.runs], axis=0)
    a = _ORDERS
    raised = float(np.min((1.0 - 1.0 / a) * run - math.log(law.rate) / a))
    value = run + (1.0 + law.shape) * raised + math.log(law.mean) / (a - 1.0)
    return count * np.asarray(value * _UP + 1e-13)
