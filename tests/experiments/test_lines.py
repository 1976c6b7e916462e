"""Lines of figures are printed, kept and shown on pages."""

import csv
from pathlib import Path

import pytest

from experiments import coverage, evaluation, targets
from experiments.attacks import __main__ as attacks
from experiments.attacks import checkers, ratios
from experiments.attacks.page import PAGE, markdown
from experiments.lines import show_lines, with_part


def lines_of(file: Path) -> list[list[str]]:
    with file.open(newline="", encoding="utf-8") as opened:
        return list(csv.reader(opened))[1:]


def test_lines_are_printed_and_kept(tmp_path, capsys):
    kept = tmp_path / "kept.csv"
    assert show_lines(["a", "b"], iter([[1, "x"], [2, "y"]]), kept) == [[1, "x"], [2, "y"]]
    assert capsys.readouterr().out == kept.read_text(encoding="utf-8") == "a,b\n1,x\n2,y\n"
    assert show_lines(["a"], [], None) == []


def test_a_part_is_written_anew():
    page = "before\n<!-- x: begin -->\nold\n<!-- x: end -->\nafter\n"
    assert with_part(page, "x", r"new \1" + "\n") == page.replace("old", r"new \1")
    for text in ("no marks", page + page):
        with pytest.raises(ValueError, match="x: begin"):
            with_part(text, "x", "new")


def test_pages_have_the_committed_figures():
    text = coverage.PAGE.read_text(encoding="utf-8")
    part = coverage.page(lines_of(coverage.RESULTS / "coverage.csv"))
    assert with_part(text, "coverage", part) == text
    part = evaluation.page(lines_of(evaluation.RESULTS / "evaluation.csv"))
    assert with_part(text, "holdouts", part) == text
    text = targets.PAGE.read_text(encoding="utf-8")
    part = targets.table(lines_of(targets.RESULTS / "targets.csv"))
    assert with_part(text, "targets", part) == text
    text = PAGE.read_text(encoding="utf-8")
    assert with_part(text, "attacks", markdown(lines_of(attacks.RESULTS))) == text
    for name, command in (("ratios", ratios), ("checkers", checkers)):
        part = markdown(lines_of(command.RESULTS), command.TABLES)
        assert with_part(text, name, part) == text
