"""The commands that prepare a file of rows: `schema`, `discover` and `split`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click
import numpy as np

from .. import policy
from ..data.cells import MISSING
from ..discovery.column_reader import KINDS, column_kinds
from ..domain.columns import format_flow
from ..domain.csv_text import Csv, check_columns, is_parquet
from ..domain.domain import read_domain, read_header
from ..errors import PrivacyParameterError, PrivacyRefusal, spelling
from ..request.names import looks_like_id
from . import options
from .files import note_path, note_text, save
from .group import Arguments, command, echo, new_files, print_data, print_or_save, recorded_in
from .options import FILE, OUT, ROWS

if TYPE_CHECKING:
    import pandas as pd


@command("schema")
@click.argument("data", type=ROWS)
@click.option("--target", metavar="COLUMN", help="Column of labels.")
@click.option("--out", type=OUT, help="Where to write; stdout by default.")
@options.csv
@options.force
def schema(given: Arguments) -> None:
    """Print a schema file to fill in, from the names of the columns of DATA. Reads no rows.

    `xgb-dp discover` looks at the rows, privately, and fills the file in.
    """
    header = read_header(given.data, given.csv)
    check_columns([given.target] if given.target else [], header)
    text = template(header, given.target)
    print_or_save(text, given.out, force=given.force)


def template(header: Sequence[str], target: str | None) -> str:
    """A schema file to fill in, in YAML, from the names of the columns alone."""
    ids = [name for name in header if name != target and looks_like_id(name)]
    lines = [
        "# What the rows may contain. All of this is public: declare it from what is known of the",
        "# domain, not by looking at the rows.",
        f"target: {format_flow(target or 'NAME OF THE TARGET COLUMN')}",
        "classes: [0, 1]                # for classification; in quotes, matched by spelling",
        "# target_bounds: [0, 100]      # for regression, instead of classes",
        "# objective: count:poisson     # another loss of regression; docs/howto/objectives.md",
        "# What is the unit of protection? Name the column that says who a row belongs to, and the",
        "# guarantee is for all rows of one person; remove its line below, as it is not a feature.",
        "# Without it the guarantee is for one row: too little for whoever has several rows.",
        *(f"# privacy_id: {format_flow(name)}" for name in ids or ["NAME OF THE COLUMN OF IDS"]),
        f"missing: {format_flow(MISSING)}",
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
            lines.append(f"  {format_flow(name)}: number{question}")
    lines += ["# params: {max_depth: 4}      # of training, by their names in docs/parameters.md"]
    return "\n".join(lines) + "\n"


_kind_options = options.adds(
    *(
        click.option(
            f"--{kind}", multiple=True, metavar="COLUMN", help=f"Columns of kind {kind}: A,B,..."
        )
        for kind in KINDS
    )
)


@command("discover")
@click.argument("data", type=ROWS)
@click.option("--epsilon", type=float, required=True, help="What the look may cost, in nats.")
@options.delta
@click.option("--target", metavar="COLUMN", help="Column of labels.")
@_kind_options
@click.option("--missing", multiple=True, metavar="TEXT", help="Text of a missing cell.")
@options.privacy_id
@click.option("--group", type=int, help=options.GROUP)
@options.budget
@click.option(
    "--use",
    type=click.Choice(["cuts", "bounds", "nothing"]),
    default="nothing",
    help="What to declare about columns of numbers.",
)
@click.option("--out", type=OUT, help="Write .yaml or .json instead of printing YAML.")
@options.csv
@options.force
def discover(given: Arguments) -> None:
    """Look at the rows of DATA privately, and print the schema file that follows.

    Columns of a CSV file are looked at if their kind is given; those of a Parquet file have types.
    What was found goes to stderr, also what is not declared, such as rough ranges.

    \b
    xgb-dp discover people.csv --epsilon 0.1 --delta 1e-7 --target income \\
        --text income,sex --number age --out people.yaml
    """
    data, target, budget, out = given.data, given.target, given.budget, given.out
    header = read_header(data, given.csv)
    if out is not None:
        new_files([out], force=given.force)
        if out.suffix.lower() not in (".yaml", ".yml", ".json"):
            raise PrivacyParameterError(
                "--out: a discovered schema is written as .yaml or .json. Give a name with one "
                "of these endings."
            )
    missing = tuple(text.strip() for text in given.missing) or MISSING  # as cells are
    if (rules := policy.in_force()) is not None:
        if given.missing:
            raise PrivacyRefusal(
                "The policy of these rows declares which cells are missing. Leave out --missing."
            )
        missing = rules.domain.missing
    named = given.named(*KINDS)
    cells, kinds = _cells(data, header, named, target, given.privacy_id, missing, given.csv)
    from ..discovery.discover import discover as run_discovery

    note = f"look at {data.name}"
    with recorded_in(budget, note) as opened:
        discovery = run_discovery(
            cells, kinds, missing=missing, budget=opened, note=note,
            **given.named("epsilon", "delta", "privacy_id", "group"),
        )  # fmt: skip
        echo(str(discovery), err=True)
        if out is None:
            print_data(discovery.to_yaml(target, use=given.use))
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
    from ..domain.row_files import read_cells, read_ids, read_types, to_frame

    plain = [name for name, kind in kinds.items() if kind == "number"]
    table = read_cells(data, list(dict.fromkeys(names)), csv, plain, missing)
    cells = to_frame(table)
    if privacy_id is not None:
        cells = cells.assign(**{privacy_id: read_ids(table[privacy_id], privacy_id, missing)})
    discovered = [name for name in header if name not in ids and name not in kinds] if typed else []
    return cells, {**(column_kinds(read_types(data), discovered) if discovered else {}), **kinds}


def _kinds(named: Mapping[str, Sequence[str]], header: Sequence[str]) -> dict[str, str]:
    """The kind of each column that options name."""
    kinds: dict[str, str] = {}
    for kind in KINDS:
        for text in named[kind]:
            # The name of a column may contain a comma itself.
            names = [text] if text in header else [name.strip() for name in text.split(",")]
            check_columns(names, header)
            for name in names:
                if kinds.setdefault(name, kind) != kind:
                    raise PrivacyParameterError(
                        f"Column {name!r} is given two kinds. Keep one of them."
                    )
    return {name: kinds[name] for name in header if name in kinds}


@command("split")
@click.argument("data", type=FILE)
@click.option("--train", type=OUT, required=True, help="Where the first part goes.")
@click.option("--test", type=OUT, required=True, help="Where the second part goes.")
@click.option("--share", type=float, default=0.2, help="Probability of the second part.")
@options.privacy_id
@click.option("--schema", "schema_file", type=FILE, help="Schema that names the column of ids.")
@options.csv
@options.force
def split(given: Arguments) -> None:
    """Split the rows of DATA at random into a part to train on and one to evaluate on.

    A row, or with --privacy-id a person with all their rows, is in one part only, so it pays either
    for the model or for its evaluation. Costs nothing. A note beside each file (.part.json) tells
    `train`, `evaluate`, `select` and budgets which part it is. A file without its note, or one that
    was changed since, counts as all rows. Keep the parts as private as the rows.

    \b
    xgb-dp split people.csv --train train.csv --test holdout.csv
    """
    from ..evaluation import split as split_rows

    data, privacy_id, csv = given.data, given.privacy_id, given.csv
    paths = [given.train, given.test]
    new_files([*paths, *map(note_path, paths)], force=given.force)
    missing: Sequence[str] = MISSING
    if given.schema_file is not None:
        domain = read_domain(given.schema_file)
        if privacy_id is not None and domain.privacy_id not in (None, privacy_id):
            raise PrivacyParameterError(
                "--privacy-id names another column than `privacy_id` in the schema. Leave one of "
                "them out."
            )
        privacy_id, missing = privacy_id or domain.privacy_id, domain.missing
    if len({is_parquet(path) for path in (data, *paths)}) > 1:
        raise PrivacyParameterError(
            "DATA and both parts must be of the same kind, CSV or Parquet. Give all three the "
            "same ending."
        )
    header = read_header(data, csv)
    if privacy_id is not None:
        check_columns([privacy_id], header)
    from ..domain.row_files import read_cells, read_ids, write_rows

    table = read_cells(data, header, csv)
    ids = None if privacy_id is None else read_ids(table[privacy_id], privacy_id, missing)
    with spelling({"test": "--share"}):
        parts = split_rows((table, np.arange(table.shape[0])), test=given.share, privacy_id=ids)
    for path, rows in zip(paths, (parts.train, parts.test), strict=True):
        save((path, partial(write_rows, rows._rows[0], form=csv)))
        save((note_path(path), note_text(path, rows.part, privacy_id)))
    echo(
        f"{given.train} and {given.test}: a {parts.unit} is in one of them, at random. "
        "Train on the first, evaluate on the second."
    )
