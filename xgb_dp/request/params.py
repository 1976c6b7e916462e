"""The parameters of private training, as one table that is executed.

A row says what a parameter means, which values it takes and what holds when it is unset. Reading
and checking, error messages, the page in the documentation, the private plan, what XGBoost is told
and the public record of a model come from these rows. No other module reads what the user gave.
"""

from __future__ import annotations

from ..parameters.parameter import SPENDS, Parameter
from ..parameters.parse import OpenRounds
from . import readers
from .own_params import OWN_ROWS
from .xgboost_params import XGBOOST_ROWS

__all__ = ["ARGUMENTS", "DEFAULT_ROUNDS", "PARAMETERS"]

DEFAULT_ROUNDS = OpenRounds(50)
"""Boosting rounds where none are given, in every interface, and no plan follows the rows."""

# fmt: off
_ARGUMENTS = (
    Parameter("num_boost_round", "boosting rounds; the noise is calibrated for exactly that many",
              readers.rounds, DEFAULT_ROUNDS, SPENDS, "accounting", unit="rounds",
              values="int >= 1",
              shown=f"follows the number of rows; {DEFAULT_ROUNDS} where nothing follows it",
              aliases=("n_estimators", "--rounds")),
)
# fmt: on

ARGUMENTS: dict[str, Parameter] = {p.name: p for p in _ARGUMENTS}
"""Arguments that are not parameters."""

PARAMETERS: dict[str, Parameter] = {p.name: p for p in (*OWN_ROWS, *XGBOOST_ROWS)}
"""All parameters by name; the ``dp_*`` ones first."""
