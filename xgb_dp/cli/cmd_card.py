"""The command that writes model cards."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from ..record.card import model_card
from ..record.deployment import KINDS, deployment_record, page_of
from . import options
from .group import command
from .output import print_or_save
from .paths import FILE, OUT


@command("card")
@click.argument("model", type=FILE)
@click.option("--out", type=OUT, help="Where to write; stdout by default.")
@click.option("--name", default="Private XGBoost model", help="Title.")
@click.option("--description", default="", help="What the model predicts.")
@click.option("--intended-use", default="", help="What the model is for, and what it is not for.")
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
@options.force
def card(
    model: Path,
    out: Path | None,
    kind: str,
    description: str,
    licence: str,
    force: bool,
    **words: Any,
) -> None:
    """Write a model card of the saved MODEL, or what registries and reviewers ask for."""
    if kind == "html":
        text = page_of(model, **words)
    elif kind in KINDS:
        text = json.dumps(deployment_record(model, kind, **words), indent=2, allow_nan=False)
    else:
        text = model_card(model, description=description, license=licence, **words)
    print_or_save(text, out, force=force, read=[model])
