"""The command that makes and shows budgets."""

from __future__ import annotations

import json
from typing import Any

import click

from ..accounting.units import UNITS
from ..budget.budget import Budget
from ..errors import PrivacyParameterError
from .group import Given, command
from .options import FILE, OUT
from .output import say


@command("budget")
@click.argument("file", type=OUT)
@click.argument("models", type=FILE, nargs=-1)
@click.option("--check", is_flag=True, help="Check that the budget contains all of each MODEL.")
@click.option("--epsilon", type=float, help="Total of the data set; needed to make the file.")
@click.option("--delta", type=float, help="Total of the data set; needed to make the file.")
@click.option("--selection-epsilon", type=float, help="Part of epsilon set aside for selections.")
@click.option("--unit", type=click.Choice(list(UNITS)), help="What is protected; by default row.")
@click.option("--group", type=int, help="Rows, or persons, protected together; by default 1.")
@click.option(
    "--most-rows", type=int, help="Most rows of a person; trainings for rows count that often."
)
@click.option("--json", "as_json", is_flag=True, help="Print what is left, and the plan, as JSON.")
def budget(given: Given) -> None:
    """Make the budget FILE of a data set, or show what is left of it. Spends nothing.

    With --check MODEL... it lists the releases of saved models that the budget does not contain,
    and the exit code is 1 if there are any.
    """
    file = given.file
    if given.check != bool(given.models):
        raise PrivacyParameterError(
            "--check needs saved models, and models need --check: "
            f"xgb-dp budget {file} --check model.json."
        )
    if not file.exists() and None in (given.epsilon, given.delta):
        raise PrivacyParameterError(
            f"There is no budget file {file}. To make one, give the total of the data set: "
            f"xgb-dp budget {file} --epsilon 2 --delta 1e-6."
        )
    total = given.named("epsilon", "delta", "selection_epsilon", "unit", "group", "most_rows")
    book = Budget(file, **total)
    book.verify()
    if not given.check:
        say(json.dumps(_state(book), indent=2) if given.as_json else book.statement())
        return
    missing = {model: book.missing(model) for model in given.models}
    for model, names in missing.items():
        say(f"{model}: " + (f"not booked: {', '.join(names)}" if names else "booked"))
    if any(missing.values()):
        raise SystemExit(1)


def _state(book: Budget) -> dict[str, Any]:
    """The totals, what is left of them, a plan for that, and the entries."""
    totals = {name: getattr(book, name) for name in ("epsilon", "delta", "selection_epsilon")}
    totals |= {"unit": book.unit.name, "group": book.unit.group}
    left = {"remaining": book.remaining(), "remaining_selection": book.remaining_selection()}
    entries = [{n: getattr(e, n) for n in ("id", "note", "time", "state")} for e in book.entries]
    return {**totals, **left, "plan": book.plan(), "entries": entries}
