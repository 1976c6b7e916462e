"""How many rows lie beyond the public bounds at which figures clip labels, errors and losses.

A figure of clipped numbers says nothing of those beyond the bounds. So a row adds to one more sum
for each bound whether it lies beyond, and the report shows these shares next to the figures.

Proof: docs/proofs/evaluation.md
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from ..noisy_sums import Floats, Ints
from .figure import Figure
from .values import FINE_UNIT

_SHARE = 0.05  # of the squared norm of a row


@dataclass(frozen=True)
class Beyond:
    """The shares of the rows beyond each bound, and what they say of the figures."""

    texts: Mapping[str, str] = field(default_factory=dict)
    shares: Mapping[str, Figure] = field(default_factory=dict)

    def figures(self, clipped: Mapping[str, Figure]) -> dict[str, Figure]:
        """Figures of clipped numbers under names that say so, and the shares beyond the bounds."""
        before = "clipped " if self.texts else ""
        names = {f"{before}{name}": figure for name, figure in clipped.items()}
        return names | {f"{name} beyond": figure for name, figure in self.shares.items()}

    def statement(self, whom: str) -> str:
        """What the clipped figures are about, and how much lies beyond; empty without bounds."""
        if not self.texts:
            return ""
        head = (
            'A figure named "clipped" is of clipped numbers. Its interval covers the clipped '
            "figure of the population and not the true one: it promises nothing of errors beyond "
            "the bounds."
        )
        said = [
            f"{text}: about {share.value:.2%} ({share.low:.2%} to {share.high:.2%}) of the {whom}."
            for text, share in zip(self.texts.values(), self.shares.values(), strict=True)
        ]
        return " ".join([head, *said])


@dataclass(frozen=True)
class Limits:
    """The bounds of one kind of model; public."""

    texts: Mapping[str, str] = field(default_factory=dict)  # by what is clipped, in the plural

    @property
    def rest(self) -> float:
        """Share of the squared norm of a row that is left for the other sums."""
        return 1.0 - _SHARE if self.texts else 1.0

    def _weight(self, share: float) -> int:
        return round(FINE_UNIT * math.sqrt(share * _SHARE / len(self.texts)))

    def matrices(self, share: float) -> list[Ints]:
        """The block: a row is in one of 2^k cells, by the bounds that it lies beyond.

        To each of the k sums it adds a weight if it lies beyond that bound, and takes the same
        weight off if not. Halved with the number of rows, which has little noise, the sum has half
        of the noise of a plain count.
        """
        if not self.texts:
            return []
        bits = np.arange(len(self.texts))[:, np.newaxis]
        beyond = np.arange(1 << len(self.texts)) >> bits & 1
        return [self._weight(share) * (2 * beyond - 1)]

    def cells(self, beyond: Mapping[str, npt.NDArray[np.bool_]]) -> list[Ints]:
        """The cell of each row, by which of its numbers lie beyond their bounds."""
        if not self.texts:
            return []
        flags = (beyond[name].astype(np.int64) << place for place, name in enumerate(self.texts))
        return [np.asarray(sum(flags), dtype=np.int64)]

    def read(
        self,
        sums: Sequence[Floats],
        share: float,
        noise: float,
        rows: tuple[float, float],
        level: float,
    ) -> Beyond:
        """The shares of the rows beyond the bounds.

        Args:
            sums: The sums of the block; empty without bounds.
            share: That of all blocks of these rows in the squared norm of a row.
            noise: Standard deviation of the noise of each sum.
            rows: The noisy number of rows, and the variance of its noise.
            level: Probability with which an interval is to cover.
        """
        shares: dict[str, Figure] = {}
        total, around = rows
        for name, value in zip(self.texts, sums[0] if self.texts else (), strict=True):
            weight = self._weight(share)
            variance = 0.25 * ((noise / weight) ** 2 + around)
            covariance = np.array([[variance, 0.5 * around], [0.5 * around, around]])
            part = 0.5 * (float(value) / weight + total)
            shares[name] = Figure.share(part, total, covariance, level)
        return Beyond(self.texts, shares)


def outside(values: Floats, low: float, high: float) -> npt.NDArray[np.bool_]:
    """Which values lie beyond bounds, both as the 32-bit floats that models and matrices hold."""
    narrow = np.asarray(values, dtype=np.float32)
    return np.asarray(~((narrow >= np.float32(low)) & (narrow <= np.float32(high))))
