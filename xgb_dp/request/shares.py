"""Division of the budget over what is released."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..errors import PrivacyParameterError
from ..parameters import parse
from ..releases import RELEASES, Release
from ..releases.leaves import Leaves
from ..releases.splits import Splits

if TYPE_CHECKING:
    from .settings import Settings

__all__ = ["SHARE_NAMES", "resolve_shares"]

SHARE_NAMES = tuple(dict.fromkeys(kind.share for kind in RELEASES))
_TREES = (Splits.share, Leaves.share)
_SPLITS_OF_REST = 0.3
"""Splits' part of what the others leave over; constant in the data."""


def resolve_shares(given: Any, s: Settings) -> dict[str, float]:
    """Division of mu^2 over the releases."""
    fractions = parse.mapped({} if given is None else given)
    if fractions is None or not set(fractions) <= set(SHARE_NAMES):
        raise PrivacyParameterError(
            f"`dp_budget_shares` must map some of {', '.join(SHARE_NAMES)} to fractions of the "
            "budget."
        )
    fixed = {
        k: parse.parse_number(f"dp_budget_shares[{k!r}]", v, low=0, high=1)
        for k, v in fractions.items()
    }
    wanted = {kind.share: kind for kind in RELEASES if kind.wanted(s)}
    shares: dict[str, float] = {}
    for name in (name for name in SHARE_NAMES if name not in _TREES):
        default = wanted[name].default_share(s, fixed) if name in wanted else 0.0
        assert default is not None
        shares[name] = fixed.get(name, default)
    splits, leaves = _of_rest(fixed, 1.0 - sum(shares.values()), splits="splits" in wanted)
    shares |= {"splits": splits, "leaves": leaves}
    if abs(sum(shares.values()) - 1.0) > 1e-9:
        hint = (
            " Private candidates need a share too: a preset that leaves none for them takes public "
            "`dp_feature_bounds` or `dp_feature_cuts` of every numeric column."
            if "candidates" in wanted and "candidates" not in fixed
            else ""
        )
        raise PrivacyParameterError(
            f"The shares of the budget (`dp_budget_shares`) must sum to 1.{hint}"
        )
    if any(shares[name] <= 0 for name in wanted):
        raise PrivacyParameterError(
            f"`dp_budget_shares` must leave a part above 0 for each release: {', '.join(wanted)}."
        )
    return _of_released(shares, wanted)


def _of_rest(fixed: dict[str, float], rest: float, *, splits: bool) -> tuple[float, float]:
    """Shares of splits and leaves, to which the others leave a rest."""
    split, leaf = fixed.get("splits"), fixed.get("leaves")
    if split is None:
        default = _SPLITS_OF_REST * rest if splits else 0.0
        split = default if leaf is None else rest - leaf
    return split, rest - split if leaf is None else leaf


def _of_released(shares: dict[str, float], wanted: dict[str, type[Release]]) -> dict[str, float]:
    """The same shares, of which what is not released leaves its part to the trees."""
    listed = {kind.share for kind in RELEASES if kind.always_listed} | set(wanted)
    out = {name: shares[name] if name in wanted else 0.0 for name in shares if name in listed}
    trees = out["splits"] + out["leaves"]
    free = 1.0 - sum(v for name, v in out.items() if name not in _TREES)
    out["splits"] *= free / trees
    out["leaves"] *= free / trees
    return out
