"""The totals of a budget, as they are given and as its file begins."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from ..parameters.parse import parse_number
from .whose import Whose

__all__ = ["new_content", "totals"]


def totals(
    epsilon: float | None, delta: float | None, selection_epsilon: float | None
) -> dict[str, float | None]:
    """What the user has given of the totals; None for what was left out."""
    given: dict[str, float | None] = dict.fromkeys(("epsilon", "delta", "selection_epsilon"))
    if epsilon is not None:
        given["epsilon"] = parse_number("epsilon", epsilon, low=0.0, open_low=True)
    if delta is not None:
        given["delta"] = parse_number("delta", delta, low=1e-100, high=1.0, open_high=True)
    if selection_epsilon is not None:
        high = math.inf if given["epsilon"] is None else given["epsilon"]
        given["selection_epsilon"] = parse_number(
            "selection_epsilon", selection_epsilon, low=0.0, high=high
        )
    return given


def new_content(given: Mapping[str, float | None], whose: Whose) -> dict[str, Any]:
    """The file of a budget without entries."""
    part = given["selection_epsilon"] or 0.0
    return {**given, "selection_epsilon": part, **whose.to_content(), "entries": []}
