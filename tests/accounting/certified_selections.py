"""Bounds of composed selections, in balls of Arb and in doubles that are rounded up.

Proof: certificate.md beside this file, "Selections"
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
from flint import arb, fmpq, fmpz

Array = npt.NDArray[np.float64]
Run = tuple[Fraction, int]  # range of each of so many selections
Atoms = list[tuple[Any, Any]]  # loss and mass, in balls

MOST_WORK = 4e9  # elementary operations
_FINENESS = (64, 48, 32, 24)  # steps of the grid that the smallest range takes
_RARE = 1e-5  # share of delta
_MOST_HINGES = 400


def ball(value: Fraction | int) -> Any:
    """A ball around a fraction."""
    value = Fraction(value)
    return arb(fmpq(fmpz(value.numerator), fmpz(value.denominator)))


def above(value: Any) -> float:
    """A double above all of a ball."""
    return math.nextafter(float(value.upper()), math.inf)


def _up(values: Array) -> Array:
    """Above the exact value of sums of up to four products of doubles that are at least 0.

    Four roundings, of 2^-53 each, and what underflows are below this.
    """
    return values * (1.0 + 2.0**-50) + 1e-300


def _down(values: Array) -> Array:
    return np.maximum(values * (1.0 - 2.0**-50) - 1e-300, 0.0)


def _grid(
    runs: Sequence[Run], delta: float, whole: Callable[[Fraction], int]
) -> tuple[Fraction, list[tuple[int, int]], int] | None:
    """A step, the ranges in steps, rounded by `whole`, and how many steps the grid has above 0."""
    rho = sum(n * float(e) ** 2 for e, n in runs) / 8.0
    reach = rho + 2.0 * math.sqrt(rho * -math.log(delta * _RARE))  # about; it bounds nothing
    for parts in _FINENESS:
        # A power of two in the denominator keeps the points of the grid short.
        step = Fraction(whole(min(e for e, _ in runs) / parts * 2**80), 2**80)
        widths = [(whole(e / step), n) for e, n in runs]
        longest = sum(m * n for m, n in widths)
        points = min(math.ceil(reach / float(step)), longest) + 1
        if longest * 2 * points <= MOST_WORK:
            return step, widths, points
    return None


@lru_cache(maxsize=16)
def upper_atoms(runs: tuple[Run, ...], delta: float) -> tuple[Atoms, Any] | None:
    """Losses and masses whose curve is above that of all selections, and the mass at infinity.

    None if the grid would take too long.
    """
    grid = _grid(runs, delta, math.ceil)
    if grid is None:
        return None
    step, widths, points = grid
    x = [ball(i * step) for i in range(-points, points + 1)]
    curve = np.array([max(0.0, above(1 - p.exp())) if i < points else 0.0 for i, p in enumerate(x)])
    for width, count in reversed(widths):
        coefficients = _coefficients(step, width)
        for _ in range(count):
            curve = _after(curve, width, coefficients)
    # Chords of fewer points are above those of all, and take less time.
    kept = [*range(0, len(x) - 1, -(-len(x) // _MOST_HINGES)), len(x) - 1]
    return hinges([x[i] for i in kept], np.minimum(curve[kept], 1.0))


def _coefficients(step: Fraction, width: int) -> tuple[Array, Array, Array]:
    """Of the points of the grid and of the middle control points; and e^-jh, below."""
    s = [(-ball(j * step)).exp() for j in range(width + 1)]
    r = s[-1]
    ends = [((v - r) / ((1 - r) * v), r * (1 - v) / ((1 - r) * v)) for v in s[:-1]]
    ends.append((arb(0), arb(1)))
    middles = []
    for i in range(width):
        scale = 1 / ((1 - r) * (s[i] + s[i + 1]))
        last = arb(0) if i + 1 == width else s[i + 1] - r
        first = arb(0) if i == 0 else r * (1 - s[i])
        middles.append(
            (last * scale, (s[i] - r) * scale, r * (1 - s[i + 1]) * scale, first * scale)
        )
    fall = [math.nextafter(float(v.lower()), 0.0) for v in s[1:]]
    return (
        np.array([[above(c) for c in row] for row in ends]),
        np.array([[above(c) for c in row] for row in middles]),
        np.array(fall),
    )


def _after(curve: Array, width: int, coefficients: tuple[Array, Array, Array]) -> Array:
    """The curve before one more selection, rounded up."""
    ends, middles, fall = coefficients
    size = len(curve)
    # Below the grid the chord to 1 at x = -inf counts, and above it the last value.
    left = _up(1.0 - _down(_down(1.0 - curve[:1]) * fall))[::-1]
    wide = np.concatenate([np.minimum(left, 1.0), curve, np.full(width, curve[-1])])

    def at(shift: int) -> Array:
        return wide[width + shift : width + shift + size]

    best = np.zeros(size)
    for j in range(width + 1):
        a, b = ends[j]
        np.maximum(best, a * at(-j) + b * at(width - j), out=best)
        if j < width:
            a, b, c, d = middles[j]
            low, high = a * at(-j) + b * at(-j - 1), c * at(width - j) + d * at(width - j - 1)
            np.maximum(best, low + high, out=best)
    return _up(best)


def hinges(x: Sequence[Any], values: Array) -> tuple[Atoms, Any]:
    """The chords of a curve in s = e^x, as a sum of c (1 - s/s_i)+ and a constant."""
    s = [p.exp() for p in x]
    heights = [arb(float(v)) for v in values]
    slopes = [(heights[0] - 1) / s[0]]
    slopes += [(heights[i] - heights[i - 1]) / (s[i] - s[i - 1]) for i in range(1, len(s))]
    slopes.append(arb(0))
    return [(x[i], s[i] * (slopes[i + 1] - slopes[i])) for i in range(len(s))], heights[-1]


def lower_sets(runs: Sequence[Run], delta: float) -> tuple[Fraction, Array, Array] | None:
    """An adversary's sets for each target on a grid: the step, and their chances.

    At every real x, the first chance less e^x times the second is below the curve of all
    selections, for each pair. The grid has as many points below 0 as above. None if it would take
    too long.
    """
    grid = _grid(runs, delta, math.floor)
    if grid is None:
        return None
    step, widths, points = grid
    indices = np.arange(-points, points + 1)
    grown = np.exp(indices * float(step))
    p = q = (indices < 0).astype(np.float64)
    for width, count in reversed(widths):
        table = _strategies(step, width)
        for _ in range(count):
            p, q = _before(p, q, width, table, grown)
    return step, p, q


def _strategies(step: Fraction, width: int) -> list[tuple[float, float, float, float]]:
    """Chances of the larger and the smaller loss, below, and without the row, above."""
    out = []
    for j in range(width + 1):
        t, most = ball(j * step), ball(width * step)
        up = (1 - (t - most).exp()) / (1 - (-most).exp())
        low = [math.nextafter(float(v.lower()), -1.0) for v in (up, 1 - up)]
        high = above(up * (-t).exp()), above((1 - up) * (most - t).exp())
        out.append((max(low[0], 0.0), max(low[1], 0.0), *high))
    return out


def _before(
    p: Array, q: Array, width: int, table: list[tuple[float, float, float, float]], grown: Array
) -> tuple[Array, Array]:
    """The same before one more selection; which loss is best is only a guess."""
    size, sides = len(p), (np.ones(width), np.zeros(width))
    wide_p, wide_q = (np.concatenate([sides[0], v, sides[1]]) for v in (p, q))
    best_p, best_q, best = np.zeros(size), np.zeros(size), np.zeros(size)
    for j, (a, b, c, d) in enumerate(table):
        near, far = slice(width - j, width - j + size), slice(2 * width - j, 2 * width - j + size)
        new_p = _down(a * wide_p[near] + b * wide_p[far])
        new_q = _up(c * wide_q[near] + d * wide_q[far])
        value = new_p - grown * new_q
        better = value > best
        best = np.where(better, value, best)
        best_p, best_q = np.where(better, new_p, best_p), np.where(better, new_q, best_q)
    return best_p, best_q
