"""The file of a budget: read and replaced as a whole, by one process at a time.

Every change holds a lock on a second file, writes a new file, forces it to disk and renames it over
the old one. A crash leaves the old file or the new one, never a part of either; a reader sees the
same. What cannot be read is refused, so that nothing spent is forgotten.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from .errors import BudgetError

__all__ = ["read", "update"]

FORMAT = "xgb-dp budget"
VERSION = 1

Content = dict[str, Any]


def read(path: Path) -> Content | None:
    """The content of a budget file; None if there is no such file.

    Raises:
        BudgetError: The file is damaged, or of another kind.
    """
    try:
        names = path.stat().st_nlink
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError):
        raise BudgetError(f"The budget file {str(path)!r} cannot be read.") from None
    if names > 1:  # a replacement would leave the other names with what is written now
        raise BudgetError(
            f"The budget file {str(path)!r} has several names (hard links): keep one."
        )
    try:
        content: Content = json.loads(text)
        sound = (content["format"], content["version"]) == (FORMAT, VERSION) and content.pop(
            "digest"
        ) == _digest(content)
    except (ValueError, TypeError, KeyError, AttributeError):
        sound = False
    if not sound:
        raise BudgetError(
            f"The budget file {str(path)!r} is damaged or of another version, so what was spent is "
            "not known. Restore it from a copy that holds every training."
        )
    return content


def update(path: Path, change: Callable[[Content | None], Content]) -> Content:
    """Replace the content by a function of it, while no other process can.

    Args:
        path: The file; it need not exist.
        change: Old content, or None, to new content. May raise, and then nothing changes.

    Returns:
        The new content, which is on disk.

    Raises:
        BudgetError: The file is damaged or cannot be written.
    """
    try:
        with _locked(path):
            content = {**change(read(path)), "format": FORMAT, "version": VERSION}
            _replace(path, json.dumps({**content, "digest": _digest(content)}, indent=1))
            return content
    except OSError as error:
        raise BudgetError(
            f"The budget file {str(path)!r} cannot be written ({error.strerror}); nothing was "
            "booked and nothing released. It must lie in a folder that you may write."
        ) from None


def _digest(content: Content) -> str:
    """Tells a damaged file from a sound one; it does not stop anybody from editing it."""
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def _replace(path: Path, text: str) -> None:
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        if path.exists():
            os.chmod(name, path.stat().st_mode & 0o7777)
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    if os.name == "posix":  # the renaming itself must be on disk too
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold the lock of a budget; the operating system frees it when a process dies."""
    with open(path.with_name(path.name + ".lock"), "a+b") as file:
        _lock(file)
        try:
            yield
        finally:
            _unlock(file)


if sys.platform == "win32":
    import msvcrt
    import time

    def _lock(file: IO[bytes]) -> None:
        while True:
            try:
                file.seek(0)
                msvcrt.locking(file.fileno(), msvcrt.LK_LOCK, 1)
                return
            except OSError:  # after ten seconds
                time.sleep(0.05)

    def _unlock(file: IO[bytes]) -> None:
        file.seek(0)
        msvcrt.locking(file.fileno(), msvcrt.LK_UNLCK, 1)
else:
    import fcntl

    def _lock(file: IO[bytes]) -> None:
        fcntl.flock(file, fcntl.LOCK_EX)

    def _unlock(file: IO[bytes]) -> None:
        fcntl.flock(file, fcntl.LOCK_UN)
