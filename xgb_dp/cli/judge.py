"""The command that judges a saved model on private rows."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..engine.models import load_booster
from ..errors import PrivacyParameterError
from ..evaluation import evaluate as judge
from .domain import Domain, read_domain
from .files import Csv
from .options import FILE, GROUP, OUT, ROWS, csv_options, guarded
from .output import Output, booked_on, model_file, new_files, save
from .table import read_table

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["evaluate_command"]


def evaluate_command(domain_of: Callable[[Any, Path], Domain]) -> click.Command:
    """The command `evaluate`."""

    @click.command("evaluate")
    @click.argument("model", type=FILE)
    @click.argument("data", type=ROWS)
    @click.option("--epsilon", type=float, required=True, help="Budget of the figures, in nats.")
    @click.option("--delta", type=float, required=True, help="Chance with which it may fail.")
    @click.option("--against", type=FILE, help="Second model of two classes, to compare with.")
    @click.option(
        "--by",
        metavar="COLUMN[=A,B]",
        help="Figures of groups, too: a column with declared categories, or with these values.",
    )
    @click.option("--error-bound", type=float, help="Regression: errors beyond count as this.")
    @click.option("--group", type=int, help=GROUP)
    @click.option("--budget", type=FILE, help="Draw on this budget of the data set.")
    @click.option("--json", "json_path", type=OUT, help="Also write the figures as JSON.")
    @click.option("--calibrated", type=OUT, help="Also save the model with calibrated margins.")
    @click.option(
        "--method",
        type=click.Choice(["platt", "isotonic"]),
        default="platt",
        show_default=True,
        help="With --calibrated: a line, in a model that all XGBoost read alike, or a curve.",
    )
    @click.option("--schema", "schema_file", type=FILE, help="Instead of what the model was given.")
    @csv_options
    @click.option("--force", is_flag=True, help="Overwrite files.")
    @guarded
    def evaluate(
        model: Path,
        data: Path,
        epsilon: float,
        delta: float,
        against: Path | None,
        by: str | None,
        error_bound: float | None,
        group: int | None,
        budget: Path | None,
        json_path: Path | None,
        calibrated: Path | None,
        method: str,
        schema_file: Path | None,
        separator: str,
        encoding: str,
        force: bool,
    ) -> None:
        """Judge a saved MODEL on the private rows of DATA.

        Spends epsilon and delta on these rows: all figures come from one noisy table. If the rows
        may have trained the model, what both cost adds up.

        \b
        xgb-dp evaluate income.json holdout.csv --epsilon 0.5 --delta 1e-6 --by sex
        """
        made = [path for path in (json_path, calibrated) if path is not None]
        new_files(made, force=force, read=[model, data, against, budget, schema_file])
        booster = load_booster(model)
        domain = read_domain(schema_file) if schema_file else domain_of(booster, model)
        if domain.target is None:
            raise PrivacyParameterError(
                "The schema does not name the column of labels. Give --schema with a `target`."
            )
        if calibrated is not None and (against is not None or len(domain.classes or ()) != 2):
            raise PrivacyParameterError(
                "`--calibrated` is for an evaluation of one model of two classes. Leave it out."
            )
        groups = _groups(by, domain)
        table = read_table(data, domain, training=True, csv=Csv(separator, encoding))
        regression = domain.classes is None
        note = f"evaluate {model.name}"
        with booked_on(budget, note) as book:
            found = judge(
                booster if against is None else [booster, load_booster(against)],
                (table.frame, table.labels) if table.plain else table.matrix(),
                epsilon=epsilon,
                delta=delta,
                by=groups,
                error_bound=error_bound,
                target_bounds=domain.target_bounds if regression else None,
                privacy_id=table.ids,
                group=group,
                budget=book,
                note=note,
            )
            outputs: list[Output] = []
            if json_path is not None:
                outputs.append((json_path, found.to_json() + "\n"))
            if calibrated is not None:
                mended = found.calibrated(booster, method=method)
                outputs.append(model_file(calibrated, mended))
            try:
                save(*outputs)
            finally:  # the figures are paid for
                click.echo(found.summary())

    return evaluate


def _groups(by: str | None, domain: Domain) -> dict[str, list[Any]] | None:
    """The declared groups of an option."""
    if by is None:
        return None
    column, equals, values = by.partition("=")
    if equals:
        return {column: [_number(value) for value in values.split(",")]}
    declared = {**(domain.columns or {}), **domain.declared}.get(column)
    categories = getattr(declared, "categories", None)
    if not categories:
        raise PrivacyParameterError(
            f"`--by {column}` needs the values of the column: it has no declared categories. Give "
            f"them, as in --by {column}=0,1."
        )
    return {column: list(categories)}


def _number(text: str) -> Any:
    """A value of a column of numbers, or the name of a category."""
    try:
        return float(text)
    except ValueError:
        return text
