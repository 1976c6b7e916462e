"""The command that makes schema files: from names of columns, or by a private look at the rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click
import pandas as pd

from ..data.cells import MISSING
from ..discovery import discover
from ..discovery.reading import KINDS, kinds_of
from ..discovery.yaml_text import flow
from ..errors import PrivacyParameterError
from ..request.id_names import looks_like_id
from ..request.params import PARAMETERS
from . import options
from .files import Csv, cells_of, header_of, ids_of, is_parquet, truths_of
from .group import Given, command
from .options import OUT, ROWS
from .output import booked_on, new_files, print_or_save, save


def _kind_options(function: Any) -> Any:
    """Adds an option for each kind of column."""
    for kind in reversed(KINDS):
        text = f"With --discover: column of kind {kind}, or several with commas between them."
        function = click.option(f"--{kind}", multiple=True, metavar="COLUMN", help=text)(function)
    return function


@command("schema")
@click.argument("data", type=ROWS)
@click.option("--target", metavar="COLUMN", help="Column of labels.")
@click.option("--discover", "look", is_flag=True, help="Look at the rows, privately.")
@click.option("--epsilon", type=float, help="With --discover: what the look may cost, in nats.")
@click.option("--delta", type=float, help="With --discover: its delta.")
@_kind_options
@click.option("--missing", multiple=True, metavar="TEXT", help="Text of a missing cell.")
@options.privacy_id
@click.option("--group", type=int, help=options.GROUP)
@options.budget
@click.option(
    "--use",
    type=click.Choice(["cuts", "bounds", "nothing"]),
    default="nothing",
    show_default=True,
    help="With --discover: what to declare about columns of numbers.",
)
@click.option("--out", type=OUT, help="Write .yaml or .json instead of printing YAML.")
@options.csv
@options.force
def schema(given: Given) -> None:
    """Print a schema file to fill in, from the names of the columns of DATA. Reads no rows.

    With --discover it looks at the rows privately, for a stated cost, and fills the file in:
    categories that enough rows have, rough quantiles of numbers. Columns of a CSV file are looked
    at if their kind is given; those of a Parquet file have types. The file then says what it cost.

    \b
    xgb-dp schema people.csv --discover --epsilon 0.1 --delta 1e-7 --target income \\
        --text income,sex --number age --out people.yaml
    """
    data, target, budget, out = given.data, given.target, given.budget, given.out
    header = header_of(data, given.csv)
    named = given.named(*KINDS)
    cost = [given.epsilon, given.delta]
    if not given.look:
        if cost != [None, None] or budget or any(named.values()):
            raise PrivacyParameterError(
                "--epsilon, --delta, --budget and the kinds of columns are for a look at the "
                "rows. Add --discover, or leave them out."
            )
        print_or_save(template(header, target), out, force=given.force, read=[data], nl=False)
        return
    if None in cost:
        raise PrivacyParameterError(
            "--discover spends privacy: give --epsilon and --delta, for example --epsilon 0.1 "
            "--delta 1e-7."
        )
    if out is not None:
        new_files([out], force=given.force, read=[data, budget])
        if out.suffix.lower() not in (".yaml", ".yml", ".json"):
            raise PrivacyParameterError(
                "--out: a discovered schema is written as .yaml or .json. Give a name with one "
                "of these endings."
            )
    missing = given.missing or MISSING
    cells, kinds = _cells(data, header, named, target, given.privacy_id, missing, given.csv)
    note = f"schema of {data.name}"
    with booked_on(budget, note) as book:
        discovery = discover(
            cells, kinds, missing=missing, budget=book, note=note,
            **given.named("epsilon", "delta", "privacy_id", "group"),
        )  # fmt: skip
        click.echo(str(discovery), err=True)
        if out is None:
            click.echo(discovery.to_yaml(target, use=given.use), nl=False)
        else:
            save((out, lambda place: discovery.save(place, target, use=given.use)))


def _cells(
    data: Path,
    header: list[str],
    named: Mapping[str, Sequence[str]],
    target: str | None,
    privacy_id: str | None,
    missing: Sequence[str],
    csv: Csv,
) -> tuple[pd.DataFrame, dict[str, str]]:
    """The columns to look at, whole, and the kind of each."""
    typed, kinds = is_parquet(data), _kinds(named, header)
    if not kinds and not typed:
        raise PrivacyParameterError(
            "The kinds of the columns are missing: a CSV file does not say them. Give them, for "
            "example --text sex,city --number age --date joined."
        )
    ids = [] if privacy_id is None else [privacy_id]
    names = header if typed else [*kinds, *ids]
    for name, known in ((target, names), (privacy_id, header)):
        if name is not None and name not in known:
            raise PrivacyParameterError(
                f"The column {name!r} is not in the file, or its kind is missing. Check its name, "
                "and give its kind by --text, --number, --date or --datetime."
            )
    cells = cells_of(data, list(dict.fromkeys(names)), header, csv)
    if privacy_id is not None:
        cells = cells.assign(**{privacy_id: ids_of(cells[privacy_id], missing)})
    if not typed:
        return cells, kinds
    looked = [name for name in header if name not in ids]
    truths = dict.fromkeys(set(truths_of(data)) & set(looked), "number")
    return cells, {**(kinds_of(cells, looked) if looked else {}), **truths, **kinds}


def _kinds(named: Mapping[str, Sequence[str]], header: Sequence[str]) -> dict[str, str]:
    """The kind of each column that options name."""
    kinds: dict[str, str] = {}
    for kind in KINDS:
        for text in named[kind]:
            # The name of a column may contain a comma itself.
            for name in [text] if text in header else text.split(","):
                if name.strip() not in header:
                    raise PrivacyParameterError(
                        f"--{kind}: the file has no column {name!r}. `xgb-dp schema FILE` shows "
                        "the names of its columns."
                    )
                if kinds.setdefault(name.strip(), kind) != kind:
                    raise PrivacyParameterError(
                        f"Column {name!r} is given two kinds. Keep one of them."
                    )
    return {name: kinds[name] for name in header if name in kinds}


def template(header: Sequence[str], target: str | None) -> str:
    """A schema file to fill in, in YAML, from the names of the columns alone."""
    ids = [name for name in header if name != target and looks_like_id(name)]
    lines = [
        "# What the rows may contain. All of this is public: declare it from what is known of the",
        "# domain, not by looking at the rows.",
        f"target: {flow(target or 'NAME OF THE TARGET COLUMN')}",
        'classes: ["0", "1"]            # for classification, in the order 0, 1, ...',
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
    lines += ["# params:                      # of training, by their names in docs/parameters.md"]
    for shown, value in (("dp_preset", "default"), ("max_depth", 4), ("eta", 0.5), ("max_bin", 64)):
        parameter = PARAMETERS[shown]
        lines.append(f"#   {shown}: {value}    # {parameter.meaning}; unset: {parameter.unset}")
    return "\n".join(lines) + "\n"
