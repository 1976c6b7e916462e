"""The command that makes and shows budgets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ..accounting.units import UNITS
from ..budget.budget import Budget
from ..errors import PrivacyParameterError
from .group import command
from .options import FILE, OUT


@command("budget")
@click.argument("file", type=OUT)
@click.argument("models", type=FILE, nargs=-1)
@click.option("--check", is_flag=True, help="Check that the budget contains all of each MODEL.")
@click.option("--epsilon", type=float, help="Total of the data set; needed to make the file.")
@click.option("--delta", type=float, help="Total of the data set; needed to make the file.")
@click.option("--selection-epsilon", type=float, help="Part of epsilon set aside for selections.")
@click.option("--unit", type=click.Choice(list(UNITS)), help="What is protected; by default row.")
@click.option("--group", type=int, help="Rows (or people) protected together; by default 1.")
@click.option(
    "--most-rows", type=int, help="Most rows of a person; trainings for rows count that often."
)
def budget(file: Path, models: tuple[Path, ...], check: bool, **given: Any) -> None:
    """Make the budget FILE of a data set, or show what is left of it. Spends nothing.

    With --check MODEL... it lists the releases of saved models that the budget does not contain,
    and the exit code is 1 if there are any.
    """
    if check != bool(models):
        raise PrivacyParameterError(
            "--check needs saved models, and models need --check: "
            f"xgb-dp budget {file} --check model.json."
        )
    if not file.exists() and (given["epsilon"] is None or given["delta"] is None):
        raise PrivacyParameterError(
            f"There is no budget file {file}. To make one, give the total of the data set: "
            f"xgb-dp budget {file} --epsilon 2 --delta 1e-6."
        )
    book = Budget(file, **given)
    book.verify()
    if not check:
        click.echo(book.statement())
        return
    missing = {model: book.missing(model) for model in models}
    for model, names in missing.items():
        click.echo(f"{model}: " + (f"not booked: {', '.join(names)}" if names else "booked"))
    if any(missing.values()):
        raise SystemExit(1)
