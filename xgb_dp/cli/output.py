"""What commands show and write, and what the book says where they end early."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import click

from ..budget.budget import Budget
from ..errors import POLICY, PrivacyParameterError
from ..record import policy
from ..record.escaping import visible
from ..record.report import PrivacyReport
from .places import Output, check_places, save


class Failure(click.ClickException):
    """An error message without a traceback."""

    def show(self, file: Any = None) -> None:
        """Print it to stderr."""
        click.secho("Error: ", fg="red", nl=False, err=True)
        say(self.message, err=True)


class Interrupted(Failure):
    """The user has pressed Ctrl-C."""

    exit_code = 130  # as shells say it


def say(text: object, *, err: bool = False) -> None:
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
        if rules.book is not None:
            yield Path(rules.book)


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
        say(text.rstrip("\n"))
    else:
        new_files([path], force=force)
        save((path, text.rstrip("\n") + "\n"))


@contextmanager
def booked_on(path: Path | None, note: str) -> Iterator[Budget | None]:
    """The budget of a command; where the command ends early, what the book says of it."""
    if path is None and (rules := policy.in_force()) is not None:
        path = rules.book
    book = None if path is None else Budget(path)
    before = set() if book is None else {entry.id for entry in book.entries}

    def words() -> str:
        if book is None:
            return "No budget was given, so nothing is booked."
        names = [e.id for e in book.entries if e.id not in before and e.note == note]
        if not names:
            return f"The budget {path} has not booked it."
        return f"The budget {path} has booked it, entry {', '.join(names)}: it counts as spent."

    try:
        yield book
    except KeyboardInterrupt:
        raise Interrupted(f"Interrupted. {words()}") from None
    except BaseException:
        with suppress(Exception):
            if "counts" in (message := words()):
                say(message, err=True)
        raise
