"""The privacy report as tables, in text, JSON and HTML.

Everything shown is computed from the ledger, which holds noisy releases and public inputs only.
"""

from __future__ import annotations

import datetime
import math
import textwrap
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from .escaping import html_text, visible

if TYPE_CHECKING:
    from .report import PrivacyReport
    from .spending import Spending

DELTAS = tuple(10.0**-k for k in range(3, 13))
"""Failure probabilities at which reports and plots state epsilon."""
_GROUPS = (1, 2, 3, 5, 10)  # rows of one person, or persons, for which reports state epsilon
_FIGURES = {
    "auc": "AUC",
    "log_loss": "log loss",
    "calibration_error": "calibration error",
    "rmse": "RMSE",
    "mae": "MAE",
    "r2": "R²",
    "auc difference": "difference of AUC",
}


def round_up(value: float) -> str:
    """Four digits, rounded up: a printed figure must not promise more than the exact one."""
    if value <= 0:
        return "0"
    if math.isinf(value):
        return "inf"
    digits = 3 - math.floor(math.log10(value))
    return f"{math.ceil(value * 10.0**digits) / 10.0**digits:.{max(digits, 0)}f}"


def meaning(report: PrivacyReport) -> str:
    """What the guarantee says about guessing whether a row or a person was used, in words."""
    success = f"{math.ceil(1000 * report.attack_success) / 10:g}%"
    unit = report.unit
    others = "the rows of all other persons" if unit.of_persons else "all other rows"
    return (
        f"Take somebody who knows {others} and wants to find out whether {unit.counted()} "
        f"{'was' if unit.group == 1 else 'were'} used. Where both answers are "
        f"equally likely beforehand, they guess right with probability at most {success}, whatever "
        "they do with the model."
    )


def _groups(report: PrivacyReport) -> list[tuple[int, float]]:
    """Epsilon of several rows of one person, or of several persons."""
    sizes = sorted({*_GROUPS, report.unit.group})
    return [(k, report.get_epsilon(report.delta, group=k)) for k in sizes]


def tables(report: PrivacyReport) -> list[tuple[str, list[str], list[list[str]]]]:
    """Title, head and rows of the tables of a private model: budget, epsilon(delta), groups."""
    budget = [
        [s.release, s.mechanism, str(s.count), s.noise, f"{s.share:.1%}", round_up(s.epsilon)]
        for s in report.spending()
    ]
    curve = [[f"{d:g}", round_up(e)] for d, e in report.epsilon_curve()]
    groups = [[str(k), round_up(epsilon)] for k, epsilon in _groups(report)]
    several = "persons together" if report.unit.of_persons else "rows of one person"
    return [
        (
            "Budget by mechanism",
            ["released", "mechanism", "times", "noise of each", "share", "epsilon alone"],
            [list(map(visible, row)) for row in budget],
        ),
        ("Epsilon for other failure probabilities", ["delta", "epsilon"], curve),
        (f"Epsilon for several {several}, delta = {report.delta:g}",
         [report.unit.plural, "epsilon"], groups),
    ]  # fmt: skip


def _release_sheet(report: PrivacyReport, evaluation: Any = None) -> list[tuple[str, str]]:
    """What somebody who signs a release must know of a private model: titles and texts."""
    words = report.paragraphs()
    rows = [
        ("Date of this report", datetime.date.today().isoformat()),
        ("Protected", f"{report.unit.phrase}, added or removed"),
        ("Epsilon, delta", f"{round_up(report.epsilon)}, {report.delta:g}"),
        ("What that means", meaning(report)),
        ("Answers for", words.get("population", "").removeprefix("The model answers for ")),
        ("Warning", " ".join(words[key] for key in ("concerns", "preprocessing") if key in words)),
        ("Public", _untitled(words["public"])),
        ("Not covered", _untitled(words["not covered"])),
        ("Evaluation", _evaluated(evaluation)),
    ]
    return [(title, visible(text)) for title, text in rows if text]


def _untitled(paragraph: str) -> str:
    """A paragraph without the words before its colon, which are those of the title."""
    text = paragraph.partition(": ")[2]
    return text[0].upper() + text[1:]


def _evaluated(evaluation: Any) -> str:
    """The main figures of an evaluation, with what they cost."""
    if evaluation is None:
        return ""
    figures = evaluation.figures()
    parts = [f"{title} {figures[name]}" for name, title in _FIGURES.items() if name in figures]
    return f"{'; '.join(parts)}. {' '.join(evaluation.statement().split())}"


def as_text(
    report: PrivacyReport, width: int = 100, *, name: str = "", evaluation: Any = None
) -> str:
    """What a release needs, then the statement and the tables."""
    statement = [textwrap.fill(p, width) for p in report.statement().split("\n\n")]
    if not report.private:
        return "\n\n".join(statement)
    parts = [f"Privacy report{f': {visible(name)}' if name else ''}"]
    for title, text in _release_sheet(report, evaluation):
        start = f"{title}: ".ljust(21)
        parts.append(textwrap.fill(text, width, initial_indent=start, subsequent_indent=" " * 21))
    parts += ["Statement in full", *statement]
    for title, head, rows in tables(report):
        parts.append(f"{title}\n\n{_columns([head, *rows])}")
    return "\n\n".join(parts)


def _columns(rows: Sequence[Sequence[str]]) -> str:
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = [
        "  " + "  ".join(c.ljust(w) for c, w in zip(r, widths, strict=True)).rstrip() for r in rows
    ]
    return "\n".join([lines[0], "  " + "  ".join("-" * w for w in widths), *lines[1:]])


def json_number(value: float) -> float | str:
    """A number as JSON can hold it: infinity is the text "inf"."""
    return "inf" if math.isinf(value) else value


def spending_rows(spent: Sequence[Spending]) -> list[dict[str, Any]]:
    """The budget by mechanism as JSON can hold it."""
    return [{**asdict(s), "epsilon": json_number(s.epsilon)} for s in spent]


def as_dict(report: PrivacyReport) -> dict[str, Any]:
    """The report as numbers, lists and texts that JSON can hold; infinity is the text "inf"."""
    return {
        "epsilon": json_number(report.epsilon),
        "delta": report.delta,
        "private": report.private,
        "unit": f"{replace(report.unit, group=1).phrase}, added or removed",
        "group": report.unit.group,
        "attack_success": report.attack_success,
        "statement": report.statement(),
        "budget": spending_rows(report.spending()) if report.private else [],
        "epsilon_curve": [
            {"delta": d, "epsilon": json_number(e)} for d, e in report.epsilon_curve()
        ],
        "groups": [
            {report.unit.plural: k, "epsilon": json_number(epsilon)}
            for k, epsilon in _groups(report)
        ],
        "ledger": report.ledger,
    }


_PAGE = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>Privacy report</title>
<style>body{{font:16px/1.5 system-ui,sans-serif;max-width:52rem;margin:2rem auto;padding:0 1rem}}
</style></head><body>
{}
</body></html>
"""


def as_html(
    report: PrivacyReport, *, page: bool = False, name: str = "", evaluation: Any = None
) -> str:
    """The report as HTML without scripts or anything loaded from elsewhere."""
    paragraphs = [f"<p>{html_text(p)}</p>" for p in report.statement().split("\n\n")]
    if report.private:
        head = (
            f"epsilon = {round_up(report.epsilon)}, delta = {report.delta:g}, for "
            f"{report.unit.phrase} added or removed"
        )
        color = "#1b7f4b"
        parts = [
            _sheet(_release_sheet(report, evaluation)),
            _folded("Statement in full", paragraphs),
        ]
        budget, curve, groups = (_table(*table) for table in tables(report))
        parts.append(_folded("Budget and other figures",
                             [_bars(report), budget, _curve(report), curve, groups]))  # fmt: skip
    else:
        head, color, parts = "NOT differentially private", "#b3261e", paragraphs
    body = (
        f'<div style="border-left:4px solid {color};padding:0 0 0 1em;max-width:52em">'
        f'<p style="margin:0"><b>Privacy report{html_text(f": {name}" if name else "")}</b></p>'
        f'<p style="font-size:1.2em;margin:.2em 0;color:{color}"><b>{html_text(head)}</b></p>'
        f"{''.join(parts)}</div>"
    )
    return _PAGE.format(body) if page else body


def _sheet(rows: Sequence[tuple[str, str]]) -> str:
    """Titles with their texts."""
    parts = "".join(
        f'<dt style="font-weight:600">{html_text(title)}</dt>'
        f'<dd style="margin:0 0 .6em 0">{html_text(text)}</dd>'
        for title, text in rows
    )
    return f'<dl style="margin:.8em 0">{parts}</dl>'


def _folded(title: str, parts: Sequence[str]) -> str:
    """What only those read who want to know how it was computed."""
    return (
        '<details style="margin:.6em 0"><summary style="cursor:pointer">'
        f"<b>{html_text(title)}</b></summary>{''.join(parts)}</details>"
    )


def _table(title: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    style = 'style="text-align:left;padding:.1em .8em .1em 0"'
    cells = "".join(f"<th {style}>{html_text(c)}</th>" for c in head)
    lines = "".join(
        "<tr>" + "".join(f"<td {style}>{html_text(c)}</td>" for c in row) + "</tr>" for row in rows
    )
    return (
        f'<p style="margin:1em 0 .2em"><b>{html_text(title)}</b></p>'
        f'<table style="border-collapse:collapse"><thead><tr>{cells}</tr></thead>'
        f"<tbody>{lines}</tbody></table>"
    )


_COLORS = ("#4477aa", "#cc4455", "#228833", "#8a6d00", "#2a7f94")


def _bars(report: PrivacyReport) -> str:
    """One bar, divided as the budget is."""
    x, parts = 0.0, []
    for i, s in enumerate(report.spending()):
        width = 600 * s.share
        label = html_text(f"{s.release} {100 * s.share:.1f}%")
        parts.append(
            f'<rect x="{x:.1f}" y="0" width="{width:.1f}" height="22" '
            f'fill="{_COLORS[i % len(_COLORS)]}"><title>{label}</title></rect>'
        )
        if width > 70:
            parts.append(
                f'<text x="{x + 5:.1f}" y="16" font-size="12" fill="#fff">'
                f"{html_text(s.release)}</text>"
            )
        x += width
    return (
        '<svg viewBox="0 0 600 22" width="100%" role="img" aria-label="Division of the budget">'
        f"{''.join(parts)}</svg>"
    )


def _curve(report: PrivacyReport) -> str:
    """Epsilon against delta, with the target as a dot."""
    points = [(d, e) for d, e in report.epsilon_curve() if math.isfinite(e)]
    if len(points) < 2:
        return ""
    left, right = math.log10(points[0][0]), math.log10(points[-1][0])
    top = 1.1 * max(e for _, e in points)

    def at(delta: float, epsilon: float) -> tuple[float, float]:
        x = 60 + 520 * (math.log10(delta) - left) / (right - left)
        return x, 190 - 170 * epsilon / top

    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in (at(d, e) for d, e in points))
    marks = []
    for delta, _ in points[::3]:
        x, _ = at(delta, 0.0)
        marks.append(f'<text x="{x:.1f}" y="208" text-anchor="middle">{delta:g}</text>')
    for epsilon in (0.0, top / 2.2, top / 1.1):
        _, y = at(points[0][0], epsilon)
        marks.append(f'<text x="54" y="{y + 4:.1f}" text-anchor="end">{epsilon:.2f}</text>')
    dot = ""
    if 10**right <= report.delta <= 10**left and math.isfinite(report.epsilon):
        x, y = at(report.delta, report.epsilon)
        dot = f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{_COLORS[1]}"/>'
    return (
        '<svg viewBox="0 0 600 230" width="100%" role="img" font-size="12" fill="currentColor" '
        'aria-label="Epsilon against delta">'
        '<path d="M60 10V190H585" fill="none" stroke="currentColor"/>'
        f'<polyline points="{path}" fill="none" stroke="{_COLORS[0]}" stroke-width="2"/>'
        f'{dot}{"".join(marks)}<text x="320" y="226" text-anchor="middle">delta</text>'
        '<text x="10" y="20">epsilon</text></svg>'
    )
