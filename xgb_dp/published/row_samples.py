"""Rounds that read some of the rows: their parameters, their event, and how loud they may be."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..accounting.events import PlainEvent
from ..accounting.nested import RoundsEvent
from ..parameters.parameter import SPENDS, Parameter, Rule, Table
from ..parameters.parse import Number, Whole
from ..releases.release import Reading
from .rounds import ParallelEvent, SampledEvent

if TYPE_CHECKING:
    from ..calibrate.mechanisms import Releases
    from ..request.settings import Settings

_SAMPLE_BITS = 32


def _subsample(name: str, value: Any, s: Settings) -> float:
    """A whole number out of 2^32, which is what is drawn and accounted."""
    rate = Number(0, 1, open_low=True)(name, value)
    return max(1, round(rate * 2**_SAMPLE_BITS)) / 2**_SAMPLE_BITS


# fmt: off
_OF_SAMPLES = (
    Parameter("subsample", "probability with which a round reads a row; secret coins, so that "
              "privacy is amplified", _subsample, 1.0, SPENDS, "sampling", Table.PUBLISHED,
              unit="probability", values="0 < value <= 1"),
)
_OF_ENSEMBLES = (
    Parameter("dp_ensemble", "how many rounds form one ensemble. They read disjoint random parts "
              "of the rows, so together they cost one round", Whole(1, 1 << 16), 1,
              SPENDS, "accounting", Table.PUBLISHED, unit="rounds",
              shown="1: every round reads all rows", plan="ensemble"),
)
_RULES = (
    Rule("one choice of rows",
         lambda s: s["dp_ensemble"] > 1 and s["subsample"] != 1.0,
         "Give `dp_ensemble` or `subsample`, not both: either decides which rows a round reads."),
)
# fmt: on


class Samples(Reading):
    """Each round reads a Poisson sample of its own."""

    parameters = _OF_SAMPLES

    @staticmethod
    def wanted(asked: Releases) -> bool:
        """With ``subsample``."""
        return asked.sampling_num < 1 << _SAMPLE_BITS

    @staticmethod
    def louder(asked: Releases, each: float, *, linear: bool) -> float:
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

    parameters = _OF_ENSEMBLES
    rules = _RULES

    @staticmethod
    def wanted(asked: Releases) -> bool:
        """With ``dp_ensemble``."""
        return asked.ensemble > 1

    @staticmethod
    def louder(asked: Releases, each: float, *, linear: bool) -> float:
        """A row is in one round of an ensemble, and pays for that round."""
        return 1.0

    @staticmethod
    def event(asked: Releases, of_round: Sequence[PlainEvent]) -> RoundsEvent:
        """All ensembles."""
        return ParallelEvent(asked.ensemble, tuple(of_round), asked.charged_rounds)
