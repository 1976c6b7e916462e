"""The command that writes model cards and entries of the deployments registry."""

from __future__ import annotations

import json

import click

from ..record.deployment import model_card, registry_entry
from . import options
from .group import Given, command
from .options import FILE, OUT
from .output import print_or_save


@command("card")
@click.argument("model", type=FILE)
@click.option("--out", type=OUT, help="Where to write; stdout by default.")
@click.option("--name", default="Private XGBoost model", help="Title.")
@click.option("--description", default="", help="What the model predicts.")
@click.option("--intended-use", default="", help="What the model is for, and what it is not for.")
@click.option("--data", default="", help="Where the training rows come from.")
@click.option("--license", default="", help="Licence of the model.")
@click.option("--contact", default="", help="Whom to ask.")
@click.option(
    "--format",
    "kind",
    type=click.Choice(["markdown", "registry"]),
    default="markdown",
    help="A card in Markdown, or an entry of the deployments registry in JSON.",
)
@options.force
def card(given: Given) -> None:
    """Write a model card of the saved MODEL, or its entry for the deployments registry."""
    model = given.model
    words = given.named("name", "data", "intended_use", "contact")
    if given.kind == "registry":
        text = json.dumps(registry_entry(model, **words), indent=2, allow_nan=False)
    else:
        text = model_card(model, **words, **given.named("description", "license"))
    print_or_save(text, given.out, force=given.force)
