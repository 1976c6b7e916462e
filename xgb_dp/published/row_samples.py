"""Rounds that read some of the rows: the event that they are, and how much louder they may be."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..accounting.events import PlainEvent
from ..accounting.nested import RoundsEvent
from ..releases.release import Reading
from .rounds import AllocatedEvent, SampledEvent, squared_parts

if TYPE_CHECKING:
    from ..calibrate.mechanisms import Releases

_SAMPLE_BITS = 32


class Samples(Reading):
    """Each round reads a Poisson sample of its own."""

    @staticmethod
    def wanted(asked: Releases) -> bool:
        """With ``subsample``."""
        return asked.sampling_num < 1 << _SAMPLE_BITS

    @staticmethod
    def louder(asked: Releases, each: float, *, linear: bool, secret: bool) -> float:
        """With many rounds q^2 (e^(mu^2) - 1) is left of mu^2 (Bu, Dong, Long and Su 2020)."""
        rate = asked.sampling_num / 2**_SAMPLE_BITS
        if linear:
            return math.log1p(math.expm1(min(each, 700.0)) / rate) / each
        return math.log1p(each / rate**2) / each

    @staticmethod
    def event(asked: Releases, of_round: Sequence[PlainEvent]) -> RoundsEvent:
        """All rounds, which read samples."""
        return SampledEvent(asked.sampling_num, _SAMPLE_BITS, tuple(of_round), asked.rounds)


class Ensembles(Reading):
    """The rounds of an ensemble read disjoint parts of the rows."""

    @staticmethod
    def wanted(asked: Releases) -> bool:
        """With ``dp_ensemble``."""
        return asked.ensemble > 1

    @staticmethod
    def louder(asked: Releases, each: float, *, linear: bool, secret: bool) -> float:
        """Where nobody knows the part of a row, as for samples, by the square of each part."""
        if linear or not secret:
            return 1.0
        squares = squared_parts(asked.ensemble, halving=asked.ensemble_halving)
        return max(1.0, math.log1p(each / squares) / each)

    @staticmethod
    def event(asked: Releases, of_round: Sequence[PlainEvent]) -> RoundsEvent:
        """All ensembles."""
        charged, halving = asked.charged_rounds, asked.ensemble_halving
        return AllocatedEvent(asked.ensemble, tuple(of_round), charged, halving)
