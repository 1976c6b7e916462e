"""The group of all commands, and the one way to register one: ``@command`` above a function.

A file ``cmd_NAME.py`` of this folder registers the command NAME as it is imported, which happens
when somebody asks for it.
"""

from __future__ import annotations

import ast
import functools
import importlib
import os
import pkgutil
import re
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click

from ..errors import POLICY, NativeLibraryError, PrivacyError, RowDomainError, spelling
from ..record import policy
from .output import Failure, Interrupted, say

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


class _Commands(click.Group):
    def list_commands(self, ctx: click.Context | None) -> list[str]:
        """Their names, by those of the files."""
        files = pkgutil.iter_modules([str(Path(__file__).parent)])
        return [file.name[4:] for file in files if file.name.startswith("cmd_")]

    def get_command(self, ctx: click.Context | None, name: str) -> click.Command | None:
        """The command of a name; None if there is none."""
        if name in self.list_commands(ctx):
            importlib.import_module(f".cmd_{name}", __package__)
        return self.commands.get(name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list of the general help, read from the files: importing all of them is slow."""
        names = self.list_commands(ctx)
        limit = formatter.width - 6 - max(map(len, names))
        with formatter.section("Commands"):
            formatter.write_dl([(n, _outline(n).get_short_help_str(limit)) for n in names])


def _outline(name: str) -> click.Command:
    """A command that has nothing but its name and its help."""
    tree = ast.parse(Path(__file__).with_name(f"cmd_{name}.py").read_text("utf-8"))
    functions = (node for node in tree.body if isinstance(node, ast.FunctionDef))
    return click.Command(
        name, help=ast.get_docstring(next(f for f in functions if f.decorator_list))
    )


def _version(ctx: click.Context, _: click.Parameter, asked: bool) -> None:
    if asked:
        from .version import main

        ctx.exit(main())


@click.group(cls=_Commands, context_settings=_SETTINGS, epilog=_CODES)
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


class Given(SimpleNamespace):
    """The arguments and options that a command was given, by name."""

    def named(self, *names: str) -> dict[str, Any]:
        """Some of them, as keyword arguments."""
        return {name: getattr(self, name) for name in names}


def command(name: str, **settings: Any) -> Callable[[Callable[[Given], None]], click.Command]:
    """Registers a function as a command whose errors become messages."""

    def register(function: Callable[[Given], None]) -> click.Command:
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
    say(message, err=True)


def _guarded(function: Callable[[Given], None]) -> Callable[..., None]:
    """Turn errors into messages; the details of unexpected ones are shown on request only."""

    @functools.wraps(function)
    def run(**given: Any) -> None:
        try:
            with warnings.catch_warnings(), spelling(_OPTIONS):
                warnings.showwarning = _warn
                function(Given(**given))
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
