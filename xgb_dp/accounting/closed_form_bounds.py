"""Fast, coarse bounds of any composition: zero-concentrated and Rényi differential privacy.

For large losses, where exact grids become too large, they are tight to about one percent.
Proof: docs/proofs/accounting.md, "zCDP" and "Rényi".
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from .curve import Curve
from .events import GaussianEvent
from .simplify import BoundedRange, ChoiceTerm, Terms

_PURE_FROM = 8.0  # above, eps0 is less than eps0^2 / 8
# Every query uses the same orders: a minimum over a fixed set keeps the monotonicity of the curves.
ORDERS = 1.0 + np.logspace(-3.0, 7.0, 4001)
_NOTHING = np.zeros_like(ORDERS)
_UP = 1.0 + 1e-12

Array = npt.NDArray[np.float64]


def zcdp_mu2(eps0: float) -> float:
    """The mu^2 of a Gaussian that is rho-zCDP with rho = eps0^2 / 8, like a selection."""
    return eps0 * eps0 / 4.0


class ZCDPCurve(Curve):
    """Bounds a Gaussian total `mu` and selections by zCDP; large ranges may use pure epsilon.

    A selection of range eps0 is eps0^2 / 8-zCDP (Cesar and Rogers 2021), and a Gaussian release is
    sensitivity^2 / (2 sigma^2)-zCDP. Source of the conversion: Bun and Steinke (2016).
    """

    def __init__(self, mu: float, steps: Sequence[tuple[float, int]]) -> None:
        self._free = mu == 0.0 and not steps
        self._ways: list[tuple[float, float]] = []  # (pure epsilon of some, rho of the others)
        for limit in {math.inf, _PURE_FROM}:
            pure = math.fsum(n * e for e, n in steps if e >= limit)
            rho = mu * mu / 2.0 + math.fsum(n * e * e for e, n in steps if e < limit) / 8.0
            self._ways.append((pure * _UP, rho * _UP))

    def epsilon(self, delta: float) -> float:
        """See :class:`Curve`; infinite at delta = 0, unless nothing is released."""
        if delta >= 1.0 or self._free:
            return 0.0
        if delta == 0.0:
            return math.inf
        return min(
            (pure + rho + 2.0 * math.sqrt(rho * -math.log(delta))) * (1.0 + 4e-12)
            for pure, rho in self._ways
        )

    def delta(self, epsilon: float) -> float:
        """See :class:`Curve`."""
        if self._free:
            return 0.0
        return min(self._delta(epsilon * (1.0 - 1e-12) - pure, rho) for pure, rho in self._ways)

    @staticmethod
    def _delta(epsilon: float, rho: float) -> float:
        if epsilon <= rho:
            return 1.0
        if rho == 0.0:
            return 0.0
        return min(1.0, math.exp(-min((epsilon - rho) ** 2 / (4.0 * rho), 690.0)) * (1.0 + 1e-9))


def bounded_range_rdp(eps0: float, orders: Array) -> Array:
    """Rényi divergence of a selection of bounded range.

    This is the maximum over all pairs of distributions with losses in an interval of length eps0.
    The worst pair has two loss values; the upper one is t with e^t = (a - 1) A / (a B).
    """
    a = orders
    log_whole = np.log(-np.expm1(-a * eps0))  # log A, A = 1 - e^{-a eps0}
    log_b = -eps0 + np.log(-np.expm1(-(a - 1.0) * eps0))  # log B
    t = np.log((a - 1.0) / a) + log_whole - log_b
    value = t + (log_whole - np.log(a) - math.log(-math.expm1(-eps0))) / (a - 1.0)
    # The terms of the differences have about these sizes. Round up.
    size = np.abs(t) + eps0 + np.abs(np.log(a)) + np.abs(log_whole) + abs(math.log(eps0)) + 1.0
    value = value + 1e-15 * size * (1.0 + 1.0 / (a - 1.0))
    return np.minimum(np.minimum(value, eps0), a * eps0 * eps0 / 8.0) * _UP


class RDPCurve(Curve):
    """(epsilon, delta) from the Rényi divergences at the orders in ``ORDERS``.

    Selections use the bounded-range curve (Dong, Durfee and Rogers 2020; theorem 1 of the DP-XGB
    paper); Gaussian sums use the curve of their noise. Source of the conversion: Canonne, Kamath
    and Steinke (2020), proposition 12.
    """

    def __init__(self, terms: Terms, rows: int) -> None:
        self._terms, self._rows = terms, rows

    @cached_property
    def divergences(self) -> Array:
        """Rényi divergence of all releases together at each order."""
        total = np.zeros_like(ORDERS)
        for term in self._terms.listed:
            total += self.of_term(term)
        return total

    def of_term(self, term: Any) -> Array:
        """Rényi divergence of one term at each order; infinite if no bound is known."""
        if isinstance(term, ChoiceTerm):  # docs/proofs/choice.md: the worst plan at each order
            plans = [RDPCurve(way, self._rows).divergences for way in term.ways]
            return np.asarray(term.count * np.max(plans, axis=0) * _UP) if term.count else _NOTHING
        if isinstance(term, GaussianEvent):
            return _gaussian(term, self._rows)
        if isinstance(term, BoundedRange):
            return _range(term, self._rows)
        return np.full_like(ORDERS, math.inf) if term.count else _NOTHING

    def epsilon(self, delta: float) -> float:
        """See :class:`Curve`."""
        if delta >= 1.0 or not self.divergences.any():
            return 0.0
        if delta == 0.0:
            return math.inf
        a = ORDERS
        values = (
            self.divergences + np.log((a - 1.0) / a) - (math.log(delta) + np.log(a)) / (a - 1.0)
        )
        return max(0.0, float(np.min(values + 1e-13 * (1.0 + np.abs(values)))))

    def delta(self, epsilon: float) -> float:
        """See :class:`Curve`."""
        curve, a = self.divergences, ORDERS
        if not curve.any() or math.isinf(epsilon):
            return 0.0
        with np.errstate(invalid="ignore"):
            log_delta = (a - 1.0) * (curve - epsilon) - np.log(a - 1.0) + a * np.log1p(-1.0 / a)
            log_delta += 1e-13 * (1.0 + (a - 1.0) * (curve + epsilon))
        best = float(np.min(np.where(np.isnan(log_delta), np.inf, log_delta)))
        return min(1.0, math.exp(min(best, 0.0)) * _UP)


def _gaussian(event: GaussianEvent, rows: int) -> Array:
    if not event.count or not event.sensitivity2:
        return _NOTHING
    if not event.sigma2:
        return np.full_like(ORDERS, math.inf)
    rho = event.count * rows**2 * event.sensitivity2 / event.sigma2 / 2.0
    return ORDERS * rho * _UP


def _range(term: BoundedRange, rows: int) -> Array:
    if not term.count or not term.eps0:
        return _NOTHING
    one = _laplace(term, rows) if term.scale else bounded_range_rdp(rows * term.eps0, ORDERS)
    return np.asarray(term.count * one)


def _laplace(term: BoundedRange, rows: int) -> Array:
    """Rényi divergence of continuous Laplace noise. Source: Mironov (2017), proposition 6."""
    epsilon, a = term.laplace_epsilon(rows), ORDERS
    log_value = np.logaddexp(
        np.log(a / (2.0 * a - 1.0)) + (a - 1.0) * epsilon,
        np.log((a - 1.0) / (2.0 * a - 1.0)) - a * epsilon,
    )
    rounding = 4e-16 * (4.0 + np.abs(np.log(a - 1.0)) + a * epsilon)
    value = (log_value + rounding) / (a - 1.0)
    return np.asarray(np.minimum(value, epsilon) * _UP)
