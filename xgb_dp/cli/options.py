"""Options that several commands share, and the errors that users see."""

from __future__ import annotations

import functools
import os
import re
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from ..errors import NativeLibraryError, PrivacyError, PrivacyParameterError
from ..parameters.parse import parse_range
from ..record.report import PrivacyReport
from .column import Column
from .domain import Domain, read_domain
from .outcome import Outcome, levels_of
from .output import Failure, Interrupted, Output
from .spool import Rows
from .values import bounds_of, texts, typed

__all__ = [
    "FILE",
    "GROUP",
    "OUT",
    "ROWS",
    "csv_options",
    "domain_from",
    "domain_options",
    "guarded",
    "params_from",
    "report_file",
    "report_kind",
    "report_text",
    "training_options",
]

FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
ROWS = Rows(exists=True, dir_okay=False, allow_dash=True, path_type=Path)
GROUP = "Epsilon is for so many rows (or persons) together; by default as the budget's."
OUT = click.Path(dir_okay=False, path_type=Path)


def _warn(message: Any, *_: Any, **__: Any) -> None:
    click.secho("Warning: ", fg="yellow", nl=False, err=True)
    click.echo(str(message), err=True)


def guarded(command: Callable[..., Any]) -> Callable[..., Any]:
    """Turn errors into messages; what nobody expected is shown on request only."""

    @functools.wraps(command)
    def run(*args: Any, **kwargs: Any) -> Any:
        from xgboost.core import XGBoostError

        try:
            with warnings.catch_warnings():
                warnings.showwarning = _warn
                return command(*args, **kwargs)
        except XGBoostError as error:
            # The first line is the message, after time and place; the rest is a stack.
            line = str(error).strip().splitlines()[0]
            raise Failure(re.sub(r"^\[[\d:]+\] \S+:\d+: ", "", line)) from None
        except (click.ClickException, click.exceptions.Exit, click.Abort, BrokenPipeError):
            raise
        except (PrivacyError, NativeLibraryError, OSError) as error:
            raise Failure(str(error)) from None
        except KeyboardInterrupt:
            raise Interrupted("Interrupted.") from None
        except UnicodeEncodeError:
            raise Failure(
                "A name or a cell cannot be written in the encoding of the output. Set "
                "PYTHONUTF8=1, or rename what is not UTF-8 text."
            ) from None
        except Exception as error:
            if os.environ.get("XGB_DP_DEBUG"):
                raise
            # Messages of other libraries may quote a cell.
            raise Failure(
                f"An unexpected {type(error).__name__}. Please report it. Its details may contain "
                "data, so they are only shown with XGB_DP_DEBUG=1."
            ) from None

    return run


def _adds(*options: Callable[..., Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Adds options to a command, in this order."""

    def add(command: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            command = option(command)
        return command

    return add


domain_options = _adds(
    click.option("--schema", type=FILE, help="Declarations in a .yaml, .toml or .json file."),
    click.option("--target", metavar="COLUMN", help="Column of labels."),
    click.option(
        "--classes",
        metavar="A,B,...",
        help="Every class that may occur, in the order 0, 1, ...; two for a binary model.",
    ),
    click.option(
        "--target-bounds",
        nargs=2,
        type=float,
        metavar="LOW HIGH",
        help="Regression: public range of the target.",
    ),
    click.option(
        "--objective",
        metavar="NAME",
        help="XGBoost's name of the loss, if it is not the usual one.",
    ),
    click.option(
        "--quantiles", metavar="A,B,...", help="Levels to predict: objective reg:quantileerror."
    ),
    click.option(
        "--exposure",
        metavar="COLUMN=LOW:HIGH",
        help="Counts and amounts: column of exposures, with their public range.",
    ),
    click.option(
        "--event",
        metavar="COLUMN",
        help="survival:aft: column with 1 where the end of the time was seen, 0 where not.",
    ),
    click.option(
        "--target-upper",
        metavar="COLUMN",
        help="survival:aft: column of the latest times; empty where none is known.",
    ),
    click.option(
        "--categories",
        multiple=True,
        metavar="COLUMN=A,B,...",
        help="Categorical column, with every category that may occur.",
    ),
    click.option(
        "--bounds",
        multiple=True,
        metavar="COLUMN=LOW:HIGH",
        help="Public range of a number, which saves budget; LOW:HIGH:log for a geometric grid.",
    ),
    click.option("--drop", multiple=True, metavar="COLUMN", help="Column to leave out."),
    click.option("--weight", metavar="COLUMN", help="Column of row weights."),
    click.option(
        "--privacy-id",
        metavar="COLUMN",
        help="Column that says who a row belongs to: protects all rows of a person together.",
    ),
)
"""Adds the options that declare what a file holds."""

csv_options = _adds(
    click.option("--separator", default=",", show_default=True, help="Separator of CSV files."),
    click.option(
        "--encoding", default="utf-8-sig", show_default=True, help="Encoding of CSV files."
    ),
)
"""Adds the options that say how CSV files are written."""

training_options = _adds(
    click.option(
        "--rounds", type=int, help="Boosting rounds; by default they follow the number of rows."
    ),
    click.option("--preset", help="A published system; see docs/presets.md."),
    click.option(
        "--param",
        "pairs",
        multiple=True,
        metavar="NAME=VALUE",
        help="Any parameter of docs/parameters.md, e.g. max_depth=6 or subsample=0.5.",
    ),
)
"""Adds the options that describe a training."""


def _pair(option: str, text: str) -> tuple[str, str]:
    # The column's name may contain "=" itself, the declaration of a range may not.
    name, found, value = text.partition("=")
    if not found or not name or not value:
        raise PrivacyParameterError(f"{option} takes COLUMN=..., for example {option} sex=F,M.")
    return name.strip(), value


def domain_from(
    *,
    schema: Path | None,
    target: str | None,
    classes: str | None,
    target_bounds: tuple[float, float] | None,
    categories: Sequence[str],
    bounds: Sequence[str],
    drop: Sequence[str],
    weight: str | None,
    privacy_id: str | None,
    objective: str | None,
    quantiles: str | None,
    exposure: str | None,
    event: str | None,
    target_upper: str | None,
) -> Domain:
    """The domain of a schema file, changed by options."""
    domain = read_domain(schema) if schema else Domain()
    changes: dict[str, Any] = {}
    if target:
        changes["target"] = target
    if weight:
        changes["weight"] = weight
    if privacy_id:
        changes["privacy_id"] = privacy_id
    if classes and target_bounds:
        raise PrivacyParameterError("Give --classes or --target-bounds, not both.")
    if classes:
        names = texts("--classes", classes.split(","))
        if len(names) < 2:
            raise PrivacyParameterError("--classes must name at least two classes.")
        changes |= {"classes": names, "target_bounds": None}
    if target_bounds:
        low_high = parse_range("--target-bounds", target_bounds)
        changes |= {"classes": None, "target_bounds": low_high}
    changes["outcome"] = _outcome_from(
        domain.outcome,
        objective,
        quantiles,
        exposure,
        {"event": event, "target_upper": target_upper},
    )
    if drop:
        changes["drop"] = (*domain.drop, *drop)
    named: dict[str, Column] = {}
    for option, pairs in (("--categories", categories), ("--bounds", bounds)):
        for text in pairs:
            name, value = _pair(option, text)
            if name in named:
                raise PrivacyParameterError(f"Options declare the column {name!r} twice.")
            named[name] = (
                Column(categories=texts(f"{option} {name}", value.split(",")))
                if option == "--categories"
                else Column(bounds=bounds_of(f"{option} {name}", value.split(":")))
            )
    declared = {**(domain.columns or {}), **named}
    if domain.columns is None:
        changes["declared"] = declared
    else:
        # An option that names the ids takes them out of the features of a schema file.
        apart = {*drop, privacy_id, *changes["outcome"].special}
        changes["columns"] = {n: c for n, c in declared.items() if n not in apart}
    return replace(domain, **changes)


def _outcome_from(
    given: Outcome,
    objective: str | None,
    quantiles: str | None,
    exposure: str | None,
    columns: dict[str, str | None],
) -> Outcome:
    """What a schema file says of the labels, changed by options."""
    changes: dict[str, Any] = {name: value for name, value in columns.items() if value}
    if changes:
        changes = {**dict.fromkeys(columns), **changes}
    if objective:
        changes["objective"] = objective
    if quantiles:
        changes["quantiles"] = levels_of("--quantiles", quantiles.split(","))
    if exposure:
        changes["exposure"], text = _pair("--exposure", exposure)
        changes["exposure_bounds"] = parse_range("--exposure", text.split(":"))
    return replace(given, **changes)


def params_from(domain: Domain, preset: str | None, pairs: Sequence[str]) -> dict[str, Any]:
    """Parameters of a training: those of the schema file, overridden by options."""
    out: dict[str, Any] = {}
    for text in pairs:
        name, found, value = text.partition("=")
        if not found or not name:
            raise PrivacyParameterError(
                "--param takes NAME=VALUE, for example --param max_depth=6."
            )
        if name in out:
            raise PrivacyParameterError(f"--param {name} is given twice. Keep one of them.")
        out[name] = typed(value)
    if "dp_privacy_id" in {**domain.params, **out}:
        raise PrivacyParameterError(
            "`dp_privacy_id` cannot be given by --param. Name the column of ids by --privacy-id, "
            "or by `privacy_id` in a schema file."
        )
    said = {**domain.params, **out}
    for name, value in domain.outcome.parameters().items():
        if said.setdefault(name, value) != value:
            raise PrivacyParameterError(
                f"`{name}` is given twice with different values: as a parameter, and by an option "
                "or a key of the schema. Keep one of them."
            )
    return {**domain.params, **({"dp_preset": preset} if preset else {}), **out}


def report_text(report: PrivacyReport, kind: str, name: str = "") -> str:
    """A report as "text", "json" or "html"."""
    if kind == "json":
        return report.to_json()
    return report.to_html(name=name) if kind == "html" else report.summary(name=name)


def report_kind(path: Path) -> str:
    """The form in which a report is written, by the ending of the path."""
    kind = {".txt": "text", ".json": "json", ".html": "html"}.get(path.suffix.lower())
    if kind is None:
        raise PrivacyParameterError(
            f"{path}: a report is written as .txt, .json or .html. Give a name with one of these "
            "endings."
        )
    return kind


def report_file(report: PrivacyReport, path: Path, name: str = "") -> Output:
    """A report in the form of :func:`report_kind`."""
    return path, report_text(report, report_kind(path), name).rstrip("\n") + "\n"
