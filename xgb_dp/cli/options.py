"""Options shared by several commands, and their conversion into domains and parameters."""

from __future__ import annotations

import functools
import glob
import os
import re
import sys
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from .. import policy
from ..domain.columns import (
    Column,
    Unquoted,
    parse_bounds,
    parse_categories,
    parse_classes,
    parse_levels,
    parse_scalar,
)
from ..domain.data_files import Csv, Source
from ..domain.domain import Domain, read_domain
from ..errors import PrivacyParameterError, PrivacyRefusal
from ..parameters.parse import parse_range
from .group import Arguments

_ENDINGS = {b"PAR1": ".parquet", b"\x1f\x8b": ".csv.gz"}  # file extension by magic bytes
_STDIN = ("-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0")


class _RowsPath(click.Path):
    """Path of a data file or folder (CSV, Parquet), a pattern, or ``-`` for standard input.

    Standard input is kept in memory, because commands read the header first and the rows later.
    """

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        """Return the paths; for standard input, a temporary path that lasts for the command."""
        if str(value) not in _STDIN:
            matches = [] if os.path.exists(value) else sorted(glob.glob(str(value), recursive=True))
            convert = super().convert
            return [convert(path, param, ctx) for path in matches or [value]]
        if sys.stdin is None:
            self.fail("Standard input is closed. Redirect it, or pass a file.", param, ctx)
        try:
            content = sys.stdin.buffer.read()
        except OSError as error:
            self.fail(f"Standard input cannot be read: {error.strerror}.", param, ctx)
        ending = next((e for start, e in _ENDINGS.items() if content.startswith(start)), ".csv")
        with ExitStack() as stack:
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="xgb-dp-"))
            path = Path(folder) / f"stdin{ending}"
            if hasattr(os, "memfd_create"):  # link to memory, so that no row is written to disk
                memory = os.memfd_create("rows")
                stack.callback(os.close, memory)
                path.symlink_to(f"/proc/self/fd/{memory}")
            path.write_bytes(content)
            ctx.call_on_close(stack.pop_all().close)
        return [path]


class _OutPath(click.Path):
    """Path of an output file; ``--out -`` is standard output, as without the option."""

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        """Return the path, or None for standard output."""
        if str(value) != "-" or param.name == "json_path":
            return super().convert(value, param, ctx)
        if param.name != "out":
            self.fail("'-' is not a file name. Pass a file name.", param, ctx)
        return None


FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
FOLDER = click.Path(exists=True, file_okay=False, writable=True, path_type=Path)
OUT = _OutPath(dir_okay=False, path_type=Path)
data = click.argument(
    "data",
    type=_RowsPath(exists=True, allow_dash=True, path_type=Path),
    nargs=-1,
    required=True,
    callback=lambda _, __, given: _source([path for paths in given for path in paths]),
)
"""Decorator that adds DATA: one or more paths, read as one table."""


def _source(paths: list[Path]) -> Source:
    return paths[0] if len(paths) == 1 else tuple(paths)


GROUP = "Rows or persons protected together; by default the group size of the budget, or 1."


def adds(*options: Callable[..., Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator that adds options to a command, in this order."""

    def add(command: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            command = option(command)
        return command

    return add


def _option(name: str, takes: str, text: str, **more: Any) -> Callable[..., Any]:
    option: Callable[..., Any] = click.option(name, metavar=takes, help=text, **more)
    return option


def _column(name: str, text: str) -> Callable[..., Any]:
    return _option(name, "COLUMN", text)


force = click.option("--force", is_flag=True, help="Overwrite existing files.")
model_schema = click.option(
    "--schema",
    "schema_file",
    type=FILE,
    help="Schema file to use instead of the schema in the model.",
)
budget = click.option(
    "--budget",
    type=FILE,
    help="Budget file (see `xgb-dp budget`) to charge; exceeding its total is an error.",
)
delta = click.option(
    "--delta", type=float, required=True, help="Delta; choose it far below 1 / number of persons."
)
privacy_id = _column(
    "--privacy-id", "Column with person ids; all rows of a person are protected together."
)

domain = adds(
    click.option("--schema", type=FILE, help="Schema file (.yaml, .toml or .json)."),
    _column("--target", "Label column."),
    _option("--classes", "A,B,...", "All possible classes, in order; two for a binary model."),
    _option("--target-bounds", "LOW HIGH", "Public range of the target.", nargs=2, type=float),
    _option("--objective", "NAME", "XGBoost objective, if not the default."),
    _option("--quantiles", "A,B,...", "Quantile levels to predict."),
    _option("--exposure", "COLUMN=LOW:HIGH", "Exposure column and its public range."),
    _column("--base-margin", "Column of margins from which the trees start."),
    _column("--event", "For survival:aft: column with 1 if the event was observed, 0 if censored."),
    _column("--target-upper", "For survival:aft: column of upper time bounds; empty if unknown."),
    _option("--categories", "COLUMN=A,B,...", "All possible categories.", multiple=True),
    _option("--bounds", "COLUMN=LOW:HIGH", "Public range; or LOW:HIGH:log.", multiple=True),
    _option("--drop", "COLUMN", "Column to ignore.", multiple=True),
    _column("--weight", "Column of row weights."),
    privacy_id,
)
"""Decorator that adds the options read by :func:`domain_from`."""

training = adds(
    click.option(
        "--rounds", type=int, help="Boosting rounds; by default chosen by the number of rows."
    ),
    click.option("--preset", help="Settings of a published system; see docs/presets.md."),
    _option(
        "--param",
        "NAME=VALUE",
        "Training parameter, e.g. max_depth=6; see docs/parameters.md.",
        multiple=True,
    ),
)
"""Decorator that adds the number of rounds and the options read by :func:`params_from`."""


def csv(command: Callable[[Arguments], None]) -> Callable[[Arguments], None]:
    """Add the CSV options to a command, which receives them as `csv`."""

    @click.option("--separator", default=",", help="Separator of CSV files.")
    @click.option("--encoding", default="utf-8-sig", help="Encoding of CSV files.")
    @click.option("--decimal", default=".", help="Decimal separator of CSV files: . or ,")
    @click.option("--thousands", default="", help="Thousands separator: . or , or ' or a space.")
    @functools.wraps(command)
    def run(given: Arguments) -> None:
        names = ("separator", "encoding", "decimal", "thousands")
        given.csv = form = Csv(**given.named(*names))
        if (rules := policy.in_force()) is not None:
            if form not in (Csv(), rules.csv):
                raise PrivacyRefusal(
                    "The policy of this data already declares the CSV format in its key `csv`. "
                    f"Omit {', '.join(f'--{name}' for name in names)}."
                )
            given.csv = rules.csv
        command(given)

    return run


def _pair(option: str, text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name or not value:
        raise PrivacyParameterError(
            f"{option} must be COLUMN=.... For example, pass {option} sex=F,M."
        )
    return name.strip(), value


def _listed(text: str) -> list[str]:
    """Split an option at commas; quoted entries can contain commas and are always strings."""
    entries, rest = [], f"{text},"
    while rest:
        match = re.match(r'\s*(?:"((?:[^"]|"")*)"|([^"]*?))\s*,', rest)
        if match is None:
            raise PrivacyParameterError(
                "A list has a misplaced or unclosed quote. Quote whole entries, as in "
                "'red,\"a, b\"', and double a quote inside an entry."
            )
        quoted, plain = match.groups()
        entries.append(Unquoted(plain) if quoted is None else quoted.replace('""', '"'))
        rest = rest[match.end() :]
    return entries


def domain_from(given: Arguments) -> Domain:
    """Return the domain of the schema file and policy, overridden by options."""
    rules = policy.in_force()
    domain = Domain() if rules is None else rules.domain
    if given.schema:
        domain = read_domain(given.schema)
    names = ("target", "weight", "privacy_id", "objective", "base_margin")
    changes = {name: value for name, value in given.named(*names).items() if value}
    classes, target_bounds = given.classes, given.target_bounds
    if classes and target_bounds:
        raise PrivacyParameterError("Pass --classes or --target-bounds, not both.")
    if classes:
        changes["classes"] = parse_classes("--classes", _listed(classes))
        changes["target_bounds"] = None
    if target_bounds:
        changes["target_bounds"] = parse_range("--target-bounds", target_bounds)
        changes["classes"] = None
    if given.event or given.target_upper:
        changes |= {name: getattr(given, name) or None for name in ("event", "target_upper")}
    if given.quantiles:
        changes["quantiles"] = parse_levels("--quantiles", _listed(given.quantiles))
    if given.exposure:
        changes["exposure"], text = _pair("--exposure", given.exposure)
        changes["exposure_bounds"] = parse_range("--exposure", text.split(":"))
    columns = {**(domain.columns or {}), **_columns_from(given)}
    drop = (*domain.drop, *given.drop)
    if domain.columns is None and rules is None:
        return replace(domain, **changes, drop=drop, declared=columns)
    changed = replace(domain, **changes, drop=drop)
    # A privacy id named by an option is not a feature, even if the schema file lists it.
    apart = {*given.drop, given.privacy_id, *changed.ends, changed.margins}
    changed = replace(changed, columns={n: c for n, c in columns.items() if n not in apart})
    return changed if rules is None else rules.permitted(changed)


def _columns_from(given: Arguments) -> dict[str, Column]:
    """Return the columns declared by --categories and --bounds."""
    columns: dict[str, Column] = {}
    for option in ("--categories", "--bounds"):
        for text in getattr(given, option.removeprefix("--")):
            name, value = _pair(option, text)
            if name in columns:
                raise PrivacyParameterError(
                    f"The column {name!r} is declared twice by options. Declare it once."
                )
            if option == "--categories":
                columns[name] = Column(parse_categories(f"{option} {name}", _listed(value)))
            else:
                columns[name] = Column(bounds=parse_bounds(f"{option} {name}", value.split(":")))
    return columns


def params_from(domain: Domain, given: Arguments) -> dict[str, Any]:
    """Return the training parameters of the schema file, overridden by options."""
    options: dict[str, Any] = {"dp_preset": given.preset} if given.preset else {}
    named = set()
    for text in given.param:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise PrivacyParameterError(
                "--param must be NAME=VALUE. For example, pass --param max_depth=6."
            )
        if name in named:
            raise PrivacyParameterError(f"--param {name} is given twice. Pass it once.")
        named.add(name)
        options[name] = parse_scalar(value)
    params = {**domain.params, **options}
    if "dp_privacy_id" in params:
        raise PrivacyParameterError(
            "`dp_privacy_id` cannot be set with --param. Set the privacy id column with "
            "--privacy-id, or with `privacy_id` in a schema file."
        )
    for name, value in domain.parameters_of_objective().items():
        if params.get(name, value) != value:
            raise PrivacyParameterError(
                f"`{name}` has two different values: one is set as a parameter, the other by an "
                "option or a key of the schema. Keep one."
            )
    return params
