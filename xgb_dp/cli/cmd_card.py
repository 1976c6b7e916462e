"""The command that writes model cards, and what registries and reviewers ask for."""

from __future__ import annotations

import json

import click

from ..record.deployment import KINDS, deployment_record, model_card, page_of
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
    type=click.Choice(["markdown", "html", *KINDS]),
    default="markdown",
    help="The fields of the deployments registry, of NIST SP 800-226, of EDPB Opinion 28/2024, and "
    "of outputs of the European health data space.",
)
@options.force
def card(given: Given) -> None:
    """Write a model card of the saved MODEL, or what registries and reviewers ask for."""
    model, kind = given.model, given.kind
    words = given.named("name", "data", "intended_use", "contact")
    if kind == "html":
        text = page_of(model, **words)
    elif kind in KINDS:
        text = json.dumps(deployment_record(model, kind, **words), indent=2, allow_nan=False)
    else:
        text = model_card(model, **words, **given.named("description", "license"))
    print_or_save(text, given.out, force=given.force, read=[model])
