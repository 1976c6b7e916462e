"""The commands that train nothing, from calibrate to doctor."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..accounting import ACCOUNTANTS
from ..accounting.units import UNITS
from ..budget.budget import Budget
from ..errors import PrivacyParameterError
from ..record.card import model_card
from ..record.deployment import KINDS, deployment_record, page_of
from ..record.report import privacy_report
from ..record.report_views import json_number, round_up, spending_rows
from ..record.spending import spending
from .column import Column
from .options import (
    FILE,
    OUT,
    domain_from,
    domain_options,
    guarded,
    params_from,
    report_file,
    report_text,
    training_options,
)
from .output import new_files, save
from .schema import schema

if TYPE_CHECKING:
    from ..training.prepare import Prepared

__all__ = ["COMMANDS"]


@click.command()
@click.option("--epsilon", type=float, multiple=True, required=True, help="Epsilon, in nats.")
@click.option("--delta", type=float, required=True, help="Chance with which the bound may fail.")
@click.option("--columns", type=int, help="Number of numeric columns, if none are declared.")
@training_options
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@domain_options
@guarded
def calibrate(
    epsilon: tuple[float, ...],
    delta: float,
    rounds: int | None,
    columns: int | None,
    preset: str | None,
    pairs: tuple[str, ...],
    as_json: bool,
    **declared: Any,
) -> None:
    """Show how much noise an epsilon needs. Reads no rows and spends nothing.

    The noise multiplier is the standard deviation of the noise over the most that one row can
    change: noise of 40 in the leaves drowns leaves of fewer than some 40 rows.
    """
    from ..request.features import Schema
    from ..training.prepare import prepare

    domain = domain_from(**declared)
    named = dict(domain.columns or domain.declared)
    for i in range(columns or 0):
        named.setdefault(f"column {i}", Column())
    if not named:
        raise PrivacyParameterError(
            "The number of columns is missing. Declare the columns in a schema file, or give "
            "--columns."
        )
    domain = replace(domain, columns=named, declared={})
    features = domain.features
    shape = Schema(
        names=list(features),
        named=True,
        categorical=frozenset(i for i, c in enumerate(features.values()) if c.categories),
        dictionaries={},
    )
    results = []
    for target in epsilon:
        params = {
            "tree_method": "dp_hist",
            **domain.parameters(),
            **params_from(domain, preset, pairs),
            "dp_epsilon": target,
            "dp_delta": delta,
        }
        prepared = prepare(params, shape, rounds)
        results.append((target, prepared))
    if as_json:
        shown = [
            {
                "target": json_number(target),
                "epsilon": json_number(prepared.noise.epsilon),
                "delta": delta,
                "unit": prepared.settings.unit,
                "group": prepared.settings.privacy_unit.group,
                **(_family_json if prepared.family else _plan_json)(prepared, delta),
            }
            for target, prepared in results
        ]
        click.echo(json.dumps(shown, indent=2, allow_nan=False))
        return
    for target, prepared in results:
        certified = round_up(prepared.noise.epsilon)
        unit = prepared.settings.privacy_unit.phrase
        click.echo(f"epsilon {target:g}: certified {certified} at delta {delta:g} for {unit}")
        for plan, words in zip(prepared.plans, _words(prepared), strict=True):
            if words:
                click.echo(f" {words}")
            for s in spending(plan.noise.events, delta, plan.settings.privacy_unit.group):
                click.echo(f"  {s.release:<11} {s.count:>5}x  {100 * s.share:5.1f}%  {s.noise}")


def _plan_json(plan: Prepared, delta: float) -> dict[str, Any]:
    spent = spending(plan.noise.events, delta, plan.settings.privacy_unit.group)
    return {"budget": spending_rows(spent)}


def _family_json(prepared: Prepared, delta: float) -> dict[str, Any]:
    """Each plan with the number of rows below which it is taken."""
    assert prepared.family is not None
    plans = [
        {
            "rows_below": json_number(limit),
            "rounds": plan.settings.rounds,
            "max_depth": plan.settings["max_depth"],
            "eta": plan.settings["eta"],
            **_plan_json(plan, delta),
        }
        for limit, plan in zip(prepared.family.limits, prepared.plans, strict=True)
    ]
    return {"plans": plans}


def _words(prepared: Prepared) -> list[str]:
    """What each plan is and where it is taken; empty where there is only one."""
    if prepared.family is None:
        return [""]
    words = []
    for limit, plan in zip(prepared.family.limits, prepared.plans, strict=True):
        s = plan.settings
        where = "for more" if math.isinf(limit) else f"below about {limit:,.0f} rows"
        words.append(f"{where}: {s.rounds} rounds, depth {s['max_depth']}, eta {s['eta']:g}")
    return words


@click.command()
@click.argument("file", type=OUT)
@click.argument("models", type=FILE, nargs=-1)
@click.option("--check", is_flag=True, help="Say whether the book contains what made each MODEL.")
@click.option("--epsilon", type=float, help="Total of the data set; needed to make the file.")
@click.option("--delta", type=float, help="Total of the data set; needed to make the file.")
@click.option("--selection-epsilon", type=float, help="Part of epsilon set aside for selections.")
@click.option("--unit", type=click.Choice(list(UNITS)), help="Whom the total is for; row.")
@click.option("--group", type=int, help="Rows of one person, or persons, together; 1.")
@click.option("--most-rows", type=int, help="Most rows of a person: trainings for rows count so.")
@guarded
def budget(file: Path, models: tuple[Path, ...], check: bool, **given: Any) -> None:
    """Make the budget FILE of a data set, or say what is left of it. Spends nothing.

    With --check MODEL... it names what saved models have released that the book does not contain,
    and the exit code is 1 if there is any.
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
        said = f"not booked: {', '.join(names)}" if names else "booked"
        click.echo(f"{model}: {said}")
    if any(missing.values()):
        raise SystemExit(1)


@click.command()
@click.argument("model", type=FILE)
@click.option(
    "--format",
    "kind",
    type=click.Choice(["text", "json", "html"]),
    default="text",
    show_default=True,
)
@click.option("--out", type=OUT, help="Write .txt, .json or .html instead of printing.")
@click.option("--name", default="", help="Name of the model, for the title.")
@click.option("--delta", type=float, help="Print only epsilon, at this delta.")
@click.option("--group", type=int, help="Print only epsilon, of so many rows or persons.")
@click.option("--accountant", type=click.Choice(list(ACCOUNTANTS)), help="Print only its epsilon.")
@click.option("--replace-one", is_flag=True, help="Print only epsilon, for rows exchanged.")
@click.option("--force", is_flag=True, help="Overwrite the file.")
@guarded
def report(
    model: Path,
    kind: str,
    out: Path | None,
    name: str,
    delta: float | None,
    group: int | None,
    accountant: str | None,
    replace_one: bool,
    force: bool,
) -> None:
    """Say what the saved MODEL has cost, recomputed from what was drawn. Spends nothing."""
    found = privacy_report(model)
    if delta is not None or group is not None or accountant or replace_one:
        epsilon = found.get_epsilon(
            found.delta if delta is None else delta,
            group,
            accountant=accountant or "exact",
            adjacency="replace_one" if replace_one else "add_remove",
        )
        click.echo(round_up(epsilon))
    elif out is not None:
        new_files([out], force=force, read=[model])
        save(report_file(found, out, name))
    else:
        click.echo(report_text(found, kind, name))


@click.command()
@click.argument("model", type=FILE)
@click.option("--out", type=OUT, help="Where to write; stdout by default.")
@click.option("--name", default="Private XGBoost model", help="Title.")
@click.option("--description", default="", help="What the model predicts.")
@click.option("--intended-use", default="", help="What it is for, and what not.")
@click.option("--data", default="", help="Where the training rows come from.")
@click.option("--license", "licence", default="", help="Licence of the model.")
@click.option("--contact", default="", help="Whom to ask.")
@click.option(
    "--format",
    "kind",
    type=click.Choice(["markdown", "html", *KINDS]),
    default="markdown",
    show_default=True,
    help="registry and nist: the fields of the deployments registry and of NIST SP 800-226.",
)
@click.option("--force", is_flag=True, help="Overwrite the file.")
@guarded
def card(
    model: Path,
    out: Path | None,
    kind: str,
    name: str,
    description: str,
    intended_use: str,
    data: str,
    licence: str,
    contact: str,
    force: bool,
) -> None:
    """Write a model card of the saved MODEL, or what registries and reviewers ask for."""
    told: dict[str, Any] = {
        "name": name,
        "intended_use": intended_use,
        "data": data,
        "contact": contact,
    }
    if kind == "html":
        text = page_of(model, **told)
    elif kind in KINDS:
        text = json.dumps(deployment_record(model, kind, **told), indent=2, allow_nan=False)
    else:
        text = model_card(model, description=description, license=licence, **told)
    if out is None:
        click.echo(text)
    else:
        new_files([out], force=force, read=[model])
        save((out, text))


@click.command(context_settings={"ignore_unknown_options": True, "help_option_names": []})
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
@guarded
def audit(arguments: tuple[str, ...]) -> None:
    """Measure lower bounds on epsilon, as python -m xgb_dp.audit does (--fast: within a minute)."""
    from ..audit.__main__ import main

    raise SystemExit(main(list(arguments)))


@click.command(context_settings={"ignore_unknown_options": True, "help_option_names": []})
@click.argument("arguments", metavar="MODEL [OPTIONS]", nargs=-1, type=click.UNPROCESSED)
@guarded
def verify(arguments: tuple[str, ...]) -> None:
    """Check what a model file claims of its privacy, without libxgboost, before you release it.

    Recomputes epsilon from the ledger in the file, compares the trees with it, and names whatever
    else the file holds. Needs neither the private build nor the extra `cli`. The exit code is 0 if
    all checks passed. It is 1 if the model is not private or exceeds a limit, or if the file
    contains something that the ledger does not mention. It is 2 for a wrong call. It is 3 if
    nothing can be said, because the ledger is missing or damaged, or is not that of the trees.
    `xgb-dp verify --help` prints the options.

    \b
    xgb-dp verify model.json --max-epsilon 1 --delta 1e-6 --json
    """
    from .verify import main

    raise SystemExit(main(arguments))


@click.command()
@guarded
def doctor() -> None:
    """Check build, entropy, versions and shadowed installs."""
    from .doctor import main

    raise SystemExit(main())


COMMANDS = (calibrate, budget, report, verify, card, schema, audit, doctor)
