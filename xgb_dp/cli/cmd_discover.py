"""The command that looks at rows privately, and declares what it has found in a schema file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..data.cells import MISSING
from ..discovery.reading import KINDS, kinds_of
from ..domain.csv_form import Csv, check_columns, header_of, is_parquet
from ..errors import PrivacyParameterError, PrivacyRefusal
from ..record import policy
from . import options
from .group import Given, command
from .options import OUT, ROWS
from .output import booked_on, new_files, print_data, say
from .places import save

if TYPE_CHECKING:
    import pandas as pd

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
def discover(given: Given) -> None:
    """Look at the rows of DATA privately, and print the schema file that follows.

    Columns of a CSV file are looked at if their kind is given; those of a Parquet file have types.
    What was found goes to stderr, also what is not declared, such as rough ranges.

    \b
    xgb-dp discover people.csv --epsilon 0.1 --delta 1e-7 --target income \\
        --text income,sex --number age --out people.yaml
    """
    data, target, budget, out = given.data, given.target, given.budget, given.out
    header = header_of(data, given.csv)
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
    from ..discovery.look import discover as look_at

    note = f"look at {data.name}"
    with booked_on(budget, note) as book:
        look = look_at(
            cells, kinds, missing=missing, budget=book, note=note,
            **given.named("epsilon", "delta", "privacy_id", "group"),
        )  # fmt: skip
        say(str(look), err=True)
        if out is None:
            print_data(look.to_yaml(target, use=given.use))
        else:
            save((out, lambda place: look.save(place, target, use=given.use)))


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
    from ..domain.reader import cells_of, frame_of, ids_of, types_of

    plain = [name for name, kind in kinds.items() if kind == "number"]
    table = cells_of(data, list(dict.fromkeys(names)), csv, plain, missing)
    cells = frame_of(table)
    if privacy_id is not None:
        cells = cells.assign(**{privacy_id: ids_of(table[privacy_id], privacy_id, missing)})
    looked = [name for name in header if name not in ids and name not in kinds] if typed else []
    return cells, {**(kinds_of(types_of(data), looked) if looked else {}), **kinds}


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
