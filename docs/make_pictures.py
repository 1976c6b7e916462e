"""Draw the plots of the pages, from kept results or by running the page that shows them.

Run it as ``.venv/bin/python docs/make_pictures.py [NAME ...]``; without names it draws all. The
files are small PNG images in ``docs/pictures``, with a white background of their own, so that they
can be read in dark pages too.
"""

from __future__ import annotations

import argparse
import csv
import math
import os
import re
import statistics
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from PIL import Image

DOCS = Path(__file__).resolve().parent
RESULTS = DOCS.parent / "experiments" / "results"
AUDITS = DOCS.parent / "experiments" / "pages" / "audits.md"
OURS, THEIRS = "#c0392b", ("#2471a3", "#7d8b99", "#b9770e", "#5b7f5b", "#8e6bbf", "#a0522d")
DPI = 110

Point = tuple[float, float, float]  # epsilon, mean, standard deviation


def curves(table: str, dataset: str) -> dict[str, list[Point]]:
    """Points of each system of a kept table by epsilon: its AUC. Settings of one stand together."""
    systems: dict[str, list[Point]] = {}
    with (RESULTS / f"{table}.csv").open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if row["dataset"] == dataset and row["metric"] == "auc":
                several = len(row["scores"].split()) > 1
                spread = float(row["sd"]) if several else math.nan
                point = (float(row["epsilon"]), float(row["mean"]), spread)
                systems.setdefault(row["system"].split(", ")[0], []).append(point)
    return {name: sorted(points) for name, points in systems.items()}


def panel(axes: Axes, systems: dict[str, list[Point]], names: dict[str, str]) -> None:
    """Lines against epsilon with a band of one standard deviation; ours is the thick one."""
    others = iter(THEIRS)
    for system, label in names.items():
        points = systems.get(system, [])
        if not points:
            continue
        if math.isinf(points[0][0]):
            axes.axhline(points[0][1], color="0.35", ls=":", lw=1.4, label=label)
            continue
        ours = system == "default"
        colour = OURS if ours else next(others)
        x, y, sd = zip(*points, strict=True)
        axes.plot(x, y, "o-", color=colour, lw=2.4 if ours else 1.4, ms=4, label=label,
                  zorder=3 if ours else 2)  # fmt: skip
        if not any(math.isnan(s) for s in sd):
            low = [m - s for m, s in zip(y, sd, strict=True)]
            high = [m + s for m, s in zip(y, sd, strict=True)]
            axes.fill_between(x, low, high, color=colour, alpha=0.2, lw=0)
    axes.set_xscale("log")
    ticks = sorted({p[0] for points in systems.values() for p in points if math.isfinite(p[0])})
    axes.set_xticks(ticks, [f"{t:g}" for t in ticks])
    axes.minorticks_off()
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_xlabel("epsilon (smaller is more private)")


def row_of_panels(
    name: str, table: str, sets: dict[str, str], names: dict[str, str], size: tuple[float, float],
    ncols: int, rows: int = 1,
) -> None:  # fmt: skip
    """A picture of AUC against epsilon, a panel for each data set of a kept table.

    Args:
        name: Of the picture.
        table: Of the kept results.
        sets: Title of each data set.
        names: Label of each system.
        size: Of the figure, in inches.
        ncols: Columns of the legend.
        rows: Rows of panels.
    """
    figure, grid = plt.subplots(rows, len(sets) // rows, figsize=size, layout="constrained")
    axes = grid.flatten()
    for place, (dataset, title) in zip(axes, sets.items(), strict=True):
        panel(place, curves(table, dataset), names)
        place.set_title(title, loc="left", fontsize=11)
    axes[0].set_ylabel("test AUC (0.5 is guessing)")
    legend_below(figure, axes[0], ncols)
    save(name)


def legend_below(figure: Figure, axes: Axes, ncols: int) -> None:
    """One legend for all panels, with the labels of one of them."""
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(
        handles, labels, loc="outside lower center", ncols=ncols, frameon=False, fontsize=9
    )


def finish(axes: Axes, title: str, name: str, **legend: Any) -> None:
    """Give a single panel its title and legend, and write it."""
    axes.set_title(title, loc="left", fontsize=11)
    axes.legend(frameon=False, fontsize=9, **legend)
    axes.spines[["top", "right"]].set_visible(False)
    save(name)


def save(name: str) -> None:
    """Write the current figure with few colours."""
    path = DOCS / "pictures" / f"{name}.png"
    path.parent.mkdir(exist_ok=True)
    plt.savefig(path, dpi=DPI, bbox_inches="tight", facecolor="white")
    plt.close("all")
    reduce_colours(path, path)


def reduce_colours(source: Path, target: Path) -> None:
    """Write a picture anew with few colours."""
    with Image.open(source) as picture:
        small = picture.convert("RGB").quantize(64)
    small.save(target, optimize=True)


def first_screen() -> None:
    """Ours and the strongest alternatives, on four data sets; narrow, for phones."""
    names = {
        "default": "xgb-dp",
        "S-BDT": "S-BDT",
        "DP-SGD network (Opacus)": "network (Opacus)",
        "DP-EBM (interpret)": "DP-EBM (interpret)",
        "gradient descent on bins": "additive, best of 54 settings",
        "not private": "XGBoost without privacy",
    }
    shown = {name: name for name in ("Adult", "Credit 1", "California", "HELOC")}
    row_of_panels("accuracy", "alternatives", shown, names, size=(6, 6), ncols=2, rows=2)


def alternatives() -> None:
    """What a practitioner would take instead, on four data sets of ``alternatives``."""
    names = {
        "default": "xgb-dp",
        "S-BDT": "S-BDT",
        "DP-SGD network (Opacus)": "network (Opacus)",
        "DP-EBM (interpret)": "DP-EBM (interpret)",
        "logistic regression (diffprivlib)": "logistic regression (diffprivlib)",
        "random forest (diffprivlib)": "random forest (diffprivlib)",
        "MST and XGBoost": "synthetic rows (MST), then XGBoost",
        "not private": "XGBoost without privacy",
    }
    shown = {name: name for name in ("Adult", "Credit 1", "California", "HELOC")}
    row_of_panels("alternatives", "alternatives", shown, names, size=(13.5, 3.5), ncols=4)


def persons() -> None:
    """Ways to protect people who have several rows."""
    names = {
        "default": "people (dp_privacy_id)",
        "one row of each": "a random row of each",
        "group of all rows": "dp_group_size of the most rows",
        "rows without a guarantee": "rows; people are not protected",
        "not private": "XGBoost without privacy",
    }
    shown = {"Patients": "Patients, 1 to 40 stays", "Visits": "Visits, 1 to 1,000 rows"}
    row_of_panels("persons", "persons", shown, names, size=(7.2, 4.2), ncols=2)


def bar() -> None:
    """The default against XGBoost without privacy: AUC and calibration on the nine sets."""
    scores_of: dict[
        tuple[str, str, str], list[float]
    ] = {}  # of all runs: each has splits of its own
    with (RESULTS / "bar.csv").open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            key = row["metric"], row["dataset"], row["epsilon"]
            scores_of.setdefault(key, []).extend(map(float, row["scores"].split()))
    sets = list(dict.fromkeys(dataset for metric, dataset, _ in scores_of if metric == "auc"))
    figure, axes = plt.subplots(1, 2, figsize=(11, 3.8), layout="constrained", sharey=True)
    colours = {"0.1": "#f0b27a", "0.25": "#e67e22", "1": OURS, "4": "#7b241c", "inf": "0.35"}
    titles = {"auc": "test AUC", "calibration": "expected calibration error"}
    for place, (metric, title) in zip(axes, titles.items(), strict=True):
        for (what, dataset, epsilon), scores in scores_of.items():
            if what != metric or dataset not in sets:
                continue
            stock = epsilon == "inf"
            label = "without privacy" if stock else f"epsilon = {epsilon}"
            place.errorbar(
                statistics.mean(scores), -sets.index(dataset), xerr=statistics.stdev(scores), ms=5,
                marker="|" if stock else "o", mew=2 if stock else 0, color=colours[epsilon],
                label=label if dataset == sets[0] else None, lw=1, ls="",
            )  # fmt: skip
        place.set_title(title, loc="left", fontsize=11)
        place.set_yticks([-i for i in range(len(sets))], sets)
        place.grid(axis="x", alpha=0.25)
        place.spines[["top", "right"]].set_visible(False)
    legend_below(figure, axes[0], ncols=5)
    save("default")


def audit() -> None:
    """Claimed epsilon and the audit's lower bound, from the page of audits."""
    text = AUDITS.read_text(encoding="utf-8")
    row = re.compile(r"^\| ([^|]+) \| [^|]+ \| [\d,]+ \| [^|]+ \| ([\d.]+) \| ([\d.]+) \| (.+) \|$",
                     re.MULTILINE)  # fmt: skip
    _, axes = plt.subplots(figsize=(5.6, 4.6), layout="constrained")
    styles = {"no violation": ("#2471a3", "o", "this library"),
              "VIOLATED": (OURS, "X", "trainers broken on purpose")}  # fmt: skip
    for verdict, (colour, mark, label) in styles.items():
        points = [
            (float(c), max(float(b), 0.01)) for _, c, b, v in row.findall(text) if v == verdict
        ]
        axes.plot(*zip(*points, strict=True), mark, color=colour, ms=7, alpha=0.8, label=label)
    line = [0.01, 10]
    axes.plot(line, line, color="0.4", lw=1)
    axes.fill_between(line, line, [10, 10], color=OURS, alpha=0.08, lw=0)
    axes.text(0.013, 6.2, "the claim is refuted", color=OURS, fontsize=9)
    axes.set(xscale="log", yscale="log", xlim=line, ylim=(0.008, 10))
    axes.set_xticks([0.01, 0.1, 1, 10], ["0.01", "0.1", "1", "10"])
    axes.set_yticks([0.01, 0.1, 1, 10], ["0.01 or less", "0.1", "1", "10"])
    axes.set_xlabel("epsilon that is claimed")
    axes.set_ylabel("epsilon that the attack proves (95%)")
    title = "Audits of this library and of broken trainers"
    finish(axes, title, "audit", loc="lower right", bbox_to_anchor=(1, 0.08))


def attacks() -> None:
    """Membership inference against stock and private models, from the page of audits."""
    text = AUDITS.read_text(encoding="utf-8").split("### Members and labels")[1].split("###")[0]
    row = re.compile(
        r"^\| ([^|]+) \| (stock|private, epsilon [\d.]+) \| ([\d.]+) ± ([\d.]+)"
        r" \| [^|]+ \| [^|]+ \| [^|]+ \|$",
        re.MULTILINE,
    )
    cells = row.findall(text)
    trainers = list(dict.fromkeys(t for _, t, _, _ in cells))
    _, axes = plt.subplots(figsize=(6.6, 3.4), layout="constrained")
    for i, data in enumerate(dict.fromkeys(d for d, _, _, _ in cells)):
        points = [(t, float(m), float(s)) for d, t, m, s in cells if d == data]
        x = [trainers.index(t) + 0.16 * (i - 1) for t, _, _ in points]
        mean, sd = [m for _, m, _ in points], [s for _, _, s in points]
        axes.errorbar(x, mean, sd, fmt="o", ms=5, lw=1.2, color=(OURS, *THEIRS)[i], label=data)
    axes.axhline(0.5, color="0.4", ls=":", label="guessing")
    names = [t.replace("private, epsilon", "epsilon =") for t in trainers]
    axes.set_xticks(range(len(trainers)), ["stock XGBoost", *names[1:]])
    axes.set_ylabel("area of membership inference")
    finish(axes, "Who was in the training data?", "attacks")


_KINDS = {
    "noise that can be guessed or repeats": "S1 S2 S3 S12 S14 D1 F3 B5 P3",
    "too little noise, or none": "S4 S11 M3 M5 F1 F2 B1 B2 A1",
    "sensitivity too small": "S7 S8 S9 S13 S15 D3 D5 E1 B4",
    "exact statistics published or used": "S5 S6 S16 M1 M2 M4 D2 D4 E2 E3 B3 B6 P1",
    "other": "S10 M6 D6 P2",
}


_PEERS = {
    "S": "Sarus", "M": "Maddock", "D": "DPBoost", "F": "FedTree", "E": "DP-EBM", "B": "S-BDT",
    "P": "diffprivlib", "A": "BoostedAdaSSP",
}  # fmt: skip
"""Implementations by the first letter of the ids of their faults."""


def peers() -> None:
    """Faults by implementation and kind, from the ids of ``peers.md``."""
    text = (DOCS / "peers.md").read_text(encoding="utf-8")
    ids_of_faults = re.findall(r"^\| ([SMDFEBPA]\d+) \|", text, flags=re.MULTILINE)
    rows = [(i, _PEERS[i[0]]) for i in ids_of_faults]
    systems = list(dict.fromkeys(system for _, system in rows))
    kinds = {kind: set(ids.split()) for kind, ids in _KINDS.items()}
    _, axes = plt.subplots(figsize=(7.2, 3.2), layout="constrained")
    left = [0] * len(systems)
    for colour, (kind, ids) in zip((OURS, *THEIRS), kinds.items(), strict=False):
        counts = [sum(s == system and i in ids for i, s in rows) for system in systems]
        axes.barh(systems, counts, left=left, color=colour, label=kind)
        left = [a + b for a, b in zip(left, counts, strict=True)]
    if sum(left) != len(rows):
        raise SystemExit("_KINDS must have every fault of peers.md exactly once.")
    axes.invert_yaxis()
    axes.set_xlabel("faults found")
    finish(axes, "Faults of other implementations", "peers", loc="lower right")


def budget() -> None:
    """What still fits into a book after each training of epsilon .5, until it refuses."""
    import numpy as np
    import xgboost as xgb

    import xgb_dp

    data = xgb.DMatrix(np.eye(2000, 4), np.arange(2000) % 2)
    params = {"tree_method": "dp_hist", "objective": "binary:logistic", "dp_epsilon": 0.5,
              "dp_delta": 1e-7}  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        budget = xgb_dp.Budget(Path(folder) / "budget.json", epsilon=1.5, delta=1e-6)
        left = [budget.remaining()]
        try:
            while True:
                budget.train(params, data, 10)
                left.append(budget.remaining())
        except xgb_dp.BudgetError:
            pass
    _, axes = plt.subplots(figsize=(6.4, 3.2), layout="constrained")
    axes.bar(range(len(left)), left, color=THEIRS[0])
    axes.axhline(0.5, color=OURS, ls=":", label="the next training asks for 0.5")
    axes.set_xlabel("models of epsilon 0.5 in the book")
    axes.set_ylabel("largest epsilon that still fits")
    finish(axes, "A book of epsilon 1.5", "budget")


def blocks() -> None:
    """The plots that blocks of pages save, made by these blocks."""
    for name in ("tutorial.md", "howto/evaluation.md"):
        run_blocks(DOCS / name)


def run_blocks(page: Path) -> None:
    """Run the blocks of a page, and keep the plots that it shows."""
    text = page.read_text(encoding="utf-8")
    named = re.findall(rf"pictures/{page.stem}_(\w+)\.png", text)
    scope: dict[str, object] = {}
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for block in re.findall(r"^```python\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE):
            exec(compile(block, page.name, "exec"), scope)  # noqa: S102
        os.chdir(before)
        for name in named:
            reduce_colours(
                Path(folder) / f"{name}.png", DOCS / "pictures" / f"{page.stem}_{name}.png"
            )


PICTURES: dict[str, Callable[[], None]] = {
    f.__name__: f
    for f in (first_screen, alternatives, bar, audit, attacks, peers, persons, budget, blocks)
}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", choices=[*PICTURES, []], help="all by default")
    for chosen in parser.parse_args().names or PICTURES:
        PICTURES[chosen]()
