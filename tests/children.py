"""Child processes that start at once, alone or as the workers of one training."""

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from xgboost.core import XGBoostError
from xgboost.tracker import RabitTracker

ROOT = Path(__file__).resolve().parents[1]

# Most of a short child's time is the import of these, which `import xgboost` tries, and which code
# that trains on arrays does not need.
LIGHT = "import sys; sys.modules.update(dict.fromkeys(('sklearn', 'pandas')))\n"


def light_environment(folder: Path) -> dict[str, str]:
    """Environment in which every Python starts with `LIGHT`, also those that a child starts."""
    (folder / "sitecustomize.py").write_text(LIGHT)
    path = [str(folder), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path)}


def child(code: str, *arguments: Any, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run code in a process that starts light, finds the tests and has one thread."""
    return subprocess.run(
        [sys.executable, "-c", LIGHT + code, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
        env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", **environment},
    )


def answer_of(*arguments: Any, given: str | None = None, **environment: str) -> str:
    """What a Python process that must succeed prints, in the folder of the repository."""
    done = subprocess.run(
        [sys.executable, *map(str, arguments)],
        input=given,
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
        timeout=900,
        env={**os.environ, "OMP_NUM_THREADS": "1", **environment},
    )
    assert done.returncode == 0, f"{done.stdout[-200:]}{done.stderr[-2000:]}"
    return done.stdout


def run_workers(
    code: str, jobs: Sequence[Mapping[str, Any]], env: Mapping[str, str] | None = None
) -> list[subprocess.CompletedProcess[str]]:
    """Run code in a process for each job, as the workers that one tracker brings together."""
    tracker = RabitTracker(host_ip="127.0.0.1", n_workers=len(jobs))
    tracker.start()

    def worker(number: int) -> subprocess.CompletedProcess[str]:
        arguments = tracker.worker_args() | {"dmlc_task_id": str(number)}
        extra = {k: v.format(rank=number) for k, v in (env or {}).items()}
        return subprocess.run(
            [sys.executable, "-W", "ignore", "-c", LIGHT + code],
            input=json.dumps({**jobs[number], "worker": arguments}),
            capture_output=True,
            text=True,
            cwd=ROOT,
            env={**os.environ, "OMP_NUM_THREADS": "1", **extra},
            timeout=600,  # ends what hangs, also where all of it is slow
            check=False,
        )

    with ThreadPoolExecutor(len(jobs)) as pool:
        done = list(pool.map(worker, range(len(jobs))))
    with contextlib.suppress(XGBoostError):  # where a worker has died
        tracker.free()
    return done
