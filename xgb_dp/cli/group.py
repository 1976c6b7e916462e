"""The command group, registration of commands, error handling, and output helpers."""

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
from .files import Output, check_outputs, is_stream, save


class Failure(click.ClickException):
    """An error message without a traceback."""

    def show(self, file: Any = None) -> None:
        """Print it to stderr."""
        click.secho("Error: ", fg="red", nl=False, err=True)
        echo(self.message, err=True)


class Interrupted(Failure):
    """The user pressed Ctrl-C."""

    exit_code = 130  # shell convention: 128 + SIGINT


def echo(text: object, *, err: bool = False) -> None:
    """Print text with control characters escaped, so that untrusted parts are safe to show."""
    click.echo(visible(str(text), "\n"), err=err)


def print_data(text: str) -> None:
    """Print data unchanged to a pipe or file, and with escaped control characters to a terminal."""
    click.echo(visible(text, "\n") if sys.stdout.isatty() else text, nl=False)


def new_files(paths: Sequence[Path], *, force: bool) -> None:
    """Check, before anything is spent, that outputs are writable and are not also inputs."""
    check_outputs(paths, force=force, read=_input_files())


def _input_files() -> Iterator[Path]:
    """Yield the input files of the command, from its arguments, options and policy."""
    context = click.get_current_context()
    for param in context.command.params:
        given = context.params.get(param.name or "")
        if isinstance(param.type, click.Path) and param.type.exists and param.type.file_okay:
            yield from (given if isinstance(given, tuple) else [given] if given else [])
    for text in context.params.get("param", ()):  # for example the key files of workers
        if value := text.partition("=")[2]:
            yield Path(value)
    if (rules := policy.in_force()) is not None:
        yield Path(os.environ[POLICY])
        if rules.budget is not None:
            yield Path(rules.budget)


def model_file(path: Path, model: Any) -> Output:
    """Return the output for a model, in the format of the file extension (default UBJSON)."""
    return path, bytes(model.save_raw("json" if path.suffix == ".json" else "ubj"))


def report_text(report: PrivacyReport, kind: str, name: str = "") -> str:
    """Format a report as "text", "json" or "html"."""
    if kind == "json":
        return report.to_json()
    return report.to_html(name=name) if kind == "html" else report.summary(name=name)


def report_kind(path: Path) -> str:
    """Return the report format for a file extension."""
    kinds = {".txt": "text", ".json": "json", ".html": "html"}
    kind = "text" if is_stream(path) else kinds.get(path.suffix.lower())
    if kind is None:
        raise PrivacyParameterError(
            f"{path}: a report is written as text, JSON or HTML. Pass a file name that ends in "
            ".txt, .json or .html."
        )
    return kind


def report_file(report: PrivacyReport, path: Path) -> Output:
    """Return the output for a report, in the format of the file extension."""
    return path, report_text(report, report_kind(path)).rstrip("\n") + "\n"


def print_or_save(text: str, path: Path | None, *, force: bool) -> None:
    """Print text, or write it to a file if a path is given."""
    if path is None:
        echo(text.rstrip("\n"))
    else:
        new_files([path], force=force)
        save((path, text.rstrip("\n") + "\n"))


@contextmanager
def recorded_in(path: Path | None, note: str) -> Iterator[Budget | None]:
    """Open the budget of a command; if the command fails, report whether it was charged.

    A command reads its rows inside, so that a wrong budget is reported first.
    """
    rules = policy.in_force()
    if path is None and rules is not None:
        path = rules.budget
    budget = None if path is None else Budget(path)
    if budget is not None and rules is not None:
        rules.check_budget(budget)
    before = set() if budget is None else {entry.id for entry in budget.entries}

    def charge() -> str:
        """Describe the entries of this command; empty without any."""
        entries = [] if budget is None else budget.entries
        ids = [e.id for e in entries if e.id not in before and e.note == note]
        charged = f"was charged (entry {', '.join(ids)}). This counts as spent."
        return f"The budget {path} {charged}" if ids else ""

    try:
        yield budget
    except KeyboardInterrupt:
        none = "No budget was given, so nothing was charged."
        none = none if budget is None else f"The budget {path} was not charged."
        raise Interrupted(f"Interrupted. {charge() or none}") from None
    except BaseException:
        with suppress(Exception):
            if text := charge():
                echo(text, err=True)
        raise


EXIT_CODES = {
    0: "success; `verify`: passed",
    1: "error; `verify`: failed; `budget --check`: a release is not in the budget",
    2: "invalid call",
    3: "`verify`: the file cannot be verified",
    130: "interrupted; the last line says whether the budget was charged",
    141: "the output pipe was closed",
}
"""Exit codes of the commands."""
_CODES = "\b\nExit codes:\n" + "\n".join(f"  {n:>3}  {text}" for n, text in EXIT_CODES.items())


_SETTINGS = {"help_option_names": ["-h", "--help"], "show_default": True}


_OPTIONS = {
    "dp_epsilon": "--epsilon",
    "dp_delta": "--delta",
    "dp_privacy_id": "privacy_id",
    "num_boost_round": "--rounds",
}
"""Names of parameters on the command line; `privacy_id` is an option or a schema key."""
PASSED_ON = {"ignore_unknown_options": True, "help_option_names": []}
"""Settings of a command that passes its arguments on to another parser."""


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
    help="Show the versions and the location of the loaded library.",
)
@click.option("--policy", "name", metavar="FILE", help="Policy file of the data owner.")
@click.pass_context
def cli(ctx: click.Context, name: str | None) -> None:
    """Differentially private XGBoost: train, predict and report the privacy cost.

    DATA is a CSV or Parquet file with column names, several files or a folder that form one table,
    or - for standard input. Classes, bounds and categories are declared by options or in a schema
    file, and never inferred from the rows.
    """
    named = name if name is None else os.environ.setdefault(POLICY, name)
    if name is not None and Path(str(named)).resolve() != Path(name).resolve():
        raise Failure(f"--policy and {POLICY} name different policies. Omit --policy.")
    try:
        rules = policy.in_force()
    except PrivacyError as error:
        raise Failure(str(error)) from None
    if rules is not None and ctx.invoked_subcommand in ("predict", "split"):
        raise Failure(
            f"`{ctx.invoked_subcommand}` is not allowed under a policy, because it writes exact "
            "data of the rows. Ask the data owner to run it without a policy."
        )


class Arguments(SimpleNamespace):
    """Arguments and options of a command, as attributes."""

    def named(self, *names: str) -> dict[str, Any]:
        """Return the named arguments as a dict, to pass as keyword arguments."""
        return {name: getattr(self, name) for name in names}


def command(name: str, **settings: Any) -> Callable[[Callable[[Arguments], None]], click.Command]:
    """Return a decorator that registers a function as a command with error handling."""

    def register(function: Callable[[Arguments], None]) -> click.Command:
        registered: click.Command = cli.command(name, **settings)(_guarded(function))
        return registered

    return register


def _warn(message: Any, *_: Any, **__: Any) -> None:
    click.secho("Warning: ", fg="yellow", nl=False, err=True)
    echo(message, err=True)


def _guarded(function: Callable[[Arguments], None]) -> Callable[..., None]:
    """Turn exceptions into error messages, hiding details of unexpected ones by default."""

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
                "A name or a cell cannot be written in the output encoding. Set PYTHONUTF8=1, or "
                "rename columns and categories that are not valid UTF-8."
            ) from None
        except Exception as error:
            rules = policy.in_force()
            if rules is not None and "exact errors" not in rules.allow:
                # Even the type of an unexpected error can depend on the data.
                raise Failure(str(RowDomainError(""))) from None
            core = sys.modules.get("xgboost.core")  # None if no command imported it
            if core is not None and isinstance(error, core.XGBoostError):
                # The first line is a time stamp, a source location and the message; a stack
                # trace follows.
                line = str(error).strip().splitlines()[0]
                raise Failure(re.sub(r"^\[[\d:]+\] \S+:\d+: ", "", line)) from None
            if os.environ.get("XGB_DP_DEBUG"):
                raise
            # Messages of other libraries can quote a cell.
            raise Failure(
                f"Unexpected {type(error).__name__}. Please report it. Its details can contain "
                "data and are hidden; set XGB_DP_DEBUG=1 to show them."
            ) from None

    return run
