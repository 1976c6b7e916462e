"""Quantiles and the spread of labels, from noisy counts of them in cells of the declared range.

Reads what was released and public numbers only.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

__all__ = ["quantiles", "spread"]

_DEVIATIONS = 2.5631  # between the first and the last decile of a normal distribution


def quantiles(
    sums: list[int], levels: tuple[float, ...], low: float, high: float, floor: float
) -> list[float]:
    """Values below which the given shares of the labels lie, in rising order."""
    below = _rising(np.cumsum(np.asarray(sums, dtype=np.float64)))
    total = float(below[-1])
    edges = np.linspace(low, high, len(sums) + 1)
    if total <= floor:
        return [low + level * (high - low) for level in levels]
    shares = np.concatenate([[0.0], np.clip(below / total, 0.0, 1.0)])
    return [float(np.interp(level, shares, edges)) for level in levels]


def spread(sums: list[int], low: float, high: float, floor: float) -> float:
    """About the standard deviation of the labels, at least half a cell; in their unit."""
    first, last = quantiles(sums, (0.1, 0.9), low, high, floor)
    return max((last - first) / _DEVIATIONS, (high - low) / (2 * len(sums)))


def _rising(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """The nearest sequence that never falls, by squares (pool adjacent violators)."""
    means: list[float] = []
    sizes: list[int] = []
    for value in values:
        mean, size = float(value), 1
        while means and means[-1] >= mean:
            mean = (mean * size + means[-1] * sizes[-1]) / (size + sizes[-1])
            size += sizes.pop()
            means.pop()
        means.append(mean)
        sizes.append(size)
    assert math.fsum(sizes) == len(values)
    return np.repeat(means, sizes)
