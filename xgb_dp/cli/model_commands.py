"""Commands for saved models: `predict`, `evaluate`, `report`, `card`, `sign` and `verify`.

Also contains `audit`, which attacks the installed library.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from .. import policy
from ..accounting import ACCOUNTANTS
from ..budget.budget import Budget
from ..data.row_checks import check_columns
from ..domain.data_files import check_extension
from ..domain.domain import Domain, read_model_domain
from ..engine.model_json import ModelJson
from ..engine.saved_model import (
    clip_to_bounds,
    load_booster,
    probabilities,
    read_objective,
    read_quantile_levels,
)
from ..errors import PrivacyParameterError
from ..record.content import check_margins
from ..record.formatting import round_up
from ..record.model_card import model_card, registry_entry
from ..record.privacy_report import privacy_report
from ..record.verify import create_signature, signature_path, verify
from . import options
from .files import Output, save
from .group import (
    PASSED_ON,
    Arguments,
    command,
    echo,
    model_file,
    new_files,
    print_data,
    print_or_save,
    recorded_in,
    report_kind,
    report_text,
)
from .options import FILE, OUT

if TYPE_CHECKING:
    import pandas as pd
    import xgboost

    from .tables import FileRows


@command("predict")
@click.argument("model", type=FILE)
@options.data
@click.option("--out", type=OUT, help="Output file, .csv or .parquet; stdout by default.")
@click.option("--keep", multiple=True, metavar="COLUMN", help="Column of DATA to copy, e.g. a key.")
@options.model_schema
@click.option("--rate", is_flag=True, help="Predict for exposure 1; ignores the exposure column.")
@click.option("--contributions", is_flag=True, help="Also write the contribution of each feature.")
@options.csv
@options.force
def predict(given: Arguments) -> None:
    """Predict the rows of DATA with a saved MODEL.

    Spends nothing. Writes one line per row: the predicted class and the class probabilities, the
    predicted value, or the quantiles in ascending order; several targets or binary labels are in
    columns target_0, target_1 and so on.
    """
    out = given.out
    if out is not None:
        new_files([out], force=given.force)
        check_extension(out if out.suffix else Path("stdout.csv"))
    booster = load_booster(given.model)
    domain = read_model_domain(booster, given.model, given.schema_file)
    if given.rate and domain.exposure is None:
        raise PrivacyParameterError(
            "`--rate` requires a model trained with exposures; this model was trained without "
            "them. Omit --rate."
        )
    import pandas as pd

    from ..domain.row_files import write_rows
    from .tables import read_table

    table = read_table(
        given.data, domain, training=False, exposure=not given.rate, **given.named("keep", "csv")
    )
    if given.rate:
        table = replace(table, margins=np.zeros(len(table.frame), np.float32))
    check_margins(booster, table.margins)
    matrix = table.matrix()
    check_columns(booster, matrix)
    predictions = _predictions(booster, matrix, table.domain)
    written = pd.DataFrame(predictions)
    if given.contributions:
        written = pd.concat([written, _contributions(booster, matrix, table)], axis=1)
    for name in given.keep:
        if name in written:
            raise PrivacyParameterError(
                f"`--keep {name}`: the output already has a column with this name. Rename the "
                "column in DATA, or omit the option."
            )
    written = pd.concat([table.kept, written], axis=1)
    if out is None:
        print_data(written.to_csv(index=False))
    else:
        save((out, lambda place: write_rows(written, place)))


def _predictions(booster: xgboost.Booster, matrix: Any, domain: Domain) -> dict[str, Any]:
    """Return the prediction columns by name."""
    config = ModelJson.from_config(booster)
    several = max(config.classes, config.targets)
    # XGBoost does not return the right shape for zero rows.
    values = np.empty((0, several) if several > 1 else 0)
    if matrix.num_row():
        values = probabilities(booster, matrix)
    if domain.classes is None or config.targets > 1:
        bounds = domain.target_bounds
        # A prediction multiplied by an exposure has no declared range.
        if bounds is not None and domain.exposure is None:
            values = clip_to_bounds(bounds, values)
        if values.ndim == 1:
            return {"prediction": values}
        if read_quantile_levels(booster) is not None:
            values = np.sort(values)  # noise can make quantiles cross
        return dict(zip(_outputs(booster, domain), values.T, strict=True))
    odds = values if values.ndim == 2 else np.column_stack([1.0 - values, values])
    likeliest = np.asarray(domain.classes, dtype=object)[odds.argmax(axis=1)]
    each = {f"probability_{name}": odds[:, i] for i, name in enumerate(domain.classes)}
    return {"prediction": likeliest, **each}


def _outputs(booster: xgboost.Booster, domain: Domain) -> list[str]:
    """Return the names of the outputs of a model: its classes, quantiles or targets."""
    levels, targets = read_quantile_levels(booster), ModelJson.from_config(booster).targets
    if levels is not None:
        return [f"quantile_{level:g}" for level in levels]
    if domain.classes is not None and targets == 1:
        return list(map(str, domain.classes))
    return [f"target_{k}" for k in range(targets)]


def _contributions(booster: xgboost.Booster, matrix: Any, table: FileRows) -> pd.DataFrame:
    """Return the contribution of each feature to the margin of each output."""
    import pandas as pd

    names = [*table.frame.columns, "bias"]
    config = ModelJson.from_config(booster)
    several = max(config.classes, config.targets) > 1
    outputs = _outputs(booster, table.domain) if several else []
    labels = [f"contribution_{c}_{n}" for c in outputs for n in names]
    labels = labels or [f"contribution_{n}" for n in names]
    values = booster.predict(matrix, pred_contribs=True) if len(table.frame) else np.empty(0)
    return pd.DataFrame(values.reshape(len(table.frame), len(labels)), columns=labels)


@command("evaluate")
@click.argument("model", type=FILE)
@options.data
@click.option("--epsilon", type=float, required=True, help="Epsilon of the evaluation, in nats.")
@options.delta
@click.option("--against", type=FILE, help="Second model, to compare with.")
@click.option(
    "--by",
    metavar="COLUMN[=A,B]",
    help="Also evaluate groups: the declared categories of a column, or these values.",
)
@click.option("--error-bound", type=float, help="For regression: clip absolute errors to this.")
@click.option("--max-rows-per-person", type=int, help="Rows as which one person counts at most.")
@click.option("--group-size", type=int, help=options.GROUP)
@options.budget
@click.option(
    "--json", "json_path", type=OUT, help="Also write the metrics as JSON; - prints only JSON."
)
@click.option("--calibrated", type=OUT, help="Also save the model with calibrated margins.")
@options.model_schema
@options.csv
@options.force
def evaluate(given: Arguments) -> None:
    """Evaluate a saved MODEL on the private rows of DATA.

    Spends epsilon and delta: all metrics are computed from one noisy table. If the model was
    trained on the same rows, the costs of training and evaluation add up.

    \b
    xgb-dp evaluate income.json holdout.csv --epsilon 0.5 --delta 1e-6 --by sex
    """
    model, against, calibrated = given.model, given.against, given.calibrated
    printed = str(given.json_path) == "-"
    paths = [path for path in (given.json_path, calibrated) if path and str(path) != "-"]
    new_files(paths, force=given.force)
    booster = load_booster(model)
    domain = read_model_domain(booster, model, given.schema_file)
    features = [*domain.features]
    if (rules := policy.in_force()) is not None:
        domain = rules.permitted(replace(domain, drop=()), some=True)
    if domain.target is None:
        raise PrivacyParameterError(
            "The schema has no target column. Pass --schema with a schema that sets `target`."
        )
    from ..evaluation import evaluate as evaluate_rows
    from ..evaluation.report import CALIBRATED

    if calibrated is not None and (against or read_objective(booster) not in CALIBRATED):
        raise PrivacyParameterError(
            "`--calibrated` needs the evaluation of one model, of two classes or means. Omit it."
        )
    groups = _groups(given.by, domain)
    from .tables import read_table

    note = f"evaluate {model.name}"
    with recorded_in(given.budget, note) as budget:
        table = read_table(given.data, domain, training=True, csv=given.csv)
        if rules is not None:  # the model can use fewer columns than the policy declares
            table = replace(table, frame=table.frame[features])
        report = evaluate_rows(
            booster if against is None else [booster, load_booster(against)],
            table.rows(),
            by=groups,
            target_bounds=domain.target_bounds if domain.classes is None else None,
            privacy_id=table.persons,
            budget=budget,
            note=note,
            **given.named("epsilon", "delta", "error_bound", "max_rows_per_person", "group_size"),
        )
        outputs: list[Output] = []
        if given.json_path is not None and not printed:
            outputs.append((given.json_path, report.to_json() + "\n"))
        if calibrated is not None:
            outputs.append(model_file(calibrated, report.calibrated(booster)))
        try:
            save(*outputs)
        finally:  # the metrics have cost budget, so print them even if a file cannot be written
            echo(report.to_json() if printed else report.summary())


def _groups(by: str | None, domain: Domain) -> dict[str, list[Any]] | None:
    """Parse --by; the groups are the given values or the declared categories."""
    if by is None:
        return None
    column, equals, values = by.partition("=")
    if equals:
        return {column: [_parse_group_value(value) for value in values.split(",")]}
    declared = {**(domain.columns or {}), **domain.declared}.get(column)
    if declared is None or not declared.categories:
        raise PrivacyParameterError(
            f"`--by {column}`: the schema of the model declares no categories of such a column. "
            f"Check the name, or pass the values of its groups, as in --by {column}=0,1."
        )
    return {column: list(declared.categories)}


def _parse_group_value(text: str) -> Any:
    """Parse a number; return other text unchanged, as a category."""
    try:
        return float(text)
    except ValueError:
        return text


@command("report")
@click.argument("model", type=FILE)
@click.option(
    "--format",
    "kind",
    type=click.Choice(["text", "json", "html"]),
    default="text",
)
@click.option("--out", type=OUT, help="Write .txt, .json or .html instead of printing.")
@click.option("--name", default="", help="Model name for the title.")
@click.option("--delta", type=float, help="Print only epsilon, at this delta.")
@click.option("--group-size", type=int, help="Print only epsilon, for this group size.")
@click.option(
    "--accountant",
    type=click.Choice(list(ACCOUNTANTS)),
    help="Print only epsilon, computed by this accountant.",
)
@click.option("--replace-one", is_flag=True, help="Print only epsilon, for replace-one adjacency.")
@options.force
def report(given: Arguments) -> None:
    """Report the privacy cost of a saved MODEL, recomputed from its ledger. Spends nothing."""
    summary, delta = privacy_report(given.model), given.delta
    if (delta, given.group_size, given.accountant, given.replace_one) != (None, None, None, False):
        epsilon = summary.get_epsilon(
            summary.delta if delta is None else delta,
            given.group_size,
            accountant=given.accountant or "exact",
            adjacency="replace_one" if given.replace_one else "add_remove",
        )
        echo(round_up(epsilon))
    else:
        kind = given.kind if given.out is None else report_kind(given.out)
        text = report_text(summary, kind, given.name)
        print_or_save(text, given.out, force=given.force)


@command("card")
@click.argument("model", type=FILE)
@click.option("--out", type=OUT, help="Output file; stdout by default.")
@click.option("--name", default="Private XGBoost model", help="Title.")
@click.option("--description", default="", help="Description of the predictions.")
@click.option("--intended-use", default="", help="Intended and unintended uses.")
@click.option("--data", default="", help="Source of the training data.")
@click.option("--license", default="", help="Licence of the model.")
@click.option("--contact", default="", help="Contact for questions; author of a registry entry.")
@click.option("--curator", default="", help="Organisation that publishes the model (registry).")
@click.option("--region", default="", help="Region that the data describe (registry).")
@click.option(
    "--format",
    "kind",
    type=click.Choice(["markdown", "registry"]),
    default="markdown",
    help="Model card in Markdown, or draft entry for OpenDP's deployments registry in YAML.",
)
@options.force
def card(given: Arguments) -> None:
    """Write a model card for a saved MODEL, or its entry for the deployments registry."""
    model = given.model
    words = given.named("name", "description", "data", "intended_use", "contact")
    if given.kind == "registry":
        import yaml

        entry = registry_entry(model, **words, **given.named("curator", "region"))
        text = yaml.safe_dump(entry, sort_keys=False, allow_unicode=True, width=100)
    else:
        text = model_card(model, **words, **given.named("license"))
    print_or_save(text, given.out, force=given.force)


@command("verify", context_settings=PASSED_ON)
@click.argument("arguments", metavar="MODEL [OPTIONS]", nargs=-1, type=click.UNPROCESSED)
def verify_model(given: Arguments) -> None:
    """Verify the privacy claims of a model file, without libxgboost.

    Recomputes epsilon from the ledger in the file, checks the trees against it, and lists all other
    content. Needs neither the private build nor the extra `cli`. Options: `xgb-dp verify --help`.

    \b
    xgb-dp verify model.json --max-epsilon 1 --delta 1e-6 --json
    """
    from .standalone import verify_command

    raise SystemExit(verify_command(given.arguments))


@command("sign")
@click.argument("model", type=FILE)
@click.option("--key", type=FILE, required=True, help="SSH key to sign with.")
@click.option(
    "--budget", type=FILE, help="Budget file that must contain every release of the model."
)
@options.force
def sign(given: Arguments) -> None:
    """Sign MODEL with an SSH key; the signature is written to MODEL.sig.

    With --budget the signature also states that the budget contains every release of the model.
    Verify it with `xgb-dp verify MODEL --signer FILE` or `ssh-keygen -Y verify`.
    """
    place = signature_path(given.model)
    if place.is_symlink():
        raise PrivacyParameterError(
            f"{place} is a symbolic link, and a signature must be a regular file. Remove the link."
        )
    new_files([place], force=given.force)
    data, checked = given.model.read_bytes(), verify(given.model)
    same = checked.file["sha256"] == hashlib.sha256(data).hexdigest()
    if checked.verdict != "passed" or not same:
        raise PrivacyParameterError(
            f"{given.model} does not pass `xgb-dp verify`, so it was not signed. Run `xgb-dp "
            "verify` for details."
        )
    if given.budget is not None:
        budget = Budget(given.budget)
        budget.verify()
        if missing := budget.missing(load_booster(data)):
            raise PrivacyParameterError(
                f"The budget {given.budget} does not contain {', '.join(missing)} of "
                f"{given.model}, so the model was not signed. Pass the budget of this model, or "
                "omit --budget."
            )
    save((place, create_signature(data, given.key, budgeted=given.budget is not None)))
    echo(f"Wrote {place}.")


@command("audit", context_settings=PASSED_ON)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def audit(given: Arguments) -> None:
    """Measure lower bounds on epsilon, like python -m xgb_dp.audit (--fast: within a minute)."""
    from ..audit.__main__ import main

    raise SystemExit(main(list(given.arguments)))
