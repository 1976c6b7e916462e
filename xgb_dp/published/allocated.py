"""Bounds rounds that read disjoint parts of the rows, where nobody knows the part of a row.

The likelihood ratio of an ensemble is a mean of independent ratios, one for each round. They are
added up on a grid. Every value goes to its two neighbours there, in proportions that keep its mean.
This raises the mean of every convex function, and so every hockey stick. Proof:
docs/proofs/allocation.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from ..accounting.grid_curve import both_signs
from .sampled import Rounds, hull, hull_masses

Array = npt.NDArray[np.float64]

_UP = 1.0 + 1e-12
_CURVE_UP = 1.0 + 1e-9
_ROUNDING = 1e-12  # of ratios, relative
_WHOLE = 2.0**-48  # what rounding may take from a law's total of 1
_FINEST = 40.0  # steps of a grid to a standard deviation
_GROWTH = 70.0  # how slowly the steps grow away from the mean
_COARSEST = 32.0  # steps of a grid to the mu of a round
_MOST_HALVINGS = 16  # the last parts of an ensemble of halves count as one
_MOST_PARTS = 1 << 20  # more equal parts count as so many, which are larger in convex order
_CHUNK = 1 << 21  # sums at a time


@dataclass(frozen=True)
class Ratios:
    """A distribution above that of a likelihood ratio in convex order, once `missing` is added."""

    at: Array  # values, ascending, of which the first is 0
    q: Array  # probability of each, under the law without the row
    missing: float  # from the mean: probability of an infinite ratio under the law with the row
    mu: float  # about how far the round behind it moves, in standard deviations
    spread: float  # about the standard deviation of its logarithm

    @classmethod
    def of_round(cls, table: Callable[[Array], Array], nodes: Array, mu: float) -> Ratios:
        """The ratio of one round that reads the row."""
        x = np.concatenate([-nodes[:0:-1], nodes])
        v = np.minimum.accumulate(both_signs(table, x))
        s = np.concatenate([[0.0], np.exp(x)])
        v = np.concatenate([[1.0], v])
        kept = hull(s, v)
        q = hull_masses(s[kept], v[kept])
        nothing = max(0.0, 1.0 - float(np.sum(q))) + _WHOLE
        return cls(
            np.concatenate([[0.0], s[kept[1:]]]),
            np.concatenate([[nothing], q]),
            float(v[-1]),
            mu,
            _spread(mu, 1.0),
        )

    def mean(self, other: Ratios, weight: float, spread: float, lost: float) -> Ratios:
        """The weighted mean with another, independent ratio."""
        rest = 1.0 - weight
        largest = weight * float(self.at[-1]) + rest * float(other.at[-1])
        grid = _grid(max(math.log(largest), spread) + 1e-9, self.mu, spread)
        q = np.zeros(len(grid))
        rows = max(1, _CHUNK // len(other.at))
        for first in range(0, len(self.at), rows):
            some = slice(first, first + rows)
            q += _split(
                grid,
                np.add.outer(weight * self.at[some], rest * other.at).ravel(),
                np.multiply.outer(self.q[some], other.q).ravel(),
            )
        missing = (weight * self.missing + rest * other.missing) * _UP
        q *= 1.0 + 2.0**-52 * len(self.at) * len(other.at)  # the rounding of sums
        return Ratios(grid, q, missing, self.mu, spread).trimmed(lost)

    def trimmed(self, lost: float) -> Ratios:
        """The same ratio with 0 for its largest values, whose mean is at most `lost`."""
        above = np.cumsum((self.q * self.at)[::-1])[::-1]
        kept = max(2, int(np.argmax(above <= lost)) if above[-1] <= lost else len(above))
        if kept == len(self.at):
            return self
        q = self.q[:kept].copy()
        q[0] += float(np.sum(self.q[kept:])) * _UP
        missing = self.missing + float(above[kept]) * _UP
        return Ratios(self.at[:kept], q, missing, self.mu, self.spread)

    @cached_property
    def above(self) -> Array:
        """Mean of (ratio - at)+ at each value."""
        tail = np.cumsum(self.q[::-1])[::-1]
        steps = np.diff(self.at) * tail[1:]
        return np.append(np.cumsum(steps[::-1])[::-1], 0.0)

    @cached_property
    def below(self) -> Array:
        """Mean of (at - ratio)+ at each value."""
        steps = np.diff(self.at) * np.cumsum(self.q)[:-1]
        return np.append(0.0, np.cumsum(steps))

    def removed_curve(self, x: Array) -> Array:
        """Hockey stick of the ensemble with the row against that without it."""
        value = _chord(np.exp(x) * (1.0 - _ROUNDING), self.at, self.above)
        return np.asarray(np.minimum(1.0, value * _CURVE_UP + self.missing))

    def added_curve(self, x: Array) -> Array:
        """Hockey stick of the ensemble without the row against that with it."""
        s = np.exp(-x) * (1.0 + _ROUNDING)
        # Above the largest value the mean of (s - ratio)+ grows as s does.
        beyond = np.maximum(s - self.at[-1], 0.0) * np.sum(self.q)
        value = _chord(s, self.at, self.below) + beyond
        return np.asarray(np.minimum(1.0, np.exp(x) * value * _CURVE_UP))


@dataclass(frozen=True)
class AllocatedRounds(Rounds):
    """`count` ensembles of rounds of one kind. `rate` and `curve` are those of one round."""

    parts: int = 2  # rounds of an ensemble
    halving: bool = False  # whether each round takes half of what is left
    lost: float = 0.0  # chance of losses that may be called infinite

    @property
    def size(self) -> float:
        """See :class:`Rounds`."""
        return min(self.mu, _spread(self.mu, self._equal_parts))

    @property
    def _equal_parts(self) -> float:
        """How many equal parts are about as good."""
        return 3.0 if self.halving else float(min(self.parts, _MOST_PARTS))

    def ways(self) -> list[tuple[Callable[[Array], Array], Array]]:
        """See :class:`Rounds`."""
        whole = self.ratios
        corners = np.log(whole.at[1:])
        return [(whole.removed_curve, corners), (whole.added_curve, -corners)]

    @cached_property
    def ratios(self) -> Ratios:
        """The ratio of an ensemble."""
        one = Ratios.of_round(self.curve, self.nodes, self.mu)
        return self._halves(one) if self.halving else self._equal(one)

    def _equal(self, one: Ratios) -> Ratios:
        """The mean of the ratios of all parts, by doubling."""
        whole, have = one, 1
        for bit in bin(min(self.parts, _MOST_PARTS))[3:]:
            have *= 2
            whole = whole.mean(whole, 0.5, _spread(self.mu, have), self.lost)
            if bit == "1":
                have += 1
                whole = whole.mean(one, 1.0 - 1.0 / have, _spread(self.mu, have), self.lost)
        return whole

    def _halves(self, one: Ratios) -> Ratios:
        """The mean with weights 1/2, 1/4, ..., of which the last two are equal.

        The last parts may count as one, which is larger in convex order: the mean of several ratios
        is below one of them.
        """
        whole = one
        for left in range(min(self.parts - 1, _MOST_HALVINGS)):
            whole = one.mean(whole, 0.5, _spread(self.mu, min(3.0, left + 2.0)), self.lost)
        return whole


def _spread(mu: float, parts: float) -> float:
    """About the standard deviation of the logarithm of the mean of so many ratios."""
    return min(mu, math.sqrt(math.expm1(min(mu * mu, 50.0)) / parts))


def _grid(top: float, mu: float, spread: float) -> Array:
    """0 and points up to e^top, which are close together around 1. Any points are valid.

    Logarithms are about A sinh(t) at even steps of t, as long as their steps are below those of the
    curve of one round.
    """
    step = 1.0 / _GROWTH
    scale = _GROWTH * spread / _FINEST
    coarse = max(mu / _COARSEST, scale * step)
    # Where the steps A cosh(t) dt reach the coarsest one.
    turn = scale * math.sinh(math.acosh(coarse / (scale * step)))
    near = scale * np.sinh(np.arange(0.0, math.asinh(turn / scale) + step, step))
    far = np.arange(near[-1] + coarse, max(top, near[-1]) + 2.0 * coarse, coarse)
    side = np.concatenate([near, far])
    up = np.append(side[side < top], top)
    return np.concatenate([[0.0], np.exp(np.concatenate([-side[:0:-1], up]))])


def _split(grid: Array, values: Array, q: Array) -> Array:
    """Probabilities on the grid with the same mean, each value on its two neighbours."""
    i, low, high = _weights(grid, values)
    size = len(grid)
    return np.asarray(np.bincount(i, q * low, size) + np.bincount(i + 1, q * high, size))


def _chord(s: Array, at: Array, v: Array) -> Array:
    """Upper bound of a convex function at some points, constant beyond the last one."""
    i, low, high = _weights(at, s)
    return np.asarray(low * v[i] + high * v[i + 1])


def _weights(grid: Array, values: Array) -> tuple[npt.NDArray[np.intp], Array, Array]:
    """The point before each value, its weight and that of the next, both raised by rounding."""
    i = np.clip(np.searchsorted(grid, values, side="right") - 1, 0, len(grid) - 2)
    high = np.clip((values - grid[i]) / (grid[i + 1] - grid[i]), 0.0, 1.0)
    return i, 1.0 - high + 2.0**-50, high + 2.0**-50
