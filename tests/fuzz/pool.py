"""Worker processes that may crash or hang: each fault is one case's, and the others go on."""

import multiprocessing
import os
import queue
import signal
import tempfile
import threading
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from .inputs import MARKS

__all__ = ["LIMIT", "run_all"]

LIMIT = 120.0  # seconds after which a case counts as standing still, on a busy machine too
START = 120.0  # the same for a process that has begun none
SPAWN = multiprocessing.get_context("spawn")
Judge = Callable[[int, int, Path], dict[str, str]]


def run_all(
    seed: int, cases: int, workers: int, judge: Judge, limit: float = LIMIT
) -> Iterator[dict[str, Any]]:
    """Yield what `judge` says of cases 0 to `cases` of a seed, with their ``number``, unordered.

    A case that takes longer than `limit`, in seconds, is a fault.
    """
    results: queue.Queue[dict[str, Any] | None] = queue.Queue()

    def drive(numbers: range) -> None:
        try:
            while numbers:
                numbers = _one_process(seed, numbers, judge, results, limit)
        finally:
            results.put(None)

    for worker in range(workers):
        numbers = range(worker, cases, workers)
        threading.Thread(target=drive, args=(numbers,), daemon=True).start()
    for _ in range(workers):
        yield from iter(results.get, None)


def _one_process(
    seed: int, numbers: range, judge: Judge, results: queue.Queue[Any], limit: float
) -> range:
    """Run a worker until it ends, and return the cases that it did not begin."""
    with tempfile.NamedTemporaryFile("r", errors="replace") as shown:
        receiver, sender = SPAWN.Pipe(duplex=False)
        process = SPAWN.Process(target=_work, args=(sender, shown.name, judge, seed, numbers))
        process.start()
        sender.close()
        begun, open_case, fault = numbers[0], False, f"no end within {limit} s"
        try:
            while receiver.poll(limit if open_case else START):
                result = receiver.recv()
                open_case = isinstance(result, int)
                if open_case:
                    begun = result
                else:
                    results.put({"number": begun, **result})
            process.kill()
        except EOFError:
            fault = ""
        process.join()
        printed = shown.read()
    if not fault and process.exitcode:
        code = process.exitcode
        name = signal.Signals(-code).name if code < 0 else f"exit code {code}"
        fault = f"the process ended: {name}: {printed[-500:]}"
    if not fault and MARKS.search(printed):
        fault = "something printed shows a cell"
    if fault or open_case:
        text = "see the reproducer" if open_case else f"some case from {numbers[0]} to {begun}"
        fault = fault or "the process ended"
        results.put({"number": begun, "fault": fault, "text": text, "end": "broken"})
    return numbers[numbers.index(begun) + 1 :]


def _work(line: Connection, shown: str, judge: Judge, seed: int, numbers: range) -> None:
    """Say which case begins, and what came of it; what the cases print goes to a file."""
    with open(shown, "w") as out:
        os.dup2(out.fileno(), 1)
        os.dup2(out.fileno(), 2)
    with tempfile.TemporaryDirectory() as folder:
        for number in numbers:
            line.send(number)
            line.send(judge(seed, number, Path(folder)))
