"""The file of a budget: read and replaced as a whole, by one process at a time.

Every change holds two locks, writes a new file, forces it to disk and renames it over the old
one. A crash leaves the old file or the new one, never a part of either; a reader sees the same.
What cannot be read is refused, so that nothing spent is forgotten.

One lock is on a file beside, which stays the same file; the other is on the budget file itself,
which nobody can remove unseen. A lock counts only while its name leads to the file that is locked.
So the lock file may be stale, removed or made anew at any time, and no entry is lost.

A process remembers the names of the entries that it has seen in a file. A file that lacks one was
rolled back or deleted, and is refused: what it lacks was released all the same.
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
"""Seconds to wait for a lock, which is held for milliseconds unless its process was stopped."""

Content = dict[str, Any]

_NEW = ".new"  # end of the names of new files
_PAUSE = 0.002  # seconds between two tries
_TWO_NAMES = 0.04  # the same where a process is about to remove one of two names
_PLAIN = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0)
_READ, _WRITE = os.O_RDONLY | _PLAIN, os.O_RDWR | _PLAIN
_HELD: set[int] = set()  # descriptors of locks, which a forked child must not keep
_SEEN: dict[Path, set[str]] = {}  # of this process: names of entries by file
_FIELDS = {"epsilon", "delta", "selection_epsilon", "unit", "entries"}


def read(path: Path) -> Content | None:
    """The content of a budget file; None if there never was one with entries."""
    return _read_file(path)[0]


def seen(path: Path) -> frozenset[str]:
    """Names of the entries that this process has seen in a file."""
    return frozenset(_SEEN.get(path, ()))


def remember(path: Path, names: Iterable[str]) -> None:
    """Take note of entries that a file had."""
    _SEEN.setdefault(path, set()).update(names)


def _names(content: Content | None) -> set[str]:
    return set() if content is None else {line["id"] for line in content["entries"]}


def update(path: Path, change: Callable[[Content | None], Content]) -> Content:
    """Replace the content by a function of it, while no other process can."""
    deadline = time.monotonic() + PATIENCE
    there = False
    try:
        while time.monotonic() < deadline:
            with _locked(path, deadline) as held:
                old, status = _read_file(path)
                if not _same(held, status):
                    continue  # another one since it was locked
                content = change(old)
                text = _written(path, content)
                if _replace(path, text, status):
                    there = True
                    _sync(path.parent)  # the renaming itself must be on disk too
                    remember(path, _names(content))
                    return content
    except OSError as error:
        raise failed(
            f"The budget file {str(path)!r} cannot be written ({error.strerror})",
            "Make room on its disk, and see that you may write in its folder.",
            written=there,
        ) from None
    raise failed(
        f"The budget file {str(path)!r} is replaced again and again",
        "Only budgets themselves may write it.",
    )


def failed(what: str, fix: str, *, written: bool = False) -> BudgetError:
    """The error before a release; its `what` and `fix` also hold after one."""
    booked = "it may have been booked, and counts then" if written else "nothing was booked"
    error = BudgetError(f"{what}; {booked}, and nothing was released. {fix}")
    error.what, error.fix = what, fix
    return error


def _written(path: Path, content: Content) -> str:
    """The text of a file."""
    try:
        return ledger.dump_checksummed({**content, "format": FORMAT, "version": VERSION}, indent=1)
    except ValueError as error:
        raise failed(
            f"The budget file {str(path)!r} could not be read again ({error})",
            "Name columns and parts in Unicode.",
        ) from None


def _read_file(path: Path) -> tuple[Content | None, os.stat_result | None]:
    """The content, and which file it is from; it has every entry that was seen there before."""
    before = seen(path)  # first: another thread may book meanwhile
    content, status = _read(path)
    if not before <= _names(content):
        what = "is gone" if content is None else "lacks an entry that this process has seen in it"
        raise failed(
            f"The budget file {str(path)!r} {what}: it was deleted, or replaced by an older copy, "
            "as a sync tool, a backup or `git checkout` does",
            "Restore the file from a copy that holds every training. If it was moved on purpose, "
            "open it where it is now. A new budget, for other rows, needs another name.",
        )
    remember(path, _names(content))
    return content, status


def _read(path: Path, tries: int = 50) -> tuple[Content | None, os.stat_result | None]:
    """What is there now."""
    try:
        with open(os.open(path, _READ), encoding="utf-8") as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise OSError
            text = file.read()
    except FileNotFoundError:
        return None, None
    except (OSError, UnicodeDecodeError):
        raise failed(
            f"The budget file {str(path)!r} cannot be read, so what was spent is not known",
            "Give it the permission to be read, or restore it from a copy that holds every "
            "training.",
        ) from None
    if status.st_nlink > 1:  # a replacement would leave the other names with what is written now
        if tries:  # a new file has two names for a moment
            time.sleep(_TWO_NAMES)
            return _read(path, tries - 1)
        raise failed(
            f"The budget file {str(path)!r} has several names (hard links), and two of them could "
            "be written at once",
            "Keep one.",
        )
    try:
        content = ledger.load_checksummed(text)
        sound = (content.pop("format", None), content.pop("version", None)) == (FORMAT, VERSION)
        sound = sound and set(content) == _FIELDS and _are_totals(content)
        sound = sound and _are_lines(content["entries"])
    except ValueError:
        sound = False
    if not sound:
        raise failed(
            f"The budget file {str(path)!r} is damaged, of another version, or none at all, as a "
            "model is, so what was spent is not known",
            "Give a file that xgb_dp.Budget has made, or restore it from a copy that holds every "
            "training.",
        )
    return content, status


def _are_totals(content: Content) -> bool:
    """Whether the totals are in the ranges in which budgets are made."""
    totals = [content[name] for name in ("epsilon", "delta", "selection_epsilon")]
    epsilon, delta, part = totals
    numbers = all(type(total) in (int, float) for total in totals)
    return numbers and epsilon > 0 and 1e-100 <= delta < 1 and 0 <= part <= epsilon


def _are_lines(entries: Any) -> bool:
    """Whether these are lines of a book, each with a name of its own."""
    if not isinstance(entries, list) or not all(isinstance(line, dict) for line in entries):
        return False
    names = [line.get("id") for line in entries]
    return all(type(name) is str for name in names) and len(set(names)) == len(names)


def _replace(path: Path, text: str, old: os.stat_result | None) -> bool:
    """Write a new file in place of the old one, unless that is gone or another one by now."""
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
                _name_anew(name, path, text)
            except FileExistsError:
                return False
        else:
            os.chmod(name, old.st_mode & 0o7777)
            os.replace(name, path)
    finally:
        Path(name).unlink(missing_ok=True)
    return True


def _sync(folder: Path) -> None:
    """Force the names in a folder to disk."""
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def clean(path: Path) -> None:
    """Remove new files that processes left behind when they were killed while they wrote."""
    name = re.compile(rf"\.{re.escape(path.name)}\.\w{{8}}{re.escape(_NEW)}")  # as mkstemp has it
    with suppress(OSError):
        for entry in os.scandir(path.parent):
            if name.fullmatch(entry.name) and entry.is_file(follow_symlinks=False):
                with suppress(OSError):  # a younger one may be just being written
                    if time.time() - entry.stat(follow_symlinks=False).st_mtime > PATIENCE:
                        os.unlink(entry.path)


def _name_anew(name: str, path: Path, text: str) -> None:
    """Give a finished file the name of a budget that does not exist yet; replaces nothing."""
    try:
        os.link(name, path)
        Path(name).unlink()  # a budget with two names is refused
    except OSError as error:
        if error.errno not in (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS):
            raise
        # A disk without hard links. Whoever reads in the meantime finds the file damaged.
        with open(path, "x", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())


def _status(path: Path) -> os.stat_result | None:
    """Which file the name leads to now; a link is none of ours."""
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
    """Hold both locks of a budget; yields which file is locked, None where there is none yet.

    The operating system frees them when a process dies.
    """
    with ExitStack() as locks:
        locks.enter_context(_lock_on(path.with_name(path.name + ".lock"), os.O_CREAT, deadline))
        if sys.platform == "win32":  # where an open file can be neither removed nor replaced
            status = _status(path)
        else:
            try:
                status = locks.enter_context(_lock_on(path, 0, deadline))
            except FileNotFoundError:
                status = None
        yield status


@contextmanager
def _lock_on(path: Path, flags: int, deadline: float) -> Iterator[os.stat_result | None]:
    """Hold the lock of the file to which a name leads, also after others have replaced it."""
    while True:
        handle = os.open(path, _WRITE | flags, 0o666)
        _HELD.add(handle)
        try:
            while not _try_lock(handle):
                if time.monotonic() > deadline:
                    raise failed(
                        f"Another process has held the lock {str(path)!r} for {PATIENCE:g} seconds",
                        "Find out which one, and whether it was stopped.",
                    )
                time.sleep(_PAUSE)
            status = os.fstat(handle)
            if _same(status, _status(path)):
                yield status
                return
        finally:
            _HELD.discard(handle)
            os.close(handle)  # frees the lock, unless a child was forked with it


def _forget_locks() -> None:
    """A forked child holds none: its copies would keep them from everybody when the parent dies."""
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
