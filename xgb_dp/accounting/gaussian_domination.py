"""Bounds many selections of equal range by Gaussians, block by block.

Proof: docs/proofs/accounting.md, "Blocks". The mu of the Gaussian exceeds the central limit by a
relative 0.4 / (selections of a block), approximately.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
import scipy

from .bounded_range import tail_curve
from .curve import doubled, narrow
from .gaussian import gaussian_delta

_FEW = 1000  # up to this number, selections are composed one by one
_FEWEST = 100  # minimum length of a run that is divided into blocks
_BLOCK_SIZES = (1000, 250, 60)  # the curve of a smaller block has fewer values that round to 1
_LOWEST_LOG = -640.0
_REACH = 1.25


def merge_blocks(
    steps: Sequence[tuple[float, int]], log_extra: float, work: float
) -> tuple[float, list[tuple[float, int]], float]:
    """mu of Gaussians for long runs (eps0, count) of selections, the other runs, and the excess."""
    if sum(n for _, n in steps) <= _FEW:
        return 0.0, list(steps), 0.0
    long = {step for step in steps if step[1] >= _FEWEST}
    mu2, left, extra = [], [], 0.0
    fits = {
        step: _fit(*step, log_extra - math.log(steps.count(step) * len(long)), work / len(long))
        for step in long
    }
    for step in steps:
        fit = fits.get(step)
        if fit is None:
            left.append(step)
        else:
            mu2.append(fit[0])
            extra += fit[1]
    return math.sqrt(math.fsum(mu2)) * (1.0 + 1e-14), left, extra * (1.0 + 1e-9)


def _fit(eps0: float, count: int, log_extra: float, work: float) -> tuple[float, float] | None:
    """mu^2 of all blocks of a run, and the excess over their Gaussian; None if no mu is found."""
    for size in _BLOCK_SIZES:
        number = -(-count // size)
        log_each = max(log_extra - math.log(number), _LOWEST_LOG)
        mu = block_mu(eps0, -(-count // number), log_each, work)
        if mu is not None:
            return number * mu * mu, number * math.exp(log_each)
    return None


def block_mu(eps0: float, count: int, log_extra: float, work: float) -> float | None:
    """A mu such that the Gaussian curve plus exp(log_extra) bounds `count` selections."""
    tail = tail_curve(((eps0, count),), 0.0, log_extra, work)
    if tail is None:
        return None
    grid, curve = tail
    above = curve[grid.below :]  # the other half follows by symmetry
    return dominating_mu(above, grid.step, math.exp(log_extra), 0.5 * eps0 * math.sqrt(count))


def dominating_gaussian(
    deltas: Callable[[list[float], float], Sequence[float]],
    extra: float,
    at_zero: float,
    points_per_mu: int = 30,
) -> float | None:
    """A mu such that the Gaussian curve plus `extra` bounds a curve that holds in both orders."""
    if at_zero >= 1.0:
        return None

    def is_less(mu: float) -> bool:
        return gaussian_delta(0.0, mu) < at_zero

    scale = narrow(is_less, 0.0, doubled(is_less, 1e3)[1], 60)[1]
    step = scale / points_per_mu
    reach = scale * scale / 2.0 + scale * math.sqrt(-2.0 * math.log(extra))
    points = [i * step for i in range(math.ceil(_REACH * reach / step) + 2)]
    return dominating_mu(np.array(deltas(points, extra)), step, extra, scale, most=4.0)


def dominating_mu(
    curve: npt.NDArray[np.float64], step: float, extra: float, guess: float, most: float = 1.5
) -> float | None:
    """A mu whose Gaussian curve plus `extra` bounds a curve, given on a grid, in both orders."""
    extra *= 1.0 - 1e-9
    if curve[-1] > extra:
        return None
    middles = (np.arange(len(curve) - 1, dtype=np.float64) + 0.5) * step

    def is_above(scale: float) -> bool:
        return _is_above(scale * guess, middles, step, curve, extra)

    return narrow(is_above, most, 0.5, 36)[0] * guess if is_above(most) else None


def _is_above(
    mu: float,
    middles: npt.NDArray[np.float64],
    step: float,
    curve: npt.NDArray[np.float64],
    extra: float,
) -> bool:
    """Whether the Gaussian curve plus `extra` is provably above all chords of `curve`.

    The Gaussian curve is convex in e^x, so it lies above its tangent at the middle of each segment.
    This tangent must lie above both ends of the chord.
    """
    far = mu / 2.0 + middles / mu
    log_a = scipy.special.log_ndtr(mu / 2.0 - middles / mu)
    log_b = middles + scipy.special.log_ndtr(-far)
    a, b = np.exp(log_a), np.exp(log_b)
    # Exceeds all rounding errors in this function; the exponents dominate them.
    error = 1e-15 * (32.0 + 4.0 * far * far + middles) * (a + b)
    middle = a - b - error + extra
    left = middle - b * math.expm1(-0.5 * step)
    right = middle - b * math.expm1(0.5 * step)
    return bool(np.all(curve[:-1] <= left) and np.all(curve[1:] <= right))
