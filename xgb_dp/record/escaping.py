"""Text of others, such as names in a model file, made safe to show.

Whatever a file, a schema or a book says may be meant to fool a terminal, a Markdown renderer or a
browser. Everything that is shown goes through one of these functions.
"""

from __future__ import annotations

import html
import re

_MARKUP = re.compile(r"[\\`*\[\]|~]|(?<![^\W_])_|_(?![^\W_])")


def visible(text: str, keep: str = "") -> str:
    r"""A text for one line of a terminal: control and format characters as ``\x1b``.

    Args:
        text: Any text, with halves of surrogate pairs, too.
        keep: Characters that stay, such as ``"\n"`` where the lines are ours.
    """
    if text.isprintable():
        return text
    return "".join(c if c in keep or c.isprintable() else ascii(c)[1:-1] for c in text)


def html_text(text: str) -> str:
    """A text that an HTML page shows as it is."""
    return html.escape(visible(text, "\n"))


def markdown_text(text: str) -> str:
    """A text that Markdown shows as it is, in a line or a cell of a table."""
    return _MARKUP.sub(r"\\\g<0>", html.escape(visible(text), quote=False))


def markdown_prose(text: str) -> str:
    """Markdown that the author of a card has written, without HTML."""
    return html.escape(visible(text, "\n"), quote=False)


def markdown_code(text: str) -> str:
    """A text as code in a line or a cell of a table of Markdown."""
    text = visible(text).replace("|", "\\|")
    fence = "`" * (max(map(len, re.findall("`+", text)), default=0) + 1)
    pad = " " if text[:1] == "`" or text[-1:] == "`" else ""
    return f"{fence}{pad}{text}{pad}{fence}"
