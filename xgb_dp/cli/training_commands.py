"""Commands for training and budgets: `calibrate`, `train`, `select` and `budget`.

XGBoost and pandas are slow to import, so they are imported only after the arguments are checked.
"""

from __future__ import annotations

import json
import math
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..accounting.units import UNITS
from ..budget.budget import Budget
from ..domain.columns import Column, parse_scalar
from ..domain.data_files import find_files
from ..domain.domain import ATTRIBUTE, Domain, read_header
from ..engine.saved_model import load_booster
from ..errors import PrivacyParameterError, PrivacyRefusal
from ..record.content import attach
from ..record.formatting import json_number, round_up
from ..record.ledger import read_ledger
from ..record.model_card import model_card
from ..record.privacy_report import PrivacyReport, privacy_report, spending_rows
from ..record.spending import Spending, spending
from ..request.names import check_names, flatten
from ..request.params import DEFAULT_ROUNDS
from ..selection import SCORES
from . import options
from .files import save
from .group import (
    Arguments,
    command,
    echo,
    model_file,
    new_files,
    recorded_in,
    report_file,
    report_kind,
)
from .options import FILE, FOLDER, OUT

if TYPE_CHECKING:
    from ..domain.data_files import Csv, Source
    from ..planning import Prepared
    from .tables import FileRows


@command("calibrate")
@click.option("--epsilon", type=float, multiple=True, required=True, help="Epsilon, in nats.")
@options.delta
@click.option("--columns", type=int, help="Number of numeric columns, if no columns are declared.")
@options.training
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@options.domain
def calibrate(given: Arguments) -> None:
    """Show how much noise an epsilon needs. Reads no rows and spends nothing.

    With a noise multiplier of 40 for leaf values, leaves with fewer than about 40 rows are mostly
    noise.
    """
    import xgboost  # noqa: F401 - the accountant is ten times faster in the native library

    from ..request.schema import Schema
    from ..training.hook import prepare

    domain, delta = options.domain_from(given), given.delta
    named = dict(domain.columns or domain.declared)
    for i in range(given.columns or 0):
        named.setdefault(f"column {i}", Column())
    if not named:
        raise PrivacyParameterError(
            "The number of columns is missing. Declare the columns in a schema file, or pass "
            "--columns."
        )
    domain = replace(domain, columns=named, declared={})
    features = domain.features
    shape = Schema(
        names=list(features),
        named=True,
        categorical=frozenset(i for i, c in enumerate(features.values()) if c.categories),
    )
    params = {"tree_method": "dp_hist", **domain.parameters(), **options.params_from(domain, given)}
    results = [
        (target, prepare({**params, "dp_epsilon": target, "dp_delta": delta}, shape, given.rounds))
        for target in given.epsilon
    ]
    if given.as_json:
        shown = [_json(target, prepared, delta) for target, prepared in results]
        echo(json.dumps(shown, indent=2, allow_nan=False))
        return
    for target, prepared in results:
        certified = round_up(prepared.noise.epsilon)
        unit = prepared.settings.privacy_unit.phrase
        echo(f"epsilon {target:g}: certified {certified} at delta {delta:g} for {unit}")
        for limit, plan in _plans(prepared):
            if limit is not None:
                rows = "more rows" if math.isinf(limit) else f"below about {limit:,.0f} rows"
                depth, eta = plan.settings["max_depth"], plan.settings["eta"]
                echo(f" {rows}: {plan.settings.rounds} rounds, depth {depth}, eta {eta:g}")
            for s in _spending(plan, delta):
                echo(f"  {s.release:<11} {s.count:>5}x  {100 * s.share:5.1f}%  {s.noise}")


def _plans(prepared: Prepared) -> list[tuple[float | None, Prepared]]:
    """Return each plan with the row count below which it applies; None for a single plan."""
    if prepared.family is None:
        return [(None, prepared)]
    return list(zip(prepared.family.limits, prepared.plans, strict=True))


def _spending(plan: Prepared, delta: float) -> list[Spending]:
    return spending(plan.noise.events, delta, plan.settings.privacy_unit.group_size)


def _json(target: float, prepared: Prepared, delta: float) -> dict[str, Any]:
    content = {
        "target": json_number(target),
        "epsilon": json_number(prepared.noise.epsilon),
        "delta": delta,
        "unit": prepared.settings.unit,
        "group_size": prepared.settings.privacy_unit.group_size,
    }
    plans = [
        {
            "rows_below": None if limit is None else json_number(limit),
            "rounds": plan.settings.rounds,
            "max_depth": plan.settings["max_depth"],
            "eta": plan.settings["eta"],
            "budget": spending_rows(_spending(plan, delta)),
        }
        for limit, plan in _plans(prepared)
    ]
    if prepared.family is None:
        return {**content, "budget": plans[0]["budget"]}
    return {**content, "plans": plans}


@command("train")
@options.data
@options.domain
@click.option("--epsilon", type=float, required=True, help="Privacy budget of this model, in nats.")
@options.delta
@options.training
@options.budget
@click.option("--model", type=OUT, default="model.json", help="Output model file.")
@click.option("--continue", "start", type=FILE, help="Private model to add rounds to.")
@click.option(
    "--public-start", "public", type=FILE, help="Model trained on public data, to start from."
)
@click.option(
    "--public-data", "public_rows", type=FILE, help="Public rows, for split candidates at no cost."
)
@click.option(
    "--report", "reports", type=OUT, multiple=True, help="Also write a report (.txt, .json, .html)."
)
@click.option("--card", "card_path", type=OUT, help="Also write a model card (.md).")
@click.option(
    "--disk", type=FOLDER, help="Keep the rows in this private folder instead of in memory."
)
@options.csv
@options.force
@click.option("--quiet", is_flag=True, help="Show no progress bar.")
def train(given: Arguments) -> None:
    """Train a private model on the rows of DATA.

    Spends epsilon and delta. All inputs are checked before any noise is drawn, so an invalid call
    spends nothing.

    \b
    xgb-dp train people.csv --target income --classes "<=50K,>50K" \\
        --categories sex=Female,Male --epsilon 1 --delta 1e-6 --model income.json
    """
    data, model, csv, card_path = given.data, given.model, given.csv, given.card_path
    paths = [model, *given.reports, *([card_path] if card_path else [])]
    below = given.start or given.public
    new_files(paths, force=given.force)
    for path in given.reports:
        report_kind(path)  # raises on an unknown extension before training
    if given.start and given.public:
        raise PrivacyParameterError("Pass --continue or --public-start, not both.")
    note = f"train {model.name}"
    with recorded_in(given.budget, note) as budget:
        table, params = rows_and_params(given, **given.named("epsilon", "delta"))
        domain = table.domain
        if given.public:
            params["dp_public_model"] = True
        if given.public_rows:
            params["dp_public_data"] = _public_rows(given.public_rows, data, domain, csv)
        earlier = load_booster(below) if below else None
        matrix = table.matrix()
        del table  # frees memory: the matrix has its own copy
        import xgboost

        training = xgboost.train if budget is None else partial(budget.train, note=note)
        count = DEFAULT_ROUNDS if given.rounds is None else given.rounds
        hidden = given.quiet or not sys.stderr.isatty()
        with click.progressbar(
            length=count, label="training", file=sys.stderr, hidden=hidden
        ) as bar:
            booster = training(params, matrix, count, xgb_model=earlier, callbacks=[_progress(bar)])
        attach(booster, **{ATTRIBUTE: domain.to_json()})
        report = privacy_report(booster)
        outputs = [report_file(report, path) for path in given.reports]
        if card_path is not None:
            outputs.append((card_path, model_card(booster)))
        save(model_file(model, booster), *outputs)
    echo_spending(report, model, domain)


def rows_and_params(given: Arguments, **target: float) -> tuple[FileRows, dict[str, Any]]:
    """Read the rows of DATA, and collect the parameters from options and schema."""
    domain = options.domain_from(given)
    domain.check_target()
    given_params = options.params_from(domain, given)
    for name, value in target.items():
        if given_params.setdefault(f"dp_{name}", value) != value:
            raise PrivacyParameterError(
                f"`dp_{name}` and --{name} have different values. Pass only --{name}."
            )
    # Check names before importing pandas and reading the file.
    check_names(flatten(given_params))
    domain.resolve(read_header(given.data, given.csv), training=True).checked()
    folder = getattr(given, "disk", None)
    if folder is None:
        from .tables import read_table

        table = read_table(given.data, domain, training=True, csv=given.csv)
    else:
        from .tables import paged_table

        table = paged_table(given.data, domain, folder, given.csv)
    params = {"tree_method": "dp_hist", "verbosity": 1, **table.domain.parameters(), **given_params}
    if table.ids is not None:
        params["dp_privacy_id"] = table.persons
    return table, params


def _public_rows(path: Path, data: Source, domain: Domain, csv: Csv) -> Any:
    """Read public rows as a matrix; privacy ids and dropped columns are not needed."""
    from .files import note_path
    from .tables import read_table

    private = [file for file, _ in find_files(data)]
    if any(map(path.samefile, private)) or note_path(path).is_file():
        raise PrivacyRefusal(
            "`--public-data` is a file of the training rows or a part made by `xgb-dp split`, "
            "so it is private, and its exact quantiles would become thresholds of the model. Pass "
            "public rows from another source."
        )
    shared = replace(domain, privacy_id=None, drop=())
    return read_table(path, shared, training=True, csv=csv).matrix()


def _progress(bar: Any) -> Any:
    """Return a callback that advances the progress bar after each round."""
    from xgboost.callback import TrainingCallback

    class Progress(TrainingCallback):
        def after_iteration(self, model: Any, epoch: int, evals_log: Any) -> bool:
            del model, epoch, evals_log
            bar.update(1)
            return False

        def before_training(self, model: Any) -> Any:
            # The plan is fixed now. Its number of rounds is public or has been released.
            bar.length = read_ledger(model).trainings[-1].rounds
            return model

    return Progress()


def echo_spending(report: PrivacyReport, model: Path, domain: Domain) -> None:
    """Print the privacy guarantee of a model."""
    if not report.private:
        click.secho(report.statement(), fg="red")
    else:
        echo(
            f"{model} is ({round_up(report.epsilon)}, {report.delta:g})-differentially private for "
            f"adding or removing {report.unit.phrase}."
        )
    echo(f"For the full report run: xgb-dp report {model}")
    if domain.discovered is not None:
        echo("This includes the cost of the column discovery for its schema.")


@command("select")
@options.data
@options.domain
@click.option(
    "--epsilon", type=float, required=True, help="Epsilon of the whole selection, in nats."
)
@options.delta
@click.option(
    "--grid",
    "grids",
    multiple=True,
    required=True,
    metavar="NAME=A,B,...",
    help="Candidate values of a parameter, e.g. max_depth=2,4 or rounds=20,50.",
)
@click.option("--score", type=click.Choice(SCORES), help="Score to maximize.")
@options.training
@options.budget
@click.option("--model", type=OUT, default="model.json", help="Output model file.")
@options.csv
@options.force
def select(given: Arguments) -> None:
    """Select the best settings of a grid on the rows of DATA, and save the best model.

    Spends epsilon and delta once: they cover the model, its settings and its score.

    \b
    xgb-dp select people.csv --schema people.yaml --grid max_depth=2,4 --grid eta=0.1,0.3 \\
        --epsilon 2 --delta 1e-6 --model income.json
    """
    model, grid = given.model, _grid(given.grids)
    new_files([model], force=given.force)
    note = f"select {model.name}"
    with recorded_in(given.budget, note) as budget:
        table, params = rows_and_params(given)
        from ..selection.best_run import select as best_of

        chosen = best_of(
            params,
            table.matrix(),
            grid,
            num_boost_round=DEFAULT_ROUNDS if given.rounds is None else given.rounds,
            budget=budget,
            note=note,
            **given.named("epsilon", "delta", "score"),
        )
        attach(chosen.booster, **{ATTRIBUTE: table.domain.to_json()})
        save(model_file(model, chosen.booster))
    setting = ", ".join(f"{name}={value}" for name, value in chosen.setting.items())
    echo(f"{setting}: {chosen.score_name} {chosen.score:.4f} ± {chosen.score_noise:.4f}")
    echo_spending(chosen.report, model, table.domain)


def _grid(strings: tuple[str, ...]) -> dict[str, list[object]]:
    """Parse the --grid options into the grid of :func:`xgb_dp.select`."""
    grid: dict[str, list[object]] = {}
    for text in strings:
        name, equals, values = text.partition("=")
        name = "num_boost_round" if name == "rounds" else name
        if not name or not equals or not values or name in grid:
            raise PrivacyParameterError(
                "--grid must be NAME=A,B,..., once per parameter. For example, pass "
                "--grid max_depth=2,4."
            )
        grid[name] = [parse_scalar(value) for value in values.split(",")]
    return grid


@command("budget")
@click.argument("file", type=OUT)
@click.argument("models", type=FILE, nargs=-1)
@click.option(
    "--check", is_flag=True, help="Check that the budget contains all releases of each MODEL."
)
@click.option("--epsilon", type=float, help="Total epsilon; required to create the file.")
@click.option("--delta", type=float, help="Total delta; required to create the file.")
@click.option("--selection-epsilon", type=float, help="Part of epsilon reserved for selections.")
@click.option("--unit", type=click.Choice(list(UNITS)), help="Privacy unit; by default row.")
@click.option("--group-size", type=int, help="Rows or persons protected together; by default 1.")
@click.option(
    "--most-rows",
    type=int,
    help="Upper bound on the rows of a person, for charging row-level trainings.",
)
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Print totals, remaining budget, plan and entries as JSON.",
)
def budget(given: Arguments) -> None:
    """Create the budget FILE of a data set, or show its state. Spends nothing.

    With --check MODEL..., list the releases of saved models that the budget does not contain, and
    exit with code 1 if there are any.
    """
    file = given.file
    if given.check != bool(given.models):
        raise PrivacyParameterError(
            "--check and MODEL must be given together. For example, run: "
            f"xgb-dp budget {file} --check model.json"
        )
    if not file.exists() and None in (given.epsilon, given.delta):
        raise PrivacyParameterError(
            f"The budget file {file} does not exist. To create it, pass its totals: "
            f"xgb-dp budget {file} --epsilon 2 --delta 1e-6"
        )
    total = given.named("epsilon", "delta", "selection_epsilon", "unit", "group_size", "most_rows")
    budget = Budget(file, **total)
    budget.verify()
    if not given.check:
        echo(json.dumps(_state(budget), indent=2) if given.as_json else budget.statement())
        return
    missing = {model: budget.missing(model) for model in given.models}
    for model, names in missing.items():
        echo(f"{model}: " + (f"not charged: {', '.join(names)}" if names else "charged"))
    if any(missing.values()):
        raise SystemExit(1)


def _state(budget: Budget) -> dict[str, Any]:
    """Return the totals, the remaining budget, a plan for it, and the entries."""
    totals = {name: getattr(budget, name) for name in ("epsilon", "delta", "selection_epsilon")}
    totals |= {"unit": budget.unit.name, "group_size": budget.unit.group_size}
    left = {"remaining": budget.remaining(), "remaining_selection": budget.remaining_selection()}
    entries = [{n: getattr(e, n) for n in ("id", "note", "time", "state")} for e in budget.entries]
    return {**totals, **left, "plan": budget.plan(), "entries": entries}
