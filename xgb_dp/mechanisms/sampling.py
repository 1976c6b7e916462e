"""Parameters of rounds that read a random sample or a disjoint part of the rows."""

from __future__ import annotations

from typing import Any

from ..parameters.config import Config
from ..parameters.parameter import SPENDS, Parameter, Rule, Table
from ..parameters.parse import Integer, Number

SAMPLE_BITS = 32


def _subsample(name: str, value: Any, s: Config) -> float:
    """Round to a multiple of 2^-32, the precision of sampling and accounting."""
    rate = Number(0, 1, open_low=True)(name, value)
    return max(1, round(rate * 2**SAMPLE_BITS)) / 2**SAMPLE_BITS


# fmt: off
PARAMETERS = (
    Parameter("subsample", "Probability with which a round reads each row.",
              _subsample, 1.0, SPENDS, "sampling",
              Table.PUBLISHED, unit="probability", values="0 < value <= 1"),
    Parameter("dp_ensemble", "Number of rounds in an ensemble, which read disjoint random parts "
                             "of the rows and cost as much as one round.",
              Integer(1, 1 << 16), 1, SPENDS, "accounting", Table.PUBLISHED, unit="rounds",
              shown="1: every round reads all rows", plan="ensemble"),
)
RULES = (
    Rule("dp_ensemble or subsample",
         lambda s: s["dp_ensemble"] > 1 and s["subsample"] != 1.0,
         "`dp_ensemble` and `subsample` both determine which rows a round reads. Pass only one of "
         "them."),
)
# fmt: on
