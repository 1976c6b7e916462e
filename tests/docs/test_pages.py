"""Written pages are up to date, links lead somewhere, Sphinx is content, the README runs."""

import re
import subprocess
import sys
from decimal import Decimal
from pathlib import Path

import pytest

from tests.scripts import script

from .test_peers import names_in

ROOT = Path(__file__).resolve().parents[2]
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
    run = subprocess.run(
        [sys.executable, "-m", "sphinx", *quiet, str(ROOT / "docs"), str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr


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


PRINTING = ["README.md", "docs/tutorial.md"]


# Of figures that come from noise: their standard deviation in 100 runs, by the words before them.
NOISE = {"one row ": 0.0031, "five rows ": 0.0092, "AUC ": 0.0109, "calibration error ": 0.0027,
         "security above ": 0.0092}  # fmt: skip


def assert_same_words(said: str, printed: str) -> None:
    """What a page says that a block prints: the same words, and figures within the noise.

    The last digit of any figure is rounded. A figure with noise is that of one run in the page and
    of another one here: it may be 2 deviations from the mean there, and 6 on the other side here.
    """
    ours, theirs = (re.split(r"(\d[\d.e-]*)", text) for text in (said, printed))
    assert ours[::2] == theirs[::2]
    for words, one, other in zip(ours[::2], ours[1::2], theirs[1::2], strict=False):
        noise = next((sd for end, sd in NOISE.items() if words.endswith(end)), 0.0)
        unit = 10.0 ** int(Decimal(one).as_tuple().exponent)
        assert float(other) == pytest.approx(float(one), rel=0, abs=1.001 * unit + 8 * noise)


@pytest.mark.parametrize("page", PRINTING)
def test_page_prints_what_it_says(page, capsys, tmp_path, monkeypatch):
    pytest.importorskip("statsmodels")
    pytest.importorskip("matplotlib").use("Agg")
    monkeypatch.chdir(tmp_path)  # of the budget's file
    text = (ROOT / page).read_text(encoding="utf-8")
    scope: dict[str, object] = {}
    printed, everything, compared = "", "", 0
    blocks = re.findall(r"^```(python|text)\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)
    for language, block in blocks:
        if language == "python":
            exec(compile(block, page, "exec"), scope)
            printed = capsys.readouterr().out
            everything += printed
            continue
        assert_same_words(block, printed)
        compared += 1
    assert compared
    assert page != "README.md" or "differentially private" in everything
