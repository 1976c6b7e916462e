"""Computes the hockey-stick curve of composed selections on a grid, by backward recursion.

``plugin_cpp/accounting/bounded_range.cc`` implements the steps with the same operations and
results, about ten times as fast; processes that have loaded libxgboost use it. Every grid gives a
valid bound; the choice affects only tightness and speed. Proof: docs/proofs/accounting.md,
"Selections".
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from ..engine import native
from .curve import GridCurve

Array = npt.NDArray[np.float64]

_MOST_POINTS_PER_RANGE = 64
_FEWEST_POINTS_PER_RANGE = 6
_LARGEST_STEP = 0.5
_FINE_STEP = 0.05
_STEPS_PER_DEVIATION = 3000.0
_USUAL_LOG_TAIL = -40.0  # for the estimate of the work only
_TAIL_MARGIN = math.log(1e3)  # the zCDP estimate of the tail ignores the rounding to the grid
_MOST_WORK = 10.0  # in units of the target; no curve is computed beyond
_MOST_CANDIDATES = 64
_UNIT_ROUNDOFF = 2.0**-53


@dataclass(frozen=True)
class Grid:
    """Points (i - below) * step, i = 0 .. below + above."""

    step: float
    below: int
    above: int

    def points(self) -> Array:
        """The privacy losses of the grid, ascending, in nats."""
        return np.arange(-self.below, self.above + 1, dtype=np.float64) * self.step


def width(eps0: float, h: float) -> int:
    """Number of grid steps in one range, rounded up."""
    # m * h >= eps0 also in exact arithmetic: a larger range dominates a smaller one.
    m = max(1, math.ceil(eps0 / h))
    while m * h < eps0 * (1.0 + 4.0 * _UNIT_ROUNDOFF):
        m += 1
    return m


def _reach(steps: Sequence[tuple[float, int]], log_tail: float) -> float:
    """Privacy loss above which the curve is below exp(log_tail), by the zCDP of bounded range."""
    rho = math.fsum(n * e * e for e, n in steps) / 8.0
    return min(rho + math.sqrt(4.0 * rho * -log_tail), math.fsum(n * e for e, n in steps))


def choose_grid(
    steps: Sequence[tuple[float, int]], mu: float, log_tail: float, work: float
) -> Grid | None:
    """A grid that gives a tight bound in about `work` elementary operations."""
    largest = max(e for e, _ in steps)
    deviation = math.sqrt(mu * mu + math.fsum(n * e * e for e, n in steps) / 4.0)
    if deviation > _STEPS_PER_DEVIATION * _LARGEST_STEP:
        return None
    # The step must not depend on delta, or epsilon would not be monotone in it.
    reach = _reach(steps, _USUAL_LOG_TAIL)

    def cost(h: float) -> float:
        return (2.0 * reach / h + 1.0) * sum(n * width(e, h) for e, n in steps)

    h = min(largest / _MOST_POINTS_PER_RANGE, _FINE_STEP)
    coarsest = min(largest / _FEWEST_POINTS_PER_RANGE, _LARGEST_STEP)
    while cost(h) > work and h < coarsest:
        h = min(1.1 * h, coarsest)
    h = max(h, deviation / _STEPS_PER_DEVIATION)
    if cost(h) > _MOST_WORK * work:
        return None

    # Ranges are rounded up to multiples of the step. Among nearby steps, choose the best fit.
    def excess(h: float) -> float:
        return math.fsum(n * (width(e, h) * h) ** 2 for e, n in steps)

    nudge = 1.0 + 1e-13  # rounding must not make m steps shorter than the range
    candidates = [h]
    for e in {e for e, _ in steps}:
        first = math.ceil(e / h)
        last = min(math.floor(e / (0.75 * h)), first + _MOST_CANDIDATES)
        candidates += [e / m * nudge for m in range(first, last + 1)]
    candidates = [c for c in candidates if c <= _LARGEST_STEP]
    # Ties go to the largest step: if the choice depended on rounding, epsilon would not be monotone
    # in the noise.
    excesses = [excess(c) for c in candidates]
    best = min(excesses) * (1.0 + 1e-9)
    step = max(c for c, x in zip(candidates, excesses, strict=True) if x <= best)
    # The domain covers the ranges after rounding.
    rounded = [(width(e, step) * step, n) for e, n in steps]
    points = math.ceil(_reach(rounded, log_tail) / step) + 1
    return Grid(step, points, points)


@lru_cache(maxsize=128)  # the arguments are public; a plan and its report compute the same curves
def tail_curve(
    steps: tuple[tuple[float, int], ...],
    mu: float,
    log_tail: float,
    work: float,
    laplace: tuple[tuple[float, int], ...] = (),
) -> tuple[Grid, Array] | None:
    """A grid and a curve that falls below exp(log_tail) on it; None if it takes too much work."""
    # In variance, tails and work, Laplace noise resembles four selections of its epsilon.
    selections = [*((epsilon, 4 * n) for epsilon, n in laplace), *steps]
    grid = choose_grid(selections, mu, log_tail - _TAIL_MARGIN, work)
    if grid is None:
        return None
    # The largest possible privacy loss, in steps.
    most = 1 + sum(n * width(e, grid.step) for e, n in selections)
    while True:
        curve = selection_curve(steps, grid)
        for epsilon, n in laplace:
            curve = _after_laplace(curve, grid, epsilon, n)
        if grid.above >= most or curve[-1] <= math.exp(log_tail):
            return grid, curve
        points = min(grid.above + grid.above // 2 + 1, most)
        grid = Grid(grid.step, points, points)


def _distributions(m: int, h: float) -> Array:
    """Two-point loss distributions {t_j, t_j - eps0}, t_j = j h, eps0 = m h.

    The rows of the result are q, p, dq and kappa.
    """
    denominator = -math.expm1(-(m * h))
    growth = math.expm1(h)
    left = [(m - j) * h for j in range(m + 1)]  # eps0 - t_j
    scaled = [math.exp(-x) / denominator for x in left]
    q = [-math.expm1(-x) / denominator for x in left]  # P-probability of the loss t_j
    p = [-math.expm1(-j * h) * s for j, s in enumerate(scaled)]  # 1 - q, with the same precision
    dq = [s * growth for s in scaled]  # q_j - q_{j+1}
    return np.array([q, p, dq, [d * growth for d in dq]])  # kappa: q's departure from its chord


def _step(v: Array, n: int, m: int, distributions: Array) -> Array:
    """One step of the recursion at n points. `v` has m additional points on either side."""
    out = np.zeros(n)
    q, p, dq, kappa = distributions.tolist()

    def at(j: int) -> tuple[Array, Array]:
        """Mean under the distribution of t_j, and the difference between its two values."""
        near, far = v[m - j : m - j + n], v[2 * m - j : 2 * m - j + n]
        return q[j] * near + p[j] * far, near - far

    left, gap_left = at(0)
    for j in range(m):
        right, gap_right = at(j + 1)
        # Between t_j and t_{j+1} the value is at most a chord plus a parabola of this curvature.
        bend = dq[j] * (gap_right - gap_left) + kappa[j] * np.maximum(gap_left, gap_right)
        bump = bend - np.abs(right - left)
        np.maximum(out, np.maximum(left, right) + 0.25 * np.maximum(bump, 0.0), out=out)
        left, gap_left = right, gap_right
    return out


def _steps(count: int, m: int, distributions: Array, growth: Array, curve: Array) -> None:
    """Replace a curve by the curve after `count` steps; `growth` bounds it below the grid."""
    n = len(curve)
    if native.is_loaded():
        sizes = (ctypes.c_int64(number) for number in (count, n, m))
        arrays = (ctypes.c_void_p(x.ctypes.data) for x in (distributions, growth, curve))
        native.call("XGDPBoundedRangeSteps", *sizes, *arrays)
        return
    for _ in range(count):
        below, above = np.minimum(curve[0] + growth, 1.0), np.full(m, curve[-1])
        curve[:] = _step(np.concatenate([below, curve, above]), n, m, distributions)


def selection_curve(steps: Sequence[tuple[float, int]], grid: Grid) -> Array:
    """Upper bounds of the hockey-stick divergence of composed selections at the grid points."""
    h, below, n = grid.step, grid.below, grid.below + grid.above + 1
    if not 0.0 < h <= 0.5:
        raise RuntimeError("The grid step must lie in (0, 0.5].")
    if not all(0.0 < eps0 < math.inf and eps0 / h < 1e7 and count >= 0 for eps0, count in steps):
        raise RuntimeError("A range must be positive and finite, and not too large for the grid.")
    if not steps:
        return -np.expm1(np.minimum(grid.points(), 0.0))
    curve = np.zeros(n)
    curve[:below] = [-math.expm1(-(below - i) * h) for i in range(below)]  # nothing released
    rounding = 64.0  # relative error in units of 2^-53; every step adds positive terms
    for eps0, count in reversed(steps):
        m = width(eps0, h)
        # The curve falls by at most the growth of e^x, which bounds it below the grid.
        growth = np.array([math.exp(-below * h) * -math.expm1(-d * h) for d in range(m, 0, -1)])
        _steps(count, m, _distributions(m, h), growth, curve)
        rounding += count * (64.0 + 8.0 * m * h)
    # The true curve does not increase, so a smaller bound to the left holds to the right too.
    raised = np.minimum(curve * (1.0 + rounding * _UNIT_ROUNDOFF) + 1e-300, 1.0)
    return np.minimum.accumulate(raised)


def _after_laplace(curve: Array, grid: Grid, epsilon: float, count: int) -> Array:
    """The curve after `count` Laplace releases: the expectation over their privacy losses.

    The grid losses follow discrete Laplace noise. Its curve equals the curve of continuous noise at
    the grid points, and the chords of that curve between the points.
    """
    h, m = grid.step, width(epsilon, grid.step)
    at = np.arange(-m, m + 1)
    p = np.exp((at - m) * (h / 2.0)) * math.tanh(h / 4.0)
    p[-1] = 1.0 / (1.0 + math.exp(-h / 2.0))
    p[0] = math.exp(-m * h) * p[-1]
    rounding = 1.0 + 2.0**-53 * (64.0 + 4.0 * m + 8.0 * m * h)
    points = grid.points()
    for _ in range(count):
        below = GridCurve(points, curve, h).extended(float(points[0]) - (m + 2) * h)[1]
        first = len(below) - len(curve) - m
        padded = np.concatenate([below[first:], np.full(m, curve[-1])])
        curve = np.minimum(np.convolve(padded, p, "valid") * rounding + 1e-300, 1.0)
    return curve
