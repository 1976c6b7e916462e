"""The group of all commands, how a command is registered, and what commands print and write."""

from __future__ import annotations

import functools
import os
import re
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click

from .. import policy
from ..budget.budget import Budget
from ..errors import (
    POLICY,
    NativeLibraryError,
    PrivacyError,
    PrivacyParameterError,
    RowDomainError,
    spelling,
)
from ..record.formatting import visible
from ..record.privacy_report import PrivacyReport
from .files import Output, check_places, save


class Failure(click.ClickException):
    """An error message without a traceback."""

    def show(self, file: Any = None) -> None:
        """Print it to stderr."""
        click.secho("Error: ", fg="red", nl=False, err=True)
        echo(self.message, err=True)


class Interrupted(Failure):
    """The user has pressed Ctrl-C."""

    exit_code = 130  # as shells say it


def echo(text: object, *, err: bool = False) -> None:
    """Print lines for people. What others wrote into them cannot command the terminal."""
    click.echo(visible(str(text), "\n"), err=err)


def print_data(text: str) -> None:
    """Print rows or a file: as they are for a program that reads them, safely on a terminal."""
    click.echo(visible(text, "\n") if sys.stdout.isatty() else text, nl=False)


def new_files(paths: Sequence[Path], *, force: bool) -> None:
    """Refuse, before anything is spent, what could not be written, or what the command reads."""
    check_places(paths, force=force, read=_read())


def _read() -> Iterator[Path]:
    """The files that the command was given to read: by its options, and by its policy."""
    context = click.get_current_context()
    for param in context.command.params:
        given = context.params.get(param.name or "")
        if isinstance(param.type, click.Path) and param.type.exists and param.type.file_okay:
            yield from (given if isinstance(given, tuple) else [given] if given else [])
    for text in context.params.get("param", ()):  # keys of workers, for example
        if value := text.partition("=")[2]:
            yield Path(value)
    if (rules := policy.in_force()) is not None:
        yield Path(os.environ[POLICY])
        if rules.budget is not None:
            yield Path(rules.budget)


def model_file(path: Path, model: Any) -> Output:
    """A model in the form that the ending of the path asks for, by default UBJSON."""
    from xgboost import Booster

    if isinstance(model, Booster):
        kind = "json" if path.suffix == ".json" else "ubj"
        return path, bytes(model.save_raw(kind))
    return path, model.save_model


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


def print_or_save(text: str, path: Path | None, *, force: bool) -> None:
    """Print a text, or write it where a path is given."""
    if path is None:
        echo(text.rstrip("\n"))
    else:
        new_files([path], force=force)
        save((path, text.rstrip("\n") + "\n"))


@contextmanager
def recorded_in(path: Path | None, note: str) -> Iterator[Budget | None]:
    """The budget of a command; where the command ends early, what the book says of it."""
    if path is None and (rules := policy.in_force()) is not None:
        path = rules.budget
    budget = None if path is None else Budget(path)
    before = set() if budget is None else {entry.id for entry in budget.entries}

    def booking_text() -> str:
        if budget is None:
            return "No budget was given, so nothing is booked."
        names = [e.id for e in budget.entries if e.id not in before and e.note == note]
        if not names:
            return f"The budget {path} has not booked it."
        return f"The budget {path} has booked it, entry {', '.join(names)}: it counts as spent."

    try:
        yield budget
    except KeyboardInterrupt:
        raise Interrupted(f"Interrupted. {booking_text()}") from None
    except BaseException:
        with suppress(Exception):
            if "counts" in (message := booking_text()):
                echo(message, err=True)
        raise


EXIT_CODES = {
    0: "done; `verify`: passed",
    1: "an error, which says what to mend; `verify`: failed; `budget --check`: not booked",
    2: "a wrong call",
    3: "`verify`: nothing can be said of the file",
    130: "interrupted; the last line says what the budget has booked",
    141: "the output was closed",
}
"""What a command tells the program that called it."""
_CODES = "\b\nExit codes:\n" + "\n".join(f"  {n:>3}  {text}" for n, text in EXIT_CODES.items())


_SETTINGS = {"help_option_names": ["-h", "--help"], "show_default": True}


_OPTIONS = {
    "dp_epsilon": "--epsilon",
    "dp_delta": "--delta",
    "dp_privacy_id": "privacy_id",
    "num_boost_round": "--rounds",
}
"""Parameters that have another name here; `privacy_id` is an option, or a key of a schema."""
PASSED_ON = {"ignore_unknown_options": True, "help_option_names": []}
"""Settings of a command that hands its arguments to a program."""


def _version(ctx: click.Context, _: click.Parameter, requested: bool) -> None:
    if requested:
        from .standalone import print_versions

        ctx.exit(print_versions())


@click.group(context_settings=_SETTINGS, epilog=_CODES)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_version,
    help="Show the versions, and which library is loaded from where.",
)
@click.option("--policy", "name", metavar="FILE", help="What the holder of the rows permits.")
@click.pass_context
def cli(ctx: click.Context, name: str | None) -> None:
    """Differentially private XGBoost: train, predict, and report what it cost.

    Rows come as CSV or Parquet files with column names; DATA may be - for standard input. What
    they may contain (classes, bounds, categories) is declared by options or in a schema file, and
    never inferred from the rows.
    """
    named = name if name is None else os.environ.setdefault(POLICY, name)
    if name is not None and Path(str(named)).resolve() != Path(name).resolve():
        raise Failure(f"--policy and {POLICY} name two policies. Leave --policy out.")
    try:
        rules = policy.in_force()
    except PrivacyError as error:
        raise Failure(str(error)) from None
    if rules is not None and ctx.invoked_subcommand in ("predict", "split"):
        raise Failure(
            f"`{ctx.invoked_subcommand}` writes what rows hold, which no policy permits. Whoever "
            "holds the rows runs it without a policy."
        )


class Arguments(SimpleNamespace):
    """The arguments and options that a command was given, by name."""

    def named(self, *names: str) -> dict[str, Any]:
        """Some of them, as keyword arguments."""
        return {name: getattr(self, name) for name in names}


def command(name: str, **settings: Any) -> Callable[[Callable[[Arguments], None]], click.Command]:
    """Registers a function as a command whose errors become messages."""

    def register(function: Callable[[Arguments], None]) -> click.Command:
        registered: click.Command = cli.command(name, **settings)(_guarded(function))
        return registered

    return register


def _keep_quiet() -> None:
    """An error that nobody has foreseen may say what is in rows, by its kind alone."""
    rules = policy.in_force()
    if rules is not None and "exact errors" not in rules.allow:
        raise Failure(str(RowDomainError(""))) from None


def _is_of_xgboost(error: Exception) -> bool:
    """Whether XGBoost has raised an error. It is not loaded for that."""
    core = sys.modules.get("xgboost.core")
    return core is not None and isinstance(error, core.XGBoostError)


def _warn(message: Any, *_: Any, **__: Any) -> None:
    click.secho("Warning: ", fg="yellow", nl=False, err=True)
    echo(message, err=True)


def _guarded(function: Callable[[Arguments], None]) -> Callable[..., None]:
    """Turn errors into messages; the details of unexpected ones are shown on request only."""

    @functools.wraps(function)
    def run(**given: Any) -> None:
        try:
            with warnings.catch_warnings(), spelling(_OPTIONS):
                warnings.showwarning = _warn
                function(Arguments(**given))
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
            _keep_quiet()
            if _is_of_xgboost(error):
                # The first line is the message, after time and place; the rest is a stack.
                line = str(error).strip().splitlines()[0]
                raise Failure(re.sub(r"^\[[\d:]+\] \S+:\d+: ", "", line)) from None
            if os.environ.get("XGB_DP_DEBUG"):
                raise
            # Messages of other libraries may quote a cell.
            raise Failure(
                f"An unexpected {type(error).__name__}. Please report it. Its details may contain "
                "data, so they are only shown with XGB_DP_DEBUG=1."
            ) from None

    return run
