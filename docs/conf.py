"""Sphinx configuration: ``make docs`` builds the pages of this folder into ``build/docs``."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import xgb_dp

project = "xgb-dp"
author = "the xgb-dp authors"
copyright = "the xgb-dp authors, Apache-2.0"
version = release = xgb_dp.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns: list[str] = []
templates_path: list[str] = []
html_theme = "furo"
pygments_dark_style = "monokai"
html_title = f"xgb-dp {release}"
html_copy_source = False
html_static_path = ["static"]
html_css_files = ["tables.css"]

# Links to headings, as GitHub makes them.
myst_heading_anchors = 4

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_default_options = {"show-inheritance": True}
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_use_rtype = False

_DOCS = Path(__file__).resolve().parent
_MEASUREMENTS = ("accuracy", "performance", "tables")
_MORE = "<!-- pages that no list above names -->"


def _list_pages(app: Any, name: str, source: list[str]) -> None:
    """Complete the lists of pages, and make links to files that are no pages plain text."""
    folder = (_DOCS / name).parent

    def plain(link: re.Match[str]) -> str:
        inside = (folder / link[2].split("#")[0]).resolve().is_relative_to(_DOCS)
        return link[0] if inside else f"{link[1]} (`{link[2].replace('../', '')}`)"

    source[0] = re.sub(r"(?<!!)\[([^\]]+)\]\((\.\./[^)\s]+)\)", plain, source[0])
    if name == "index":
        pages = sorted(p.stem for p in _DOCS.glob("*.md") if p.stem != "index")
        rest = [page for page in pages if f"\n{page}\n" not in source[0]]
        lists = {
            "Measurements": [page for page in rest if page in _MEASUREMENTS],
            "More": [page for page in rest if page not in _MEASUREMENTS],
        }
        made = "\n".join(_toctree(title, pages) for title, pages in lists.items() if pages)
        source[0] = source[0].replace(_MORE, made)
    elif name in ("presets", "tables"):
        pages = sorted(f"{name}/{p.stem}" for p in (_DOCS / name).glob("*.md"))
        source[0] += "\n" + _toctree("", pages)


def _toctree(caption: str, pages: list[str]) -> str:
    options = [f":caption: {caption}"] if caption else []
    return "\n".join(["```{toctree}", ":hidden:", *options, "", *pages, "```", ""])


def setup(app: Any) -> None:
    """Called by Sphinx."""
    app.connect("source-read", _list_pages)
