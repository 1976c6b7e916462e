"""Privacy curves of private selection: the best of a random number of runs.

Proof: docs/proofs/selection.md
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from .curve import ChordTable, Curve, both_signs, narrow
from .events import Repetitions

Array = npt.NDArray[np.float64]

_UP = 1.0 + 1e-12
_POINTS = 400  # points of the curve of a run
_BEYOND = 1e-4  # share of delta for losses of a run above its last point
_LOWEST = 1e-200
_CHORDS = (0.3, 0.1, 0.03, 0.01, 1e-3, 1e-4)
# Candidates for the share of delta of each of several selections; every share gives a bound.
_EACH = (1e-3, 1e-2, 0.1, 0.03, 0.3, *(10.0**-digits for digits in range(4, 21)))
_LINES = 400  # chords of the bound of the weights
_FEWEST = math.exp(-6.0)  # smallest factor z at which the bound has a corner
_FLATTEST = 1e-250  # smallest slope of a line; flatter lines leave a constant
_TINY = 1e-320  # exceeds the error of a subnormal weight


class BestOfRuns:
    """Upper bound of the hockey-stick divergence of the best run, in both orders."""

    def __init__(self, distribution: Repetitions, run: ChordTable) -> None:
        weight, ranks, mean = distribution.weight, distribution.ranks, distribution.mean
        # Largest probability, under the other distribution, of a set with probability `ranks`.
        grown = np.exp(np.minimum(run.x, 700.0))[:, None] * ranks + run.v[:, None]
        left = 1.0 - np.exp(-run.x)[:, None] * np.maximum(1.0 - ranks - run.v[:, None], 0.0)
        left += 1e-15
        other = np.minimum(np.min(np.minimum(grown, left), axis=0) * (1.0 + 1e-12), 1.0)
        other = np.maximum.accumulate(other)
        # Between two ranks, the better rank bounds the weight from above, and the worse rank bounds
        # the weight under the other distribution from below.
        first = mean * (weight(ranks[:-1]) * (1.0 + 1e-12) + _TINY)
        second = mean * np.maximum(weight(other[1:]) * (1.0 - 1e-12) - _TINY, 0.0)
        # Chords of max(first - z second, 0), z = e^(x - loss), up to the z where it is 0 or almost
        # constant.
        most = float(np.max(first / np.maximum(second, mean * _FLATTEST))) * (1.0 + 1e-12)
        z = np.concatenate([[0.0], np.geomspace(min(_FEWEST, 0.5 * most), most, _LINES)])
        top = np.array([float(np.max(first - at * second)) for at in z])
        self._rest = max(0.0, float(top[-1]))
        top[-1] = self._rest
        slopes = np.append(np.diff(np.maximum(top, self._rest)) / np.diff(z), 0.0)
        bends = np.maximum(np.diff(slopes), 0.0) + 2.0**-50 * np.abs(slopes[:-1])
        self._weights, self._logs, self._run = bends * z[1:], np.log(z[1:]), run

    @property
    def end(self) -> float:
        """Last point of the curve. Its last value holds beyond."""
        return float(self._logs[-1] + self._run.x[-1]) * (1.0 + 1e-12) + 1e-14

    def delta(self, epsilon: float) -> float:
        """Upper bound of delta at any epsilon."""
        values = both_signs(self._run, epsilon - self._logs)
        return min(1.0, (float(np.sum(self._weights * values)) + self._rest) * (1.0 + 1e-9))


def _chord(epsilon: float, end: float, delta: float) -> float:
    """Hockey-stick bound at `epsilon` of a release that is (end, delta)-private in both orders.

    The hockey-stick divergence is convex in e^x, at most delta at `end`, and at most
    1 - (1 - delta) e^-end at -end.
    """
    if not epsilon < end or end > 700.0:
        return delta if epsilon >= end else 1.0
    weight = -math.expm1(epsilon - end) / -math.expm1(-2.0 * end)
    return min(1.0, (weight * (1.0 - (1.0 - delta) * math.exp(-end)) + (1 - weight) * delta) * _UP)


class SelectionCurve(Curve):
    """(epsilon, delta) of one private selection."""

    def __init__(self, repetitions: Repetitions, runs: Sequence[Curve]) -> None:
        self._distribution, self._runs = repetitions, list(runs)
        self._known: dict[float, BestOfRuns | None] = {}

    def epsilon(self, delta: float) -> float:
        """See :class:`Curve`."""
        if delta >= 1.0:
            return 0.0
        best = self._best(delta * _BEYOND / self._distribution.mean)
        if best is None or best.delta(best.end) > delta:
            return math.inf
        if best.delta(0.0) <= delta:
            return 0.0

        def is_safe(epsilon: float) -> bool:
            return best.delta(epsilon) <= delta

        return narrow(is_safe, best.end, 0.0, 60)[0] * _UP

    def delta(self, epsilon: float) -> float:
        """See :class:`Curve`."""
        value, lowest = 1.0, 1e-6
        while lowest > _LOWEST:
            best = self._best(lowest * _BEYOND)
            if best is None:
                break
            value = min(value, best.delta(epsilon * (1.0 - 1e-12)))
            if value > lowest or value == 0.0:
                break
            lowest *= 1e-6
        if value > 1e-3:  # near 0, the chord between +epsilon and -epsilon can be lower
            value = min(value, *(_chord(epsilon, self.epsilon(d), d) for d in _CHORDS))
        return value

    def _best(self, lowest: float) -> BestOfRuns | None:
        """The best run's curve, from a run's curve down to `lowest`; None if there is no bound."""
        if lowest not in self._known:
            self._known[lowest] = self._curve(lowest)
        return self._known[lowest]

    def _curve(self, lowest: float) -> BestOfRuns | None:
        top = max(run.epsilon(lowest) for run in self._runs)
        if not math.isfinite(top):
            return None
        points = np.linspace(0.0, top or 1.0, _POINTS)
        curves = [run.deltas(list(points), max(lowest, _LOWEST)) for run in self._runs]
        worst = ChordTable(points, np.max(curves, axis=0))
        return BestOfRuns(self._distribution, worst)


class WithSelections(Curve):
    """Basic composition of selections with other releases: epsilons and deltas add up."""

    def __init__(self, selections: Sequence[Curve], rest: Curve | None) -> None:
        self._selections, self._rest = list(selections), rest

    def epsilon(self, delta: float) -> float:
        """See :class:`Curve`; delta is divided equally."""
        curves = [*self._selections, *([] if self._rest is None else [self._rest])]
        return math.fsum(c.epsilon(delta / len(curves)) for c in curves) * (1.0 + 1e-14)

    def delta(self, epsilon: float) -> float:
        """See :class:`Curve`; the minimum over several divisions of delta."""
        if self._rest is None and len(self._selections) == 1:
            return self._selections[0].delta(epsilon)
        best = 1.0
        for each in _EACH:
            delta = each * len(self._selections)
            if delta < best:
                loss = math.fsum(s.epsilon(each) for s in self._selections) * _UP
                best = min(best, self._after(loss, delta, epsilon))
        return best

    def _after(self, loss: float, delta: float, epsilon: float) -> float:
        """Delta of the rest composed with a release that is (loss, delta)-private in both orders.

        The worst such release has an infinite loss with probability delta. Otherwise its loss is
        +loss or -loss, with odds of e^loss to 1.
        """
        if math.isinf(loss):
            return 1.0
        odds = math.exp(-loss)
        ahead, behind = 1.0 / (1.0 + odds), odds / (1.0 + odds)
        value = ahead * self._of_rest(epsilon - loss) + behind * self._of_rest(epsilon + loss)
        return min(1.0, (delta + (1.0 - delta) * value) * _UP)

    def _of_rest(self, epsilon: float) -> float:
        """Delta of the rest at any real epsilon, if negative from the other order of neighbours."""
        if epsilon < 0.0:
            return -math.expm1(epsilon) + math.exp(epsilon) * self._of_rest(-epsilon)
        return 0.0 if self._rest is None else self._rest.delta(epsilon)
