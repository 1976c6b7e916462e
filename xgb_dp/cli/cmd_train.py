"""The command that trains. XGBoost and pandas take long to load: a wrong call needs neither."""

from __future__ import annotations

import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..domain.csv_form import header_of
from ..domain.domain import ATTRIBUTE, Domain
from ..engine.models import load_booster
from ..errors import PrivacyParameterError, PrivacyRefusal
from ..record.binding import attach
from ..record.deployment import model_card
from ..record.ledger import read_ledger
from ..record.report import PrivacyReport, privacy_report
from ..record.report_views import round_up
from ..request.names import check_names, flatten
from ..request.params import DEFAULT_ROUNDS
from . import options
from .group import Given, command
from .options import FILE, FOLDER, OUT, ROWS
from .output import booked_on, model_file, new_files, report_file, report_kind, say
from .places import save

if TYPE_CHECKING:
    from ..domain.csv_form import Csv
    from .table import Table


@command("train")
@click.argument("data", type=ROWS)
@options.domain
@click.option("--epsilon", type=float, required=True, help="Privacy budget of this model, in nats.")
@options.delta
@options.training
@options.budget
@click.option("--model", type=OUT, default="model.json", help="Where to save.")
@click.option("--continue", "start", type=FILE, help="Private model to add rounds to.")
@click.option(
    "--public-start", "public", type=FILE, help="Model made without private rows, to start from."
)
@click.option(
    "--public-data", "public_rows", type=FILE, help="Public rows, for split candidates at no cost."
)
@click.option(
    "--report", "reports", type=OUT, multiple=True, help="Also write a report (.txt, .json, .html)."
)
@click.option("--card", "card_path", type=OUT, help="Also write a model card (.md).")
@click.option(
    "--disk", type=FOLDER, help="Keep the rows in this folder, which is private, not in memory."
)
@options.csv
@options.force
@click.option("--quiet", is_flag=True, help="Show no progress bar.")
def train(given: Given) -> None:
    """Train a private model on the rows of DATA.

    Spends epsilon and delta. Everything that can be wrong is found before any noise is drawn; an
    error spends nothing.

    \b
    xgb-dp train people.csv --target income --classes "<=50K,>50K" \\
        --categories sex=Female,Male --epsilon 1 --delta 1e-6 --model income.json
    """
    data, model, csv, card_path = given.data, given.model, given.csv, given.card_path
    paths = [model, *given.reports, *([card_path] if card_path else [])]
    below = given.start or given.public
    new_files(paths, force=given.force)
    for path in given.reports:
        report_kind(path)  # an unknown ending is an error before training
    table, params = rows_and_params(given, **given.named("epsilon", "delta"))
    domain = table.domain
    if given.start and given.public:
        raise PrivacyParameterError("Give --continue or --public-start, not both.")
    if given.public:
        params["dp_public_model"] = True
    if given.public_rows:
        params["dp_public_data"] = _public_rows(given.public_rows, data, domain, csv)
    earlier = load_booster(below) if below else None
    matrix = table.matrix()
    del table  # its cells are in the matrix
    import xgboost

    note = f"train {model.name}"
    with booked_on(given.budget, note) as book:
        training = xgboost.train if book is None else partial(book.train, note=note)
        count = DEFAULT_ROUNDS if given.rounds is None else given.rounds
        with _progress_bar(count, given.quiet) as bar:
            booster = training(params, matrix, count, xgb_model=earlier, callbacks=[_progress(bar)])
        attach(booster, **{ATTRIBUTE: domain.to_json()})
        report = privacy_report(booster)
        outputs = [report_file(report, path) for path in given.reports]
        if card_path is not None:
            outputs.append((card_path, model_card(booster)))
        save(model_file(model, booster), *outputs)
    say_what_was_spent(report, model, domain)


def rows_and_params(given: Given, **target: float) -> tuple[Table, dict[str, Any]]:
    """The rows of DATA as they are declared, and the parameters that options and schema give."""
    domain = options.domain_from(given)
    domain.check_target()
    asked = options.params_from(domain, given)
    for name, value in target.items():
        if asked.setdefault(f"dp_{name}", value) != value:
            raise PrivacyParameterError(
                f"`dp_{name}` is given twice with different values: keep --{name}."
            )
    # Wrong names are found before pandas is loaded and the file is read.
    check_names(flatten(asked))
    domain.resolved(header_of(given.data, given.csv), training=True).checked()
    folder = getattr(given, "disk", None)
    if folder is None:
        from .table import read_table

        table = read_table(given.data, domain, training=True, csv=given.csv)
    else:
        from .pages import paged_table

        table = paged_table(given.data, domain, folder, given.csv)
    params = {"tree_method": "dp_hist", "verbosity": 1, **table.domain.parameters(), **asked}
    if table.ids is not None:
        params["dp_privacy_id"] = table.persons
    return table, params


def _public_rows(path: Path, data: Path, domain: Domain, csv: Csv) -> Any:
    """The matrix of public rows; they need no ids, and none of the columns that are left out."""
    from .notes import note_of
    from .table import read_table

    if path.samefile(data) or note_of(path).is_file():
        raise PrivacyRefusal(
            "`--public-data` names private rows: the file of the training rows itself, or a part "
            "that `xgb-dp split` has made. Their exact quantiles would be thresholds of the model. "
            "Give rows of another source, which are public."
        )
    shared = replace(domain, privacy_id=None, drop=())
    return read_table(path, shared, training=True, csv=csv).matrix()


def _progress_bar(rounds: int, quiet: bool) -> Any:
    hidden = quiet or not sys.stderr.isatty()
    return click.progressbar(length=rounds, label="training", file=sys.stderr, hidden=hidden)


def _progress(bar: Any) -> Any:
    """The callback that shows how many rounds are done."""
    from xgboost.callback import TrainingCallback

    class Progress(TrainingCallback):
        def after_iteration(self, model: Any, epoch: int, evals_log: Any) -> bool:
            del model, epoch, evals_log
            bar.update(1)
            return False

        def before_training(self, model: Any) -> Any:
            # The plan is known, and with it the number of rounds, which is public or was released.
            bar.length = read_ledger(model).trainings[-1].rounds
            return model

    return Progress()


def say_what_was_spent(report: PrivacyReport, model: Path, domain: Domain) -> None:
    """Print the guarantee of a model in a sentence."""
    if not report.private:
        click.secho(report.statement(), fg="red")
    else:
        say(
            f"{model} is ({round_up(report.epsilon)}, {report.delta:g})-differentially private for "
            f"{report.unit.phrase} added or removed."
        )
    say(f"The whole statement: xgb-dp report {model}")
    if domain.discovered is not None:
        say("This counts the look at private rows by which its schema was found.")
