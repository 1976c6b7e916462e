"""The command that makes schema files: from names of columns, or by a private look at the rows."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from ..data.cells import MISSING
from ..discovery import discover
from ..discovery.columns import KINDS, kinds_of
from ..errors import PrivacyParameterError
from .domain import template
from .files import Csv, header_of, is_parquet, read_cells, truths_of
from .options import FILE, GROUP, OUT, ROWS, csv_options, guarded
from .output import booked_on, new_files, save

__all__ = ["schema"]

_TAKES = "With --discover: column of this kind; commas between several."


@click.command()
@click.argument("data", type=ROWS)
@click.option("--target", metavar="COLUMN", help="Column of labels.")
@click.option("--discover", "look", is_flag=True, help="Look at the rows, privately.")
@click.option("--epsilon", type=float, help="With --discover: what the look may cost, in nats.")
@click.option("--delta", type=float, help="With --discover: its delta.")
@click.option("--text", "texts", multiple=True, metavar="COLUMN", help=_TAKES)
@click.option("--number", "numbers", multiple=True, metavar="COLUMN", help=_TAKES)
@click.option("--date", "dates", multiple=True, metavar="COLUMN", help=_TAKES)
@click.option("--datetime", "datetimes", multiple=True, metavar="COLUMN", help=_TAKES)
@click.option("--missing", multiple=True, metavar="TEXT", help="Text of a missing cell.")
@click.option("--privacy-id", metavar="COLUMN", help="Column that says who a row belongs to.")
@click.option("--group", type=int, help=f"With --discover: {GROUP}")
@click.option("--budget", type=FILE, help="With --discover: draw on this budget.")
@click.option(
    "--use",
    type=click.Choice(["cuts", "bounds", "nothing"]),
    default="cuts",
    show_default=True,
    help="With --discover: what to declare of numbers.",
)
@click.option("--out", type=OUT, help="Write .yaml or .json instead of printing YAML.")
@csv_options
@click.option("--force", is_flag=True, help="Overwrite the file.")
@guarded
def schema(
    data: Path,
    target: str | None,
    look: bool,
    epsilon: float | None,
    delta: float | None,
    texts: tuple[str, ...],
    numbers: tuple[str, ...],
    dates: tuple[str, ...],
    datetimes: tuple[str, ...],
    missing: tuple[str, ...],
    privacy_id: str | None,
    group: int | None,
    budget: Path | None,
    use: str,
    out: Path | None,
    separator: str,
    encoding: str,
    force: bool,
) -> None:
    """Print a schema file to fill in, from the names of the columns of DATA. Reads no rows.

    With --discover it looks at the rows privately, for a stated cost, and fills the file in:
    categories that enough rows have, rough quantiles of numbers. Columns of a CSV file are looked
    at if their kind is given; those of a Parquet file have types. The file then says what it cost.

    \b
    xgb-dp schema people.csv --discover --epsilon 0.1 --delta 1e-7 --target income \\
        --text income,sex --number age --out people.yaml
    """
    csv = Csv(separator, encoding)
    header = header_of(data, csv)
    lists = dict(zip(KINDS, (texts, numbers, dates, datetimes), strict=True))
    if not look:
        if epsilon is not None or delta is not None or budget or any(lists.values()):
            raise PrivacyParameterError(
                "--epsilon, --delta, --budget and the kinds of columns are for a look at the "
                "rows. Add --discover, or leave them out."
            )
        text = template(header, target)
        if out is None:
            click.echo(text, nl=False)
        else:
            new_files([out], force=force, read=[data])
            save((out, text))
        return
    if epsilon is None or delta is None:
        raise PrivacyParameterError(
            "--discover spends privacy: give --epsilon and --delta, for example --epsilon 0.1 "
            "--delta 1e-7."
        )
    if out is not None:
        new_files([out], force=force, read=[data, budget])
        if out.suffix.lower() not in (".yaml", ".yml", ".json"):
            raise PrivacyParameterError(
                "--out: a discovered schema is written as .yaml or .json. Give a name with one "
                "of these endings."
            )
    kinds = _kinds(lists, header)
    typed = is_parquet(data)
    if not kinds and not typed:
        raise PrivacyParameterError(
            "The kinds of the columns are missing: a CSV file does not say them. Give them, for "
            "example --text sex,city --number age --date joined."
        )
    names = header if typed else [*kinds, *([privacy_id] if privacy_id else [])]
    for name, known in ((target, names), (privacy_id, header)):
        if name is not None and name not in known:
            raise PrivacyParameterError(
                f"The column {name!r} is not in the file, or its kind is missing. Check its name, "
                "and give its kind by --text, --number, --date or --datetime."
            )
    absent = missing or MISSING
    cells = read_cells(data, list(dict.fromkeys(names)), absent, privacy_id, csv)
    looked = [name for name in header if typed and name != privacy_id]
    truths = dict.fromkeys(set(truths_of(data)) & set(looked), "number") if typed else {}
    note = f"schema of {data.name}"
    with booked_on(budget, note) as book:
        found = discover(
            cells,
            {**(kinds_of(cells, looked) if looked else {}), **truths, **kinds},
            epsilon=epsilon,
            delta=delta,
            privacy_id=privacy_id,
            missing=absent,
            group=group,
            budget=book,
            note=note,
        )
        click.echo(str(found), err=True)
        if out is None:
            click.echo(found.to_yaml(target, use=use), nl=False)
        else:
            save((out, lambda place: found.save(place, target, use=use)))


def _kinds(lists: dict[str, tuple[str, ...]], header: Sequence[str]) -> dict[str, str]:
    """The kind of each column that options name."""
    found: dict[str, str] = {}
    for kind, given in lists.items():
        for text in given:
            # The name of a column may contain a comma itself.
            for name in [text] if text in header else text.split(","):
                if name.strip() not in header:
                    raise PrivacyParameterError(
                        f"--{kind}: the file has no column {name!r}. `xgb-dp schema FILE` shows "
                        "the names of its columns."
                    )
                if found.setdefault(name.strip(), kind) != kind:
                    raise PrivacyParameterError(
                        f"Column {name!r} is given two kinds. Keep one of them."
                    )
    return {name: found[name] for name in header if name in found}
