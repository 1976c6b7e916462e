"""What `predict` writes beside the predictions: names of outputs, contributions and scores."""

from __future__ import annotations

from typing import Any

import click
import pandas as pd
import xgboost

from ..engine.model_json import ModelJson
from ..engine.predictions import levels_of_model, objective_of
from ..errors import PrivacyRefusal
from .domain import Domain
from .output import Failure
from .table import Table

__all__ = ["contributions", "outputs", "score", "targets"]


def outputs(booster: xgboost.Booster, domain: Domain) -> list[str]:
    """What a model with several outputs predicts: its classes, quantiles or targets."""
    levels = levels_of_model(booster)
    if levels is not None:
        return [f"quantile_{level:g}" for level in levels]
    if domain.classes is not None and targets(booster) == 1:
        return list(map(str, domain.classes))
    return [f"target_{k}" for k in range(targets(booster))]


def targets(booster: xgboost.Booster) -> int:
    """Labels of a row, or quantiles, of which a model predicts each."""
    return ModelJson.config_of(booster).targets


def contributions(booster: xgboost.Booster, matrix: Any, table: Table) -> pd.DataFrame:
    """What each column adds to the margin of each output."""
    values = booster.predict(matrix, pred_contribs=True)
    names = [*table.frame.columns, "bias"]
    if values.ndim == 2:
        return pd.DataFrame(values, columns=[f"contribution_{n}" for n in names])
    labels = [f"contribution_{c}_{n}" for c in outputs(booster, table.domain) for n in names]
    return pd.DataFrame(values.reshape(len(values), -1), columns=labels)


def score(booster: xgboost.Booster, matrix: Any, table: Table) -> None:
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
    metrics = ["auc", "error", "logloss"]
    if table.domain.classes is None:
        # Of objectives without one of their own XGBoost has the right default.
        metrics = ["rmse"] if objective_of(booster) == "reg:squarederror" else []
    if table.domain.classes is not None and len(table.domain.classes) > 2:
        metrics = ["merror", "mlogloss"]
    elif objective_of(booster) == "binary:logitraw":
        metrics = ["auc", "error@0"]  # XGBoost computes its metrics from the margins
    booster.set_param([("eval_metric", name) for name in metrics])
    shown = booster.eval_set([(matrix, "rows")]).split("\t")[1:]
    click.echo("  ".join(s.removeprefix("rows-").replace(":", " ") for s in shown), err=True)
    click.echo(
        "These are exact scores of these rows. If the rows are private, publishing the scores is "
        "not covered by the model's report.",
        err=True,
    )
