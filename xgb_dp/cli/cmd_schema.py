"""The command that makes a schema file to fill in, from the names of the columns alone."""

from __future__ import annotations

from collections.abc import Sequence

import click

from ..data.cells import MISSING
from ..discovery.yaml_text import flow
from ..domain.csv_form import check_columns, header_of
from ..request.id_names import looks_like_id
from . import options
from .group import Given, command
from .options import OUT, ROWS
from .output import print_or_save


@command("schema")
@click.argument("data", type=ROWS)
@click.option("--target", metavar="COLUMN", help="Column of labels.")
@click.option("--out", type=OUT, help="Where to write; stdout by default.")
@options.csv
@options.force
def schema(given: Given) -> None:
    """Print a schema file to fill in, from the names of the columns of DATA. Reads no rows.

    `xgb-dp discover` looks at the rows, privately, and fills the file in.
    """
    header = header_of(given.data, given.csv)
    check_columns([given.target] if given.target else [], header)
    text = template(header, given.target)
    print_or_save(text, given.out, force=given.force)


def template(header: Sequence[str], target: str | None) -> str:
    """A schema file to fill in, in YAML, from the names of the columns alone."""
    ids = [name for name in header if name != target and looks_like_id(name)]
    lines = [
        "# What the rows may contain. All of this is public: declare it from what is known of the",
        "# domain, not by looking at the rows.",
        f"target: {flow(target or 'NAME OF THE TARGET COLUMN')}",
        "classes: [0, 1]                # for classification; in quotes, matched by spelling",
        "# target_bounds: [0, 100]      # for regression, instead of classes",
        "# objective: count:poisson     # another loss of regression; docs/howto/objectives.md",
        "# What is the unit of protection? Name the column that says who a row belongs to, and the",
        "# guarantee is for all rows of one person; remove its line below, as it is not a feature.",
        "# Without it the guarantee is for one row: too little for whoever has several rows.",
        *(f"# privacy_id: {flow(name)}" for name in ids or ["NAME OF THE COLUMN OF IDS"]),
        f"missing: {flow(MISSING)}",
        "columns:",
        "  # Each is one of these. Remove the lines of columns that are not features, as keys.",
        "  # number",
        "  # {bounds: [0, 100]}         a number with a public range, which saves budget",
        '  # ["red", "green"]           categories; all that may occur',
        '  # {categories: ["red"], other: missing}   others are treated as missing',
    ]
    for name in header:
        if name != target:
            question = "    # looks like an id: a feature?" if looks_like_id(name) else ""
            lines.append(f"  {flow(name)}: number{question}")
    lines += ["# params: {max_depth: 4}      # of training, by their names in docs/parameters.md"]
    return "\n".join(lines) + "\n"
