"""Some cases of the fuzz; ``make fuzz`` runs more."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from .pool import run_all

CASES = 300


def test_fuzz() -> None:
    faults = [
        f"{r['fault']}\n{r['text']}\npython -m tests.fuzz --seed 0 --case {r['number']}"
        for r in run_all(0, CASES, 2)
        if r["fault"]
    ]
    assert not faults, "\n\n".join(faults)


@pytest.mark.parametrize("fault", ["crash", "hang", "print"])
def test_faults_of_processes_are_found(
    fault: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A worker that dies, stands still or prints a cell: its case is named, the others go on."""
    folder = Path(__file__).parents[2]
    broken = {
        "crash": "if n == 2: os.kill(os.getpid(), 11)",
        "hang": "if n == 2: time.sleep(600)",
        "print": "if n == 2: print('marked-cell-7314')",
    }[fault]
    (tmp_path / "start.py").write_text(
        "import os, sys, time\n"
        f"sys.path.insert(0, {str(folder)!r})\n"
        "os.dup2(int(sys.argv[5]), 3, inheritable=False)\n"
        "from tests.fuzz import worker\n"
        "def run(seed, n, where):\n"
        f"    {broken}\n"
        "    return {'fault': '', 'text': '', 'end': 'trained'}\n"
        "worker.run = run\n"
        "worker.main(*map(int, sys.argv[1:5]))\n"
    )
    monkeypatch.setattr("tests.fuzz.pool._START", (tmp_path / "start.py").read_text())
    if fault == "hang":  # for as long as a busy machine may take for a case that does nothing
        monkeypatch.setattr("tests.fuzz.pool.LIMIT", 20.0)
    found: list[dict[str, Any]] = list(run_all(0, 5, 1))
    faults = [r for r in found if r["fault"]]
    assert len(faults) == 1
    sound = {r["number"] for r in found if not r["fault"]}
    if fault == "print":
        assert sound == {0, 1, 2, 3, 4}
    else:
        assert faults[0]["number"] == 2
        assert sound == {0, 1, 3, 4}
