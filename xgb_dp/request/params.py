"""The parameters of private training, as one table that is executed.

A row says what a parameter means, which values it takes and what holds when it is unset. Reading
and checking, error messages, the page in the documentation, the private plan, what XGBoost is told
and the public record of a model come from these rows. No other module reads what the user gave.

The rows of a parameter of one mechanism stand with the mechanism.
"""

from __future__ import annotations

import operator
from typing import Any

from ..errors import PrivacyParameterError
from ..mechanisms.plan import MECHANISMS
from ..parameters.parameter import SPENDS, Parameter
from ..parameters.parse import OpenRounds, Whole
from . import bound, guarantee, labels, masking, trees

DEFAULT_ROUNDS = OpenRounds(50)
"""Boosting rounds where none are given, in every interface, and no plan follows the rows."""


def _rounds(name: str, value: Any, s: Any = None) -> int:
    """Boosting rounds; a number that is rounded would not be what is calibrated."""
    if isinstance(value, OpenRounds):
        return value
    try:
        # An array of one float has `__index__` as well, and fails only when it is called.
        whole = None if isinstance(value, bool) else operator.index(value)
    except Exception:  # an object of the caller may do anything
        whole = None
    if whole is None:
        raise PrivacyParameterError(
            f"`{name}` must be a whole number: the noise is calibrated for exactly that many "
            f"rounds; got {type(value).__name__}."
        )
    return Whole(1, 1 << 20)(name, whole)


ARGUMENTS: dict[str, Parameter] = {
    "num_boost_round": Parameter(
        "num_boost_round",
        "boosting rounds; the noise is calibrated for exactly that many",
        _rounds,
        DEFAULT_ROUNDS,
        SPENDS,
        "accounting",
        unit="rounds",
        values="int >= 1",
        shown=f"follows the number of rows; {DEFAULT_ROUNDS} where nothing follows it",
        aliases=("n_estimators", "--rounds"),
    )
}
"""Arguments that are not parameters."""

_ROWS = (
    *guarantee.PARAMETERS,
    *bound.PARAMETERS,
    *labels.PARAMETERS,
    *trees.PARAMETERS,
    *(row for mechanism in MECHANISMS for row in mechanism.parameters),
    *masking.PARAMETERS,
)
PARAMETERS: dict[str, Parameter] = {
    row.name: row for row in sorted(_ROWS, key=lambda row: not row.name.startswith("dp_"))
}
"""All parameters by name; the ``dp_*`` ones first."""
