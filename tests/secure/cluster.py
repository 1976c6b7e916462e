"""Real worker processes on this machine, which train together with masked sums."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from xgboost.core import XGBoostError
from xgboost.tracker import RabitTracker

from tests.children import LIGHT

START = LIGHT + "from tests.secure.worker import main; main()"
ROOT = Path(__file__).resolve().parents[2]
WORLD = 3


def run(tasks: list[dict[str, Any]], env: dict[str, str] | None = None) -> list[Any]:
    """What ``tests/secure/worker.py`` answers to the tasks on each worker, by rank.

    Args:
        tasks: See there. The last one may end a worker.
        env: Further environment; ``{rank}`` in it is a number of the process.
    """
    tracker = RabitTracker(host_ip="127.0.0.1", n_workers=WORLD)
    tracker.start()

    def worker(number: int) -> Any:
        job = {"worker": tracker.worker_args() | {"dmlc_task_id": str(number)}, "tasks": tasks}
        extra = {k: v.format(rank=number) for k, v in (env or {}).items()}
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", START],
            input=json.dumps(job),
            capture_output=True,
            text=True,
            cwd=ROOT,
            env={**os.environ, "OMP_NUM_THREADS": "1", **extra},
            timeout=180,
        )
        # XGBoost tells the rank first.
        lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
        if not lines:
            assert done.returncode != 0, done.stderr
            return {"rank": number, "dead": True, "stderr": done.stderr}
        return json.loads(lines[-1])

    with ThreadPoolExecutor(WORLD) as pool:
        answers = list(pool.map(worker, range(WORLD)))
    with contextlib.suppress(XGBoostError):  # where a worker has died
        tracker.free()
    return sorted(answers, key=lambda a: a["rank"])
