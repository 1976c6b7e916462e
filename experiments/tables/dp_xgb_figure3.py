"""Figure 3 and table 2 of the DP-XGB paper: how many trees each model needs, at epsilon 1.

Figure 3 ranks the seven models at each number of trees, each with its best depth, over all data
sets. Table 2 counts how often a number of trees is in the best performance zone of its model: the
mean AUC, with the best depth, is within one standard deviation of the model's best mean. The paper
has 14 numbers of trees and five depths; here nine and two, so that a number up to 50 stands for
two of theirs.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

import numpy as np

from ..core import DEFAULT, STOCK, System, Table
from ..published import figures
from ..render import grid
from ..summary import Means
from .dp_xgb_table1 import DATASETS, DEPTHS, PUBLISHED, setting

TREES = (5, 10, 20, 35, 50, 75, 100, 150, 200)
OWN = (10, 20, 50, 100)  # of `default`
# How many of the paper's 14 numbers of trees are in each group, and which of ours.
GROUPS = {
    "50 trees and fewer": (10, TREES[:5]),
    "75 trees": (1, (75,)),
    "100 trees": (1, (100,)),
    "150 and 200 trees": (2, (150, 200)),
}


def settings(preset: str) -> list[System]:
    """All settings of a model; with ``best_of``, "NAME T=35" is its best depth."""
    return [setting(f"{preset} T={t}, d={d}", preset, t, d) for t in TREES for d in DEPTHS]


def scores(results: Means, data: str, model: str) -> dict[int, tuple[float, float]]:
    """Mean and standard deviation of a model by number of trees."""
    start = f"{model} T="
    return {
        int(name.removeprefix(start)): (m.mean, m.sd)
        for (dataset, name, _), m in results.items()
        if dataset == data and name.startswith(start)
    }


def complete(results: Means) -> list[str]:
    """Data sets on which all models and numbers of trees have been run."""
    names = list(dict.fromkeys(k[0] for k in results))
    return [d for d in names if all(len(scores(results, d, m)) == len(TREES) for m in PUBLISHED)]


def mean_ranks(results: Means) -> dict[str, dict[int, float]]:
    """Mean rank over data sets by model and number of trees.

    `default` is not ranked with the others: its place is that which it would take among them.
    """
    places: dict[str, dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
    for data in complete(results):
        models = {m: scores(results, data, m) for m in PUBLISHED}
        ours = scores(results, data, "default")
        for t in TREES:
            known = sorted((models[m][t][0] for m in models), reverse=True)
            for m in models:
                places[m][t].append(1 + known.index(models[m][t][0]))
            if t in ours:
                places["default"][t].append(1 + sum(s > ours[t][0] for s in known))
    return {m: {t: float(np.mean(p)) for t, p in row.items()} for m, row in places.items()}


def mean_scores(results: Means) -> dict[str, dict[int, float]]:
    """Mean AUC over data sets by model and number of trees."""
    out: dict[str, dict[int, float]] = {}
    for model in ("default", *PUBLISHED):
        rows = [scores(results, d, model) for d in complete(results)]
        shared = [t for t in TREES if rows and all(t in row for row in rows)]
        out[model] = {t: float(np.mean([row[t][0] for row in rows])) for t in shared}
    return out


def zone(results: Means, model: str) -> dict[str, float]:
    """How much of the best performance zone each group of numbers of trees has, in percent."""
    hits: dict[int, list[bool]] = {t: [] for t in TREES}
    for data in complete(results):
        row = scores(results, data, model)
        best, spread = max(row.values())
        for t in TREES:
            hits[t].append(row[t][0] >= best - spread)
    out = {
        name: 100.0 * theirs / 14 * float(np.mean([np.mean(hits[t]) for t in ours]))
        for name, (theirs, ours) in GROUPS.items()
    }
    return out | {"total": sum(out.values())}


def lines(table: Table, results: Means) -> list[str]:
    """Ranks, means, and the best performance zone beside the published one."""
    if not complete(results):
        return ["", "Not all settings have been run."]
    heads = ["model", *(f"{t} trees" for t in TREES)]
    out = ["", "**Figure 3**: mean rank by number of trees, best depth; 1 is best", ""]
    ranks = mean_ranks(results)
    names = [m for m in ("default", *PUBLISHED) if m in ranks]
    rows = [[m, *(f"{ranks[m][t]:.1f}" if t in ranks[m] else "" for t in TREES)] for m in names]
    out += grid(heads, rows)
    out += ["", "Mean test AUC over the same data sets", ""]
    means = mean_scores(results)
    rows = [[m, *(f"{means[m][t]:.4f}" if t in means[m] else "" for t in TREES)] for m in names]
    stock = [results.get((d, STOCK.name, np.inf)) for d in complete(results)]
    known = [m.mean for m in stock if m is not None]
    out += grid(heads, rows)
    if len(known) == len(stock):
        out += ["", f"Not private, {STOCK.rounds} trees of depth 6: {np.mean(known):.4f}"]
    out += ["", "**Table 2**: numbers of trees in the best performance zone, % *(published)*", ""]
    published = {(f.system, f.dataset): f.mean for f in figures(table.name)}
    rows = []
    for model, theirs in PUBLISHED.items():
        here = zone(results, model)
        cells = [f"{v:.1f} *({published[theirs, name]:.1f})*" for name, v in here.items()]
        rows.append([f"{model} *{theirs}*", *cells])
    return out + grid(["model", *GROUPS, "total"], rows)


def draw(table: Table, results: Means) -> None:
    """Mean rank against the number of trees."""
    import matplotlib.pyplot as plt

    from ..figure import colours

    ranks = mean_ranks(results)
    styles = colours(["default", *PUBLISHED])
    _, axis = plt.subplots(figsize=(6.5, 3.6))
    for model, row in ranks.items():
        colour, mark = styles[model]
        axis.plot(
            list(row), list(row.values()), color=colour, marker=mark, ms=4, lw=1.2, label=model
        )
    axis.set_xscale("log")
    axis.set_xticks(TREES, [str(t) for t in TREES], fontsize=7)
    axis.minorticks_off()
    axis.invert_yaxis()
    axis.set_xlabel("trees", fontsize=8)
    axis.set_ylabel("mean rank", fontsize=8)
    axis.legend(fontsize=7, loc="center left", bbox_to_anchor=(1.0, 0.5))


TABLE = Table(
    name="dp_xgb_figure3",
    title="DP-XGB, figure 3 and table 2: how many trees",
    source="Revisiting Differentially Private XGBoost, figure 3 (published as a plot only) and "
    "table 2",
    datasets=DATASETS,
    systems=(
        *(replace(DEFAULT, name=f"default T={t}", rounds=t) for t in OWN),
        *(s for p in PUBLISHED for s in settings(p)),
        STOCK,
    ),
    epsilons=(1.0,),
    metrics={"": "auc"},
    seeds=3,
    best_of=True,
    lines=lines,
    draw=draw,
    notes=(
        "Depth 2 or 4, the better one on test scores; the paper chose among 2 to 6 in the same "
        "way. Of its 14 numbers of trees the nine shown were run. `default` has its own depth, is "
        "not ranked with the others, and shows the place it would take among them.",
        "Published percentages are over 18 data sets and 15 runs of each setting.",
    ),
)
