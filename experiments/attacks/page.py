"""The results of the attacks as tables of experiments/pages/audits.md."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from ..lines import with_part

__all__ = ["markdown", "write"]

PAGE = Path(__file__).resolve().parents[1] / "pages" / "audits.md"
Line = Sequence[str]
Tables = Mapping[str, Sequence[str]]
_TABLES: Tables = {
    "Rows in their cells, by the statistics of the first trees": (
        "cells of 1", "cells of 1, population", "cells of 2", "cells of 2, population",
        "cells of 3", "cells of 3, population",
    ),
    "Members and labels": (
        "membership, area", "membership, found at 1%", "labels", "labels, population",
    ),
    "Targets of single rows": ("targets told", "targets right"),
}  # fmt: skip


def markdown(lines: Iterable[Line], tables: Tables = _TABLES) -> str:
    """Means and standard deviations over the splits."""
    values: dict[tuple[str, str], dict[str, list[float]]] = {}
    for data, trainer, _, figure, value in lines:
        values.setdefault((data, trainer), {}).setdefault(figure, []).append(float(value))
    out = []
    for title, figures in tables.items():
        out += [f"### {title}", "", "| data | trainer | " + " | ".join(figures) + " |"]
        out.append("|---|---|" + "--:|" * len(figures))
        for (data, trainer), of_trainer in values.items():
            if any(figure in of_trainer for figure in figures):
                cells = " | ".join(_cell(of_trainer.get(figure, [])) for figure in figures)
                out.append(f"| {data} | {trainer} | {cells} |")
        out.append("")
    return "\n".join(out)


def write(lines: Iterable[Line], part: str = "attacks", tables: Tables = _TABLES) -> None:
    """Write the tables into a part of the page."""
    text = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(with_part(text, part, markdown(lines, tables)), encoding="utf-8")


def _cell(values: list[float]) -> str:
    """A mean with its spread; a dash for what was not measured."""
    if not values:
        return "–"
    spread = f" ± {statistics.stdev(values):.3f}" if len(values) > 1 else ""
    return f"{statistics.mean(values):.3f}{spread}"
