"""The command that says what a saved model has cost."""

from __future__ import annotations

import click

from ..accounting import ACCOUNTANTS
from ..record.report import privacy_report
from ..record.report_views import round_up
from . import options
from .group import Given, command
from .options import FILE, OUT
from .output import print_or_save, report_kind, report_text, say


@command("report")
@click.argument("model", type=FILE)
@click.option(
    "--format",
    "kind",
    type=click.Choice(["text", "json", "html"]),
    default="text",
)
@click.option("--out", type=OUT, help="Write .txt, .json or .html instead of printing.")
@click.option("--name", default="", help="Name of the model, for the title.")
@click.option("--delta", type=float, help="Print only epsilon, at this delta.")
@click.option("--group", type=int, help="Print only epsilon, for so many rows or persons together.")
@click.option(
    "--accountant", type=click.Choice(list(ACCOUNTANTS)), help="Print only epsilon, by this one."
)
@click.option("--replace-one", is_flag=True, help="Print only epsilon, for rows that are replaced.")
@options.force
def report(given: Given) -> None:
    """Say what the saved MODEL has cost, recomputed from what was drawn. Spends nothing."""
    summary, delta = privacy_report(given.model), given.delta
    if (delta, given.group, given.accountant, given.replace_one) != (None, None, None, False):
        epsilon = summary.get_epsilon(
            summary.delta if delta is None else delta,
            given.group,
            accountant=given.accountant or "exact",
            adjacency="replace_one" if given.replace_one else "add_remove",
        )
        say(round_up(epsilon))
    else:
        kind = given.kind if given.out is None else report_kind(given.out)
        text = report_text(summary, kind, given.name)
        print_or_save(text, given.out, force=given.force)
