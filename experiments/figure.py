"""Plots of a table: scores against epsilon, or one line of dots for each data set."""

from __future__ import annotations

import math
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from PIL import Image

from .core import METRICS, Table, base
from .published import Figure, figures
from .summary import Means, find, reproduced

DPI = 75
STYLES = {"default": ("black", "o"), "not private": ("0.5", "")}


def colours(names: list[str]) -> dict[str, tuple[str, str]]:
    """A colour and a marker for each system."""
    cycle = plt.rcParams["axes.prop_cycle"].by_key()["color"]
    rest = [n for n in names if n not in STYLES]
    marks = "sDv^<>Pp*hX"
    return STYLES | {n: (cycle[i % len(cycle)], marks[i % len(marks)]) for i, n in enumerate(rest)}


def draw(table: Table, results: Means, path: Path) -> None:
    """Draw into a PNG file of at most some ten kilobytes."""
    if table.draw is not None:
        table.draw(table, results)
    elif table.layout == "trees":
        against_trees(table, results)
    elif len({k[2] for k in results if math.isfinite(k[2])}) > 1:
        against_epsilon(table, results)
    else:
        dots(table, results)
    plt.savefig(path, dpi=DPI, bbox_inches="tight")
    plt.close("all")
    with Image.open(path) as picture:
        small = picture.convert("RGB").quantize(48)
    small.save(path, optimize=True)


def against_epsilon(table: Table, results: Means) -> None:
    """One panel for each data set: lines against epsilon; published ones are dashed."""
    datasets = [d.name for d in table.datasets if any(k[0] == d.name for k in results)]
    columns = min(3, len(datasets))
    rows = math.ceil(len(datasets) / columns)
    _, axes = plt.subplots(rows, columns, figsize=(4.2 * columns, 3.2 * rows), squeeze=False)
    names = list(dict.fromkeys(k[1] for k in results))
    styles = colours(names)
    for spare in axes.flat[len(datasets) :]:
        spare.axis("off")
    for axis, dataset in zip(axes.flat, datasets, strict=False):
        panel(axis, table, results, dataset, styles)
    handles: dict[str, object] = {}
    for axis in axes.flat:
        for handle, label in zip(*axis.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    plt.gcf().tight_layout()
    plt.gcf().legend(
        list(handles.values()),
        list(handles),
        loc="upper center",
        bbox_to_anchor=(0.5, 0.0),
        ncols=4,
        fontsize=8,
    )


def against_trees(table: Table, results: Means) -> None:
    """One panel for each data set: lines against the number of trees."""
    trees = {s.name: s.rounds or 0 for s in table.systems if s.private}
    datasets = [d.name for d in table.datasets if any(k[0] == d.name for k in results)]
    names = list(dict.fromkeys(n.partition(" T=")[0] for n in trees))
    styles = colours(names)
    _, axes = plt.subplots(1, len(datasets), figsize=(3.2 * len(datasets), 3.0), squeeze=False)
    for axis, dataset in zip(axes.flat, datasets, strict=True):
        for name in names:
            points = sorted(
                (trees[k[1]], m.mean, m.sd)
                for k, m in results.items()
                if k[0] == dataset and k[1] in trees and k[1].partition(" T=")[0] == name
            )
            colour, mark = styles[name]
            x, y, spread = zip(*points, strict=True)
            axis.errorbar(x, y, spread, color=colour, marker=mark, ms=4, lw=1.2, label=name)
        axis.set_xscale("log")
        axis.set_title(dataset, fontsize=9)
        axis.set_xlabel("trees", fontsize=8)
        axis.tick_params(labelsize=7)
    axes.flat[0].set_ylabel(METRICS[table.metrics[""]], fontsize=8)
    handles, labels = axes.flat[0].get_legend_handles_labels()
    plt.gcf().tight_layout()
    plt.gcf().legend(
        handles, labels, loc="upper center", bbox_to_anchor=(0.5, 0.0), ncols=7, fontsize=8
    )


def panel(
    axis: Axes, table: Table, results: Means, dataset: str, styles: dict[str, tuple[str, str]]
) -> None:
    """One data set."""
    stands_for = reproduced(table)
    published = [f for f in figures(table.name) if f.dataset == base(dataset)]
    shown = set()
    for name in dict.fromkeys(k[1] for k in results if k[0] == dataset):
        colour, mark = styles[name]
        points = sorted((k[2], m) for k, m in results.items() if k[:2] == (dataset, name))
        if math.isinf(points[0][0]):
            axis.axhline(points[0][1].mean, color=colour, linestyle=":", label=name)
            continue
        x, y = [e for e, _ in points], [m.mean for _, m in points]
        spread = [m.sd for _, m in points]
        axis.errorbar(x, y, spread, color=colour, marker=mark, ms=4, lw=1.2, capsize=2, label=name)
        shown.add(stands_for.get(name, ""))
        line(axis, published, stands_for.get(name, ""), colour)
    for system in dict.fromkeys(f.system for f in published):
        if system not in shown:
            line(axis, published, system, "tab:red" if len(shown) < 3 else "0.7")
    axis.set_xscale("log")
    ticks = sorted({k[2] for k in results if k[0] == dataset and math.isfinite(k[2])})
    axis.set_xticks(ticks, [f"{t:g}" for t in ticks])
    axis.minorticks_off()
    axis.set_title(dataset, fontsize=9)
    axis.set_xlabel("epsilon", fontsize=8)
    axis.set_ylabel(METRICS[table.metric(dataset)], fontsize=8)
    axis.tick_params(labelsize=7)


def line(axis: Axes, published: list[Figure], name: str, colour: str) -> None:
    """A published system, dashed."""
    points = sorted((f.epsilon, f.mean) for f in published if f.system == name)
    points = [p for p in points if math.isfinite(p[0])]
    if points:
        axis.plot(*zip(*points, strict=True), "--", color=colour, lw=1, label=f"{name}, published")


def dots(table: Table, results: Means) -> None:
    """A line of dots for each data set, hollow where published."""
    datasets = [d.name for d in table.datasets if any(k[0] == d.name for k in results)]
    names = list(dict.fromkeys(k[1] for k in results))
    styles, stands_for = colours(names), reproduced(table)
    _, axis = plt.subplots(figsize=(7.5, 1.2 + 0.42 * len(datasets)))
    for place, dataset in enumerate(datasets):
        offsets = np.linspace(-0.3, 0.3, len(names))
        for name, offset in zip(names, offsets, strict=True):
            for (data, system, epsilon), mean in results.items():
                if (data, system) != (dataset, name):
                    continue
                colour, mark = styles[name]
                y = len(datasets) - place - offset
                axis.errorbar(
                    mean.mean,
                    y,
                    xerr=mean.sd,
                    color=colour,
                    marker=mark or "|",
                    ms=4,
                    lw=0.8,
                    label=name if place == 0 else None,
                )
                figure = find(table, dataset, stands_for.get(name, ""), epsilon)
                if figure is not None:
                    axis.plot(figure.mean, y, mark, color=colour, mfc="none", ms=7)
    axis.set_yticks(range(len(datasets), 0, -1), datasets, fontsize=8)
    axis.set_xlabel(METRICS[table.metrics[""]] + "; hollow: published", fontsize=8)
    axis.legend(fontsize=7, loc="center left", bbox_to_anchor=(1.0, 0.5))
    axis.grid(axis="x", alpha=0.3)
