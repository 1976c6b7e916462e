"""Division of the privacy budget among the releases."""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import Any

from ..errors import PrivacyParameterError
from ..mechanisms.plan import MECHANISMS, SHARE_NAMES
from ..parameters import parse
from ..parameters.parameter import Config

_OF_REST = {kind.share: kind.of_rest for kind in MECHANISMS if kind.of_rest}


def resolve_shares(given: Any, s: Config) -> dict[str, float]:
    """The shares of mu^2 for all releases."""
    fractions = parse.mapped({} if given is None else given)
    if fractions is None or not set(fractions) <= set(SHARE_NAMES):
        raise PrivacyParameterError(
            f"`dp_budget_shares` must map some of {', '.join(SHARE_NAMES)} to fractions of the "
            "budget."
        )
    fraction = parse.Number(0, 1)
    fixed = {k: fraction(f"dp_budget_shares[{k!r}]", v) for k, v in fractions.items()}
    wanted = {kind.share: kind for kind in MECHANISMS if kind.is_enabled(s)}
    shares: dict[str, float] = {}
    for name in (name for name in SHARE_NAMES if name not in _OF_REST):
        default = wanted[name].default_share(s, fixed) if name in wanted else 0.0
        shares[name] = fixed.get(name, default)
    shares |= _divide_rest(fixed, 1.0 - math.fsum(shares.values()), wanted)
    if abs(math.fsum(shares.values()) - 1.0) > 1e-9:
        hint = "".join(kind.no_share for name, kind in wanted.items() if name not in fixed)
        raise PrivacyParameterError(
            f"The shares of the budget (`dp_budget_shares`) must sum to 1.{hint}"
        )
    if any(shares[name] <= 0 for name in wanted):
        raise PrivacyParameterError(
            f"`dp_budget_shares` must leave a part above 0 for each release: {', '.join(wanted)}."
        )
    return _of_released(shares, wanted)


def _divide_rest(fixed: dict[str, float], rest: float, wanted: Collection[str]) -> dict[str, float]:
    """Divide the rest among the remaining releases; the last one takes the remainder."""
    shares = {name: share for name, share in fixed.items() if name in _OF_REST}
    free = [name for name in _OF_REST if name not in fixed]
    shares |= {name: _OF_REST[name] * rest if name in wanted else 0.0 for name in free[:-1]}
    if free:
        shares[free[-1]] = rest - math.fsum(shares.values())
    return {name: shares[name] for name in _OF_REST}


def _of_released(shares: dict[str, float], wanted: Collection[str]) -> dict[str, float]:
    """Give the shares of disabled releases to the releases that divide the rest."""
    listed = {kind.share for kind in MECHANISMS if kind.always_listed} | set(wanted)
    out = {name: shares[name] if name in wanted else 0.0 for name in shares if name in listed}
    free = 1.0 - math.fsum(share for name, share in out.items() if name not in _OF_REST)
    factor = free / math.fsum(out[name] for name in _OF_REST)
    return {name: share * factor if name in _OF_REST else share for name, share in out.items()}


def shares_of(s: Config, *, counts: bool = False) -> dict[str, float]:
    """The shares of a training; with `counts`, also the share of a separate count of rows."""
    shares = dict(s["dp_budget_shares"])
    if counts:
        shares |= {
            kind.share: kind.of_count
            for kind in MECHANISMS
            if kind.of_count and not kind.is_enabled(s)
        }
    return shares
