"""Means over splits, and how they stand against the published figures."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .core import Table, base
from .published import Figure, figures

# Runs behind a published mean where a paper gives a spread (3 splits x 5, or 5 splits x 3).
PUBLISHED_RUNS = 15
# Metrics of which more is better.
RISING = ("auc", "r2", "gini", "concordance")


@dataclass(frozen=True)
class Mean:
    """Scores of one system on one data set at one budget.

    Attributes:
        mean: Mean over splits.
        sd: Standard deviation over splits.
        count: Number of splits.
        setting: Which setting of the system, where the best one is shown.
    """

    mean: float
    sd: float
    count: int
    setting: str = ""


Means = dict[tuple[str, str, float], Mean]


def better(metric: str, first: float, second: float) -> float:
    """By how much the first score is better; negative if it is worse."""
    return first - second if metric in RISING else second - first


def by_split(
    table: Table, rows: list[dict[str, Any]], metric: str = ""
) -> dict[tuple[str, str, float], dict[str, float]]:
    """Scores by data set, system and budget, and there by split; of the table's metric or another.

    Rows of files of older runs lack some metrics, and tasks too.
    """
    out: dict[tuple[str, str, float], dict[str, float]] = defaultdict(dict)
    for row in rows:
        value = row.get(metric or table.metric(row["dataset"]), "") if not row["note"] else ""
        if value != "":
            key = (row["dataset"], row["system"], float(row["epsilon"]))
            out[key][str(row["seed"])] = float(value)
    return dict(sorted(out.items()))


def mean_of(values: Iterable[float], setting: str = "") -> Mean:
    """Mean and spread of the splits of a cell."""
    numbers = list(values)
    return Mean(float(np.mean(numbers)), spread(numbers), len(numbers), setting)


def spread(values: Sequence[float]) -> float:
    """Standard deviation of a population of which these are a sample; 0 of a single one."""
    return float(np.std(values, ddof=1)) if len(values) > 1 else 0.0


def means(table: Table, rows: list[dict[str, Any]]) -> Means:
    """Means by data set, system and budget.

    With ``table.best_of`` the settings of a system (the text after a comma in its name) are one
    system, of which the setting with the best mean is kept.
    """
    out: Means = {}
    for (dataset, system, epsilon), by_seed in by_split(table, rows).items():
        name, _, setting = system.partition(", ")
        if not table.best_of:
            name, setting = system, ""
        mean = mean_of(by_seed.values(), setting)
        old = out.get((dataset, name, epsilon))
        if old is None or better(table.metric(dataset), mean.mean, old.mean) > 0:
            out[dataset, name, epsilon] = mean
    return out


def besides(table: Table, rows: list[dict[str, Any]], results: Means, metric: str) -> Means:
    """Means of another metric for the same cells, with the same settings.

    Args:
        table: Which.
        rows: Results.
        results: What :func:`means` says of them.
        metric: One of ``table.also``.
    """
    scores = by_split(table, rows, metric)
    out: Means = {}
    for (dataset, name, epsilon), mean in results.items():
        system = f"{name}, {mean.setting}" if mean.setting else name
        values = scores.get((dataset, system, epsilon))
        if values:
            out[dataset, name, epsilon] = mean_of(values.values(), mean.setting)
    return out


def differences(table: Table, rows: list[dict[str, Any]]) -> Means:
    """How much better `default` is than each other system, split by split; by the same keys."""
    scores = by_split(table, rows)
    out: Means = {}
    for (dataset, system, epsilon), by_seed in scores.items():
        ours = scores.get((dataset, "default", epsilon), {})
        gains = [
            better(table.metric(dataset), ours[seed], value)
            for seed, value in by_seed.items()
            if seed in ours
        ]
        if system != "default" and gains:
            out[dataset, system, epsilon] = mean_of(gains)
    return out


def reproduced(table: Table) -> dict[str, str]:
    """Published name of each system here that stands for one."""
    out = {}
    for system in table.systems:
        name = system.name.partition(", ")[0] if table.best_of else system.name
        if system.reproduces:
            out[name] = system.reproduces
    return out


def find(table: Table, dataset: str, system: str, epsilon: float) -> Figure | None:
    """The published figure of a cell, if there is one."""
    for figure in figures(table.name):
        if (figure.dataset, figure.system, figure.epsilon) == (base(dataset), system, epsilon):
            return figure
    return None


def best_published(table: Table, dataset: str, epsilon: float) -> Figure | None:
    """The best published private figure of a data set at a budget."""
    metric = table.metric(dataset)
    known = [
        f
        for f in figures(table.name)
        if f.dataset == base(dataset) and f.epsilon == epsilon and math.isfinite(epsilon)
    ]
    return max(known, key=lambda f: better(metric, f.mean, 0.0), default=None)


def error_of(mean: Mean, figure: Figure) -> float:
    """Standard error of a difference of our mean and a published one."""
    theirs = 0.0 if math.isnan(figure.sd) else figure.sd**2 / PUBLISHED_RUNS
    return math.sqrt(mean.sd**2 / mean.count + theirs)


def spread_of(mean: Mean, figure: Figure) -> float:
    """Both standard deviations together: how far two honest runs may lie apart."""
    return mean.sd + (0.0 if math.isnan(figure.sd) else figure.sd)


def verdicts(table: Table, results: Means) -> list[str]:
    """How each system stands against the published figures, one line each."""
    lines = []
    against_best: dict[str, list[str]] = {"better": [], "within": [], "worse": []}
    for (dataset, system, epsilon), mean in results.items():
        figure = best_published(table, dataset, epsilon)
        if system == "default" and figure is not None:
            gap = better(table.metric(dataset), mean.mean, figure.mean)
            kind = "better" if gap > 0 else "within" if -gap <= error_of(mean, figure) else "worse"
            against_best[kind].append(f"{base(dataset)} at {epsilon:g}")
    total = sum(map(len, against_best.values()))
    if total:
        count = len(against_best["better"])
        text = f"`default` is better than the best published figure in {count} of {total} cells"
        for kind, words in (
            ("within", "within one standard error below it"),
            ("worse", "below it by more"),
        ):
            if against_best[kind]:
                text += f"; {words}: {', '.join(against_best[kind])}"
        lines.append(text + ".")
    for system, theirs in reproduced(table).items():
        counts = {"better": 0, "within": 0, "worse": 0}
        names = []
        for (dataset, name, epsilon), mean in results.items():
            figure = find(table, dataset, theirs, epsilon)
            if name == system and figure is not None:
                gap = better(table.metric(dataset), mean.mean, figure.mean)
                ok = "within" if -gap <= spread_of(mean, figure) else "worse"
                kind = "better" if gap > 0 else ok
                counts[kind] += 1
                if kind == "worse":
                    names.append(f"{base(dataset)} at {epsilon:g}")
        if sum(counts.values()):
            text = f"`{system}` against the published {theirs}: better {counts['better']}, "
            text += f"within the spread {counts['within']}, worse {counts['worse']}"
            lines.append(text + (f" ({', '.join(names)})." if names else "."))
    return lines


def ranks(table: Table, results: Means) -> dict[tuple[str, float], float]:
    """Mean rank of each private system over the data sets that all of them have been run on.

    Only systems that stand for a published one are ranked; 1 is best.
    """
    names = sorted(reproduced(table))
    out: dict[tuple[str, float], float] = {}
    for epsilon in sorted({k[2] for k in results if math.isfinite(k[2])}):
        places: dict[str, list[int]] = defaultdict(list)
        for data in table.datasets:
            scores = {n: results.get((data.name, n, epsilon)) for n in names}
            if any(m is None for m in scores.values()):
                continue
            metric = table.metric(data.name)
            known = {n: better(metric, m.mean, 0.0) for n, m in scores.items() if m is not None}
            for place, name in enumerate(sorted(known, key=lambda n: -known[n]), 1):
                places[name].append(place)
        out |= {(name, epsilon): float(np.mean(p)) for name, p in places.items()}
    return out
