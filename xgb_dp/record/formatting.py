"""Formats numbers and foreign strings safely for a terminal, Markdown or HTML.

Names in a file, a schema or a budget may attack a terminal or a browser, so all output goes through
one of these functions.
"""

from __future__ import annotations

import html
import math
import re
from collections.abc import Sequence

_MARKUP = re.compile(r"[\\`*\[\]|~]|(?<![^\W_])_|_(?![^\W_])")


def visible(text: str, keep: str = "") -> str:
    r"""A string for one line of a terminal: control and format characters become ``\x1b``.

    Args:
        text: Any string, even with unpaired surrogates.
        keep: Characters that stay, such as ``"\n"`` between lines of our own.
    """
    if text.isprintable():
        return text
    return "".join(c if c in keep or c.isprintable() else ascii(c)[1:-1] for c in text)


def html_text(text: str) -> str:
    """Escape a string for HTML."""
    return html.escape(visible(text, "\n"))


def markdown_text(text: str) -> str:
    """Escape a string for a line or a table cell in Markdown."""
    return _MARKUP.sub(r"\\\g<0>", html.escape(visible(text), quote=False))


def markdown_prose(text: str) -> str:
    """Markdown from the author of a card, without HTML."""
    return html.escape(visible(text, "\n"), quote=False)


def markdown_code(text: str) -> str:
    """A string as code in a line or a table cell in Markdown."""
    text = visible(text).replace("|", "\\|")
    fence = "`" * (max(map(len, re.findall("`+", text)), default=0) + 1)
    pad = " " if text[:1] == "`" or text[-1:] == "`" else ""
    return f"{fence}{pad}{text}{pad}{fence}"


def round_up(value: float) -> str:
    """Four digits, rounded up: a printed figure must not promise more than the exact one."""
    if value <= 0:
        return "0"
    if math.isinf(value):
        return "inf"
    digits = 3 - math.floor(math.log10(value))
    return f"{math.ceil(value * 10.0**digits) / 10.0**digits:.{max(digits, 0)}f}"


def json_number(value: float) -> float | str:
    """A number in JSON form: infinity is the string "inf"."""
    return "inf" if math.isinf(value) else value


def text_columns(rows: Sequence[Sequence[str]]) -> str:
    """Aligned columns of text; the first row is the header."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = [
        "  " + "  ".join(c.ljust(w) for c, w in zip(r, widths, strict=True)).rstrip() for r in rows
    ]
    return "\n".join([lines[0], "  " + "  ".join("-" * w for w in widths), *lines[1:]])


def html_list(rows: Sequence[tuple[str, str]]) -> str:
    """A list of titles and texts."""
    parts = "".join(
        f'<dt style="font-weight:600">{html_text(title)}</dt>'
        f'<dd style="margin:0 0 .6em 0">{html_text(text)}</dd>'
        for title, text in rows
    )
    return f'<dl style="margin:.8em 0">{parts}</dl>'


def html_details(title: str, parts: Sequence[str]) -> str:
    """A section that opens on a click."""
    return (
        '<details style="margin:.6em 0"><summary style="cursor:pointer">'
        f"<b>{html_text(title)}</b></summary>{''.join(parts)}</details>"
    )


def html_table(title: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table with a title."""
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
