"""Figures 1 and 6 of the DP-XGB paper: what a selection costs, computed and not trained.

Figure 1 sets the Rényi curve of the exponential mechanism by bounded range (theorem 1) beside
zCDP's line; figure 6 (D.4) asks what the difference is worth once selections are composed. Both
are published as plots only. "Formula" is theorem 1 as printed, its supremum taken on a grid;
"theorem 1" is this package's closed form, and "exact" the accountant that its trainings use.
"""

from __future__ import annotations

import time
from dataclasses import asdict
from typing import Any

import numpy as np

from xgb_dp.accounting import ExponentialEvent, GaussianEvent, make_accountant
from xgb_dp.accounting.closed_form_bounds import bounded_range_rdp

from ..core import Cell, Options, System, Table
from ..datasets import Dataset
from ..render import grid
from ..summary import Means

ORDERS = (1.5, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0)
COUNTS = (1, 5, 20, 100, 500, 2000)
RANGES = (0.1, 0.5, 2.0)  # of one selection; figure 6 has 0.1
BITS = 40
DELTA = 1e-6
CURVES = {"zCDP": "zCDP line", "formula": "theorem 1, formula", "rdp": "theorem 1"}
TOTALS = {"pure": "pure", "zCDP": "zCDP", "rdp": "theorem 1", "gdp": "Gaussian", "exact": "exact"}
POINTS = 200_001


def order_row(order: float) -> str:
    """Name of the row of an order."""
    return f"order {order:g}"


def count_row(count: int) -> str:
    """Name of the row of a number of selections."""
    return f"{count} selections"


def formula(eps0: float, order: float) -> float:
    """Theorem 1 as printed, in the stable form of appendix A.1, over a grid of t in [0, eps0]."""
    t = np.linspace(0.0, eps0, POINTS)[1:-1]
    # (e^{a e} - 1) p + 1 with p = (e^{-t} - e^{-e}) / (1 - e^{-e}), divided by e^{a e}.
    p = np.exp(-t) * -np.expm1(t - eps0) / -np.expm1(-eps0)
    inner = -np.expm1(-order * eps0) * p + np.exp(-order * eps0)
    return float(np.max((order * t + np.log(inner)) / (order - 1.0)))


def total(name: str, eps0: float, count: int) -> float:
    """Epsilon at DELTA of `count` selections of range `eps0`.

    "zCDP" is the Gaussian release of the same line, so that its conversion is that of "rdp".
    """
    ticks = round(eps0 * 2**BITS)
    if name == "zCDP":
        line = GaussianEvent("leaves", count * ticks**2, 4 * 4**BITS, 1, 1)
        return make_accountant("rdp", [line]).get_epsilon(DELTA)
    return make_accountant(name, [ExponentialEvent("splits", ticks, BITS, count)]).get_epsilon(
        0.0 if name == "pure" else DELTA
    )


def compute(table: Table, cell: Cell, options: Options) -> dict[str, Any]:
    """A Rényi divergence, or an epsilon of a composition."""
    start = time.perf_counter()
    kind, _, name = cell.system.partition(" ")
    first, _, second = cell.dataset.partition(" ")
    if kind == "total":
        loss = total(name, cell.epsilon, int(first))
    elif name == "zCDP":
        loss = float(second) * cell.epsilon**2 / 8.0
    elif name == "formula":
        loss = formula(cell.epsilon, float(second))
    else:
        loss = float(bounded_range_rdp(cell.epsilon, np.array([float(second)]))[0])
    return asdict(cell) | {"loss": loss, "seconds": time.perf_counter() - start}


def belongs(dataset: str, system: str, epsilon: float) -> bool:
    """Whether a row and a column are of the same figure."""
    return dataset.startswith("order ") == system.startswith("curve ")


def block(results: Means, eps0: float, names: dict[str, str], rows: list[str]) -> list[str]:
    """Values of some rows, and how much the line of zCDP is above theorem 1."""
    kind = "curve" if names is CURVES else "total"
    lines = []
    for row in rows:
        values = {n: results.get((row, f"{kind} {n}", eps0)) for n in names}
        strings = ["" if v is None else f"{v.mean:.4g}" for v in values.values()]
        ours, line = values["rdp"], values["zCDP"]
        strings.append(f"{line.mean / ours.mean:.3f}" if line and ours else "")
        if any(strings):
            lines.append([row, *strings])
    return grid(["", *names.values(), "zCDP / theorem 1"], lines) if lines else []


def lines(table: Table, results: Means) -> list[str]:
    """For each range, the curve and the totals."""
    out = []
    for eps0 in sorted({k[2] for k in results}):
        out += ["", f"Selections of range {eps0:g}: Rényi divergence of one", ""]
        out += block(results, eps0, CURVES, [order_row(a) for a in ORDERS])
        out += ["", f"Selections of range {eps0:g}: ε at δ = {DELTA:g} of all", ""]
        out += block(results, eps0, TOTALS, [count_row(k) for k in COUNTS])
    return out


def draw(table: Table, results: Means) -> None:
    """Curves of one selection, and totals over that of zCDP."""
    import matplotlib.pyplot as plt

    _, (left, right) = plt.subplots(1, 2, figsize=(9.0, 3.4))
    for eps0, colour in zip(RANGES, ("tab:blue", "tab:orange", "tab:green"), strict=True):
        for name, style in (("zCDP", "--"), ("rdp", "-")):
            points = [(a, results.get((order_row(a), f"curve {name}", eps0))) for a in ORDERS]
            known = [(a, m.mean) for a, m in points if m is not None]
            label = f"range {eps0:g}, {CURVES[name]}"
            if known:
                left.plot(*zip(*known, strict=True), style, color=colour, lw=1.2, label=label)
        for name, style in (("rdp", "-"), ("exact", ":")):
            ratios = [
                (k, ours.mean / line.mean)
                for k in COUNTS
                if (line := results.get((count_row(k), "total zCDP", eps0))) is not None
                and (ours := results.get((count_row(k), f"total {name}", eps0))) is not None
            ]
            label = f"range {eps0:g}, {TOTALS[name]}"
            if ratios:
                right.plot(*zip(*ratios, strict=True), style, color=colour, lw=1.2, label=label)
    for axis, words in ((left, "order"), (right, "selections")):
        axis.set_xscale("log")
        axis.set_xlabel(words, fontsize=8)
        axis.tick_params(labelsize=7)
        axis.legend(fontsize=6)
    left.set_yscale("log")
    left.set_ylabel("Rényi divergence of one selection", fontsize=8)
    right.set_ylabel(f"ε at δ = {DELTA:g}, over that of zCDP", fontsize=8)
    plt.gcf().tight_layout()


TABLE = Table(
    name="dp_xgb_figure1",
    title="DP-XGB, figures 1 and 6: what a selection costs",
    source="Revisiting Differentially Private XGBoost, figures 1 and 6; published as plots only",
    datasets=tuple(Dataset(n) for n in (*map(order_row, ORDERS), *map(count_row, COUNTS))),
    systems=(
        *(System(f"curve {name}") for name in CURVES),
        *(System(f"total {name}") for name in TOTALS),
    ),
    epsilons=RANGES,
    metrics={"": "loss"},
    delta=DELTA,
    seeds=1,
    only=belongs,
    compute=compute,
    lines=lines,
    draw=draw,
    notes=(
        "zCDP and theorem 1 are converted to (ε, δ) by the same rule (Canonne, Kamath and Steinke "
        "2020), so that only the curves differ.",
    ),
)
