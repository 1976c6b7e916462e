"""Many selections of one range: the Gaussian that bounds a block of them, block by block.

Proof: docs/proofs/accounting.md, "Blocks". The excess of the Gaussian's mu over that of the central
limit is about 0.4 / selections of a block.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from scipy.special import log_ndtr

from .bounded_range import tail_curve

__all__ = ["block_mu", "merge_blocks"]

_FEW = 1000  # selections that are composed one by one
_LARGEST_BLOCK = 1000
_SMALLEST_BLOCK = 100
_LOWEST_LOG = -640.0


def merge_blocks(
    steps: Sequence[tuple[float, int]], log_extra: float, work: float
) -> tuple[float, list[tuple[float, int]], float]:
    """Replace long runs of equal selections by Gaussians.

    Args:
        steps: (eps0, count) in release order.
        log_extra: Log of what the bound of the curve may be raised by.
        work: Elementary operations that all this may take, about.

    Returns:
        mu of all the Gaussians, the selections that are left, and what is to be added to the curve.
    """
    if sum(n for _, n in steps) <= _FEW:
        return 0.0, list(steps), 0.0
    blocks = {step: _blocks(step[1]) for step in steps if step[1] >= _SMALLEST_BLOCK}
    if not blocks:
        return 0.0, list(steps), 0.0
    number = sum(blocks[step] for step in steps if step in blocks)
    log_each = max(log_extra - math.log(number), _LOWEST_LOG)
    found = {
        (e, n): block_mu(e, -(-n // b), log_each, work / len(blocks))
        for (e, n), b in blocks.items()
    }
    mu2, used, left = [], 0, []
    for step in steps:
        mu = found.get(step)
        if mu is None:
            left.append(step)
        else:
            mu2.append(blocks[step] * mu * mu)
            used += blocks[step]
    mu = math.sqrt(math.fsum(mu2)) * (1.0 + 1e-14)
    return mu, left, used * math.exp(log_each) * (1.0 + 1e-9)


def _blocks(count: int) -> int:
    return -(-count // _LARGEST_BLOCK)


def block_mu(eps0: float, count: int, log_extra: float, work: float) -> float | None:
    """A mu whose Gaussian curve, raised by exp(log_extra), is above that of `count` selections.

    Args:
        eps0: Range of each of them, > 0.
        count: How many, >= 1.
        log_extra: At least -650.
        work: Target for the elementary operations.

    Returns:
        About the smallest such mu; None if there is none at a reasonable cost.
    """
    found = tail_curve([(eps0, count)], 0.0, log_extra, work)
    if found is None:
        return None
    grid, curve = found
    extra = math.exp(log_extra) * (1.0 - 1e-9)
    above = curve[grid.below :]  # the other half follows by symmetry
    if above[-1] > extra:
        return None
    middles = (np.arange(len(above) - 1) + 0.5) * grid.step
    limit = 0.5 * eps0 * math.sqrt(count)
    low, high = 0.5, 4.0
    if not _is_above(high * limit, middles, grid.step, above, extra):
        return None
    for _ in range(36):
        scale = 0.5 * (low + high)
        if _is_above(scale * limit, middles, grid.step, above, extra):
            high = scale
        else:
            low = scale
    return high * limit


def _is_above(
    mu: float,
    middles: npt.NDArray[np.float64],
    step: float,
    curve: npt.NDArray[np.float64],
    extra: float,
) -> bool:
    """Whether the Gaussian curve plus `extra` is above all chords of `curve`, for sure.

    It is convex in e^x, so above its tangent in the middle of each segment; that must be above both
    ends of the chord.
    """
    far = mu / 2.0 + middles / mu
    log_a = log_ndtr(mu / 2.0 - middles / mu)
    log_b = middles + log_ndtr(-far)
    a, b = np.exp(log_a), np.exp(log_b)
    # More than the rounding of everything here, of which the exponents have the most.
    error = 1e-15 * (32.0 + 4.0 * far * far + middles) * (a + b)
    middle = a - b - error + extra
    left = middle - b * math.expm1(-0.5 * step)
    right = middle - b * math.expm1(0.5 * step)
    return bool(np.all(curve[:-1] <= left) and np.all(curve[1:] <= right))
