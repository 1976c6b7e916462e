"""The two tables of private training: all parameters, and the rules between them.

A row defines the meaning of a parameter, its values and its default. Readers, error messages, the
documentation page, the plan, XGBoost's parameters and the public record of a model are derived from
these rows. No other module reads the user's parameters.

A mechanism defines the rows and rules of its own parameters.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from ..errors import PrivacyParameterError, PrivacyRefusal
from ..mechanisms.plan import MECHANISMS
from ..parameters.config import Config
from ..parameters.parameter import SPENDS, Parameter, Rule
from ..parameters.parse import Integer, OpenRounds
from . import bound, guarantee, labels, masking, trees


def _masked(name: str, broken: Callable[[Config], bool], message: str) -> Rule:
    return Rule(
        f"masked sums {name}",
        lambda s: s["dp_secure_aggregation"] and broken(s),
        f"`dp_secure_aggregation` is refused with {message}",
        PrivacyRefusal,
    )


_GAUSSIAN_SHARES = "only Gaussian noise shares add up to the claimed noise. Use 'gaussian'."

# fmt: off
_MASKED = (
    Rule("dp_secure_colluders needs masked sums",
         lambda s: "dp_secure_colluders" in s.given and not s["dp_secure_aggregation"],
         "`dp_secure_colluders` requires dp_secure_aggregation=True. Remove it."),
    Rule("key files need masked sums",
         lambda s: (not s["dp_secure_aggregation"]
                    and ("dp_secure_key" in s.given or "dp_secure_parties" in s.given)),
         "`dp_secure_key` and `dp_secure_parties` require dp_secure_aggregation=True. Remove "
         "them."),
    Rule("masked sums need several workers",
         lambda s: s["dp_secure_aggregation"] and s.workers < 2,
         "`dp_secure_aggregation` requires at least two workers. Connect them with "
         "xgboost.collective.CommunicatorContext or Dask, or remove it."),
    _masked("need rows as units", lambda s: s.unit == "person",
            "{`dp_privacy_id`}: workers that do not trust each other cannot compare their ids, "
            "so a person with rows on two workers would count twice. Limit the rows per person in "
            "advance, and set {`dp_group_size`} to that limit."),
    _masked("without selections",
            lambda s: s["dp_split"] == "exponential",
            "dp_split='exponential': the exponential mechanism needs the exact sums on one "
            "worker. Use dp_split='random', 'partial' or 'histogram'."),
    _masked("need Gaussian leaves",
            lambda s: s["dp_leaf_noise"] != "gaussian",
            "dp_leaf_noise={dp_leaf_noise!r}: " + _GAUSSIAN_SHARES),
    _masked("need Gaussian candidates",
            lambda s: s["dp_candidate_noise"] != "gaussian",
            "dp_candidate_noise='laplace': " + _GAUSSIAN_SHARES),
    _masked("without subsample",
            lambda s: s["subsample"] != 1.0,
            "`subsample` below 1: amplification by sampling is not proved for masked sums. "
            "Remove it."),
    _masked("without column start",
            lambda s: s.starts_from_columns,
            "dp_start={dp_start!r}, because its sums are not masked. Remove it."),
    Rule("masked sums need key files",
         lambda s: (s["dp_secure_aggregation"]
                    and None in (s["dp_secure_key"], s["dp_secure_parties"])),
         "`dp_secure_aggregation` requires `dp_secure_key` and `dp_secure_parties`, so that nobody "
         "can impersonate a worker. Each party creates a key with `ssh-keygen -t ed25519 -N '' -C "
         "NAME -f FILE`, keeps FILE, and sends FILE.pub to the others."),
)
# fmt: on

LABEL_RULES = (*labels.RULES, *guarantee.RULES)
"""Rules of labels and guarantee, checked before the parameters of the trees are read."""
OTHER_RULES = (
    *(rule for mechanism in MECHANISMS for rule in mechanism.rules),
    *trees.RULES,
    *bound.RULES,
    *_MASKED,
)
RULES = (*LABEL_RULES, *OTHER_RULES)
"""All rules, in the order of their checks."""


DEFAULT_ROUNDS = OpenRounds(50)
"""Default number of boosting rounds in every interface, unless the number of rows decides."""


def _rounds(name: str, value: Any, s: Any = None) -> int:
    """Read the number of boosting rounds, without rounding: the noise is calibrated for it."""
    if isinstance(value, OpenRounds):
        return value
    try:
        # An array of one float also has `__index__`, which fails only when called.
        number = None if isinstance(value, bool) else operator.index(value)
    except Exception:  # an object of the caller may raise anything
        number = None
    if number is None:
        raise PrivacyParameterError(
            f"`{name}` must be an integer, because the noise is calibrated for this number of "
            f"rounds; got {type(value).__name__}."
        )
    return Integer(1, 1 << 20)(name, number)


ARGUMENTS: dict[str, Parameter] = {
    "num_boost_round": Parameter(
        "num_boost_round",
        "Number of boosting rounds.",
        _rounds,
        DEFAULT_ROUNDS,
        SPENDS,
        "accounting",
        unit="rounds",
        values="int >= 1",
        shown=f"depends on the number of rows; otherwise {DEFAULT_ROUNDS}",
        aliases=("n_estimators", "--rounds"),
    )
}
"""Arguments of training functions that are not parameters."""

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
