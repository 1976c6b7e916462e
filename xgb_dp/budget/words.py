"""What a budget says: its guarantee and book in prose, and why something does not fit."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..accounting import Event, SelectionEvent
from ..accounting.filter import Charge
from ..errors import BudgetError
from ..record.caution import concerns, scope
from ..record.escaping import visible

if TYPE_CHECKING:
    from .book import Book
    from .entry import Entry
    from .whose import Whose

_DIGITS = 4


def statement(budget: Book) -> str:
    """The guarantee of the budget, and the book, in prose."""
    lines = [
        f"Everything released through this budget is together ({budget.epsilon:g}, "
        f"{budget.delta:g})-differentially private for adding or removing "
        f"{budget.unit.neighbours()}, however the releases were chosen. "
        f"{_scope(budget)}Nothing released without it is covered.",
        *concerns(budget.epsilon, budget.delta, None, budget.unit),
        f"Left for trainings: epsilon about {rounded_down(budget.remaining())} at delta "
        f"{budget.delta:g}.",
    ]
    if budget.selection_epsilon:
        lines.append(f"Left for selections: epsilon {rounded_down(budget.remaining_selection())}.")
    parts, entries, capacity = " of the part for selections", budget.entries, budget.capacity
    for entry in entries:
        share = entry.charge.mu2 / capacity.mu2 if capacity.mu2 else 0.0
        taken = (
            f"epsilon {entry.charge.shift:.4g}{parts if budget.selection_epsilon else ''}"
            if entry.charge.shift
            else f"{share:.1%} of the budget (of its mu^2)"
        )
        on = "" if entry.part is None else f", on the part {entry.part.name!r} of a split"
        state = f"({entry.state}{on})"
        lines.append(f"{entry.time} {entry.note}: {taken} {state}{_others(budget, entry)}")
    if any(entry.part is not None for entry in entries):
        lines.append(
            "A row is in one part of a split, so only the part with the larger sum of releases "
            "counts."
        )
    return "\n".join(map(visible, lines))


def most_rows(whose: Whose) -> str:
    """What a budget for persons says of their rows; empty where it says nothing."""
    return "" if whose.most_rows is None else f" with at most {whose.most_rows} rows"


def _scope(budget: Book) -> str:
    """Whom the total protects, where that is not one row."""
    whose, protected = budget.whose, f"{scope(budget.unit)} "
    if whose.most_rows is None:
        return protected
    return (
        f"{protected}Releases for rows are charged for {whose.unit.group * whose.most_rows} rows, "
        f"because no person has more than {whose.most_rows}. That was stated and is not checked. "
    )


def _others(budget: Book, entry: Entry) -> str:
    """That an entry was calibrated for others than the total is for."""
    if (entry.unit.name, entry.unit.group) == (budget.unit.name, budget.unit.group):
        return ""
    size = f"{entry.charged} {entry.unit.name if entry.charged == 1 else entry.unit.plural}"
    return f", calibrated for {entry.unit.phrase} and charged for {size}"


def refusal(
    budget: Book,
    spent: Charge,
    paid: Charge,
    charge: Charge,
    events: Sequence[Event],
) -> BudgetError:
    """What a caller is told whose releases do not fit: `paid` is what their rows have paid."""
    room = budget.filter.room(spent)
    if any(isinstance(e, SelectionEvent) for e in events) and math.isfinite(charge.shift):
        what = (
            f"A selection needs {charge.shift:.4g} of the part for selections and delta "
            f"{charge.extra:g}. What is left of them is "
            f"{rounded_down(max(0.0, room.shift - paid.shift))} and "
            f"{max(0.0, room.extra - paid.extra):.3g}. The part is fixed when you make the "
            "budget (selection_epsilon=...)"
        )
    else:
        left = rounded_down(budget.filter.remaining(spent, budget.delta, paid))
        what = (
            f"The largest epsilon that still fits one training is about {left} at delta "
            f"{budget.delta:g}"
        )
    return BudgetError(
        f"This would exceed the budget of epsilon={budget.epsilon:g}, delta={budget.delta:g} for "
        f"{budget.unit.phrase} in "
        f"{str(budget.path)!r}. Nothing was released. {what}."
    )


def unknown_model(budget: Book) -> BudgetError:
    """What a caller is told whose new model rests on releases that the book does not know."""
    return BudgetError(
        "The model to be continued, or the look at its columns, has releases that the book "
        f"{str(budget.path)!r} does not contain, so its total would not cover the new model. "
        "Nothing was released. Continue a model of this budget, and look with it (`budget` of "
        "`discover`); or open it with Budget(..., charge_earlier=True), which charges the earlier "
        "releases too."
    )


def rounded_down(epsilon: float) -> str:
    """An epsilon in four digits, rounded down: a figure that is printed must fit."""
    if epsilon <= 0.0:
        return "0"
    scale = 10.0 ** (_DIGITS - 1 - math.floor(math.log10(epsilon)))
    return f"{math.floor(epsilon * scale) / scale:g}"
