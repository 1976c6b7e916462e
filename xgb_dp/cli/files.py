"""Output files of commands, and the notes that identify the parts of a split.

An output has often cost privacy budget. So a file is written atomically, and if its path is not
writable, it is saved in another folder. No command overwrites a file that it reads. This module
does not need the extra `cli`.

A note records which part of a split a file is. A file without a note, or changed after its note
was written, counts as all rows. Proof: docs/proofs/evaluation.md
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
from ..domain.data_files import Source
from ..errors import PrivacyParameterError, PrivacyWarning

Content: TypeAlias = "str | bytes | Callable[[Path], object]"
Output: TypeAlias = "tuple[Path, Content]"
"""A path and its content: a string, bytes, or a function that writes to a given path."""

_PROBE = 1 << 16  # bytes written to test whether the disk is full


def check_outputs(paths: Sequence[Path], *, force: bool, read: Iterable[Path]) -> None:
    """Check, before anything is spent, that all outputs are writable and are not also inputs."""
    taken = [(path, "is also read") for path in read]
    for path in paths:
        try:
            _check_output(path, taken, force=force)
        except (OSError, RuntimeError) as error:  # RuntimeError: symbolic link loop
            reason = getattr(error, "strerror", None) or "it is a symbolic link loop"
            raise PrivacyParameterError(
                f"{path} cannot be written: {reason}. Pass a path in a writable folder with free "
                "disk space."
            ) from None


def _check_output(path: Path, taken: list[tuple[Path, str]], *, force: bool) -> None:
    if path == Path():  # Path("") is the same
        raise PrivacyParameterError("The name of an output file is empty. Pass a file name.")
    replaceable = path.is_block_device() or not is_stream(path)
    if path.exists() and replaceable and not force:
        raise PrivacyParameterError(
            f"{path} already exists and was not overwritten, because models cost privacy budget. "
            "Pass another path, or --force to overwrite it."
        )
    for other, why in taken:
        if _is_same(path, other):
            raise PrivacyParameterError(
                f"{path} would be overwritten: it {why}. Pass another path."
            )
    taken.append((path, "is written twice"))
    if not path.resolve().parent.is_dir():
        raise PrivacyParameterError(
            f"The folder {path.resolve().parent} does not exist. Create it, or pass another path."
        )
    if not path.exists():
        path.touch(exist_ok=False)
        path.unlink()
    elif path.is_file():
        with path.open("r+b"):
            pass
    if not is_stream(path):
        with _temporary_path(path) as place:
            place.write_bytes(bytes(_PROBE))


def _is_same(path: Path, other: Path) -> bool:
    """Return whether two paths lead to the same file, following links; False for a stream.

    A folder can be read as one table, so a file inside it counts as the same file.
    """
    if is_stream(path):
        return False
    if other.is_dir() and other.resolve() in path.resolve().parents:
        return True
    if path.exists() and other.exists():
        return path.samefile(other)
    return path.resolve() == other.resolve()


def save(*outputs: Output) -> None:
    """Write files atomically; if a path is not writable, save the file elsewhere and raise."""
    failed = []
    for path, content in outputs:
        try:
            _write(path, content)
        except OSError as error:
            place = _save_elsewhere(path, content)
            where = f"It was saved as {place}: move it." if place else "It could not be saved."
            failed.append(f"{path} could not be written: {error.strerror or error}. {where}")
    if failed:
        raise OSError(" ".join(failed))


def _write(path: Path, content: Content) -> None:
    if is_stream(path):
        _fill(path, content)
        return
    with _temporary_path(path) as place:
        _fill(place, content)
        if path.exists():
            shutil.copymode(path, place)
        with place.open("rb+") as file:
            os.fsync(file.fileno())  # detects a full disk before the rename
        place.replace(path.resolve())


def _save_elsewhere(path: Path, content: Content) -> Path | None:
    """Save a file in a fallback folder; return its path, or None if every folder failed."""
    for folder in (Path(tempfile.gettempdir()), Path.home(), Path.cwd()):
        with suppress(OSError), ExitStack() as stack:
            place = Path(tempfile.mkdtemp(prefix="xgb-dp-", dir=folder)) / path.name
            stack.callback(shutil.rmtree, place.parent, ignore_errors=True)
            _fill(place, content)
            stack.pop_all()  # keep the file
            return place
    return None


def _fill(place: Path, content: Content) -> None:
    if callable(content):
        content(place)
    else:
        place.write_bytes(content.encode() if isinstance(content, str) else content)


@contextmanager
def _temporary_path(path: Path) -> Iterator[Path]:
    """Yield a path with the same file name in a temporary folder on the same disk."""
    with tempfile.TemporaryDirectory(prefix=".xgb-dp-", dir=path.resolve().parent) as folder:
        yield Path(folder) / path.name


def is_stream(path: Path) -> bool:
    """Return whether a path is a pipe, a device or a file descriptor, which cannot be replaced."""
    named = str(path.absolute()).startswith(("/dev/std", "/dev/fd/", "/proc/"))
    return named or (path.exists() and not path.is_file() and not path.is_dir())


_FORM = 1  # format version of notes
_FIELDS = {"form", "part", "column", "size", "changed"}


def note_path(path: Path) -> Path:
    """Return the path of the note that belongs to a data file."""
    return path.with_name(f"{path.name}.part.json")


def note_text(path: Path, part: SplitPart, column: str | None) -> str:
    """Return the note for a part; `column` is the privacy id column of a split by person."""
    note = {"form": _FORM, "part": part.to_json(), "column": column, **_state(path)}
    return json.dumps(note, indent=2) + "\n"


def part_of_file(path: Source) -> tuple[SplitPart | None, str | None]:
    """Return which part of a split a file is, and the privacy id column of that split.

    Both are None if there are several files, there is no note, or the file has changed since.
    """
    if isinstance(path, tuple) or not (note := note_path(path)).is_file():
        return None, None
    try:
        content = json.loads(note.read_text(encoding="utf-8"))
        if not isinstance(content, Mapping) or content.get("form") != _FORM:
            raise ValueError("unknown format")
        part, column = SplitPart.from_json(content.get("part")), content.get("column")
        if set(content) != _FIELDS or not (column is None or isinstance(column, str)):
            raise ValueError("unexpected fields")
    except ValueError:
        raise PrivacyParameterError(
            f"{note.name} is not a valid note of `xgb-dp split`. Split the data again, or remove "
            "the note; the file then counts as all rows."
        ) from None
    if {name: content[name] for name in ("size", "changed")} != _state(path):
        warnings.warn(
            f"{path.name} was changed or copied since `xgb-dp split` wrote it, so it counts as all "
            "rows. Split the data again, or copy the part with `cp -p`, which preserves its "
            "modification time.",
            PrivacyWarning,
            stacklevel=2,
        )
        return None, None
    return part, column


def _state(path: Path) -> dict[str, int]:
    """Return the size in bytes and the modification time in nanoseconds, to detect changes."""
    status = path.stat()
    return {"size": status.st_size, "changed": status.st_mtime_ns}
