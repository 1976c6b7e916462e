"""Files that commands write, and notes beside the parts of a split.

A command has often paid for what it writes. So a file appears whole or not at all, and if it
cannot be written to its place, it is kept in another one. No command overwrites a file that it
reads. Nothing here needs the extra `cli`.

A note says which part of a split a file is. A file without a note counts as all rows, and so does
one that was changed after its note was written. Proof: docs/proofs/evaluation.md
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TypeAlias

from ..data.ids import SplitPart
from ..errors import PrivacyParameterError, PrivacyWarning

Content: TypeAlias = "str | bytes | Callable[[Path], object]"
Output: TypeAlias = "tuple[Path, Content]"
"""A path, and its text, its bytes, or a function that writes to a given path."""

_PROBE = 1 << 16  # bytes; a disk with less room is full


def check_places(paths: Sequence[Path], *, force: bool, read: Iterable[Path]) -> None:
    """Refuse, before anything is spent, what could not be written afterwards, or is also read."""
    taken = [(path, "is also read") for path in read]
    for path in paths:
        try:
            _check_place(path, taken, force=force)
        except (OSError, RuntimeError) as error:  # the latter of links that go round
            reason = getattr(error, "strerror", None) or "it is a link to itself"
            raise PrivacyParameterError(
                f"{path} cannot be written: {reason}. Give a name in a folder that you "
                "may write and that has room."
            ) from None


def _check_place(path: Path, taken: list[tuple[Path, str]], *, force: bool) -> None:
    if path == Path():  # "" is the same
        raise PrivacyParameterError("The name of a file to write is empty. Give one.")
    if path.exists() and not force:
        raise PrivacyParameterError(
            f"{path} exists. Nothing is overwritten by accident, least of all a model, which has "
            "cost budget: give another name, or --force."
        )
    for other, why in taken:
        if _is_same(path, other):
            raise PrivacyParameterError(
                f"{path} would be overwritten: it {why}. Give another name."
            )
    taken.append((path, "is written twice"))
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


def _is_same(path: Path, other: Path) -> bool:
    """Whether two paths lead to the same file, through links too; never for a stream.

    A file inside a folder that is read as one table is part of that table.
    """
    if _is_stream(path):
        return False
    if other.is_dir() and other.resolve() in path.resolve().parents:
        return True
    if path.exists() and other.exists():
        return path.samefile(other)
    return path.resolve() == other.resolve()


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
        raise OSError(" ".join(failed))


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
    """Write a file that failed at its path to another folder; None if no folder takes it."""
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


_FORM = 1  # of notes
_FIELDS = {"form", "part", "column", "size", "changed"}


def note_path(path: Path) -> Path:
    """Where the note of a file lies."""
    return path.with_name(f"{path.name}.part.json")


def note_text(path: Path, part: SplitPart, column: str | None) -> str:
    """The note that a file is this part, by the column of ids if the split was made by person."""
    note = {"form": _FORM, "part": part.to_json(), "column": column, **_state(path)}
    return json.dumps(note, indent=2) + "\n"


def part_of_file(path: Path) -> tuple[SplitPart | None, str | None]:
    """The part that a file is, and the column of ids by which it was made.

    None where that is not known, as after any change of the file.
    """
    note = note_path(path)
    if not note.is_file():
        return None, None
    try:
        content = json.loads(note.read_text(encoding="utf-8"))
        if not isinstance(content, Mapping) or content.get("form") != _FORM:
            raise ValueError("another form")
        part, column = SplitPart.from_json(content.get("part")), content.get("column")
        if set(content) != _FIELDS or not (column is None or isinstance(column, str)):
            raise ValueError("other fields")
    except ValueError:
        raise PrivacyParameterError(
            f"{note.name} is not a note of `xgb-dp split`. Remove it, and the rows count as all "
            "rows; or split them again."
        ) from None
    if {name: content[name] for name in ("size", "changed")} != _state(path):
        warnings.warn(
            f"{path.name} was changed or copied since `xgb-dp split` wrote it, so it counts as all "
            "rows. `cp -p` keeps the time of the last change, by which the note knows the file.",
            PrivacyWarning,
            stacklevel=2,
        )
        return None, None
    return part, column


def _state(path: Path) -> dict[str, int]:
    """What differs once a file was written again, in bytes and in nanoseconds."""
    status = path.stat()
    return {"size": status.st_size, "changed": status.st_mtime_ns}
