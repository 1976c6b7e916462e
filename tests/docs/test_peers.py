"""Every fault found in other implementations has a test here that would notice it.

`docs/peers.md` is the table; the tests that were written for it are in `tests/peers/`.
"""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FAULTS = {"S": 16, "M": 6, "D": 6, "F": 3, "E": 3, "B": 6, "P": 3, "A": 1}
NAMED = re.compile(r"`((?:\w+/)?\w+)::(test_\w+)`")


def table() -> dict[str, list[str]]:
    """The cells of each row of the page, by the id of its fault."""
    lines = (ROOT / "docs" / "peers.md").read_text(encoding="utf-8").splitlines()
    rows = [[c.strip() for c in line.strip("|").split("|")] for line in lines if line[:1] == "|"]
    assert rows[0] == ["id", "fault", "tests"]
    assert len({row[0] for row in rows}) == len(rows)
    return {row[0]: row for row in rows[2:]}


@cache
def names_in(module: str) -> set[str]:
    """Names of the tests of a module, which none of its marks keeps from running everywhere."""
    folder, _, name = module.rpartition("/")
    path = ROOT / "tests" / folder / f"test_{name}.py"
    if not path.exists():
        return set()
    names = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            marks = " ".join(ast.unparse(d) for d in node.decorator_list)
            if not re.search(r"\bxfail\b|mark\.skip\b", marks):
                names.add(node.name)
    return names


def test_every_fault_is_in_the_table():
    expected = [f"{letter}{i}" for letter, n in FAULTS.items() for i in range(1, n + 1)]
    assert list(table()) == expected


@pytest.mark.parametrize("fault", table())
def test_every_fault_has_tests_that_exist(fault):
    row = table()[fault]
    assert len(row) == 3 and all(row)
    named = NAMED.findall(row[2])
    assert named and len(named) == row[2].count("`") // 2
    for module, test in named:
        assert test in names_in(module), f"{module}::{test}"


@pytest.mark.parametrize("path", sorted((ROOT / "tests" / "peers").glob("test_*.py")),
                         ids=lambda p: p.stem)  # fmt: skip
def test_every_test_written_for_a_fault_is_in_the_table(path):
    module = f"peers/{path.stem.removeprefix('test_')}"
    named = {test for row in table().values() for m, test in NAMED.findall(row[2]) if m == module}
    assert named == names_in(module)
