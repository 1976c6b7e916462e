"""Progress bars for operations that take longer than two seconds, if tqdm is installed.

A bar shows names of steps, public counts and the elapsed time, but nothing about the rows. It is
written to standard error only if that is a terminal, so pipes, logs and tests show no bar. Set
tqdm's ``TQDM_DISABLE=1`` to turn it off.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeAlias

Step: TypeAlias = Callable[[str], None]
"""Callback that marks the start of a named step."""

DELAY = 2.0  # seconds
_EVERY = 0.5
_SHOWN: ContextVar[bool] = ContextVar("xgb_dp_progress", default=False)


@contextmanager
def progress(name: str, total: int | None = None) -> Iterator[Step]:
    """Show the progress of a block; `name`, `total` and the step names must be public."""
    bar = None if _SHOWN.get() else _bar(name, total)
    if bar is None:
        yield _silent
        return
    token = _SHOWN.set(True)
    over = threading.Event()
    shows = threading.Thread(target=_refresh, args=(bar, over), daemon=True)
    shows.start()
    begun = [False]

    def step(what: str) -> None:
        bar.set_postfix_str(what, refresh=False)
        bar.update(int(begun[0]))
        begun[0] = True

    try:
        yield step
        bar.update(int(begun[0]))
    finally:
        over.set()
        shows.join()
        bar.close()
        _SHOWN.reset(token)


def _silent(what: str) -> None:
    del what


def _bar(name: str, total: int | None) -> Any:
    """Return a bar that is not shown yet; None if there is no terminal or no tqdm."""
    terminal = getattr(sys.stderr, "isatty", None)
    if terminal is None or not terminal():
        return None
    try:
        from tqdm import tqdm
    except ImportError:
        return None
    # Without a number of steps, show only the elapsed time.
    form = None if total is not None else "{desc} {elapsed} {postfix}"
    bar = tqdm(total=total, desc=name, delay=DELAY, leave=False, file=sys.stderr, bar_format=form)
    return None if bar.disable else bar


def _refresh(bar: Any, over: threading.Event) -> None:
    """Show the bar after the delay, and update its clock until `over` is set."""
    if over.wait(DELAY):
        return
    while True:
        bar.refresh()
        if over.wait(_EVERY):
            return
