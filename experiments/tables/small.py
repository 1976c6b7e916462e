"""The packages of ``alternatives`` on few rows: ``python -m experiments small``."""

from __future__ import annotations

import dataclasses
import sys

from .. import render
from ..core import Table
from ..summary import Means
from . import alternatives
from .sizes import of_size

SIZES = (500, 1_000, 3_000, 10_000)
_SYNTHETIC = (alternatives.MST, alternatives.AIM)


def lines(table: Table, results: Means) -> list[str]:
    """A row for each number of rows and system, a column for each budget."""
    epsilons = sorted({k[2] for k in results})
    out = []
    for data in table.datasets:
        for name in render.order({k[1] for k in results}, render.system_names(table)):
            line = [data.name, f"**{name}**" if name == "default" else name]
            for epsilon in epsilons:
                mean = results.get((data.name, name, epsilon))
                shown = mean and dataclasses.replace(mean, setting="")
                line.append(render.cell(table, data.name, shown))
            out.append(line)
    return ["", *render.grid(["data", "system", *map(render.head, epsilons)], out)]


TABLE: Table = dataclasses.replace(
    alternatives.TABLE,
    name="small",
    title="Few rows",
    source="own measure, a generated task of 20 columns; peers from PyPI, run here",
    datasets=tuple(of_size(rows) for rows in SIZES),
    systems=tuple(
        system
        for system in alternatives.TABLE.systems
        if system.peer not in ("sbdt", "opacus", "diffprivlib") and system.name not in _SYNTHETIC
    ),
    seeds=5,
    layout="epsilons",
    lines=lines,
    absent={},
    notes=("AUC. Packages and their settings are as above.",),
)

if __name__ == "__main__":
    from ..__main__ import main

    sys.exit(main(["small", *sys.argv[1:]]))
