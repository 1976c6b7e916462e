"""The page of the kernel lists all its files, which need no others, and no other file draws."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "kernel.md").read_text(encoding="utf-8")
ALONE = " (header alone)"
OF_SYSTEMS = PAGE.index("## What only published systems release")
ENTRY = re.compile(rf"^- `([^`]+)`({re.escape(ALONE)})?(?:: |$)", re.M)


def files_of(text: str) -> tuple[list[Path], list[Path]]:
    """The files of Python and of C++ that a part of the page lists."""
    python, cpp = [], []
    for name, alone in ENTRY.findall(text):
        path = ROOT / name
        if path.suffix == ".py":
            python.append(path)
        else:
            ways = (path,) if alone else (path, path.with_suffix(".cc"))
            cpp += [way for way in ways if way.is_file()]
    return python, cpp


PYTHON, CPP = files_of(PAGE[:OF_SYSTEMS])
SYSTEMS, SYSTEMS_CPP = files_of(PAGE[OF_SYSTEMS:])
MOST_LINES = 16_200
DRAWS = {"release_before_trees", "discover_numbers", "discrete_gaussian", "draw_words"}
"""Functions that draw, or read exact numbers of rows to draw."""
DRAW_NOTHING = {"XGDPBuildInfo", "XGDPDropPads", "XGDPKeepPads"}
"""Functions of the library that others call by name: they read no rows."""
EVENTS = {
    "GaussianEvent", "LaplaceEvent", "ExponentialEvent", "ThresholdEvent", "ChoiceEvent",
    "SelectionEvent", "SampledEvent", "ParallelEvent",
}  # fmt: skip
PROPOSERS = (
    "calibrate.py", "prototype.py", "published/", "audit/", "discovery/discover.py",
    "selection/plans.py",
)  # fmt: skip
"""Modules that create events only to compute their cost; these never enter a ledger."""


def modules_of(path: Path) -> Iterator[Path]:
    """Yield the files of xgb_dp that a module imports at run time, not only for annotations."""
    package = path.relative_to(ROOT).parent.parts

    def walk(node: ast.AST) -> Iterator[ast.ImportFrom]:
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            return
        if isinstance(node, ast.ImportFrom):
            yield node
        for child in ast.iter_child_nodes(node):
            yield from walk(child)

    for node in walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not node.level and not (node.module or "").startswith("xgb_dp"):
            continue
        base = package[: len(package) - node.level + 1] if node.level else ()
        folder = ROOT.joinpath(*base, *(node.module or "").split("."))
        for name in node.names:
            ways = (folder / f"{name.name}.py", folder.with_suffix(".py"), folder / "__init__.py")
            yield next(way for way in ways if way.is_file())


def test_every_file_is_there_once():
    listed = [ROOT / name for name, _ in ENTRY.findall(PAGE)]
    assert all(path.is_file() for path in listed)
    assert len(set(listed)) == len(listed) > 70


@pytest.mark.parametrize("path", PYTHON + SYSTEMS, ids=lambda p: str(p.relative_to(ROOT)))
def test_modules_import_no_others(path):
    """Files of published systems may import the kernel, but not the other way round."""
    known = PYTHON + SYSTEMS if path in SYSTEMS else PYTHON
    assert {m.relative_to(ROOT) for m in modules_of(path)} <= {p.relative_to(ROOT) for p in known}


GUARDS = [ROOT / "plugin_cpp" / name for name in ("guard.h", "guard.cc", "upstream.h")]
"""Guards outside the kernel; they include only kernel files and each other."""


@pytest.mark.parametrize("path", CPP + SYSTEMS_CPP + GUARDS, ids=lambda p: str(p.relative_to(ROOT)))
def test_files_include_no_others(path):
    known = CPP + (SYSTEMS_CPP if path in SYSTEMS_CPP else GUARDS if path in GUARDS else [])
    included = re.findall(r'#include "(plugin_cpp/[^"]+)"', path.read_text(encoding="utf-8"))
    assert {ROOT / name for name in included} <= set(known)


def test_it_can_be_read():
    lines = sum(len(p.read_text(encoding="utf-8").splitlines()) for p in {*PYTHON, *CPP})
    assert lines <= MOST_LINES


def others() -> list[Path]:
    return sorted({*(ROOT / "xgb_dp").rglob("*.py")} - {*PYTHON, *SYSTEMS})


def test_nobody_else_draws():
    """Neither by a name that is imported, nor through a module of the kernel."""
    for path in others():
        nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
        used = {node.name for node in nodes if isinstance(node, ast.alias)}
        used |= {
            node.attr
            for node in nodes
            if isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Name)
            and node.value.id == "native"
        }
        assert not used & DRAWS, path
        strings = {node.value for node in nodes if isinstance(node, ast.Constant)}
        strings_used = {
            text for text in strings if isinstance(text, str) and text.startswith("XGDP")
        }
        assert strings_used <= DRAW_NOTHING, path


def test_events_of_ledgers_come_from_the_kernel():
    package = ROOT / "xgb_dp"
    for path in others():
        if path.relative_to(package).as_posix().startswith(PROPOSERS):
            continue
        calls = [
            node.func.id
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        ]
        assert not EVENTS & set(calls), path
