"""The committed form of results: one line a cell, with mean, spread and the score of each split.

A run writes one row for each training (``store.py``), with everything that it has seen. What is
committed is smaller: the metrics that a table shows, each in a line of its own, and what is needed
to pair its splits.
"""

from __future__ import annotations

import csv
import math
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np

from .core import Table
from .summary import means, spread

COLUMNS = ["dataset", "system", "epsilon", "metric", "mean", "sd", "splits", "scores"]
COLUMNS += ["spent_epsilon", "spent_delta", "run", "note"]
# Of a score of a metric that stands besides, and of the metric of the table.
DIGITS = (4, 6)


def _numbers(splits: str) -> list[int]:
    """The splits of a line: "0-4 7" are 0, 1, 2, 3, 4 and 7."""
    out: list[int] = []
    for part in splits.split():
        first, _, last = part.partition("-")
        out += range(int(first), int(last or first) + 1)
    return out


def _text(splits: list[int]) -> str:
    """The inverse of :func:`_numbers`, for increasing numbers."""
    spans: list[list[int]] = []
    for split in splits:
        if spans and split == spans[-1][-1] + 1:
            spans[-1][1:] = [split]
        else:
            spans.append([split])
    return " ".join("-".join(map(str, span)) for span in spans)


def write(path: Path, table: Table, rows: list[dict[str, Any]]) -> None:
    """Write the rows of a run in the committed form.

    Args:
        path: File to write.
        table: The table that the rows belong to; it says which metrics are kept.
        rows: Rows as :func:`experiments.store.read` returns them.
    """
    cells: dict[tuple[str, ...], list[dict[str, Any]]] = defaultdict(list)
    best = {(d, f"{n}, {m.setting}", e) for (d, n, e), m in means(table, rows).items()}
    grids = {s.name for s in table.systems if s.grid}
    for row in rows:
        name = row["system"]
        chosen = row["note"] or (row["dataset"], name, float(row["epsilon"])) in best
        if name in grids and not chosen:
            continue
        key = (row["dataset"], row["system"], row["epsilon"], str(row["run"]), row["note"])
        cells[key].append(row)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        for (dataset, system, epsilon, run, note), runs in cells.items():
            runs.sort(key=lambda r: int(r["seed"]))
            spent = [
                f"{max(float(r[name]) for r in runs):.6g}" if runs[0].get(name) else ""
                for name in ("spent_epsilon", "spent_delta")
            ]
            splits = _text([int(r["seed"]) for r in runs])
            budget = "inf" if math.isinf(float(epsilon)) else f"{float(epsilon):g}"
            first = table.metric(dataset)
            for metric in (first, *(m for m in table.also if m != first)):
                values = [r.get(metric, "") for r in runs] if not note else []
                if metric != first and (note or "" in values):
                    continue  # a failure has one line; not every task has every metric
                scores = [float(v) for v in values]
                mean = [f"{np.mean(scores):.6g}", f"{spread(scores):.3g}"] if scores else ["", ""]
                text = " ".join(f"{s:.{DIGITS[metric == first]}g}" for s in scores)
                line = [dataset, system, budget, metric, *mean, splits, text, *spent, run, note]
                writer.writerow(line)


def rows(lines: list[dict[str, str]]) -> list[dict[str, Any]]:
    """The rows of single splits, from lines of the committed form."""
    out: dict[tuple[str, ...], dict[str, Any]] = {}
    for line in lines:
        splits = _numbers(line["splits"])
        scores: list[Any] = [float(s) for s in line["scores"].split()] or [""] * len(splits)
        shared = {name: line[name] for name in ("dataset", "system", "run", "note")}
        spent = {
            name: float(line[name]) if line[name] else ""
            for name in ("spent_epsilon", "spent_delta")
        }
        for split, score in zip(splits, scores, strict=True):
            row = {"epsilon": float(line["epsilon"]), "seed": str(split), line["metric"]: score}
            key = (*shared.values(), line["epsilon"], str(split))
            out.setdefault(key, {**shared, **spent}).update(row)
    return list(out.values())
