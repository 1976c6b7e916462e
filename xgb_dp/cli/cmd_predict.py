"""The command that predicts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
import numpy as np

from ..domain.domain import Domain, domain_of_model
from ..engine.model_json import ModelJson
from ..engine.models import load_booster
from ..engine.predictions import levels_of_model, objective_of, probabilities, within
from ..errors import PrivacyParameterError, PrivacyRefusal
from . import options
from .group import Given, command
from .options import FILE, OUT, ROWS
from .output import Failure, new_files, print_data, say
from .places import save

if TYPE_CHECKING:
    import pandas as pd
    import xgboost

    from .table import Table


@command("predict")
@click.argument("model", type=FILE)
@click.argument("data", type=ROWS)
@click.option("--out", type=OUT, help="Where to write, as .csv or .parquet; stdout by default.")
@click.option("--keep", multiple=True, metavar="COLUMN", help="Column of DATA to copy, e.g. a key.")
@options.model_schema
@click.option("--score", is_flag=True, help="Also print the score of labelled rows, to stderr.")
@click.option("--rate", is_flag=True, help="Predict for an exposure of 1, without its column.")
@click.option("--contributions", is_flag=True, help="Also write what each column contributes.")
@options.csv
@options.force
def predict(given: Given) -> None:
    """Predict the rows of DATA with a saved MODEL.

    Costs nothing more for the training rows. One line for each row: the class with its
    probabilities, the value, or the quantiles in their order. A model of several targets, or of
    several labels of 0 and 1, writes a column for each: target_0, target_1 and so on. A model of
    counts or amounts that was trained with exposures predicts them for the exposure of each row.
    """
    out = given.out
    if out is not None:
        new_files([out], force=given.force)
    booster = load_booster(given.model)
    domain = domain_of_model(booster, given.model, given.schema_file)
    if given.rate and domain.exposure is None:
        raise PrivacyParameterError(
            "`--rate` is for models that were trained with exposures, and this one was not. "
            "Leave it out."
        )
    import pandas as pd

    from ..domain.reader import write_rows
    from .table import read_table

    table = read_table(
        given.data, domain, training=False, labels=given.score, exposure=not given.rate,
        **given.named("keep", "csv"),
    )  # fmt: skip
    if booster.feature_names is not None and list(table.frame.columns) != booster.feature_names:
        raise PrivacyParameterError(
            "The columns of the schema are not those that the model was trained on, or are in "
            "another order. Give the schema of the training."
        )
    matrix = table.matrix()
    predictions = _predictions(booster, matrix, table.domain)
    written = pd.DataFrame(predictions)
    if given.contributions:
        written = pd.concat([written, _contributions(booster, matrix, table)], axis=1)
    for name in given.keep:
        if name in written:
            raise PrivacyParameterError(
                f"`--keep {name}` has the name of a column that the command writes. Rename it in "
                "DATA, or leave it out."
            )
    written = pd.concat([table.kept, written], axis=1)
    if out is None:
        print_data(written.to_csv(index=False))
    else:
        save((out, lambda place: write_rows(written, place)))
    if given.score:
        _print_score(booster, matrix, table)


def _predictions(booster: xgboost.Booster, matrix: Any, domain: Domain) -> dict[str, Any]:
    """The columns of predictions by their names."""
    config = ModelJson.config_of(booster)
    several = max(config.classes, config.targets)
    # XGBoost does not know the shape of what it predicts for no rows.
    values = np.empty((0, several) if several > 1 else 0)
    if matrix.num_row():
        values = probabilities(booster, matrix)
    if domain.classes is None or config.targets > 1:
        bounds = domain.target_bounds
        # What an exposure multiplies has no declared range.
        if bounds is not None and domain.exposure is None:
            values = within(bounds, values)
        if values.ndim == 1:
            return {"prediction": values}
        if levels_of_model(booster) is not None:
            values = np.sort(values)  # noise may cross quantiles
        return dict(zip(_outputs(booster, domain), values.T, strict=True))
    odds = values if values.ndim == 2 else np.column_stack([1.0 - values, values])
    likeliest = np.asarray(domain.classes, dtype=object)[odds.argmax(axis=1)]
    each = {f"probability_{name}": odds[:, i] for i, name in enumerate(domain.classes)}
    return {"prediction": likeliest, **each}


def _outputs(booster: xgboost.Booster, domain: Domain) -> list[str]:
    """What a model with several outputs predicts: its classes, quantiles or targets."""
    levels, targets = levels_of_model(booster), ModelJson.config_of(booster).targets
    if levels is not None:
        return [f"quantile_{level:g}" for level in levels]
    if domain.classes is not None and targets == 1:
        return list(map(str, domain.classes))
    return [f"target_{k}" for k in range(targets)]


def _contributions(booster: xgboost.Booster, matrix: Any, table: Table) -> pd.DataFrame:
    """What each column adds to the margin of each output."""
    import pandas as pd

    names = [*table.frame.columns, "bias"]
    config = ModelJson.config_of(booster)
    several = max(config.classes, config.targets) > 1
    outputs = _outputs(booster, table.domain) if several else []
    labels = [f"contribution_{c}_{n}" for c in outputs for n in names]
    labels = labels or [f"contribution_{n}" for n in names]
    values = booster.predict(matrix, pred_contribs=True) if len(table.frame) else np.empty(0)
    return pd.DataFrame(values.reshape(len(table.frame), len(labels)), columns=labels)


def _print_score(booster: xgboost.Booster, matrix: Any, table: Table) -> None:
    """Print the exact score of rows with labels to stderr."""
    if table.labels is None:
        raise Failure(
            "--score needs the target column, which the schema does not name. Add `target` to "
            "the schema, or leave --score out."
        )
    if not len(table.labels):
        raise PrivacyRefusal(
            "The file has no rows to score. Give a file with rows, or leave --score out."
        )
    objective, classes = objective_of(booster), table.domain.classes
    metrics = ["auc", "error", "logloss"]
    if classes is None:
        # Of objectives without one of their own XGBoost has the right default.
        metrics = ["rmse"] if objective == "reg:squarederror" else []
    elif len(classes) > 2:
        metrics = ["merror", "mlogloss"]
    elif objective == "binary:logitraw":
        metrics = ["auc", "error@0"]  # XGBoost computes its metrics from the margins
    booster.set_param([("eval_metric", name) for name in metrics])
    shown = booster.eval_set([(matrix, "rows")]).split("\t")[1:]
    say("  ".join(s.removeprefix("rows-").replace(":", " ") for s in shown), err=True)
    say(
        "These are exact scores of these rows. If the rows are private, publishing the scores is "
        "not covered by the model's report.",
        err=True,
    )
