"""Rounds that read some of the rows: their parameters, their event, and how loud they may be."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..accounting.events import PlainEvent
from ..accounting.nested import RoundsEvent
from ..parameters.parameter import PUBLIC, SPENDS, Parameter, Rule, Table
from ..parameters.parse import Flag, Number, Whole
from ..releases.release import Reading
from .rounds import AllocatedEvent, SampledEvent, squared_parts

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
              "of the rows, so together they cost one round at most", Whole(1, 1 << 16), 1,
              SPENDS, "allocation", Table.PUBLISHED, unit="rounds",
              shown="1: every round reads all rows", plan="ensemble"),
    Parameter("dp_ensemble_halving", "whether each round of an ensemble takes half of the rows "
              "that are left", Flag(), False, PUBLIC, "allocation", Table.PUBLISHED,
              shown="False: equal parts", plan="ensemble_halving"),
)
_RULES = (
    Rule("one choice of rows",
         lambda s: s["dp_ensemble"] > 1 and s["subsample"] != 1.0,
         "Give `dp_ensemble` or `subsample`, not both: either decides which rows a round reads."),
    Rule("halving needs an ensemble",
         lambda s: s["dp_ensemble_halving"] and s["dp_ensemble"] == 1,
         "`dp_ensemble_halving` has an effect with `dp_ensemble` only. Leave it out."),
    Rule("all rows report",
         lambda s: s["dp_local"] and (s["dp_ensemble"] > 1 or "subsample" in s.given),
         "`dp_local` lets every row report in every round. Leave `dp_ensemble` and `subsample` "
         "out."),
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

    parameters = _OF_ENSEMBLES
    rules = _RULES

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
