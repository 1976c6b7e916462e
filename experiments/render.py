"""Markdown and plots that set published and measured figures side by side."""

from __future__ import annotations

import dataclasses
import math
import re
import textwrap
from pathlib import Path
from typing import Any

from . import tables
from .core import METRICS, Table, base
from .published import figures
from .store import read
from .summary import Mean, Means, besides, differences, find, means, ranks, reproduced, verdicts

RESULTS = Path(__file__).resolve().parent / "results"
WIDTH = 100  # of the lines of pages
DIGITS = {"auc": 4, "error": 1, "rmse": 3, "r2": 3, "tree_ms": 1, "loss": 4, "log_loss": 4}
DIGITS |= {
    "excess": 1,
    "auc_persons": 4,
    "ratio_persons": 3,
    "calibration": 4,
    "mean_ratio": 3,
    "mean_gap": 3,
    "deviance": 4,
    "gini": 3,
    "concordance": 4,
    "survival_gap": 3,
    "pinball": 4,
    "coverage_gap": 3,
    "seconds": 1,
    "peak_mib": 0,
}
IN_UNITS = ("pinball",)  # of the label: so many digits in all, and none for parts of thousands


def number(value: float, sd: float, digits: int) -> str:
    """A figure with its spread."""
    text = f"{value:.{digits}f}"
    return text if math.isnan(sd) else f"{text} ± {sd:.{digits}f}"


def head(epsilon: float) -> str:
    """Heading of a budget."""
    return "no privacy" if math.isinf(epsilon) else f"ε = {epsilon:g}"


def grid(heads: list[str], lines: list[list[str]]) -> list[str]:
    """A Markdown table."""
    out = ["| " + " | ".join(heads) + " |", "|---" * len(heads) + "|"]
    return out + ["| " + " | ".join(line) + " |" for line in lines]


def order(names: Any, preferred: list[str]) -> list[str]:
    """Names in the order of the table."""
    return sorted(set(names), key=preferred.index)


def system_names(table: Table) -> list[str]:
    """Systems in the order of the table, settings together."""
    names = (s.name.partition(", ")[0] if table.best_of else s.name for s in table.systems)
    return list(dict.fromkeys(names))


def cell(table: Table, dataset: str, mean: Mean | None) -> str:
    """A measured figure."""
    if mean is None:
        return ""
    sd = mean.sd if mean.count > 1 else math.nan  # one split has no spread
    metric = table.metric(dataset)
    digits = DIGITS[metric]
    if metric in IN_UNITS and mean.mean:
        digits = max(0, digits - 1 - math.floor(math.log10(abs(mean.mean))))
    text = number(mean.mean, sd, digits)
    return f"{text} ({mean.setting})" if mean.setting else text


def by_epsilon(table: Table, results: Means) -> list[str]:
    """One Markdown table for each data set, a column for each budget."""
    out = []
    ours = [d.name for d in table.datasets if any(k[0] == d.name for k in results)]
    seen = {base(name) for name in ours}
    theirs = [f.dataset for f in figures(table.name) if f.dataset not in seen and not table.ranks]
    for dataset in [*ours, *dict.fromkeys(theirs)]:
        metric = table.metric(dataset)
        published = [f for f in figures(table.name) if f.dataset == base(dataset)]
        epsilons = sorted(
            {k[2] for k in results if k[0] == dataset} | {f.epsilon for f in published}
        )
        lines = []
        for name in dict.fromkeys(f.system for f in published):
            values = {f.epsilon: f for f in published if f.system == name}
            strings = [
                number(values[e].mean, values[e].sd, DIGITS[metric]) if e in values else ""
                for e in epsilons
            ]
            lines.append([f"{name} (published)", *strings])
        names = {k[1] for k in results if k[0] == dataset}
        for name in order(names, system_names(table)):
            values_here = [cell(table, dataset, results.get((dataset, name, e))) for e in epsilons]
            label = f"**{name}**" if name == "default" else name
            lines.append([label, *values_here])
        out += ["", f"**{dataset}**, {METRICS[metric]}", ""]
        out += grid(["system", *map(head, epsilons)], lines)
    return out


def by_system(table: Table, results: Means) -> list[str]:
    """One Markdown table for each budget, a row for each data set, a column for each system."""
    out = []
    stands_for = reproduced(table)
    names = order((k[1] for k in results), system_names(table))
    for epsilon in sorted({k[2] for k in results if math.isfinite(k[2])}):
        lines = []
        for data in table.datasets:
            if not any(k[0] == data.name for k in results):
                continue
            digits = DIGITS[table.metric(data.name)]
            line = [data.name]
            for name in names:
                here = results.get(
                    (data.name, name, epsilon), results.get((data.name, name, math.inf))
                )
                text = cell(table, data.name, here)
                figure = find(table, data.name, stands_for.get(name, ""), epsilon)
                if figure is not None:
                    text += f"<br>*{number(figure.mean, figure.sd, digits)}*"
                line.append(text)
            lines.append(line)
        done = {base(d.name) for d in table.datasets if any(k[0] == d.name for k in results)}
        theirs = [f for f in figures(table.name) if f.epsilon == epsilon and f.dataset not in done]
        for dataset in dict.fromkeys(f.dataset for f in theirs):
            line = [f"{dataset} (not run)"]
            for name in names:
                figure = find(table, dataset, stands_for.get(name, ""), epsilon)
                digits = DIGITS[table.metric(dataset)]
                text = "" if figure is None else f"*{number(figure.mean, figure.sd, digits)}*"
                line.append(text)
            lines.append(line)
        heads = [f"{n}<br>*{stands_for[n]}*" if n in stands_for else n for n in names]
        words = " or ".join(sorted({METRICS[table.metric(d.name)] for d in table.datasets}))
        italics = "; published figures in italics" if figures(table.name) else ""
        out += ["", f"{head(epsilon)}, {words}{italics}"]
        out += ["", *grid(["data", *heads], lines)]
    return out


def by_trees(table: Table, results: Means) -> list[str]:
    """One Markdown table for each data set, a column for each number of trees ("NAME T=35")."""
    out = []
    trees = {s.name: s.rounds or 0 for s in table.systems if s.private}
    for data in table.datasets:
        here = {k: m for k, m in results.items() if k[0] == data.name and k[1] in trees}
        if not here:
            continue
        counts = sorted({trees[k[1]] for k in here})
        rows: dict[str, dict[int, str]] = {}
        for (_, name, _), mean in here.items():
            row = rows.setdefault(name.partition(" T=")[0], {})
            row[trees[name]] = cell(table, data.name, mean)
        names = list(
            dict.fromkeys(n.partition(" T=")[0] for n in system_names(table) if n in trees)
        )
        lines = [[n, *(rows[n].get(c, "") for c in counts)] for n in names if n in rows]
        stock = cell(table, data.name, results.get((data.name, "not private", math.inf)))
        words = f"**{data.name}**, {METRICS[table.metric(data.name)]}; not private {stock}"
        out += ["", words, "", *grid(["system", *(f"{c} trees" for c in counts)], lines)]
    return out


def of_default(table: Table, results: Means) -> list[str]:
    """One Markdown table of `default`: a row for each data set, a column for each budget."""
    epsilons = sorted({k[2] for k in results if k[1] == "default"})
    lines = []
    for data in table.datasets:
        if any(k[0] == data.name for k in results):
            here = [
                cell(table, data.name, results.get((data.name, "default", e))) for e in epsilons
            ]
            stock = cell(table, data.name, results.get((data.name, "not private", math.inf)))
            differs = table.metric(data.name) != table.metrics[""]
            name = f"{data.name}, {METRICS[table.metric(data.name)]}" if differs else data.name
            lines.append([name, *here, stock])
    return ["", *grid(["data", *map(head, epsilons), "not private"], lines)]


def mean_ranks(table: Table, results: Means) -> list[str]:
    """Measured mean ranks beside the published ones."""
    measured, stands_for = ranks(table, results), reproduced(table)
    epsilons = sorted({e for _, e in measured})
    published = {(f.system, f.epsilon): f.mean for f in figures(table.name)}
    lines = []
    for name in order({n for n, _ in measured}, system_names(table)):
        line = [name]
        for epsilon in epsilons:
            theirs = published.get((stands_for[name], epsilon))
            text = f"{measured[name, epsilon]:.1f}"
            line.append(text if theirs is None else f"{text} *({theirs:.1f})*")
        lines.append(line)
    heads = ["mean rank *(published)*", *map(head, epsilons)]
    return ["", *grid(heads, lines)]


def by_difference(table: Table, rows: list[dict[str, Any]]) -> list[str]:
    """One Markdown table for each budget: what `default` gains over each system, in thousandths."""
    gaps = differences(table, rows)
    out = []
    names = order({k[1] for k in gaps}, system_names(table))
    for epsilon in sorted({k[2] for k in gaps}):
        lines = []
        for data in table.datasets:
            line = [data.name]
            for name in names:
                mean = gaps.get((data.name, name, epsilon))
                error = 0.0 if mean is None else 1e3 * mean.sd / math.sqrt(mean.count)
                line.append("" if mean is None else f"{1e3 * mean.mean:+.1f} ({error:.1f})")
            if any(line[1:]):
                lines.append(line)
        words = f"{head(epsilon)}: default better by, in thousandths (standard error)"
        out += ["", words, "", *grid(["data", *names], lines)]
    return out


LAYOUTS = {"epsilons": by_epsilon, "systems": by_system, "default": of_default, "trees": by_trees}


def markdown(table: Table, rows: list[dict[str, Any]], absent: dict[str, str]) -> str:
    """The table with everything that is to be said about it.

    Args:
        table: Which.
        rows: Results.
        absent: Data sets and peers of the run that could not be had, and why.
    """
    table = with_sizes(table, rows)
    results = means(table, rows)
    out = [f"## {table.title}", "", f"Source: {table.source}."]
    if table.layout == "differences":
        out += by_difference(table, rows)
    elif table.layout == "cells":
        out += by_cells(table, rows, results)
    else:
        out += (table.lines or LAYOUTS[table.layout])(table, results)
        for metric in table.also:
            other = besides(table, rows, results, metric)
            if other and (not table.lines or metric in table.beside):
                out += beside(table, other, metric)
    if table.ranks:
        out += mean_ranks(table, results)
    counts = sorted({m.count for m in results.values()})
    if counts and table.compute is None:
        out += ["", f"{_spread(counts)}{_delta(table, rows)}."]
    notes = [*([] if table.lines else verdicts(table, results)), *table.notes]
    notes += [f"Not run: {name}: {why}." for name, why in table.absent.items()]
    run = {r["dataset"] for r in rows if not r["note"]} | {
        r["system"] for r in rows if not r["note"]
    }
    notes += [f"Not run: {why}." for name, why in absent.items() if name not in run]
    failed = sorted({(r["dataset"], r["system"], r["note"]) for r in rows if r["note"]})
    notes += [f"Failed: {system} on {data}: {why}." for data, system, why in failed]
    if notes:
        out += ["", *(f"* {_wrapped(note)}" for note in notes)]
    return "\n".join(out) + "\n"


def _spread(counts: list[int]) -> str:
    """Of how many splits the figures are."""
    if counts == [1]:
        return "One split"
    span = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    return f"Mean and standard deviation of {span} splits"


def _delta(table: Table, rows: list[dict[str, Any]]) -> str:
    """The δ that ledgers certify, and whose it is, where other models here are purely private."""
    private = {r["system"]: 0.0 for r in rows if not math.isinf(float(r["epsilon"]))}
    for r in rows:
        if r["system"] in private:
            private[r["system"]] = float(r.get("spent_delta") or private[r["system"]])
    ours = [s.name for s in table.systems if not s.peer and s.name in private]
    certified = [name for name in ours if private[name]]
    if not certified:
        return ""
    delta = "1/n_train" if table.delta is None else f"{table.delta:g}"
    whose = "" if certified == ours else " of " + ", ".join(f"`{name}`" for name in certified)
    return f"; δ = {delta}{whose}"


def _wrapped(note: str) -> str:
    """A note as an item of a list, in lines as pages have them."""
    return textwrap.fill(
        note, WIDTH - 2, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
    )


def by_cells(table: Table, rows: list[dict[str, Any]], results: Means) -> list[str]:
    """One Markdown table a data set: the score of each budget with its probabilities, and costs."""
    others = {metric: besides(table, rows, results, metric) for metric in table.also}
    shown = [m for m in ("log_loss", "calibration", "mean_ratio") if others.get(m)]
    out = []
    for data in table.datasets:
        epsilons = sorted({k[2] for k in results if k[0] == data.name})
        lines = []
        for name in order((k[1] for k in results if k[0] == data.name), system_names(table)):
            line = [f"**{name}**" if name == "default" else name]
            for epsilon in epsilons:
                key = (data.name, name, epsilon)
                if key not in results:
                    line.append("")
                    continue
                parts = [f"{others[m][key].mean:.{DIGITS[m]}f}" for m in shown if key in others[m]]
                mean = dataclasses.replace(results[key], setting="")
                line.append(f"{cell(table, data.name, mean)}<br>{', '.join(parts)}")
            for metric in ("seconds", "peak_mib"):
                costs = [m.mean for k, m in others[metric].items() if k[:2] == (data.name, name)]
                mean_cost = math.fsum(costs) / len(costs) if costs else math.nan
                line.append(f"{mean_cost:.{DIGITS[metric]}f}" if costs else "")
            lines.append(line)
        if lines:
            out += ["", f"**{data.name}**", ""]
            out += grid(["system", *map(head, epsilons), "seconds", "MiB"], lines)
    return out


def beside(table: Table, results: Means, metric: str) -> list[str]:
    """The same layout once more for another metric, without published figures."""
    again = dataclasses.replace(table, name="", metrics={"": metric})
    words = METRICS[metric][0].upper() + METRICS[metric][1:]
    head = [] if table.layout == "epsilons" else ["", words]
    return head + LAYOUTS[table.layout](again, results)


def with_sizes(table: Table, rows: list[dict[str, Any]]) -> Table:
    """The table with the generated data sets in the sizes that were run."""
    known = {d.name for d in table.datasets}
    more = []
    for name in dict.fromkeys(r["dataset"] for r in rows if r["dataset"] not in known):
        for data in table.datasets:
            if data.generate and base(data.name) == base(name):
                more.append(data.resized(name.split("(")[1].rstrip(")")))
    return dataclasses.replace(table, datasets=(*table.datasets, *more))


def page(text: str, results: Path = RESULTS) -> str:
    """A page with the parts between ``<!-- NAME -->`` and ``<!-- end -->`` written anew.

    ``<!-- NAME: table -->`` asks for the first grid of figures alone.
    """

    def fill(match: re.Match[str]) -> str:
        name, part = match.groups()
        mark = f"<!-- {name}{part or ''} -->"
        table = tables.get(name)
        if not (results / f"{name}.csv").exists():
            return f"{mark}\n\nNot run yet.\n\n<!-- end -->"
        rows = read(results / f"{name}.csv")
        body = markdown(table, rows, absent_of(table, rows))
        body = body.split("\n", 2)[2]  # the page has its own headings
        if part:
            body = next(b for b in body.split("\n\n") if b.startswith("|")) + "\n"
        return f"{mark}\n\n{body}\n<!-- end -->"

    names = "|".join(tables.NAMES)
    return re.sub(rf"<!-- ({names})(: table)? -->.*?<!-- end -->", fill, text, flags=re.DOTALL)


def absent_of(table: Table, rows: list[dict[str, Any]]) -> dict[str, str]:
    """Data sets of a table of which there is no result."""
    done = {base(r["dataset"]) for r in rows}
    return {d.name: f"{d.name}, not at hand" for d in table.datasets if base(d.name) not in done}


def write_page(path: Path) -> None:
    """Write the rendered results into a page."""
    path.write_text(page(path.read_text(encoding="utf-8")), encoding="utf-8")


def plot(table: Table, rows: list[dict[str, Any]], path: Path) -> None:
    """Published and measured figures with spread, as a small picture."""
    import matplotlib

    matplotlib.use("Agg")
    from . import figure

    table = with_sizes(table, rows)
    results = means(table, rows)
    if results:
        figure.draw(table, results, path)
