"""A proposal of how to divide what is left of a budget among its usual steps."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ..accounting.gaussian import gaussian_epsilon
from .words import rounded_down

if TYPE_CHECKING:
    from .book import Book

_SPENT = 0.990  # of the mu^2 that is left; the rest is for what a release costs above its epsilon
_LOOK, _JUDGED = 0.012, 0.045
_JUDGED_APART = 0.25  # of rows that did not train: more would sharpen no figure
_MARGIN = 0.004  # of mu, by which releases cost more than the Gaussian of their epsilon


def division(book: Book, split: bool) -> dict[str, dict[str, float]]:
    """Epsilon and delta of each step, which fit together in mu^2."""
    spent = book.spent
    room = book.filter.room(spent)
    left = max(0.0, room.mu2 - spent.mu2) if book.remaining() else 0.0
    look, judged = _LOOK * left, (_JUDGED_APART if split else _JUDGED) * left
    train = _SPENT * left - look - (0.0 if split else judged)
    # The thresholds of a look take a part of delta for themselves.
    parts = {"discover": (look, 0.1), "train": (train, 1.0), "evaluate": (judged, 1.0)}
    plan = {}
    for name, (mu2, share) in parts.items():
        delta, mu = share * book.delta, math.sqrt(max(0.0, mu2)) * (1.0 - _MARGIN)
        epsilon = gaussian_epsilon(mu, delta) if mu else 0.0
        plan[name] = {"epsilon": float(rounded_down(epsilon)), "delta": delta}
    if book.selection_epsilon:
        epsilon = float(rounded_down(book.remaining_selection()))
        plan["select"] = {"epsilon": epsilon, "delta": book.delta / 10.0}
    return plan
