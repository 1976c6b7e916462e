"""Commands that prepare a data file: `schema`, `discover` and `split`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import click
import numpy as np

from .. import policy
from ..data.arrays import describe_column_type
from ..data.cells import MISSING
from ..discovery.column_reader import DATES, KINDS, column_kinds
from ..domain.columns import format_flow
from ..domain.data_files import Csv, Source, check_columns, check_extension, is_parquet, name_of
from ..domain.domain import read_domain, read_header
from ..engine.progress import progress
from ..errors import PrivacyParameterError, PrivacyRefusal, spelling
from ..request.names import looks_like_id
from . import options
from .files import is_stream, note_path, note_text, save
from .group import Arguments, command, echo, new_files, print_data, print_or_save, recorded_in
from .options import FILE, OUT

if TYPE_CHECKING:
    import pandas as pd


@command("schema")
@options.data
@click.option("--target", metavar="COLUMN", help="Label column.")
@click.option("--out", type=OUT, help="Output file; stdout by default.")
@options.csv
@options.force
def schema(given: Arguments) -> None:
    """Print a schema template with the columns of DATA; Parquet types are kept. Reads no rows.

    Fill in the template, or infer a schema privately with `xgb-dp discover`.
    """
    header = read_header(given.data, given.csv)
    check_columns([given.target] if given.target else [], header)
    kinds = {}
    if is_parquet(given.data):
        from ..domain.row_files import read_types

        types = read_types(given.data)
        kinds = {n: describe_column_type(c) for n, c in zip(header, types.columns, strict=True)}
    text = template(header, given.target, kinds)
    print_or_save(text, given.out, force=given.force)


def template(header: Sequence[str], target: str | None, kinds: Mapping[str, str]) -> str:
    """Return a YAML schema template built from the column names, and their kinds if known."""
    ids = [name for name in header if name != target and looks_like_id(name)]
    lines = [
        "# Domain of the rows. Everything here is public: declare it from domain knowledge, not",
        "# by looking at the rows.",
        f"target: {format_flow(target or 'NAME OF THE TARGET COLUMN')}",
        "classes: [0, 1]                # for classification; quoted classes match exactly",
        "# target_bounds: [0, 100]      # for regression, instead of classes",
        "# objective: count:poisson     # another regression loss; docs/howto/objectives.md",
        "# Privacy unit: with a privacy id column the guarantee protects all rows of one person.",
        "# Without it the guarantee protects one row, which is too little for a person with",
        "# several rows. The id is not a feature: also remove its line below.",
        *(
            f"# privacy_id: {format_flow(name)}"
            for name in ids or ["NAME OF THE PRIVACY ID COLUMN"]
        ),
        f"missing: {format_flow(MISSING)}",
        "columns:",
        "  # Declare each feature in one of these forms; remove columns that are not features.",
        "  # number",
        "  # {bounds: [0, 100]}         a number with a public range, which saves budget",
        '  # ["red", "green"]           list of all possible categories',
        '  # {categories: ["red"], other: missing}   other values are treated as missing',
    ]
    for name in header:
        if name != target:
            question = "    # looks like an id: a feature?" if looks_like_id(name) else ""
            lines.append(f"  {format_flow(name)}: {_form(kinds.get(name))}{question}")
    lines += ["# params: {max_depth: 4}      # training parameters; see docs/parameters.md"]
    return "\n".join(lines) + "\n"


def _form(kind: str | None) -> str:
    """Return the declaration of a column, to be completed for text."""
    if kind in DATES:
        return f"{{date: {format_flow(DATES[kind])}}}"
    return "[]    # text: list all categories" if kind in ("text", "names") else "number"


_kind_options = options.adds(
    *(
        click.option(
            f"--{kind}",
            multiple=True,
            metavar="COLUMN",
            help=f"Columns of type {kind}, separated by commas.",
        )
        for kind in KINDS
    )
)


@command("discover")
@options.data
@click.option("--epsilon", type=float, required=True, help="Epsilon of the discovery, in nats.")
@options.delta
@click.option("--target", metavar="COLUMN", help="Label column.")
@_kind_options
@click.option("--missing", multiple=True, metavar="TEXT", help="Value of a missing cell.")
@options.privacy_id
@click.option("--group-size", type=int, help=options.GROUP)
@options.budget
@click.option(
    "--use",
    type=click.Choice(["cuts", "bounds", "nothing"]),
    default="nothing",
    help="What to declare for number columns.",
)
@click.option("--out", type=OUT, help="Write .yaml or .json instead of printing YAML.")
@options.csv
@options.force
def discover(given: Arguments) -> None:
    """Discover a schema privately from the rows of DATA, and print it.

    Spends epsilon and delta. For a CSV file, only the columns with a type option are discovered;
    Parquet columns have types already. Prints a summary to stderr.

    \b
    xgb-dp discover people.csv --epsilon 0.1 --delta 1e-7 --target income \\
        --text income,sex --number age --out people.yaml
    """
    data, target, budget, out = given.data, given.target, given.budget, given.out
    header = read_header(data, given.csv)
    if out is not None:
        new_files([out], force=given.force)
        if not is_stream(out) and out.suffix.lower() not in (".yaml", ".yml", ".json"):
            raise PrivacyParameterError(
                "--out: a discovered schema is written as YAML or JSON. Pass a file name that "
                "ends in .yaml, .yml or .json."
            )
    missing = tuple(text.strip() for text in given.missing) or MISSING  # cells are stripped too
    if (rules := policy.in_force()) is not None:
        if given.missing:
            raise PrivacyRefusal(
                "The policy of this data already declares the missing values. Omit --missing."
            )
        missing = rules.domain.missing
    named = given.named(*KINDS)
    note = f"discover {name_of(data)}"
    with recorded_in(budget, note) as opened:
        with progress("discover: read"):
            cells, kinds = _cells(data, header, named, target, given.privacy_id, missing, given.csv)
        from ..discovery.discover import discover as run_discovery

        discovery = run_discovery(
            cells, kinds, missing=missing, budget=opened, note=note,
            **given.named("epsilon", "delta", "privacy_id", "group_size"),
        )  # fmt: skip
        echo(str(discovery), err=True)
        if out is None:
            print_data(discovery.to_yaml(target, use=given.use))
        elif is_stream(out):
            save((out, discovery.to_yaml(target, use=given.use)))
        else:
            save((out, lambda place: discovery.save(place, target, use=given.use)))


def _cells(
    data: Source,
    header: list[str],
    named: Mapping[str, Sequence[str]],
    target: str | None,
    privacy_id: str | None,
    missing: Sequence[str],
    csv: Csv,
) -> tuple[pd.DataFrame, dict[str, str]]:
    """Read the columns to discover, and return them with the type of each."""
    typed, kinds = is_parquet(data), _kinds(named, header)
    if not kinds and not typed:
        raise PrivacyParameterError(
            "No column types were given, and a CSV file does not contain them. Pass them, for "
            "example --text sex,city --number age --date joined."
        )
    ids = [] if privacy_id is None else [privacy_id]
    names = header if typed else [*kinds, *ids]
    for name, known in ((target, names), (privacy_id, header)):
        if name is not None and name not in known:
            raise PrivacyParameterError(
                f"The column {name!r} is not in the file, or has no type. Check its name, and "
                "pass its type with --text, --number, --date or --datetime."
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
    """Return the type of each column named by an option."""
    kinds: dict[str, str] = {}
    for kind in KINDS:
        for text in named[kind]:
            # A column name can contain a comma itself.
            names = [text] if text in header else [name.strip() for name in text.split(",")]
            check_columns(names, header)
            for name in names:
                if kinds.setdefault(name, kind) != kind:
                    raise PrivacyParameterError(
                        f"The column {name!r} is given two types. Keep one."
                    )
    return {name: kinds[name] for name in header if name in kinds}


@command("split")
@options.data
@click.option("--train", type=OUT, required=True, help="Output file of the training part.")
@click.option("--test", type=OUT, required=True, help="Output file of the test part.")
@click.option(
    "--share", type=float, default=0.2, help="Probability that a row is in the test part."
)
@options.privacy_id
@click.option("--schema", "schema_file", type=FILE, help="Schema with the privacy id column.")
@options.csv
@options.force
def split(given: Arguments) -> None:
    """Split the rows of DATA at random into a training part and a test part.

    Spends nothing. Each row, or with --privacy-id each person with all their rows, is in only one
    part and pays either for the model or for its evaluation. Keep the note next to each file
    (.part.json): a file without it, or changed after the split, counts as all rows. The parts are
    as sensitive as DATA.

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
                "--privacy-id and `privacy_id` in the schema name different columns. Omit one of "
                "them."
            )
        privacy_id, missing = privacy_id or domain.privacy_id, domain.missing
    if len({is_parquet(path) for path in (data, *paths)}) > 1:
        raise PrivacyParameterError(
            "DATA and both parts must have the same format, CSV or Parquet. Use the same file "
            "extension for all three."
        )
    for path in paths:
        check_extension(path)
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
        f"Each {parts.unit} was assigned at random to {given.train} or {given.test}. "
        "Train on the first file, evaluate on the second."
    )
