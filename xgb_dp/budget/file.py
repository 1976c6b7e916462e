"""Atomic reads and updates of a budget file by one process at a time.

Every update holds two locks, writes a new file, syncs it to disk and renames it over the old one.
After a crash, and for a concurrent reader, the file is either the old version or the new one, never
a mixture. An unreadable file is an error, so that no spending is forgotten.

One lock is on a separate lock file, which is never replaced; the other is on the budget file
itself, so its removal cannot go unnoticed. A lock is valid only while its path still leads to the
locked file. The lock file can therefore be stale, removed or recreated at any time without losing
an entry.

A process remembers the ids of the entries that it has seen in a file. A file without one of these
entries was rolled back or deleted and is refused, because the release of that entry cannot be
undone.
"""

from __future__ import annotations

import errno
import os
import re
import stat
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from ..errors import BudgetError
from ..record import ledger

FORMAT, VERSION = "xgb-dp budget", 1

PATIENCE = 60.0
"""Seconds to wait for a lock; it is held for milliseconds unless its process was suspended."""

Content = dict[str, Any]

_NEW = ".new"  # suffix of temporary files
_PAUSE = 0.002  # seconds between two attempts to lock
_TWO_NAMES = 0.04  # seconds to wait for another process to remove the second hard link
_PLAIN = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0)
_READ, _WRITE = os.O_RDONLY | _PLAIN, os.O_RDWR | _PLAIN
_HELD: set[int] = set()  # lock file descriptors, closed in a forked child
_SEEN: dict[Path, set[str]] = {}  # ids of the entries seen by this process, by file
_FIELDS = {"epsilon", "delta", "selection_epsilon", "unit", "entries"}


def read(path: Path) -> Content | None:
    """Return the content of a budget file, or None if it does not exist.

    Raises:
        BudgetError: The file is unreadable, damaged, or lacks entries seen before.
    """
    return _read_file(path)[0]


def seen_entries(path: Path) -> frozenset[str]:
    """Return the ids of the entries that this process has seen in a file."""
    return frozenset(_SEEN.get(path, ()))


def remember(path: Path, names: Iterable[str]) -> None:
    """Remember the ids of entries seen in a file."""
    _SEEN.setdefault(path, set()).update(names)


def _names(content: Content | None) -> set[str]:
    return set() if content is None else {line["id"] for line in content["entries"]}


def update(path: Path, change: Callable[[Content | None], Content]) -> Content:
    """Replace the content with ``change(content)`` under the lock, and return the new content."""
    deadline = time.monotonic() + PATIENCE
    written = False
    try:
        while time.monotonic() < deadline:
            with _locked(path, deadline) as held:
                old, status = _read_file(path)
                if not _same(held, status):
                    continue  # replaced after it was locked
                content = change(old)
                text = _serialize(path, content)
                if _replace(path, text, status):
                    written = True
                    _sync(path.parent)  # the rename itself must reach the disk too
                    remember(path, _names(content))
                    return content
    except OSError as error:
        raise failed(
            f"The budget file {str(path)!r} cannot be written ({error.strerror})",
            "Free disk space, and check that you have write permission for its folder.",
            written=written,
        ) from None
    raise failed(
        f"The budget file {str(path)!r} was replaced repeatedly during attempts to lock it",
        "Let only xgb_dp.Budget write this file.",
    )


def failed(what: str, fix: str, *, written: bool = False) -> BudgetError:
    """Return an error raised before a release.

    Callers that fail after a release build their own message from its `what` and `fix`.
    """
    charged = "the charge may have been recorded" if written else "nothing was charged"
    error = BudgetError(f"{what}; {charged}, and nothing was released. {fix}")
    error.what, error.fix = what, fix
    return error


def _serialize(path: Path, content: Content) -> str:
    """Serialize the content of a budget file."""
    try:
        return ledger.dump_checksummed({**content, "format": FORMAT, "version": VERSION}, indent=1)
    except ValueError as error:
        raise failed(
            f"The content of the budget file {str(path)!r} cannot be serialized ({error})",
            "Use valid Unicode for the names of columns and parts.",
        ) from None


def _read_file(path: Path) -> tuple[Content | None, os.stat_result | None]:
    """Return the content and file status, after checking that no entry seen before is missing."""
    before = seen_entries(path)  # before reading: another thread can add an entry in the meantime
    content, status = _read(path)
    if not before <= _names(content):
        what = "is missing" if content is None else "lacks an entry that this process has seen"
        raise failed(
            f"The budget file {str(path)!r} {what}: it was deleted, or replaced by an older copy, "
            "for example by a sync tool, a backup or `git checkout`",
            "Restore the file from a copy that contains every training. If you moved it, open it "
            "at its new path. For a new budget on other rows, use another file name.",
        )
    remember(path, _names(content))
    return content, status


def _read(path: Path, tries: int = 50) -> tuple[Content | None, os.stat_result | None]:
    """Return the parsed content and status of the file, or (None, None) if it does not exist."""
    try:
        with open(os.open(path, _READ), encoding="utf-8") as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise OSError
            text = file.read()
    except FileNotFoundError:
        return None, None
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not a regular text file"
        raise failed(
            f"The budget file {str(path)!r} cannot be read ({reason}), so the spent budget is "
            "unknown",
            "Make it readable, or restore it from a copy that contains every training.",
        ) from None
    if status.st_nlink > 1:  # replacing one name would leave the other names with an old version
        if tries:  # a new file briefly has two names
            time.sleep(_TWO_NAMES)
            return _read(path, tries - 1)
        raise failed(
            f"The budget file {str(path)!r} has several hard links, which could be updated "
            "independently",
            "Keep only one of them.",
        )
    try:
        content = ledger.load_checksummed(text)
        valid = (content.pop("format", None), content.pop("version", None)) == (FORMAT, VERSION)
        valid = valid and set(content) == _FIELDS and _are_totals(content)
        valid = valid and _are_lines(content["entries"])
    except ValueError:
        valid = False
    if not valid:
        raise failed(
            f"The file {str(path)!r} is not a valid budget file: it is damaged, has another "
            "format version, or is a different kind of file, such as a model",
            "Pass a file created by xgb_dp.Budget, or restore it from a copy that contains every "
            "training.",
        )
    return content, status


def _are_totals(content: Content) -> bool:
    """Return whether the totals are in the ranges that Budget accepts."""
    totals = [content[name] for name in ("epsilon", "delta", "selection_epsilon")]
    epsilon, delta, part = totals
    numbers = all(type(total) in (int, float) for total in totals)
    return numbers and epsilon > 0 and 1e-100 <= delta < 1 and 0 <= part <= epsilon


def _are_lines(entries: Any) -> bool:
    """Return whether these are budget entries with unique ids."""
    if not isinstance(entries, list) or not all(isinstance(line, dict) for line in entries):
        return False
    names = [line.get("id") for line in entries]
    return all(type(name) is str for name in names) and len(set(names)) == len(names)


def _replace(path: Path, text: str, old: os.stat_result | None) -> bool:
    """Replace the file atomically; return False if it is no longer the one that was read."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=_NEW)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        if not _same(old, _status(path)):
            return False
        if old is None:
            try:
                _create(name, path, text)
            except FileExistsError:
                return False
        else:
            os.chmod(name, old.st_mode & 0o7777)
            os.replace(name, path)
    finally:
        Path(name).unlink(missing_ok=True)
    return True


def _sync(folder: Path) -> None:
    """Sync the directory entries of a folder to disk."""
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def clean(path: Path) -> None:
    """Remove temporary files left behind by processes that were killed during a write."""
    name = re.compile(rf"\.{re.escape(path.name)}\.\w{{8}}{re.escape(_NEW)}")  # mkstemp pattern
    with suppress(OSError):
        for entry in os.scandir(path.parent):
            if name.fullmatch(entry.name) and entry.is_file(follow_symlinks=False):
                with suppress(OSError):  # a recent file can belong to a write in progress
                    if time.time() - entry.stat(follow_symlinks=False).st_mtime > PATIENCE:
                        os.unlink(entry.path)


def _create(name: str, path: Path, text: str) -> None:
    """Move a finished file to a path that does not exist yet, without replacing anything."""
    try:
        os.link(name, path)
        Path(name).unlink()  # a budget with two hard links is refused
    except OSError as error:
        if error.errno not in (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS):
            raise
        # The file system has no hard links. Concurrent readers see a damaged file until the write
        # has finished.
        with open(path, "x", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())


def _status(path: Path) -> os.stat_result | None:
    """Return the status of the file at a path, or None; symbolic links are not followed."""
    try:
        return os.lstat(path)
    except FileNotFoundError:
        return None


def _same(one: os.stat_result | None, other: os.stat_result | None) -> bool:
    if one is None or other is None:
        return one is other
    return os.path.samestat(one, other)


@contextmanager
def _locked(path: Path, deadline: float) -> Iterator[os.stat_result | None]:
    """Hold both locks of a budget; yield the status of the locked file, or None if none exists.

    The operating system releases the locks when the process dies.
    """
    with ExitStack() as locks:
        locks.enter_context(_lock_on(path.with_name(path.name + ".lock"), os.O_CREAT, deadline))
        if sys.platform == "win32":  # Windows can neither remove nor replace an open file
            status = _status(path)
        else:
            try:
                status = locks.enter_context(_lock_on(path, 0, deadline))
            except FileNotFoundError:
                status = None
        yield status


@contextmanager
def _lock_on(path: Path, flags: int, deadline: float) -> Iterator[os.stat_result | None]:
    """Lock the file at a path, retrying if another process replaces it in the meantime."""
    while True:
        handle = os.open(path, _WRITE | flags, 0o666)
        _HELD.add(handle)
        try:
            while not _try_lock(handle):
                if time.monotonic() > deadline:
                    raise failed(
                        f"Another process has held the lock {str(path)!r} for {PATIENCE:g} seconds",
                        "Find that process and check whether it is suspended or hanging.",
                    )
                time.sleep(_PAUSE)
            status = os.fstat(handle)
            if _same(status, _status(path)):
                yield status
                return
        finally:
            _HELD.discard(handle)
            os.close(handle)  # releases the lock, unless a forked child still has it open


def _forget_locks() -> None:
    """Close inherited lock descriptors in a forked child, which would outlive the parent."""
    while _HELD:
        os.close(_HELD.pop())


if sys.platform == "win32":
    import msvcrt

    def _try_lock(handle: int) -> bool:
        os.lseek(handle, 0, os.SEEK_SET)
        try:
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True
else:
    import fcntl

    os.register_at_fork(after_in_child=_forget_locks)

    def _try_lock(handle: int) -> bool:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True
