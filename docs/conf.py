"""Sphinx configuration: ``make docs`` builds the pages of this folder into ``build/docs``."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from docutils import nodes

import xgb_dp

project = "xgb-dp"
author = "the xgb-dp authors"
copyright = "the xgb-dp authors, Apache-2.0"
version = release = xgb_dp.__version__

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns: list[str] = []
templates_path: list[str] = []
html_theme = "furo"
pygments_dark_style = "monokai"
html_title = f"xgb-dp {release}"
html_copy_source = False
html_static_path = ["static"]
html_css_files = ["tables.css"]
highlight_language = "text"  # Pseudocode is not coloured as Python.
smartquotes = False  # It makes dashes of options, and quotes that code does not take.

# Links to headings, as GitHub makes them.
myst_heading_anchors = 4

# The gallery: a page is executed when its text has changed, in an empty folder.
nb_execution_mode = "cache"
nb_execution_cache_path = str(Path(__file__).resolve().parents[1] / "build" / "notebooks")
nb_execution_in_temp = True
nb_execution_raise_on_error = True
nb_execution_timeout = 300

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_type_aliases = dict.fromkeys(("Floats", "npt.NDArray[np.float64]"), "numpy.ndarray")
autodoc_default_options = {"show-inheritance": True}
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_use_rtype = False

# What signatures have in place of words: types that NumPy spells out, and values without a text.
_NUMPY = r"~?numpy\._typing\.\w+\."
_SPELT_OUT = {
    rf"{_NUMPY}_Buffer \| {_NUMPY}_Supp.*?complex \| bytes \| str\]": "~numpy.typing.ArrayLike",
    r"~?numpy\.ndarray\[~?\w*\.?tuple\[.*?\], ~?numpy\.dtype\[[~\w.]+\]\]": "~numpy.ndarray",
    r", _\w+: [^=]*? ?= ?<factory>": "",
    r"<factory>|<function \w+>": "...",
    # That a value may be of any type says nothing.
    r"(?<=\w): ~?(typing\.)?Any = ": "=",
    r"(?<=\w): ~?(typing\.)?Any(?=[,)])": "",
    r"^~?(typing\.)?Any$": "",
}

_DOCS = Path(__file__).resolve().parent
_LONG_CELL = 80
"""Characters of a cell that make its table one of texts."""


def _plain_links(app: Any, name: str, source: list[str]) -> None:
    """Make links to files that are no pages plain text."""
    folder = (_DOCS / name).parent

    def plain(link: re.Match[str]) -> str:
        inside = (folder / link[2].split("#")[0]).resolve().is_relative_to(_DOCS)
        return link[0] if inside else f"{link[1]} (`{link[2].replace('../', '')}`)"

    source[0] = re.sub(r"(?<!!)\[([^\]]+)\]\((\.\./[^)\s]+)\)", plain, source[0])


def _label_cells(app: Any, page: nodes.document, name: str) -> None:
    """Make cards of rows with long texts on narrow screens: each cell begins with its column.

    The style sheet hides these labels where the table fits.
    """
    for table in page.findall(nodes.table):
        head, *rows = ([*row.findall(nodes.entry)] for row in table.findall(nodes.row))
        if len(head) < 3 or max(len(c.astext()) for row in rows for c in row) < _LONG_CELL:
            continue
        table["classes"].append("cards")
        for row in rows:
            for column, cell in zip(head[1:], row[1:], strict=False):
                if cell.children and cell.astext():
                    cell[0].insert(0, nodes.inline("", column.astext(), classes=["card-label"]))


def _mend_lines(app: Any, page: nodes.document, name: str) -> None:
    """Set dashes, and leave out that a class derives from `object`, as every class does."""
    for line in list(page.findall(nodes.paragraph)):
        for i, part in enumerate(line.children):
            if isinstance(part, nodes.Text):
                line[i] = nodes.Text(part.replace(" -- ", " – "))
        if line.astext() == "Bases: object":
            line.parent.remove(line)


def _drop_any(app: Any, page: nodes.document, name: str) -> None:
    """Leave out that an attribute is of any type."""
    for field in list(page.findall(nodes.field)):
        if [part.astext() for part in field.children] == ["Type", "Any"]:
            owner = field.parent
            owner.remove(field)
            if not owner.children:
                owner.parent.remove(owner)


def _as_written(app: Any, *about: Any) -> tuple[str | None, str | None]:
    """A signature as a person writes it."""
    signature, returns = (text or "" for text in about[-2:])
    for short, word in _SPELT_OUT.items():
        signature, returns = (re.sub(short, word, text) for text in (signature, returns))
    return signature or None, returns or None


def _make_links(app: Any, what: str, name: str, thing: Any, options: Any, lines: Any) -> None:
    """Make links of the pages that a text names, and of the class that a function returns."""
    lines[:] = [
        re.sub(r"(`{0,2})docs/([\w/-]*?)([\w-]+)\.md\1", r":doc:`\3 </\2\3>`", x) for x in lines
    ]
    for i, line in enumerate(lines[1:], 1):
        word = re.match(r"\s+(\w+)(?=[:,])", line)
        if lines[i - 1].strip() == "Returns:" and word and word[1] in xgb_dp.__all__:
            lines[i] = line.replace(word[1], f":class:`~xgb_dp.{word[1]}`", 1)


def setup(app: Any) -> None:
    """Called by Sphinx."""
    app.connect("autodoc-process-signature", _as_written)
    app.connect("autodoc-process-docstring", _make_links, priority=400)
    app.connect("doctree-resolved", _drop_any)
    app.connect("doctree-resolved", _mend_lines)
    app.connect("source-read", _plain_links)
    app.connect("doctree-resolved", _label_cells)
