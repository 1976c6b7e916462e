"""Files that the commands write, and what the book says where one could not be written.

A command has often paid for what it writes. So a file appears whole or not at all, and what does
not fit where it was to go is kept in another place.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, TypeAlias

import click

from ..budget.budget import Budget
from ..errors import PrivacyParameterError
from ..record import policy
from ..record.report import PrivacyReport

Content: TypeAlias = "str | bytes | Callable[[Path], object]"
Output: TypeAlias = "tuple[Path, Content]"
"""Where something goes; and its text, its bytes, or what writes it to a path."""

_PROBE = 1 << 16  # bytes; a disk with less room is full


class Failure(click.ClickException):
    """An error message without a traceback."""

    def show(self, file: Any = None) -> None:
        """Print it to stderr."""
        click.secho("Error: ", fg="red", nl=False, err=True)
        click.echo(self.message, err=True)


class Interrupted(Failure):
    """The user has pressed Ctrl-C."""

    exit_code = 130  # as shells say it


def new_files(paths: Sequence[Path], *, force: bool, read: Sequence[Path | None] = ()) -> None:
    """Refuse, before anything is spent, what could not be written afterwards."""
    taken = {path.resolve(): "is also read" for path in read if path is not None}
    for path in paths:
        try:
            _new_file(path, taken, force=force)
        except OSError as error:
            raise PrivacyParameterError(
                f"{path} cannot be written: {error.strerror}. Give a name in a folder that you "
                "may write and that has room."
            ) from None


def _new_file(path: Path, taken: dict[Path, str], *, force: bool) -> None:
    if path == Path():  # "" is the same
        raise PrivacyParameterError("The name of a file to write is empty. Give one.")
    if path.exists() and not force:
        raise PrivacyParameterError(
            f"{path} exists. Nothing is overwritten by accident, least of all a model, which has "
            "cost budget: give another name, or --force."
        )
    for place in (path.resolve(), *path.resolve().parents):
        if place in taken:  # or the folder that it lies in
            raise PrivacyParameterError(
                f"{path} would be overwritten: it {taken[place]}. Give another name."
            )
    taken[path.resolve()] = "is written twice"
    if not path.resolve().parent.is_dir():
        raise PrivacyParameterError(
            f"The folder {path.resolve().parent} does not exist. Make it, or give another name."
        )
    if not path.exists():
        path.touch(exist_ok=False)
        path.unlink()
    elif path.is_file():
        with path.open("r+b"):
            pass
    if not _is_stream(path):
        with _beside(path) as place:
            place.write_bytes(bytes(_PROBE))


def save(*outputs: Output) -> None:
    """Write files, each beside its place first, and then renamed."""
    failed = []
    for path, content in outputs:
        try:
            _write(path, content)
        except OSError as error:
            place = _elsewhere(path, content)
            where = f"It is in {place} now: move it." if place else "It could be written nowhere."
            failed.append(f"{path} could not be written: {error.strerror or error}. {where}")
    if failed:
        raise Failure(" ".join(failed))


def _write(path: Path, content: Content) -> None:
    if _is_stream(path):
        _fill(path, content)
        return
    with _beside(path) as place:
        _fill(place, content)
        if path.exists():
            shutil.copymode(path, place)
        with place.open("rb+") as file:
            os.fsync(file.fileno())  # or a disk may be found to be full after the renaming
        place.replace(path.resolve())


def _elsewhere(path: Path, content: Content) -> Path | None:
    """Where a file went that does not fit into its folder; None if it fits nowhere."""
    for folder in (Path(tempfile.gettempdir()), Path.home(), Path.cwd()):
        with suppress(OSError), ExitStack() as stack:
            place = Path(tempfile.mkdtemp(prefix="xgb-dp-", dir=folder)) / path.name
            stack.callback(shutil.rmtree, place.parent, ignore_errors=True)
            _fill(place, content)
            stack.pop_all()  # it stays
            return place
    return None


def _fill(place: Path, content: Content) -> None:
    if callable(content):
        content(place)
    else:
        place.write_bytes(content.encode() if isinstance(content, str) else content)


@contextmanager
def _beside(path: Path) -> Iterator[Path]:
    """A path of the same name on the same disk, whose folder goes at the end."""
    with tempfile.TemporaryDirectory(prefix=".xgb-dp-", dir=path.resolve().parent) as folder:
        yield Path(folder) / path.name


def _is_stream(path: Path) -> bool:
    """Whether a path is a pipe, a device or an open file: nothing can be renamed to it."""
    named = str(path.absolute()).startswith(("/dev/std", "/dev/fd/", "/proc/"))
    return named or (path.exists() and not path.is_file())


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


def print_or_save(
    text: str, path: Path | None, *, force: bool, read: Sequence[Path], nl: bool = True
) -> None:
    """Print a text, or write it where a path is given."""
    if path is None:
        click.echo(text, nl=nl)
    else:
        new_files([path], force=force, read=read)
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
                click.echo(message, err=True)
        raise
