"""Means of labels and of exposures, from the noisy sums that are released before the first tree.

Reads what was released and public numbers only.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ..calibrate import Calibration
from ..request.losses import MEANS, Measured
from ..request.settings import Settings


@dataclass(frozen=True)
class Sums:
    """What one release of label sums has said, per row."""

    rows: float  # their number, at least what noise alone may be
    floor: float  # standard deviation of the noise of a sum, in rows, at least 1
    label: float  # mean of labels, on [-1, 1]
    exposure: float | None  # the same of exposures; None where they are not released

    @classmethod
    def of(cls, s: Settings, noise: Calibration, sums: Sequence[int], position: int = 0) -> Sums:
        """Read the noisy integers of a release, in units of ``2**-shift``."""
        unit = float(2 ** noise["intercept"].shift)
        floor = max(math.sqrt(noise["intercept"].sigma2) / unit, 1.0)
        public = s["dp_n_public"]
        rows = max(sums[s.labels] / unit if public is None else float(public), floor)
        exposure = _within(sums[-1] / unit / rows) if s.exposures is not None else None
        return cls(rows, floor, _expected(sums[position] / unit / rows, floor / rows), exposure)

    def mean(self, low: float, high: float) -> float:
        """The mean of labels of a range."""
        half = (high - low) / 2
        # At least the standard deviation of its noise, so that it has a logarithm.
        least = min(low + half * self.floor / self.rows, low + half)
        return max(low + half + half * self.label, least)

    def mean_exposure(self, low: float, high: float) -> float:
        """The mean of exposures of a range above 0."""
        assert self.exposure is not None
        return max((low + high) / 2 + (high - low) / 2 * self.exposure, low)


def _within(value: float) -> float:
    return min(max(value, -1.0), 1.0)


def _expected(mean: float, noise: float) -> float:
    """The mean in [-1, 1] to expect where it is told with noise, and was as likely anywhere.

    An intercept at an end of its range, where noise has put it, would be worse than none.
    """
    noise *= math.sqrt(1.0 + _within(mean) ** 2)  # that of the number of rows besides
    mean = min(max(mean, -1.0 - 3.0 * noise), 1.0 + 3.0 * noise)
    ends = ((-1.0 - mean) / noise, (1.0 - mean) / noise)
    low, high = (0.5 * math.erfc(-end / math.sqrt(2.0)) for end in ends)
    first, last = (math.exp(-0.5 * end * end) for end in ends)
    return _within(mean + noise * (first - last) / math.sqrt(2.0 * math.pi) / (high - low))


def cap(s: Settings, noise: Calibration, sums: Sequence[int]) -> float:
    """Where labels are cut, from the first release."""
    return MEANS.cap(s, Sums.of(s, noise, sums).mean(*s.window))


def measured(
    s: Settings, noise: Calibration, sums: Sequence[int], capped: Sequence[int]
) -> Measured:
    """What a loss of means takes from both releases."""
    first = Sums.of(s, noise, sums)
    mean, at = first.mean(*s.window), cap(s, noise, sums)
    capped_mean = Sums.of(s, noise, capped).mean(s.window[0], at)
    start = 0.0
    if s.exposures is not None:
        start = math.log(mean / first.mean_exposure(*s.exposures))
    return Measured(mean, at, min(capped_mean, mean), start)
