"""Division of the budget over what is released."""

from __future__ import annotations

from typing import Any

from ..errors import PrivacyParameterError
from . import parse

__all__ = ["COLUMNS_SHARE", "COUNT_SHARE", "DEFAULT_SHARES", "SHARE_NAMES", "resolve_shares"]

SHARE_NAMES = ("candidates", "base_score", "columns", "correction", "splits", "leaves")
COUNT_SHARE = 0.009
"""Of the label sums, and of the number of rows where it is released alone."""
COLUMNS_SHARE = 0.5
"""Of the cells by class and column, from which the first trees follow: docs/accuracy.md."""
# Of what the others leave over; the setting of the design, constant in the data.
_SPLITS_OF_REST = 0.3


def resolve_shares(
    given: Any,
    *,
    candidates: bool,
    intercept: bool,
    kind: str,
    splits: bool = True,
    correction: bool = False,
    columns: bool = False,
) -> dict[str, float]:
    """Division of mu^2 over the releases.

    Args:
        given: None, or a mapping from some of :data:`SHARE_NAMES` to fractions of mu^2.
        candidates: Whether any candidates are released.
        intercept: Whether an intercept is released.
        kind: "regression" has a larger default for the intercept.
        splits: Whether splits are chosen by looking at the data.
        correction: Whether the mean is corrected after training, which makes a good intercept less
            dear.
        columns: Whether cells are released by class and column, which leaves candidates their
            part of the rest.

    Returns:
        The fractions, which sum to 1. What is not released has 0; its part goes to splits
        and leaves. "columns" is there where they are released.

    Raises:
        PrivacyParameterError: Unknown key, negative or impossible fractions.
    """
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
    first = 0.027 if kind == "regression" and not correction else COUNT_SHARE
    by_column = fixed.get("columns", COLUMNS_SHARE) if columns else 0.0
    default = {
        "candidates": 0.1 * (1.0 - by_column) if candidates else 0.0,
        "base_score": first if intercept else 0.0,
        "columns": by_column,
        "correction": 0.05 if correction else 0.0,
    }
    shares = default | {k: v for k, v in fixed.items() if k in default}
    rest = 1.0 - sum(shares.values())
    split, leaf = fixed.get("splits"), fixed.get("leaves")
    if split is None and leaf is None:
        split = _SPLITS_OF_REST * rest if splits else 0.0
        leaf = rest - split
    elif split is None:
        split = rest - (leaf or 0.0)
    elif leaf is None:
        leaf = rest - split
    assert split is not None
    assert leaf is not None
    shares |= {"splits": split, "leaves": leaf}
    if abs(sum(shares.values()) - 1.0) > 1e-9:
        hint = (
            " Private candidates need a share too: a preset that leaves none for them takes public "
            "`dp_feature_bounds` or `dp_feature_cuts` of every numeric column."
            if candidates and "candidates" not in fixed
            else ""
        )
        raise PrivacyParameterError(
            f"The shares of the budget (`dp_budget_shares`) must sum to 1.{hint}"
        )
    if not candidates:
        shares["candidates"] = 0.0
    if not intercept:
        shares["base_score"] = 0.0
    if not correction:
        shares["correction"] = 0.0
    if not splits:
        shares["splits"] = 0.0
    if not columns:
        del shares["columns"]
    needed = ["splits", "leaves"] if splits else ["leaves"]
    needed += ["candidates"] if candidates else []
    needed += ["base_score"] if intercept else []
    needed += ["columns"] if columns else []
    needed += ["correction"] if correction else []
    if any(shares[k] <= 0 for k in needed):
        raise PrivacyParameterError(
            f"`dp_budget_shares` must leave a part above 0 for each release: {', '.join(needed)}."
        )
    # What is not released leaves its part to the trees.
    tree = shares["splits"] + shares["leaves"]
    free = 1.0 - sum(share for name, share in shares.items() if name not in ("splits", "leaves"))
    shares["splits"] *= free / tree
    shares["leaves"] *= free / tree
    return shares


DEFAULT_SHARES = resolve_shares(None, candidates=True, intercept=True, kind="binary")
"""The division of a training that releases all of it."""
