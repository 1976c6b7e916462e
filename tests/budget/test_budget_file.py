"""The file of a budget: locks that vanish, files that are swapped, threads and processes."""

import errno
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.children import child
from xgb_dp import Budget, BudgetError
from xgb_dp.accounting import GaussianEvent
from xgb_dp.budget import file as budget_file

if sys.platform == "win32":
    pytest.skip("files of POSIX", allow_module_level=True)

import fcntl

TINY = GaussianEvent("mean", 1, 1 << 40, 1, 1)  # thousands of them fit
TOTAL = {"epsilon": 3.0, "delta": 1e-6}
HEAD = """
import os, signal, sys
from xgb_dp import Budget, BudgetError
from xgb_dp.accounting import GaussianEvent
budget = Budget(sys.argv[1], epsilon=3.0, delta=1e-6)
"""
BUDGET = """
for i in range(36):
    print(budget.reserve([GaussianEvent("mean", 1, 1 << 40, 1, 1)]), flush=True)
"""
GREEDY = """
entry_ids = []
try:
    while True:
        entry_ids.append(budget.reserve([GaussianEvent("mean", 1 << 20, 1 << 26, 1, 1)]))
        if len(entry_ids) % 2:
            budget.commit(entry_ids[-1])
except BudgetError:
    print(" ".join(entry_ids))
"""
DIE_WHILE_WRITING = """
os.replace = lambda *args: os.kill(os.getpid(), signal.SIGKILL)
budget.reserve([GaussianEvent("mean", 1 << 20, 1 << 26, 1, 1)], "died")
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "budget.json"


@contextmanager
def meanwhile(action: Callable[[], object]) -> Iterator[None]:
    done = threading.Event()

    def run() -> None:
        while not done.wait(0.0005):
            action()

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def processes(script: str, path: Path, number: int) -> list[str]:
    with ThreadPoolExecutor(number) as pool:
        ended = list(pool.map(lambda _: child(HEAD + script, path), range(number)))
    assert not any(process.returncode for process in ended), ended
    return [name for process in ended for name in process.stdout.split()]


@pytest.mark.parametrize("how", ["removed", "replaced"])
def test_a_lock_file_that_changes_all_the_time_loses_no_entry(path, how):
    lock, other = path.with_name(path.name + ".lock"), path.with_name("other")

    def change() -> None:
        if how == "removed":
            lock.unlink(missing_ok=True)
        else:
            other.touch()
            os.replace(other, lock)

    with meanwhile(change):
        entry_ids = processes(BUDGET, path, 3)
    assert len(entry_ids) == 108
    assert sorted(entry_ids) == sorted(e.id for e in Budget(path).entries)


def test_greedy_processes_lose_and_double_no_entry(path):
    entry_ids = processes(GREEDY, path, 3)
    entries = Budget(path).entries
    assert sorted(entry_ids) == sorted(e.id for e in entries)
    assert len(set(entry_ids)) == len(entry_ids) > 15
    # As many as fit one after another, and not one more.
    alone = processes(GREEDY, path.with_name("alone.json"), 1)
    assert len(alone) == len(entry_ids)
    spent = sum(e.state == "spent" for e in entries)
    assert len(entry_ids) / 2 <= spent <= len(entry_ids) / 2 + 2


def test_a_process_that_dies_while_writing_leaves_a_sound_file(path):
    budget = Budget(path, **TOTAL)
    budget.reserve([TINY], "before")
    assert child(HEAD + DIE_WHILE_WRITING, path).returncode == -signal.SIGKILL
    budget.reserve([TINY], "after")  # the lock is free
    assert [e.note for e in budget.entries] == ["before", "after"]


def test_a_file_made_by_several_at_once_is_made_once(tmp_path):
    for i in range(20):
        path = tmp_path / f"{i}.json"
        lock = path.with_name(path.name + ".lock")

        def make(_: int, path: Path = path) -> str:
            return Budget(path, **TOTAL).reserve([TINY])

        with (
            meanwhile(lambda lock=lock: lock.unlink(missing_ok=True)),
            ThreadPoolExecutor(5) as pool,
        ):
            entry_ids = list(pool.map(make, range(5)))
        assert sorted(entry_ids) == sorted(e.id for e in Budget(path).entries)
    assert not [p for p in tmp_path.iterdir() if p.name.startswith(".")]


def test_no_two_are_inside_at_once(path):
    """The lock itself, while its file is removed: between reading and writing nobody else is."""
    Budget(path, **TOTAL)
    lock, inside, most = path.with_name(path.name + ".lock"), [], []

    def change(content: Any) -> Any:
        inside.append(1)
        most.append(len(inside))
        time.sleep(0.002)
        inside.pop()
        return content

    with meanwhile(lambda: lock.unlink(missing_ok=True)), ThreadPoolExecutor(5) as pool:
        list(pool.map(lambda _: budget_file.update(path, change), range(60)))
    assert set(most) == {1}


def test_a_stale_lock_file_is_no_lock(path):
    lock = path.with_name(path.name + ".lock")
    lock.write_bytes(b"of a process that died")
    os.utime(lock, (0, 0))
    Budget(path, **TOTAL).reserve([TINY])
    assert len(Budget(path).entries) == 1


@pytest.mark.parametrize("name", ["budget.json", "budget.json.lock"])
def test_a_lock_that_is_not_given_back_is_an_error(path, name, monkeypatch):
    budget = Budget(path, **TOTAL)
    before = path.read_bytes()
    with open(path.with_name(name), "rb") as file, monkeypatch.context() as patch:
        patch.setattr(budget_file, "PATIENCE", 1.0)
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(BudgetError, match="held the lock"):
            budget.reserve([TINY])
    assert path.read_bytes() == before
    budget.reserve([TINY])


def test_a_forked_child_does_not_keep_the_lock(path):
    """Its parent is killed while it books; the child lives on."""
    script = """
import time
from xgb_dp.budget import file as budget_file
def fork(content):
    if os.fork() == 0:
        print(os.getpid(), flush=True)
        os.closerange(1, 3)
        time.sleep(900)
        os._exit(0)
    time.sleep(0.2)
    os.kill(os.getpid(), signal.SIGKILL)
budget_file.update(budget.path, fork)
"""
    budget = Budget(path, **TOTAL)
    parent = child(HEAD + script, path)
    assert parent.returncode == -signal.SIGKILL
    try:
        budget.reserve([TINY])  # an error, had the child the lock for longer than PATIENCE
    finally:
        os.kill(int(parent.stdout), signal.SIGKILL)


def test_a_file_removed_between_reading_and_writing_is_not_made_anew(path):
    Budget(path, **TOTAL).reserve([TINY])
    seen = []

    def change(content: Any) -> Any:
        seen.append(content)
        if content is None:
            raise BudgetError("gone")
        path.unlink()
        return content

    with pytest.raises(BudgetError, match="is missing"):
        budget_file.update(path, change)
    assert [c is None for c in seen] == [False]
    assert not path.exists()


def test_a_file_replaced_between_reading_and_writing_keeps_its_entries(path, tmp_path):
    budget = Budget(path, **TOTAL)
    other = Budget(tmp_path / "other.json", **TOTAL)
    kept = other.reserve([TINY], "of the other file")
    seen = []

    def change(content: Any) -> Any:
        seen.append(len(content["entries"]))
        if len(seen) == 1:
            os.replace(other.path, path)
        return content

    budget_file.update(path, change)
    assert seen == [0, 1]
    assert [e.id for e in budget.entries] == [kept]


def test_a_file_that_appears_while_one_is_made_is_kept(path, tmp_path):
    other = Budget(tmp_path / "other.json", **TOTAL)
    other.reserve([TINY])
    seen = []

    def change(content: Any) -> Any:
        seen.append(content)
        if content is None:
            os.replace(other.path, path)
            return {**TOTAL, "selection_epsilon": 0.0, "entries": []}
        return content

    budget_file.update(path, change)
    assert [c is None for c in seen] == [True, False]
    assert len(Budget(path).entries) == 1


@pytest.mark.parametrize("what", ["folder", "fifo", "link", "dangling link"])
def test_what_is_no_plain_file_is_refused(path, tmp_path, what):
    budget = Budget(path, **TOTAL)
    path.rename(tmp_path / "away.json")
    if what == "folder":
        path.mkdir()
    elif what == "fifo":
        os.mkfifo(path)
    else:  # a budget has one name, which was followed when it was opened
        path.symlink_to("away.json" if what == "link" else "nowhere.json")
    before = (tmp_path / "away.json").read_bytes()
    for use in (lambda: budget.reserve([TINY]), budget.remaining):
        with pytest.raises(BudgetError, match=r"cannot be|no file"):
            use()
    assert (tmp_path / "away.json").read_bytes() == before


@pytest.mark.parametrize("what", ["folder", "link"])
def test_a_lock_that_is_no_plain_file_is_refused(path, what):
    lock = path.with_name(path.name + ".lock")
    if what == "folder":
        lock.mkdir()
    else:
        lock.symlink_to("elsewhere")
    with pytest.raises(BudgetError, match="cannot be written"):
        Budget(path, **TOTAL)
    assert not path.exists()
    assert not path.with_name("elsewhere").exists()


@pytest.mark.parametrize("step", ["open", "replace", "chmod", "fsync"])
def test_what_the_system_forbids_is_an_error_and_books_nothing(path, step, monkeypatch):
    budget = Budget(path, **TOTAL)
    before = path.read_bytes()
    known = getattr(os, step)

    def forbid(*args: Any, **kwargs: Any) -> Any:
        if step != "open" or args[1] & os.O_RDWR:
            raise PermissionError(errno.EACCES, "Permission denied")
        return known(*args, **kwargs)

    with monkeypatch.context() as patch:
        patch.setattr(os, step, forbid)
        with pytest.raises(BudgetError, match="Permission denied"):
            budget.reserve([TINY])
    assert path.read_bytes() == before
    assert {p.name for p in path.parent.iterdir()} == {"budget.json", "budget.json.lock"}


def test_a_disk_without_hard_links(path, monkeypatch):
    def refuse(*args: Any) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    Budget(path, **TOTAL).reserve([TINY])
    assert len(Budget(path).entries) == 1
    assert {p.name for p in path.parent.iterdir()} == {"budget.json", "budget.json.lock"}


def test_the_mode_of_the_file_is_kept(path):
    budget = Budget(path, **TOTAL)
    assert path.stat().st_mode & 0o077 == 0  # others see nothing by default
    path.chmod(0o640)
    budget.reserve([TINY])
    assert path.stat().st_mode & 0o777 == 0o640
