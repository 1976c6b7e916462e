"""The command that evaluates a saved model on private rows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import click

from ..domain.domain import Domain, domain_of_model
from ..engine.models import load_booster
from ..errors import PrivacyParameterError
from ..record import policy
from . import options
from .group import Given, command
from .options import FILE, OUT, ROWS
from .output import booked_on, model_file, new_files, say
from .places import Output, save


@command("evaluate")
@click.argument("model", type=FILE)
@click.argument("data", type=ROWS)
@click.option("--epsilon", type=float, required=True, help="Budget of the figures, in nats.")
@options.delta
@click.option("--against", type=FILE, help="Second model of two classes, to compare with.")
@click.option(
    "--by", metavar="COLUMN[=A,B]", help="Also evaluate groups: as declared, or of these values."
)
@click.option("--error-bound", type=float, help="For regression: larger errors count as this.")
@click.option("--group", type=int, help=options.GROUP)
@options.budget
@click.option(
    "--json", "json_path", type=OUT, help="Also write the figures as JSON; - prints them instead."
)
@click.option("--calibrated", type=OUT, help="Also save the model with calibrated margins.")
@click.option(
    "--method",
    type=click.Choice(["platt", "isotonic"]),
    default="platt",
    help="With --calibrated: a line, which every XGBoost reads, or a curve, which it does not.",
)
@options.model_schema
@options.csv
@options.force
def evaluate(given: Given) -> None:
    """Evaluate a saved MODEL on the private rows of DATA.

    Spends epsilon and delta on these rows: all figures come from one noisy table. If the model may
    have been trained on these rows, both costs add up.

    \b
    xgb-dp evaluate income.json holdout.csv --epsilon 0.5 --delta 1e-6 --by sex
    """
    model, against, calibrated = given.model, given.against, given.calibrated
    printed = str(given.json_path) == "-"
    paths = [path for path in (given.json_path, calibrated) if path and str(path) != "-"]
    new_files(paths, force=given.force)
    booster = load_booster(model)
    domain = domain_of_model(booster, model, given.schema_file)
    features = [*domain.features]
    if (rules := policy.in_force()) is not None:
        domain = rules.permitted(replace(domain, drop=()), some=True)
    if domain.target is None:
        raise PrivacyParameterError(
            "The schema does not name the column of labels. Give --schema with a `target`."
        )
    if calibrated is not None and (against is not None or len(domain.classes or ()) != 2):
        raise PrivacyParameterError(
            "`--calibrated` is for an evaluation of one model of two classes. Leave it out."
        )
    groups = _groups(given.by, domain)
    from ..evaluation import evaluate as evaluate_rows
    from .table import read_table

    table = read_table(given.data, domain, training=True, csv=given.csv)
    if rules is not None:  # a model of fewer columns
        table = replace(table, frame=table.frame[features])
    note = f"evaluate {model.name}"
    with booked_on(given.budget, note) as book:
        report = evaluate_rows(
            booster if against is None else [booster, load_booster(against)],
            table.rows(),
            by=groups,
            target_bounds=domain.target_bounds if domain.classes is None else None,
            privacy_id=table.persons,
            budget=book,
            note=note,
            **given.named("epsilon", "delta", "error_bound", "group"),
        )
        outputs: list[Output] = []
        if given.json_path is not None and not printed:
            outputs.append((given.json_path, report.to_json() + "\n"))
        if calibrated is not None:
            adjusted = report.calibrated(booster, method=given.method)
            outputs.append(model_file(calibrated, adjusted))
        try:
            save(*outputs)
        finally:  # the figures are paid for
            say(report.to_json() if printed else report.summary())


def _groups(by: str | None, domain: Domain) -> dict[str, list[Any]] | None:
    """The declared groups of an option."""
    if by is None:
        return None
    column, equals, values = by.partition("=")
    if equals:
        return {column: [_number(value) for value in values.split(",")]}
    declared = {**(domain.columns or {}), **domain.declared}.get(column)
    if declared is None or not declared.categories:
        raise PrivacyParameterError(
            f"`--by {column}` needs the values of the column: it has no declared categories. Give "
            f"them, as in --by {column}=0,1."
        )
    return {column: list(declared.categories)}


def _number(text: str) -> Any:
    """A value of a column of numbers, or the name of a category."""
    try:
        return float(text)
    except ValueError:
        return text
