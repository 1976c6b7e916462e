"""Names and sizes that keep the code easy to find and to read."""

import ast
from collections import Counter
from pathlib import Path

from xgb_dp.parameters.parameter import Table
from xgb_dp.request.params import PARAMETERS

ROOT = Path(__file__).resolve().parents[2]
PYTHON = sorted((ROOT / "xgb_dp").rglob("*.py"))
FOLDERS = ("xgb_dp", "tests", "tools", "experiments", "benchmarks", "docs", "examples")
CPP = sorted((ROOT / "plugin_cpp").rglob("*.cc"))
MOST_LINES, MOST_OF_FUNCTION, MOST_PARAMETERS = 900, 60, 25
SAY_NOTHING = {
    "aimed",
    "asked",
    "booked",
    "found",
    "made",
    "mine",
    "own",
    "spelt",
    "told",
    "wanted",
}
"""Names of locals that do not say what a thing is."""
FACES = {"__init__", "__main__"}
IN_BOTH = {
    "bounded_range", "candidates", "column_sums", "correction", "histograms",
    "label_range", "label_sums", "leaves",
    "ledger", "plan", "program", "splits",
}  # fmt: skip
"""Stems of one thing that has a part in Python and one in C++."""


def stems(paths: list[Path]) -> Counter[str]:
    return Counter(path.stem for path in paths if path.stem not in FACES)


def test_no_stem_stands_in_two_rooms():
    python, cpp = stems(PYTHON), stems(CPP)
    assert {*python.values(), *cpp.values()} == {1}
    assert python.keys() & cpp.keys() == IN_BOTH


def test_no_file_is_long():
    files = [*PYTHON, *CPP, *(ROOT / "plugin_cpp").rglob("*.h")]
    long = {p for p in files if len(p.read_text(encoding="utf-8").splitlines()) > MOST_LINES}
    assert not long


def functions(path: Path) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    return [n for n in nodes if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]


def test_functions_are_short():
    for path in PYTHON:
        for node in functions(path):
            code = node.body[1:] if ast.get_docstring(node) else node.body
            short = not code or node.end_lineno - code[0].lineno < MOST_OF_FUNCTION
            assert short, f"{path}: {node.name}"


def test_locals_say_what_they_are():
    for folder in FOLDERS:
        for path in (ROOT / folder).rglob("*.py"):
            for node in functions(path):
                assert not locals_of(node) & SAY_NOTHING, f"{path}: {node.name}"


def locals_of(function: ast.AST) -> set[str]:
    """Return the names that a function, including nested ones, assigns or takes."""
    nodes = list(ast.walk(function))
    names = {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    return names | {node.arg for node in nodes if isinstance(node, ast.arg)}


def test_the_first_table_of_parameters_is_short():
    usual = [row for row in PARAMETERS.values() if row.table is Table.USUAL]
    assert len(usual) <= MOST_PARAMETERS
