"""``python -m experiments.attacks.ratios``: membership by likelihood ratios, and what is allowed.

Each row of a table is trained on by a fair coin of its own, so that epsilon bounds what any attack
finds. The attacker has the whole table and trains models of its own on other halves of it.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from ..lines import show_lines
from . import membership
from .__main__ import DELTA, HEAD, setting_of
from .page import Tables, write
from .tables import TASKS, Task

RESULTS = Path(__file__).resolve().parents[1] / "results" / "ratios.csv"
OTHERS = 64  # models of the attacker's own
FIGURES = ("area", "area allowed", "found at 1%", "found at 1%, allowed")
TABLES: Tables = {"Members, by likelihood ratios": FIGURES}
BINARY = [name for name, task in TASKS.items() if not task.is_regression]


def attacked(task: Task, splits: int, epsilon: float | None) -> Iterator[tuple[str, ...]]:
    """The lines of a table and a trainer."""
    s = setting_of(task, epsilon)
    rows = np.arange(len(s.y))
    assignments = np.random.default_rng(0).random((splits + OTHERS, len(rows))) < 0.5
    margins = np.array([s.margins(s.train(rows[seen]), rows) for seen in assignments])
    most = membership.allowed(np.inf if epsilon is None else epsilon, DELTA)
    name = "stock" if epsilon is None else f"private, epsilon {epsilon:g}"
    for split in range(splits):
        least = membership.ratios(
            margins[split], margins[splits:], assignments[splits:], s.y, assignments[split]
        )
        for figure, value in zip(FIGURES, (least[0], most[0], least[1], most[1]), strict=True):
            yield task.name, name, str(split), figure, f"{value:.4f}"


def main() -> None:
    """Run, print and keep."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", nargs="+", default=BINARY, choices=BINARY)
    parser.add_argument("--epsilon", type=float, nargs="+", default=[1.0, 10.0])
    parser.add_argument("--splits", type=int, default=8)
    parser.add_argument("--keep", action="store_true")
    args = parser.parse_args()
    measured = (
        line
        for name in args.data
        for epsilon in (None, *args.epsilon)
        for line in attacked(TASKS[name], args.splits, epsilon)
    )
    lines = show_lines(HEAD, measured, RESULTS if args.keep else None)
    if args.keep:
        write(lines, "ratios", TABLES)


if __name__ == "__main__":
    main()
