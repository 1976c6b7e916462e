"""What a budget says: its guarantee and book in prose, and why something does not fit."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..accounting import Event, SelectionEvent
from ..accounting.filter import Charge
from ..errors import BudgetError
from ..record.caution import concerns

if TYPE_CHECKING:
    from .budget import Budget

__all__ = ["refusal", "rounded_down", "statement"]
_DIGITS = 4


def statement(budget: Budget) -> str:
    """The guarantee of the budget, and the book, in prose."""
    lines = [
        f"Everything released through this budget is together ({budget.epsilon:g}, "
        f"{budget.delta:g})-differentially private for adding or removing any one row, however "
        "the releases were chosen. Nothing released without it is covered.",
        *concerns(budget.epsilon, budget.delta, None),
        f"Left for trainings: epsilon about {rounded_down(budget.remaining())} at delta "
        f"{budget.delta:g}.",
    ]
    if budget.selection_epsilon:
        lines.append(f"Left for selections: epsilon {rounded_down(budget.remaining_selection())}.")
    capacity, parts = budget.capacity, " of the part for selections"
    for entry in budget.entries:
        share = entry.charge.mu2 / capacity.mu2 if capacity.mu2 else 0.0
        taken = (
            f"epsilon {entry.charge.shift:.4g}{parts if budget.selection_epsilon else ''}"
            if entry.charge.shift
            else f"{share:.1%} of mu^2"
        )
        lines.append(f"{entry.time} {entry.note}: {taken} ({entry.state})")
    return "\n".join(lines)


def refusal(budget: Budget, spent: Charge, charge: Charge, events: Sequence[Event]) -> BudgetError:
    """What a caller is told whose releases do not fit.

    Args:
        budget: The budget.
        spent: What its entries take.
        charge: What the releases would take.
        events: The releases.
    """
    room = budget.filter.room(spent)
    if any(isinstance(e, SelectionEvent) for e in events) and math.isfinite(charge.shift):
        what = (
            f"It has no Gaussian bound and needs {charge.shift:.4g} of the part for selections "
            f"and delta {charge.extra:g}. Left of them are "
            f"{rounded_down(max(0.0, room.shift - spent.shift))} and "
            f"{max(0.0, room.extra - spent.extra):.3g}; the part is fixed when the "
            "budget is made (selection_epsilon=...)"
        )
    else:
        left = budget.filter.remaining(spent, budget.delta)
        what = (
            "The largest epsilon that still fits one training is about "
            f"{rounded_down(left)} at delta {budget.delta:g}"
        )
    return BudgetError(
        f"This would exceed the budget of epsilon={budget.epsilon:g}, delta={budget.delta:g} in "
        f"{str(budget.path)!r}. Nothing was released. {what}."
    )


def rounded_down(epsilon: float) -> str:
    """An epsilon in four digits, rounded down: a figure that is printed must fit."""
    if epsilon <= 0.0:
        return "0"
    scale = 10.0 ** (_DIGITS - 1 - math.floor(math.log10(epsilon)))
    return f"{math.floor(epsilon * scale) / scale:g}"
