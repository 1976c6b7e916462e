"""Written pages are up to date, links lead somewhere, Sphinx is content."""

import re

import pytest

from tests.children import ROOT, answer_of
from tests.scripts import script

from .test_peers import names_in

PAGES = [
    *sorted(ROOT.glob("*.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "experiments" / "pages").glob("*.md")),
]


def test_written_pages_are_up_to_date():
    pages = script("docs/make_pages.py").pages()
    stale = [p for p, text in pages.items() if p.read_text(encoding="utf-8") != text]
    assert not stale, "run: .venv/bin/python docs/make_pages.py"


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_links_lead_to_files(page):
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if "://" in target or target.startswith("#"):
            continue
        assert (page.parent / target.split("#")[0]).exists(), f"{page.name}: {target}"


@pytest.mark.slow
def test_sphinx_has_no_warnings(tmp_path):
    """As in `make docs`, but nothing is written: references, lists of pages and docstrings."""
    pytest.importorskip("myst_nb")
    # The notebooks of the gallery run in test_gallery.py.
    quiet = ("-W", "--keep-going", "-q", "-E", "-b", "dummy", "-D", "nb_execution_mode=off")
    answer_of("-m", "sphinx", *quiet, ROOT / "docs", tmp_path)


def test_leaks_name_tests_that_exist():
    """`module::test`, and further tests of the same module without its name."""
    module = ""
    missing = []
    for row in (ROOT / "docs" / "leaks.md").read_text(encoding="utf-8").splitlines():
        cell = row.strip("|").rsplit("|", 1)[-1] if row.startswith("|") else row
        for named, test in re.findall(r"`(?:((?:\w+/)?\w+)::)?(test_\w+)`", cell):
            module = named or module
            if test not in names_in(module):
                missing.append(f"{module}::{test}")
    assert module
    assert not missing
