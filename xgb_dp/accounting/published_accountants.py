"""Accountants of published systems. Presets use them to show the claims of these systems.

Each is valid, and the exact accountant is at least as tight. Proof: docs/proofs/accounting.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy

from .accountant import Accountant, Smallest, pure_curve
from .choice import hull
from .closed_form_bounds import ORDERS, RDPCurve, ZCDPCurve
from .curve import Curve, narrow, root_above
from .events import Event, Repetitions, SelectionEvent
from .gaussian import BETA, GaussianTotals, gaussian_delta
from .simplify import ChoiceTerm, Neighbours, OtherTerm, Terms, parts_of_run, simplify

_UP = 1.0 + 1e-12
# Smaller deltas do not fit doubles. A mu-GDP mechanism, and discrete noise of the same mu, are
# mu^2 / 2-zCDP, and this bound uses the logarithm of delta.
_LOWEST = 1e-250


def bounded_range_mu(eps0: float) -> float:
    """The mu for which every selection of bounded range eps0 is mu-GDP; infinite for a huge eps0.

    mu = 2 Phi^-1(1 / (1 + e^(-eps0 / 2))). For small ranges this is about 0.627 eps0, compared with
    eps0 / 2 per selection in the limit of many selections.
    """
    low = math.exp(-eps0 / 2.0) / (1.0 + math.exp(-eps0 / 2.0))
    if low < 1e-280:
        return math.inf
    if eps0 < 1e-6:  # the limit, from above
        return eps0 * math.sqrt(math.pi / 8.0) * _UP
    return -2.0 * float(scipy.special.ndtri(low)) * _UP + 1e-15


def laplace_mu(epsilon: float) -> float:
    """The mu for which continuous Laplace noise of this epsilon is mu-GDP.

    mu = 2 Phi^-1(1 - e^(-epsilon / 2) / 2), at most the mu of a selection of range 2 epsilon.
    """
    low = 0.5 * math.exp(-epsilon / 2.0)
    if low < 1e-280 or epsilon < 1e-6:
        return bounded_range_mu(2.0 * epsilon)
    return -2.0 * float(scipy.special.ndtri(low)) * _UP + 1e-15


def _with_hulls(terms: Terms, assignments: int, selection_mu2: Callable[[float], float]) -> Terms:
    """Replace each choice among plans by a Gaussian.

    A Gaussian that bounds the selections for some group bounds them for larger groups too: its mu
    grows in proportion to the group, and the mu of a selection grows more slowly.
    """
    return Terms(
        tuple(
            hull(t, assignments, selection_mu2) if isinstance(t, ChoiceTerm) else t
            for t in terms.listed
        )
    )


def _gdp_mu2(eps0: float) -> float:
    return bounded_range_mu(eps0) ** 2


class _GDPCurve(Curve):
    """Gaussian differential privacy of some terms, plus the slack for discrete noise.

    Each mechanism has one mu, and the squares add up. Source: Dong, Roth and Su (2022).
    """

    def __init__(self, terms: Terms, rows: int) -> None:
        self._totals = GaussianTotals.of(terms.gaussians, rows)
        mus = (
            laplace_mu(t.laplace_epsilon(rows)) if t.scale else bounded_range_mu(rows * t.eps0)
            for t in terms.ranges
        )
        ranges = (t.count * mu**2 for t, mu in zip(terms.ranges, mus, strict=True))
        self._mu = math.sqrt(self._totals.mu**2 + math.fsum(ranges)) * _UP
        if terms.others:
            self._mu = math.inf

    def epsilon(self, delta: float) -> float:
        """See :class:`Curve`."""
        mu = self._mu
        if delta >= 1.0 or mu == 0.0:
            return 0.0
        if delta == 0.0 or math.isinf(mu):
            return math.inf
        if delta < _LOWEST:
            return ZCDPCurve(mu, []).epsilon(delta)
        eta, inner = self._totals.continuous(delta)
        if inner < _LOWEST:
            return ZCDPCurve(mu, []).epsilon(delta)
        if gaussian_delta(0.0, mu) <= inner:
            return eta
        high = mu
        while gaussian_delta(high, mu) > inner:
            high *= 2.0

        def excess(epsilon: float) -> float:
            return math.log(gaussian_delta(epsilon, mu)) - math.log(inner)

        def is_safe(epsilon: float) -> bool:
            return gaussian_delta(epsilon, mu) <= inner

        return root_above(excess, is_safe, 0.0, high, xtol=1e-13) + eta

    def delta(self, epsilon: float) -> float:
        """See :class:`Curve`."""
        mu = self._mu
        if mu == 0.0 or (math.isinf(epsilon) and math.isfinite(mu)):
            return 0.0
        if math.isinf(mu):
            return 1.0
        beta = max(BETA * gaussian_delta(epsilon, mu), 1e-270)
        return self._totals.raised(lambda x: gaussian_delta(x, mu), epsilon, beta)


class _ClassicCurve(Curve):
    """Heterogeneous composition of (epsilon_i, delta_i)-private releases.

    The Gaussian releases share half of delta equally; the composition uses the other half.
    Source: Kairouz, Oh and Viswanath (2017), theorem 3.5.
    """

    def __init__(self, terms: Terms, rows: int) -> None:
        self._unbounded = bool(terms.others)
        self._gaussians = [
            (_GDPCurve(Terms((replace(e, count=1),)), rows), e.count) for e in terms.gaussians
        ]
        self._pure = [
            (rows * replace(t, count=1).pure * (1.0 + 1e-14), t.count) for t in terms.ranges
        ]
        self._sum = rows * math.fsum(t.pure for t in terms.ranges) * (1.0 + 1e-14)

    def epsilon(self, delta: float) -> float:
        """See :class:`Curve`."""
        if delta >= 1.0:
            return 0.0
        if self._unbounded:
            return math.inf
        if delta == 0.0:
            return math.inf if self._gaussians else self._sum
        releases = sum(n for _, n in self._gaussians)
        parts = [
            *self._pure,
            *((one.epsilon(delta / (2 * releases)), n) for one, n in self._gaussians),
        ]
        if any(math.isinf(e) for e, _ in parts):
            return math.inf
        total = math.fsum(n * e for e, n in parts)
        drift = math.fsum(n * e * math.tanh(e / 2.0) for e, n in parts)
        spread = math.fsum(n * e * e for e, n in parts)
        return min(total, drift + math.sqrt(2.0 * spread * (math.log(2.0) - math.log(delta)))) * _UP

    def delta(self, epsilon: float) -> float:
        """See :class:`Curve`."""
        if self.epsilon(0.0) <= epsilon:
            return 0.0

        def is_enough(log_delta: float) -> bool:
            return self.epsilon(math.exp(log_delta)) <= epsilon

        return math.exp(narrow(is_enough, 0.0, -600.0, 60)[0])


@dataclass(frozen=True)
class _PrivateSelection(OtherTerm):
    """`count` private selections; each run costs at most the worst of the alternatives `runs`."""

    distribution: Repetitions
    runs: tuple[Terms, ...]

    @classmethod
    def of(cls, event: SelectionEvent, rows: int) -> _PrivateSelection:
        # Sampling the rows independently of each other costs at least as much.
        runs = (simplify(part, rows) for part in parts_of_run(event, rows))
        return cls(event.count, event.repetitions, tuple(runs))


class _SampledRDPCurve(RDPCurve):
    """:class:`RDPCurve` with private selections."""

    def of_term(self, term: Any) -> npt.NDArray[np.float64]:
        """See :class:`RDPCurve`.

        Source: Papernot and Steinke (2022), theorem 2, for the truncated negative binomial
        distribution. Poisson repetitions have no bound here.
        """
        if not (isinstance(term, _PrivateSelection) and term.count):
            return super().of_term(term)
        distribution, a = term.distribution, ORDERS
        if distribution.family == "poisson":
            return np.full_like(ORDERS, math.inf)
        run = np.max([RDPCurve(part, self._rows).divergences for part in term.runs], axis=0)
        raised = float(np.min((1.0 - 1.0 / a) * run - math.log(distribution.rate) / a))
        value = run + (1.0 + distribution.shape) * raised + math.log(distribution.mean) / (a - 1.0)
        return term.count * np.asarray(value * _UP + 1e-13)


class RDPAccountant(Accountant):
    """(epsilon, delta) from Rényi divergences, as the minimum over a fixed set of orders.

    Args:
        events: In any order. Sampled rounds have no RDP bound here; epsilon is then infinite.

    Examples:
        >>> from xgb_dp.accounting import GaussianEvent
        >>> event = GaussianEvent("leaves", sensitivity2=1, sigma2=400, coordinates=1, count=10)
        >>> accountant = xgb_dp.accounting.make_accountant("rdp", [event])
        >>> round(accountant.get_epsilon(1e-6), 2)
        0.7
    """

    name = "rdp"

    def _composed(self, events: Sequence[Event], neighbours: Neighbours) -> Curve:
        listed: list[Any] = []
        for event in events:
            if isinstance(event, SelectionEvent):
                listed.append(_PrivateSelection.of(event, neighbours.rows))
            else:
                listed += simplify([event], neighbours.assignments).listed
        return _SampledRDPCurve(Terms(tuple(listed)), neighbours.rows)


class GDPAccountant(Accountant):
    """(epsilon, delta) by Gaussian differential privacy, plus the slack for discrete noise.

    Args:
        events: In any order. Sampled rounds have no GDP bound here; epsilon is then infinite.

    Examples:
        >>> from xgb_dp.accounting import GaussianEvent
        >>> event = GaussianEvent("leaves", sensitivity2=1, sigma2=400, coordinates=1, count=10)
        >>> accountant = xgb_dp.accounting.make_accountant("gdp", [event])
        >>> round(accountant.get_epsilon(1e-6), 2)
        0.66
    """

    name = "gdp"

    def _of_terms(self, terms: Terms, neighbours: Neighbours) -> Curve:
        return _GDPCurve(_with_hulls(terms, neighbours.assignments, _gdp_mu2), neighbours.rows)


class ClassicAccountant(Accountant):
    """(epsilon, delta) by heterogeneous composition of (epsilon_i, delta_i)-private releases.

    DP-EBM calls this "classic". It is usually the loosest accountant here.

    Args:
        events: In any order. With sampled rounds, epsilon is infinite.

    Examples:
        >>> from xgb_dp.accounting import ExponentialEvent
        >>> event = ExponentialEvent("splits", eps_num=1, eps_bits=4, count=20)
        >>> round(xgb_dp.accounting.make_accountant("classic", [event]).get_epsilon(1e-6), 2)
        1.25
    """

    name = "classic"

    def _composed(self, events: Sequence[Event], neighbours: Neighbours) -> Curve:
        return Smallest(super()._composed(events, neighbours), pure_curve(events, neighbours.rows))

    def _of_terms(self, terms: Terms, neighbours: Neighbours) -> Curve:
        return _ClassicCurve(_with_hulls(terms, neighbours.assignments, _gdp_mu2), neighbours.rows)
