"""Format numbers and untrusted strings safely for a terminal, Markdown or HTML.

Names in a model file, a schema or a budget file are untrusted: they can contain terminal escape
sequences or HTML. All output therefore passes through these functions.
"""

from __future__ import annotations

import html
import math
import re
from collections.abc import Sequence

_MARKUP = re.compile(r"[\\`*\[\]|~]|(?<![^\W_])_|_(?![^\W_])")


def visible(text: str, keep: str = "") -> str:
    r"""Escape control and format characters of a string for a terminal, such as ``\x1b``.

    Args:
        text: Any string, even with unpaired surrogates.
        keep: Characters to leave as they are, such as ``"\n"`` in text of several lines.
    """
    if text.isprintable():
        return text
    return "".join(c if c in keep or c.isprintable() else ascii(c)[1:-1] for c in text)


def html_text(text: str) -> str:
    """Escape a string for HTML."""
    return html.escape(visible(text, "\n"))


def markdown_text(text: str) -> str:
    """Escape a string for one line or table cell of Markdown."""
    return _MARKUP.sub(r"\\\g<0>", html.escape(visible(text), quote=False))


def markdown_prose(text: str) -> str:
    """Escape HTML in a Markdown string from the author of a card."""
    return html.escape(visible(text, "\n"), quote=False)


def markdown_code(text: str) -> str:
    """Format a string as inline code for one line or table cell of Markdown."""
    text = visible(text).replace("|", "\\|")
    fence = "`" * (max(map(len, re.findall("`+", text)), default=0) + 1)
    pad = " " if text[:1] == "`" or text[-1:] == "`" else ""
    return f"{fence}{pad}{text}{pad}{fence}"


def round_up(value: float) -> str:
    """Round up to four significant digits, so that a printed epsilon is never too small."""
    if value <= 0:
        return "0"
    if math.isinf(value):
        return "inf"
    digits = 3 - math.floor(math.log10(value))
    return f"{math.ceil(value * 10.0**digits) / 10.0**digits:.{max(digits, 0)}f}"


def json_number(value: float) -> float | str:
    """Convert a number to a JSON value; infinity becomes the string "inf"."""
    return "inf" if math.isinf(value) else value


def text_columns(rows: Sequence[Sequence[str]]) -> str:
    """Format rows as aligned columns of text; the first row is the header."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = [
        "  " + "  ".join(c.ljust(w) for c, w in zip(r, widths, strict=True)).rstrip() for r in rows
    ]
    return "\n".join([lines[0], "  " + "  ".join("-" * w for w in widths), *lines[1:]])


def html_list(rows: Sequence[tuple[str, str]]) -> str:
    """Format pairs of title and text as a description list."""
    parts = "".join(
        f'<dt style="font-weight:600">{html_text(title)}</dt>'
        f'<dd style="margin:0 0 .6em 0">{html_text(text)}</dd>'
        for title, text in rows
    )
    return f'<dl style="margin:.8em 0">{parts}</dl>'


def html_details(title: str, parts: Sequence[str]) -> str:
    """Format a collapsed section."""
    return (
        '<details style="margin:.6em 0"><summary style="cursor:pointer">'
        f"<b>{html_text(title)}</b></summary>{''.join(parts)}</details>"
    )


def html_table(title: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Format a table with a title."""
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
