"""The command that splits a file of rows into a part to train on and a part to evaluate on."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import click
import numpy as np

from ..data.cells import MISSING
from ..domain.csv_form import check_columns, header_of, is_parquet
from ..domain.domain import read_domain
from ..errors import PrivacyParameterError, spelling
from . import options
from .group import Given, command
from .notes import note_of, note_text
from .options import FILE, OUT
from .output import new_files, say
from .places import save


@command("split")
@click.argument("data", type=FILE)
@click.option("--train", type=OUT, required=True, help="Where the first part goes.")
@click.option("--test", type=OUT, required=True, help="Where the second part goes.")
@click.option("--share", type=float, default=0.2, help="Probability of the second part.")
@options.privacy_id
@click.option("--schema", "schema_file", type=FILE, help="Schema that names the column of ids.")
@options.csv
@options.force
def split(given: Given) -> None:
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
    new_files([*paths, *map(note_of, paths)], force=given.force)
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
    header = header_of(data, csv)
    if privacy_id is not None:
        check_columns([privacy_id], header)
    from ..domain.reader import cells_of, ids_of, write_rows

    table = cells_of(data, header, csv)
    ids = None if privacy_id is None else ids_of(table[privacy_id], privacy_id, missing)
    with spelling({"test": "--share"}):
        parts = split_rows((table, np.arange(table.shape[0])), test=given.share, privacy_id=ids)
    for path, rows in zip(paths, (parts.train, parts.test), strict=True):
        save((path, partial(write_rows, rows._rows[0], form=csv)))
        save((note_of(path), note_text(path, rows.part, privacy_id)))
    say(
        f"{given.train} and {given.test}: a {parts.unit} is in one of them, at random. "
        "Train on the first, evaluate on the second."
    )
