"""Real worker processes on this machine, which train together with masked sums."""

from __future__ import annotations

import json
from typing import Any

from tests.children import run_workers

WORLD = 3


def run(tasks: list[dict[str, Any]], env: dict[str, str] | None = None) -> list[Any]:
    """What ``tests/secure/worker.py`` answers to the tasks on each worker, by rank.

    Args:
        tasks: See there. The last one may end a worker.
        env: Further environment; ``{rank}`` in it is a number of the process.
    """
    jobs = [{"tasks": tasks}] * WORLD
    code = "from tests.secure.worker import main; main()"
    answers = []
    for number, done in enumerate(run_workers(code, jobs, env)):
        # XGBoost tells the rank first.
        lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
        if lines:
            answers.append(json.loads(lines[-1]))
            continue
        assert done.returncode != 0, done.stderr
        answers.append({"rank": number, "dead": True, "stderr": done.stderr})
    return sorted(answers, key=lambda a: a["rank"])
