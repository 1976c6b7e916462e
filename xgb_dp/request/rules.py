"""All rules: those between several groups of parameters, and those that stand with one."""

from __future__ import annotations

from collections.abc import Callable

from ..errors import PrivacyRefusal
from ..mechanisms.plan import MECHANISMS
from ..parameters.config import Config
from ..parameters.parameter import Rule
from . import bound, guarantee, labels, trees


def _masked(name: str, broken: Callable[[Config], bool], message: str) -> Rule:
    return Rule(
        f"masked sums {name}",
        lambda s: s["dp_secure_sum"] and broken(s),
        f"`dp_secure_sum` is refused with {message}",
        PrivacyRefusal,
    )


_GAUSSIAN_SHARES = "shares of noise add up to what is claimed for 'gaussian' only. Use that."

# fmt: off
_MASKED = (
    Rule("colluders of masked sums",
         lambda s: "dp_secure_colluders" in s.given and not s["dp_secure_sum"],
         "`dp_secure_colluders` has an effect with dp_secure_sum=True only. Leave it out."),
    Rule("keys of masked sums",
         lambda s: (not s["dp_secure_sum"]
                    and ("dp_secure_key" in s.given or "dp_secure_parties" in s.given)),
         "`dp_secure_key` and `dp_secure_parties` have an effect with dp_secure_sum=True only. "
         "Leave them out."),
    Rule("masked sums of several workers",
         lambda s: s["dp_secure_sum"] and s.workers < 2,
         "`dp_secure_sum` needs at least two workers that train together: join them with "
         "xgboost.collective.CommunicatorContext or Dask, or leave it out."),
    _masked("are no sums over persons", lambda s: s.unit == "person",
            "{`dp_privacy_id`}: workers that do not trust each other cannot compare their ids, and "
            "a person with rows on two of them would count twice. Bound the rows of a person "
            "before, and give {`dp_group`}."),
    _masked("need no selections",
            lambda s: s["dp_split"] == "exponential",
            "dp_split='exponential': the exponential mechanism needs the exact sums at one "
            "worker. Use dp_split='random', 'partial' or 'histogram'."),
    _masked("have Gaussian leaves",
            lambda s: s["dp_leaf_noise"] != "gaussian",
            "dp_leaf_noise={dp_leaf_noise!r}: " + _GAUSSIAN_SHARES),
    _masked("have Gaussian candidates",
            lambda s: s["dp_candidate_noise"] != "gaussian",
            "dp_candidate_noise='laplace': " + _GAUSSIAN_SHARES),
    _masked("read all rows",
            lambda s: s["subsample"] != 1.0,
            "`subsample` below 1: amplification by sampling is not proved for masked sums. Leave "
            "it out."),
    _masked("are no sums by column",
            lambda s: s.starts_from_columns,
            "dp_start={dp_start!r}, whose sums have no masks. Leave it out."),
    Rule("masked sums of known parties",
         lambda s: s["dp_secure_sum"] and None in (s["dp_secure_key"], s["dp_secure_parties"]),
         "`dp_secure_sum` needs `dp_secure_key` and `dp_secure_parties`, so that nobody else can "
         "take the place of a worker: each party makes a key with `ssh-keygen -t ed25519 -N '' -C "
         "NAME -f FILE`, keeps FILE, and sends FILE.pub to the others."),
)
# fmt: on

RULES = (
    *labels.RULES,
    *guarantee.RULES,
    *(rule for mechanism in MECHANISMS for rule in mechanism.rules),
    *trees.RULES,
    *bound.RULES,
    *_MASKED,
)
"""All rules, in the order in which they are checked."""
