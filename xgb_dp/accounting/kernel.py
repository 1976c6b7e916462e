"""Computes the curve of composed selections in NumPy, where libxgboost is not loaded.

It computes the bound of ``plugin_cpp/accounting/bounded_range.cc`` operation by operation, so both
give the same numbers. It takes about ten times as long. Proof: docs/proofs/accounting.md,
"Selections".
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

__all__ = ["bounded_range_curve", "width"]

_UNIT_ROUNDOFF = 2.0**-53
_Array = npt.NDArray[np.float64]


def width(eps0: float, h: float) -> int:
    """Steps of the grid that one range takes."""
    # m * h >= eps0 also in exact arithmetic: a larger range dominates a smaller one.
    m = max(1, math.ceil(eps0 / h))
    while m * h < eps0 * (1.0 + 4.0 * _UNIT_ROUNDOFF):
        m += 1
    return m


@dataclass(frozen=True)
class _TwoPoint:
    """The two-point laws {t_j, t_j - eps0}, t_j = j h, eps0 = m h."""

    m: int
    q: list[float]  # P-probability of the loss t_j
    p: list[float]  # 1 - q, without cancellation
    dq: list[float]  # q_j - q_{j+1}
    kappa: list[float]  # bound of q's departure from its chord: see the proof

    @classmethod
    def of(cls, eps0: float, h: float) -> _TwoPoint:
        m = width(eps0, h)
        denominator = -math.expm1(-(m * h))
        growth = math.expm1(h)
        left = [(m - j) * h for j in range(m + 1)]  # eps0 - t_j
        scaled = [math.exp(-x) / denominator for x in left]
        return cls(
            m=m,
            q=[-math.expm1(-x) / denominator for x in left],
            p=[-math.expm1(-j * h) * s for j, s in enumerate(scaled)],
            dq=[s * growth for s in scaled],
            kappa=[s * growth * growth for s in scaled],
        )


def _step(v: _Array, n: int, law: _TwoPoint) -> _Array:
    """One step of the recursion at n points. v has m more points on either side."""
    m = law.m
    out = np.zeros(n)

    def at(j: int) -> tuple[_Array, _Array]:
        """The mean over the distribution of t_j, and the difference of its two values."""
        near, far = v[m - j : m - j + n], v[2 * m - j : 2 * m - j + n]
        return law.q[j] * near + law.p[j] * far, near - far

    left, gap_left = at(0)
    for j in range(m):
        right, gap_right = at(j + 1)
        # Between t_j and t_{j+1} the value is at most a chord plus a parabola of this bend.
        bend = law.dq[j] * (gap_right - gap_left) + law.kappa[j] * np.maximum(gap_left, gap_right)
        bump = bend - np.abs(right - left)
        np.maximum(out, np.maximum(left, right) + 0.25 * np.maximum(bump, 0.0), out=out)
        left, gap_left = right, gap_right
    return out


def bounded_range_curve(
    steps: Sequence[tuple[float, int]], h: float, below: int, above: int
) -> _Array:
    """Upper bounds of the hockey-stick curve of selections on a grid."""
    if not 0.0 < h <= 0.5:
        raise RuntimeError("The grid step must lie in (0, 0.5].")
    if not all(0.0 < eps0 < math.inf and eps0 / h < 1e7 and count >= 0 for eps0, count in steps):
        raise RuntimeError("A range must be positive and finite, and not too large for the grid.")
    n = below + above + 1
    curve = np.zeros(n)
    curve[:below] = [-math.expm1(-(below - i) * h) for i in range(below)]  # nothing released
    rounding = 64.0  # relative error in units of 2^-53; every step is a sum of positives
    x_min = -below * h
    for eps0, count in reversed(steps):
        law = _TwoPoint.of(eps0, h)
        m = law.m
        # The curve falls by at most the growth of e^x: below the grid it is bounded by this.
        growth = np.array([math.exp(x_min) * -math.expm1(-d * h) for d in range(m, 0, -1)])
        padded = np.empty(n + 2 * m)
        for _ in range(count):
            padded[m : m + n] = curve
            padded[:m] = np.minimum(curve[0] + growth, 1.0)
            padded[m + n :] = curve[-1]
            curve = _step(padded, n, law)
        rounding += count * (64.0 + 8.0 * m * h)
    # The true curve does not increase, so a smaller bound to the left bounds what follows too.
    return np.minimum.accumulate(
        np.minimum(curve * (1.0 + rounding * _UNIT_ROUNDOFF) + 1e-300, 1.0)
    )
