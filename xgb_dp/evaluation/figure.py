"""A figure of an evaluation with its interval.

All of it is post-processing of released counts and costs nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from ..noisy_sums import Floats

_TINY = 1e-9


@dataclass(frozen=True)
class Figure:
    """A figure with its interval.

    Attributes:
        value: What is estimated for the rows that were evaluated.
        low: Lower end of the interval, which holds the noise of the release and that of sampling:
            it is about the population that the rows were drawn from.
        high: Upper end.
        noise: Standard deviation of what the noise of the release alone adds.

    Examples:
        >>> auc = judged.auc
        >>> auc.low <= float(auc) <= auc.high
        True
    """

    value: float
    low: float
    high: float
    noise: float

    @classmethod
    def around(
        cls,
        value: float,
        spread: float,
        noise: float,
        level: float,
        *,
        low: float = -np.inf,
        high: float = np.inf,
    ) -> Figure:
        """A figure with a normal interval, both within what the figure can be.

        Args:
            value: What is estimated.
            spread: Standard deviation by the noise of the release and by sampling.
            noise: That by the noise of the release alone.
            level: Probability with which the interval covers.
            low: Lowest value that the figure has.
            high: Highest value that it has.
        """
        value = min(max(value, low), high)
        wide = float(ndtri(0.5 + 0.5 * level)) * spread
        return cls(value, max(value - wide, low), min(value + wide, high), noise)

    @classmethod
    def quotient(
        cls,
        parts: npt.ArrayLike,
        noise: Floats,
        spread: Floats,
        level: float,
        *,
        low: float = -np.inf,
        high: float = np.inf,
    ) -> Figure:
        """A quotient of two noisy numbers, of which the second is above 0 in truth.

        The interval has all q for which numerator less q times denominator may be 0 (Fieller 1954).
        Where noise leaves open whether the denominator is 0 it reaches to the ends of the range.

        Args:
            parts: Numerator and denominator.
            noise: Their covariance by the noise of the release, (2, 2).
            spread: That by the noise and by sampling. It is only used as the variance of
                numerator less q times denominator, and may be any that is right for each q.
            level: Probability with which the interval covers.
            low: Lowest value that the quotient has.
            high: Highest value that it has.
        """
        a, b = (float(part) for part in np.asarray(parts))
        (va, cov), (_, vb) = spread.tolist()
        z2 = float(ndtri(0.5 + 0.5 * level)) ** 2
        # A denominator within its own noise says no more than that it may be as large as this.
        den = max(b, max(vb, 0.0) ** 0.5, _TINY)
        value = min(max(a / den, low), high)
        pull = np.array([1.0, -value]) / den
        square, half, rest = b * b - z2 * vb, a * b - z2 * cov, a * a - z2 * va
        disc = half * half - square * rest
        first, last = -np.inf, np.inf
        if disc >= 0.0 and square != 0.0:
            one, other = sorted((half + side * disc**0.5) / square for side in (-1.0, 1.0))
            if square > 0.0:
                first, last = one, other
            else:  # all but what lies between both, of which one side may be out of the range
                first = -np.inf if one >= low else other
                last = np.inf if other <= high else one
        first, last = max(first, low), min(last, high)
        deviation = max(float(pull @ noise @ pull), 0.0) ** 0.5
        return cls(value, min(first, value), max(last, value), deviation)

    @classmethod
    def share(cls, part: float, rows: float, noise: Floats, level: float) -> Figure:
        """The share of some of the rows, from two noisy counts.

        The interval has every share that is refuted neither by the noise of the release nor by the
        rows that were drawn: a score interval (Wilson 1927) with noise.

        Args:
            part: Noisy number of these rows.
            rows: Noisy number of all rows.
            noise: Covariance of both by the noise of the release, (2, 2).
            level: Probability with which the interval covers.
        """
        n = max(rows, 0.0)
        part = min(max(part, 0.0), n)  # which shortens no interval
        # Of n rows of a population with the share q, those less q n have the variance n q (1 - q).
        sampling = -n * np.array([[0.0, 0.5], [0.5, 1.0]])
        return cls.quotient((part, n), noise, noise + sampling, level, low=0.0, high=1.0)

    def moved(self, of: Callable[[float], float]) -> Figure:
        """A monotone function of the figure. Its noise is what one deviation upwards changes.

        Args:
            of: The function, also above the highest value of the figure.
        """
        value, low, high = of(self.value), *sorted((of(self.low), of(self.high)))
        return Figure(value, low, high, abs(of(self.value + self.noise) - value))

    def __float__(self) -> float:
        return self.value

    def __str__(self) -> str:
        return f"{self.value:.4f} ({self.low:.4f} to {self.high:.4f})"


def as_json(figures: Mapping[str, Figure]) -> dict[str, dict[str, float | None]]:
    """Figures as JSON has them; what is infinite is None."""
    return {
        name: {key: v if math.isfinite(v) else None for key, v in vars(figure).items()}
        for name, figure in figures.items()
    }


def figure_of(drawn: Any, of: Callable[[Floats], Floats], low: float, high: float) -> Figure:
    """A smooth function of counts.

    They are `counts`, with `draws` as likely, given the sums that were released, and `sampled`
    draws of other rows of the same population.
    """
    noise, spread = (float(np.std(of(counts))) for counts in (drawn.draws, drawn.sampled))
    value = float(of(drawn.counts))
    return Figure.around(value, spread, noise, drawn.level, low=low, high=high)


def quotient_of(drawn: Any, parts: Callable[[Floats], Floats], low: float, high: float) -> Figure:
    """A quotient of two smooth functions of counts, (..., 2); see :func:`figure_of`."""
    noise, spread = (np.cov(parts(counts), rowvar=False) for counts in (drawn.draws, drawn.sampled))
    return Figure.quotient(parts(drawn.counts), noise, spread, drawn.level, low=low, high=high)


def rising(values: Floats) -> Floats:
    """Noisy values of a rising function, made to rise along the last axis."""
    up = np.maximum.accumulate(values, axis=-1)
    down = np.minimum.accumulate(values[..., ::-1], axis=-1)[..., ::-1]
    return np.asarray(0.5 * (up + down))
