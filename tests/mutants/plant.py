"""Where a mistake can be planted in a module, and the module with one.

A mistake is one changed number, comparison, branch, operator or truth value, or a call that is left
out. Modules are changed as they are imported; no file is touched.
"""

import ast
import importlib.abc
import importlib.util
import sys
from collections.abc import Callable, Container, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

__all__ = ["Mistake", "install", "mistakes_of"]

_COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
_OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.FloorDiv, ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult, ast.LShift: ast.RShift, ast.RShift: ast.LShift, ast.Pow: ast.Mult,
}  # fmt: skip


@dataclass(frozen=True)
class Mistake:
    """One mistake: the place of a node among all nodes of a module, and what becomes of it."""

    module: str
    line: int
    node: int
    kind: str

    def __str__(self) -> str:
        return f"{self.module}:{self.line} {self.kind}"


def _changes(node: ast.AST) -> dict[str, Callable[[Any], ast.AST]]:
    """What may become of a node, by name."""
    out: dict[str, Callable[[Any], ast.AST]] = {}
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        value = node.value
        half = value // 2 if type(value) is int else value / 2
        for name, other in (("half", half), ("twice", value * 2), ("more", value + 1)):
            if other != value:
                out[name] = lambda n, v=other: ast.Constant(v)
    elif isinstance(node, ast.Constant) and type(node.value) is bool:
        out["flip"] = lambda n: ast.Constant(not n.value)
    elif isinstance(node, ast.Compare) and type(node.ops[0]) in _COMPARISONS:
        ops = [_COMPARISONS[type(node.ops[0])](), *node.ops[1:]]
        out["compare"] = lambda n: ast.Compare(n.left, ops, n.comparators)
    elif isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        operator = _OPERATORS[type(node.op)]()
        out["operator"] = lambda n: ast.BinOp(n.left, operator, n.right)
    elif isinstance(node, ast.BoolOp):
        other_op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        out["and or"] = lambda n: ast.BoolOp(other_op, n.values)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        out["not"] = lambda n: n.operand
    elif isinstance(node, (ast.If, ast.IfExp)):
        kind = type(node)
        out["branch"] = lambda n: kind(ast.UnaryOp(ast.Not(), n.test), n.body, n.orelse)
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        out["left out"] = lambda n: ast.Pass()
    return out


def mistakes_of(module: str, path: Path, lines: Container[int]) -> Iterator[Mistake]:
    """All mistakes that can be planted in some lines of a module."""
    for place, node in enumerate(ast.walk(ast.parse(path.read_text(encoding="utf-8")))):
        if getattr(node, "lineno", None) in lines:
            for kind in _changes(node):
                yield Mistake(module, node.lineno, place, kind)  # type: ignore[attr-defined]


class _Planter(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Gives one module with a mistake in it."""

    def __init__(self, mistake: Mistake, path: Path) -> None:
        self.mistake, self.path = mistake, path

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> Any:
        if fullname != self.mistake.module:
            return None
        package = [str(self.path.parent)] if self.path.name == "__init__.py" else None
        return importlib.util.spec_from_file_location(
            fullname, self.path, loader=self, submodule_search_locations=package
        )

    def get_code(self, fullname: str) -> Any:
        tree = ast.parse(self.path.read_text(encoding="utf-8"))
        chosen = list(ast.walk(tree))[self.mistake.node]
        change = _changes(chosen)[self.mistake.kind]

        class Replace(ast.NodeTransformer):
            def visit(self, node: ast.AST) -> Any:
                self.generic_visit(node)
                return ast.copy_location(change(node), node) if node is chosen else node

        tree = ast.fix_missing_locations(Replace().visit(tree))
        return compile(tree, str(self.path), "exec")

    def create_module(self, spec: Any) -> None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        exec(self.get_code(module.__name__), module.__dict__)


def install(mistake: Mistake, path: Path) -> None:
    """Plant a mistake in a module that is not imported yet."""
    assert mistake.module not in sys.modules
    sys.meta_path.insert(0, _Planter(mistake, path))
