"""The command that reports what a model has cost."""

from __future__ import annotations

from pathlib import Path

import click

from ..accounting import ACCOUNTANTS
from ..record.report import privacy_report
from ..record.report_views import round_up
from . import options
from .group import command
from .output import new_files, report_file, report_text, save
from .paths import FILE, OUT


@command("report")
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
@click.option("--group", type=int, help="Print only epsilon, for so many rows or people together.")
@click.option(
    "--accountant", type=click.Choice(list(ACCOUNTANTS)), help="Print only epsilon, by this one."
)
@click.option("--replace-one", is_flag=True, help="Print only epsilon, for rows that are replaced.")
@options.force
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
    summary = privacy_report(model)
    if delta is not None or group is not None or accountant or replace_one:
        epsilon = summary.get_epsilon(
            summary.delta if delta is None else delta,
            group,
            accountant=accountant or "exact",
            adjacency="replace_one" if replace_one else "add_remove",
        )
        click.echo(round_up(epsilon))
    elif out is not None:
        new_files([out], force=force, read=[model])
        save(report_file(summary, out, name))
    else:
        click.echo(report_text(summary, kind, name))
