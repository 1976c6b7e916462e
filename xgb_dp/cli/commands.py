"""The commands that train and predict, and the group of all commands."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import numpy as np
import pandas as pd
import xgboost
from xgboost.callback import TrainingCallback

from .. import __version__
from ..budget.budget import Budget
from ..engine.model_json import ModelJson
from ..engine.models import load_booster
from ..engine.predictions import levels_of_model, objective_of, probabilities, within
from ..errors import PrivacyParameterError, PrivacyRefusal
from ..record.card import model_card
from ..record.ledger import read_ledger
from ..record.report import PrivacyReport, privacy_report
from ..record.report_views import round_up
from ..request.objectives import OBJECTIVES
from ..request.params import DEFAULT_ROUNDS
from . import inspect
from .column import Column
from .divide import split_command
from .domain import ATTRIBUTE, Domain, from_mapping, read_domain
from .files import Csv, write_table
from .judge import evaluate_command
from .options import (
    FILE,
    OUT,
    ROWS,
    csv_options,
    domain_from,
    domain_options,
    guarded,
    params_from,
    report_file,
    report_kind,
    training_options,
)
from .output import booked_on, model_file, new_files, save
from .part_file import note_of
from .predicted import contributions as contributions_of
from .predicted import outputs, targets
from .predicted import score as score_of
from .table import Table, read_table

__all__ = ["cli"]


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="xgb-dp")
def cli() -> None:
    """Differentially private XGBoost: train, predict, and say what it cost.

    Rows come as CSV or Parquet files with the names of the columns; - as DATA is standard input.
    What they may contain (classes, bounds, categories) is declared by options or in a schema file,
    and never read off the rows.
    """


for _command in inspect.COMMANDS:
    cli.add_command(_command)


class _Progress(TrainingCallback):
    """Shows how many rounds are done; how many there are is public, or was released."""

    def __init__(self, bar: Any) -> None:
        super().__init__()
        self.bar = bar

    def after_iteration(self, model: Any, epoch: int, evals_log: Any) -> bool:
        """One round more."""
        del model, epoch, evals_log
        self.bar.update(1)
        return False

    def before_training(self, model: Any) -> Any:
        """The plan is known, and with it the number of rounds."""
        self.bar.length = read_ledger(model).trainings[-1].rounds
        return model


@cli.command()
@click.argument("data", type=ROWS)
@domain_options
@click.option("--epsilon", type=float, required=True, help="Privacy budget of this model, in nats.")
@click.option(
    "--delta",
    type=float,
    required=True,
    help="Chance with which the bound may fail: a constant well below 1 / number of people.",
)
@training_options
@click.option(
    "--budget",
    type=FILE,
    help="Draw on this budget of the data set, made by `xgb-dp budget`; refused if it is used up.",
)
@click.option("--model", type=OUT, default="model.json", show_default=True, help="Where to save.")
@click.option("--continue", "start", type=FILE, help="Private model to add rounds to.")
@click.option(
    "--public-start", "public", type=FILE, help="Model made without private rows, to start from."
)
@click.option(
    "--public-data",
    "public_rows",
    type=FILE,
    help="Public rows in the same form: their quantiles are split candidates, at no cost.",
)
@click.option(
    "--report",
    "reports",
    type=OUT,
    multiple=True,
    help="Also write the privacy report, as .txt, .json or .html.",
)
@click.option("--card", "card_path", type=OUT, help="Also write a model card (.md).")
@csv_options
@click.option("--force", is_flag=True, help="Overwrite files.")
@click.option("--quiet", is_flag=True, help="No progress.")
@guarded
def train(
    data: Path,
    epsilon: float,
    delta: float,
    rounds: int | None,
    preset: str | None,
    pairs: tuple[str, ...],
    budget: Path | None,
    model: Path,
    start: Path | None,
    public: Path | None,
    public_rows: Path | None,
    reports: tuple[Path, ...],
    card_path: Path | None,
    separator: str,
    encoding: str,
    force: bool,
    quiet: bool,
    **declared: Any,
) -> None:
    """Train a private model on the rows of DATA.

    Spends epsilon and delta. Everything that can be wrong is found before any noise is drawn; an
    error spends nothing.

    \b
    xgb-dp train people.csv --target income --classes "<=50K,>50K" \\
        --categories sex=Female,Male --epsilon 1 --delta 1e-6 --model income.json
    """
    made = [model, *reports, *([card_path] if card_path else [])]
    new_files(
        made, force=force, read=[data, declared["schema"], budget, start, public, public_rows]
    )
    for path in reports:
        report_kind(path)  # an ending that nobody knows is found now
    domain = domain_from(**declared)
    domain.check_target()
    asked = params_from(domain, preset, pairs)
    for name, value in (("dp_epsilon", epsilon), ("dp_delta", delta)):
        if asked.setdefault(name, value) != value:
            raise PrivacyParameterError(
                f"`{name}` is given twice with different values: keep --{name[3:]}."
            )
    table = read_table(data, domain, training=True, csv=Csv(separator, encoding))
    params = {"tree_method": "dp_hist", "verbosity": 1, **table.domain.parameters(), **asked}
    if table.ids is not None:
        params["dp_privacy_id"] = table.ids
    if start and public:
        raise PrivacyParameterError("Give --continue or --public-start, not both.")
    if public:
        params["dp_public_model"] = True
    if public_rows:
        csv = Csv(separator, encoding)
        params["dp_public_data"] = _public_rows(public_rows, data, table.domain, csv)
    below = start or public
    earlier = load_booster(below) if below else None
    count = DEFAULT_ROUNDS if rounds is None else rounds
    note = f"train {model.name}"
    with booked_on(budget, note) as book:
        booster = _train(params, table, count, earlier, book, note=note, quiet=quiet)
        booster.set_attr(**{ATTRIBUTE: table.domain.to_json()})
        found = privacy_report(booster)
        outputs = [model_file(model, booster), *(report_file(found, path) for path in reports)]
        save(*outputs, *([(card_path, model_card(booster))] if card_path else []))
    _say_what_was_spent(found, model)
    looked = domain.discovered
    if looked is not None:
        click.echo(
            f"Its schema was found on private rows, for ({looked['epsilon']:g}, "
            f"{looked['delta']:g}) more."
        )


def _public_rows(path: Path, data: Path, domain: Domain, csv: Csv) -> Any:
    """The matrix of public rows; they need no ids, and none of the columns that are left out."""
    if path.samefile(data) or note_of(path).is_file():
        raise PrivacyRefusal(
            "`--public-data` names private rows: the file of the training rows itself, or a part "
            "that `xgb-dp split` has made. Their exact quantiles would be thresholds of the model. "
            "Give rows of another source, which are public."
        )
    shared = replace(domain, privacy_id=None, drop=())
    return read_table(path, shared, training=True, csv=csv).matrix()


def _train(
    params: dict[str, Any],
    table: Table,
    rounds: int,
    earlier: Any,
    book: Budget | None,
    *,
    note: str,
    quiet: bool,
) -> xgboost.Booster:
    bar = click.progressbar(
        length=rounds, label="training", file=sys.stderr, hidden=quiet or not sys.stderr.isatty()
    )
    more = {"xgb_model": earlier, "callbacks": [_Progress(bar)]}
    with bar:
        if book is not None:
            return book.train(params, table.matrix(), rounds, note=note, **more)
        return xgboost.train(params, table.matrix(), rounds, **more)


def _say_what_was_spent(found: PrivacyReport, model: Path) -> None:
    if not found.private:
        click.secho(found.statement(), fg="red")
    else:
        click.echo(
            f"{model} is ({round_up(found.epsilon)}, {found.delta:g})-differentially private for "
            f"{found.unit.phrase} added or removed."
        )
    click.echo(f"The whole statement: xgb-dp report {model}")


@cli.command()
@click.argument("model", type=FILE)
@click.argument("data", type=ROWS)
@click.option("--out", type=OUT, help="Where to write, as .csv or .parquet; stdout by default.")
@click.option("--keep", multiple=True, metavar="COLUMN", help="Column of DATA to copy, e.g. a key.")
@click.option("--schema", "schema_file", type=FILE, help="Instead of what the model was given.")
@click.option("--score", is_flag=True, help="Also print the score of rows with labels, to stderr.")
@click.option("--rate", is_flag=True, help="Predict for an exposure of 1, without its column.")
@click.option("--contributions", is_flag=True, help="Also what each column adds to the margin.")
@csv_options
@click.option("--force", is_flag=True, help="Overwrite the file.")
@guarded
def predict(
    model: Path,
    data: Path,
    out: Path | None,
    keep: tuple[str, ...],
    schema_file: Path | None,
    score: bool,
    rate: bool,
    contributions: bool,
    separator: str,
    encoding: str,
    force: bool,
) -> None:
    """Predict the rows of DATA with a saved MODEL.

    Costs nothing more for the training rows. One line for each row: the class with its
    probabilities, the value, or the quantiles in their order. A model of several targets, or of
    several labels of 0 and 1, writes a column for each: target_0, target_1 and so on. A model of
    counts or amounts that was trained with exposures predicts them for the exposure of each row.
    """
    if out is not None:
        new_files([out], force=force, read=[data, model, schema_file])
    booster = load_booster(model)
    domain = read_domain(schema_file) if schema_file else _domain_of(booster, model)
    if rate and domain.outcome.exposure is None:
        raise PrivacyParameterError(
            "`--rate` is for models that were trained with exposures, and this one was not. "
            "Leave it out."
        )
    table = read_table(
        data,
        domain,
        training=False,
        labels=score,
        exposure=not rate,
        keep=keep,
        csv=Csv(separator, encoding),
    )
    domain = table.domain
    if booster.feature_names is not None and list(table.frame.columns) != booster.feature_names:
        raise PrivacyParameterError(
            "The columns of the schema are not those that the model was trained on, or are in "
            "another order. Give the schema of the training."
        )
    matrix = table.matrix()
    made = table.kept.copy()
    values = probabilities(booster, matrix)
    if domain.classes is None or targets(booster) > 1:
        bounds = domain.target_bounds
        # What an exposure multiplies has no declared range.
        if bounds is not None and domain.outcome.exposure is None:
            values = within(bounds, values)
        if values.ndim == 2:
            quantiles = levels_of_model(booster) is not None
            # Noise may cross quantiles.
            made[outputs(booster, table.domain)] = np.sort(values) if quantiles else values
        else:
            made["prediction"] = values
    else:
        odds = values if values.ndim == 2 else np.column_stack([1.0 - values, values])
        made["prediction"] = np.asarray(domain.classes, dtype=object)[odds.argmax(axis=1)]
        for i, name in enumerate(domain.classes):
            made[f"probability_{name}"] = odds[:, i]
    if contributions:
        made = pd.concat([made, contributions_of(booster, matrix, table)], axis=1)
    if out is None:
        click.echo(made.to_csv(index=False), nl=False)
    else:
        save((out, lambda place: write_table(made, place)))
    if score:
        score_of(booster, matrix, table)


def _domain_of(booster: xgboost.Booster, model: Path) -> Domain:
    """The domain that a model carries, or that of a model with numbers only."""
    text = booster.attr(ATTRIBUTE)
    if text is not None:
        return from_mapping(json.loads(text))
    types = booster.feature_types or []
    if booster.feature_names is None or "c" in types:
        raise PrivacyParameterError(
            f"{model} was not trained by `xgb-dp train`, so it does not say how to read a file. "
            "Give --schema with its columns in their order."
        )
    classes = None
    known = OBJECTIVES.get(objective_of(booster))
    if known is None or known.kind != "regression":
        count = max(ModelJson.config_of(booster).classes, 2)
        classes = tuple(map(str, range(count)))
    return Domain(classes=classes, columns=dict.fromkeys(booster.feature_names, Column()))


cli.add_command(evaluate_command(_domain_of))
cli.add_command(split_command)
