"""Worker processes that may crash or hang: each fault is one case's, and the others go on."""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from typing import IO, Any

from .inputs import MARKS

__all__ = ["LIMIT", "run_all"]

LIMIT = 120.0  # seconds after which a case counts as standing still, on a busy machine too


def run_all(seed: int, cases: int, workers: int) -> Iterator[dict[str, Any]]:
    """Run cases 0 to `cases` of a seed.

    Yields:
        Results of :func:`tests.fuzz.judge.run` with their ``number``, in no order.
    """
    results: queue.Queue[dict[str, Any] | None] = queue.Queue()
    threads = [
        threading.Thread(target=_drive, args=(seed, w, cases, workers, results), daemon=True)
        for w in range(workers)
    ]
    for thread in threads:
        thread.start()
    ended = 0
    while ended < workers:
        found = results.get()
        if found is None:
            ended += 1
        else:
            yield found


def _drive(seed: int, first: int, last: int, step: int, results: queue.Queue[Any]) -> None:
    """Keep one worker running until its cases are done."""
    try:
        while first < last:
            first = _one_process(seed, first, last, step, results) + step
    finally:
        results.put(None)


def _one_process(seed: int, first: int, last: int, step: int, results: queue.Queue[Any]) -> int:
    """Run a worker until it ends.

    Returns:
        The last case that it began.
    """
    ours, theirs = os.pipe()
    command = [sys.executable, "-c", _START, *map(str, (seed, first, last, step, theirs))]
    with tempfile.TemporaryFile("w+", errors="replace") as shown:
        process = subprocess.Popen(
            command, pass_fds=[theirs], stdin=subprocess.DEVNULL, stdout=shown, stderr=shown
        )
        os.close(theirs)
        lines: queue.Queue[str] = queue.Queue()
        with os.fdopen(ours) as pipe:
            reader = threading.Thread(target=_read, args=(pipe, lines), daemon=True)
            reader.start()
            begun, open_case, fault = first, False, ""
            while True:
                try:
                    line = lines.get(timeout=LIMIT if open_case else 120.0)
                except queue.Empty:
                    fault = f"no end within {LIMIT} s"
                    process.kill()
                    break
                if not line:
                    break
                found = json.loads(line)
                open_case = "start" in found
                if open_case:
                    begun = found["start"]
                else:
                    results.put(found)
            code = process.wait()
            reader.join()
        shown.seek(0)
        printed = shown.read()
    if not fault and code:
        name = signal.Signals(-code).name if code < 0 else f"exit code {code}"
        fault = f"the process ended: {name}: {printed[-500:]}"
    if not fault and MARKS.search(printed):
        fault = "something printed shows a cell"
    if fault or open_case:
        text = "see the reproducer" if open_case else f"some case from {first} to {begun}"
        results.put(
            {"number": begun, "fault": fault or "the process ended", "text": text, "end": "broken"}
        )
    return begun


def _read(pipe: IO[str], lines: queue.Queue[str]) -> None:
    for line in pipe:
        lines.put(line)
    lines.put("")


# Descriptor 3 is the parent's line; what the cases print goes elsewhere.
_START = """
import os, sys
os.dup2(int(sys.argv[5]), 3, inheritable=False)
from tests.fuzz.worker import main
main(*map(int, sys.argv[1:5]))
"""
