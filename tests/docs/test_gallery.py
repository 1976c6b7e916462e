"""The notebooks of the gallery run offline, draw what they describe, and print what they say."""

import ast
from pathlib import Path

import pytest

from .test_examples import assert_same_words

GALLERY = Path(__file__).resolve().parents[2] / "docs" / "gallery"
PAGES = sorted(GALLERY.glob("*.md"))


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.stem)
def test_notebook_runs(page, capsys, tmp_path, monkeypatch):
    """`prints` of a cell is its output, and a cell has a text for its plot if it draws one."""
    read = pytest.importorskip("myst_nb.core.read")
    config = pytest.importorskip("myst_parser.config.main").MdParserConfig()
    pytest.importorskip("statsmodels")
    pytest.importorskip("matplotlib").use("Agg")
    import matplotlib.pyplot as plt

    plt.close("all")  # of tests that ran before in this process
    monkeypatch.chdir(tmp_path)  # of files that a notebook writes
    text = page.read_text(encoding="utf-8")
    notebook = read.read_myst_markdown_notebook(text, config)
    scope: dict[str, object] = {}
    compared = drawn = 0
    for cell in notebook.cells:
        if cell.cell_type != "code":
            continue
        last = ast.parse(cell.source).body[-1]
        shown = isinstance(last, ast.Expr) and not ast.unparse(last).startswith("print(")
        assert not shown or cell.source.endswith(";"), "a notebook would show this object"
        exec(compile(cell.source, page.name, "exec"), scope)
        printed = capsys.readouterr().out
        if "prints" in cell.metadata:
            assert_same_words(cell.metadata["prints"], printed.strip())
            compared += 1
        described = cell.metadata.get("mystnb", {}).get("image", {}).get("alt", "")
        assert bool(plt.get_fignums()) == bool(described)
        drawn += bool(described)
        plt.close("all")
    assert compared
    assert drawn
    assert f"{{nb-download}}`{page.stem}.ipynb`" in text
