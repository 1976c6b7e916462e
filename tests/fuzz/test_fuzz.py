"""Some cases of the fuzz; ``make fuzz`` runs more."""

import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from .pool import run_all

CASES = 300


def sound(seed: int, number: int, folder: Path, broken: Callable[[], Any] | None = None) -> Any:
    if number == 2 and broken is not None:
        broken()
    return {"fault": "", "text": "", "end": "trained"}


def crash(*case: Any) -> Any:
    return sound(*case, lambda: os.kill(os.getpid(), 11))


def hang(*case: Any) -> Any:
    return sound(*case, lambda: time.sleep(600))


def show(*case: Any) -> Any:
    return sound(*case, lambda: print("marked-cell-7314"))


@pytest.fixture(scope="module")
def hung() -> Iterator[Future[list[dict[str, Any]]]]:
    """Results where a case hangs, which are waited for while the other tests run."""
    limit = 10.0  # for as long as a busy machine may take for a case that does nothing
    with ThreadPoolExecutor(1) as pool:
        yield pool.submit(lambda: list(run_all(0, 5, 1, hang, limit)))


@pytest.mark.usefixtures("hung")
def test_fuzz() -> None:
    from .judge import run  # which the processes of the other tests need not import

    faults = [
        f"{r['fault']}\n{r['text']}\npython -m tests.fuzz --seed 0 --case {r['number']}"
        for r in run_all(0, CASES, 2, run)
        if r["fault"]
    ]
    assert not faults, "\n\n".join(faults)


@pytest.mark.parametrize("judge", [crash, show, hang])
def test_faults_of_processes_are_found(judge: Any, hung: Any) -> None:
    """A worker that dies, stands still or prints a cell: its case is named, the others go on."""
    results = hung.result() if judge is hang else list(run_all(0, 5, 1, judge))
    [fault] = [r for r in results if r["fault"]]
    numbers = {r["number"] for r in results if not r["fault"]}
    assert numbers == ({0, 1, 2, 3, 4} if judge is show else {0, 1, 3, 4})
    assert judge is show or fault["number"] == 2
