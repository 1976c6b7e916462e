"""The distribution of the secret number of runs of a private selection.

Proof: docs/proofs/selection.md, "The number of runs"
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy

from ..errors import LedgerError

SHAPE_BITS = 16
RATE_BITS = 32
_FAMILIES = ("negative_binomial", "poisson")
_UP = 1.0 + 1e-12
_RANKS = 1500

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Repetitions:
    """Law of the secret number of runs, K >= 1.

    Attributes:
        family: "negative_binomial", truncated to K >= 1: P(K = k) is proportional to
            (1 - gamma)^k (eta + 1) ... (eta + k - 1) / k!, which is logarithmic for eta = 0 and
            geometric for eta = 1; or "poisson", given K >= 1.
        shape_num: eta in units of 2**-16, -1 < eta <= 1; 0 for Poisson.
        rate_num: gamma in (0, 1), or the rate of the Poisson law, in units of 2**-32.

    Examples:
        >>> from xgb_dp.accounting import Repetitions
        >>> runs = Repetitions.of("logarithmic", mean=4.0)
        >>> round(runs.mean, 3)
        4.0
    """

    family: str
    shape_num: int
    rate_num: int

    def __post_init__(self) -> None:
        if self.family not in _FAMILIES:
            raise LedgerError(
                "A selection of the privacy ledger draws its number of runs from an unknown "
                f"`family`; known ones are {', '.join(_FAMILIES)}."
            )
        whole = type(self.shape_num) is int and type(self.rate_num) is int
        if self.family == "poisson":
            sound = whole and self.shape_num == 0 and 1 <= self.rate_num <= 10**6 << RATE_BITS
        else:
            sound = (
                whole
                and -1 << SHAPE_BITS < self.shape_num <= 1 << SHAPE_BITS
                and 1 <= self.rate_num < 1 << RATE_BITS
            )
        if not sound:
            raise LedgerError(
                "A selection of the privacy ledger draws its number of runs from a distribution "
                "that is out of range."
            )

    @classmethod
    def of(cls, family: str, mean: float) -> Repetitions:
        """The law of a name with about this mean.

        Args:
            family: "logarithmic", "geometric", "negative_binomial" (eta = -1/2) or "poisson".
            mean: Expected number of runs, above 1 and at most 1000 ("negative_binomial": 100).

        Raises:
            ValueError: Another name, or a mean out of range.
        """
        shapes = {"logarithmic": 0.0, "geometric": 1.0, "negative_binomial": -0.5}
        if family != "poisson" and family not in shapes:
            raise ValueError(f"must be one of {', '.join(shapes)}, poisson.")
        most = 100 if family == "negative_binomial" else 1000  # the exact sampler takes long
        if not 1.0 < mean <= most:
            raise ValueError(f"must be a number above 1 and at most {most}.")
        units = 2.0**RATE_BITS
        if family == "poisson":
            rate = scipy.optimize.brentq(lambda r: -r / math.expm1(-r) - mean, 1e-9, mean + 1.0)
            return cls("poisson", 0, max(1, round(rate * units)))
        shape = shapes[family]

        def excess(log_gamma: float) -> float:
            return math.log(_mean(shape, math.exp(log_gamma))) - math.log(mean)

        gamma = math.exp(scipy.optimize.brentq(excess, math.log(2.0 / units), math.log1p(-1e-9)))
        num = min(max(1, round(gamma * units)), (1 << RATE_BITS) - 1)
        return cls("negative_binomial", round(shape * 2**SHAPE_BITS), num)

    @property
    def shape(self) -> float:
        """The shape eta."""
        return self.shape_num / 2.0**SHAPE_BITS

    @property
    def rate(self) -> float:
        """Gamma, or the rate of the Poisson law."""
        return self.rate_num / 2.0**RATE_BITS

    @property
    def mean(self) -> float:
        """Expected number of runs, rounded upwards."""
        if self.family == "poisson":
            return -self.rate / math.expm1(-self.rate) * _UP
        return _mean(self.shape, self.rate) * (1.0 + 1e-9)

    def weight(self, better: Array) -> Array:
        """f'(F) / f'(1) where a run is better with chance 1 - F; f(x) = E x^K."""
        if self.family == "poisson":
            return np.asarray(np.exp(-self.rate * better))
        grown = 1.0 + better * (1.0 - self.rate) / self.rate
        return np.asarray(grown ** -(1.0 + self.shape))

    @property
    def ranks(self) -> Array:
        """Chances from 0 to 1 between which the weight changes by a little."""
        parts = np.linspace(0.0, 1.0, _RANKS)
        if self.family == "poisson":
            return parts
        ranks = np.expm1(parts * -math.log(self.rate)) * self.rate / (1.0 - self.rate)
        return np.asarray(np.clip(np.append(ranks[:-1], 1.0), 0.0, 1.0))


def _mean(shape: float, gamma: float) -> float:
    if shape == 0.0:
        return (1.0 / gamma - 1.0) / -math.log(gamma)
    return shape * (1.0 - gamma) / (gamma * -math.expm1(shape * math.log(gamma)))
